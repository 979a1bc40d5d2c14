"""Is a file far away shown as one that is here, with what its requests cost?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.model.far import Link
from chunkwise.viewing.costs import Tried
from chunkwise.viewing.saving import saved_page
from chunkwise.viewing.session import Session
from tests.support.web import Server, serving
from tests.viewing.test_answers import asked

pytest.importorskip("aiohttp")
LATENCY_S = 0.05


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    with serving({"/x.h5": path.read_bytes()}, latency_s=LATENCY_S) as found:
        yield found


@pytest.fixture(scope="module")
def far(server: Server) -> Session:
    return Session.of(f"{server.url}/x.h5", "cube", ("line:0",))


def test_the_tree_and_chunks_are_those_of_the_file(far: Session, path: Path) -> None:
    here = Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))
    first, same = far.first(), here.first()
    assert first["objects"] == same["objects"]
    assert [one["code"] for one in first["findings"]] == [one["code"] for one in same["findings"]]
    assert not any(one["fixes"] for one in first["findings"])
    assert first["far"]["requests"] > 0
    # What is measured lacks the time that the bytes took: a little less than what was waited.
    assert first["far"]["latency_s"] > 0.8 * LATENCY_S
    for name in ("/cube", "/group/sparse"):
        words = asked(here, name)
        assert far.chunks(words) == here.chunks(words)
        words |= {"index": [",".join("0" * len(here.chunks(words)["grid"]))]}
        assert far.chunk(words) == here.chunk(words)
    words = asked(here, "/cube", "line:0", "plane:0@walk")
    found = far.bytes_of(words)
    # Where metadata lies far away is not looked for.
    assert found == {name: here.bytes_of(words)[name] for name in ("own", "others")}
    near = here.costs(words)["reads"]
    for one, other in zip(far.costs(words)["reads"], near, strict=True):
        for key in ("chunks", "selected_nbytes", "decoded_nbytes", "loads"):
            assert one["now"][key] == other["now"][key]


def test_requests_are_those_that_reading_takes(far: Session, server: Server, path: Path) -> None:
    (read,) = far.costs(asked(far, "/cube", "line:0"))["reads"]
    now = read["now"]
    assert now["chunkwise_requests"] == now["libhdf5_requests"] == 24
    # One after another, or all at once.
    latency_s = far.first()["far"]["latency_s"]
    assert now["libhdf5_s"] > 24 * latency_s > now["chunkwise_s"] > latency_s
    with chunkwise.open(f"{server.url}/x.h5") as file:
        dataset = file["cube"]
        before = len(server.asked)
        values = dataset[:, 40, 7]
        made = len(server.asked) - before
    # Neighbours come together, and structures are read, too.
    assert made <= now["chunkwise_requests"]
    with h5py.File(path) as same:
        assert np.array_equal(values, same["cube"][:, 40, 7])


def test_its_commands_name_the_url(far: Session, server: Server) -> None:
    found = far.costs(asked(far, "/cube", "line:0", chunk="24x10x10"))
    assert found["commands"] == []
    assert found["page"] == {
        "begin": f"chunkwise view {server.url}/x.h5 /cube",
        "reads": ["line:0"],
        "options": " --chunk 24x10x10",
    }
    assert found["write"] is None
    assert found["reads"][0]["then"]["chunkwise_requests"] == 1
    with pytest.raises(UsageError, match="download it first"):
        far.begin(asked(far, "/cube", "line:0", work="bench"))


def test_what_is_not_there_is_an_error(server: Server) -> None:
    with pytest.raises(ChunkwiseError, match="nothing"):
        Session.of(f"{server.url}/nothing.h5")
    with pytest.raises(ChunkwiseError, match="no dataset"):
        Session.of(f"{server.url}/x.h5", "nothing")
    with pytest.raises(UsageError, match="name it"):
        Session.of(f"{server.url}/x.h5", tried=Tried(chunk="1x1"))


def test_its_page_is_saved(far: Session) -> None:
    text = saved_page(far)
    assert "chunkwise_requests" in text
    assert "</script><script>document" not in text


def test_values_come_from_far_away(far: Session) -> None:
    words = asked(far, "/cube") | {"at": ["3,0,0"], "shown": ["1,2"]}
    found = far.picture(words)
    assert (found["rows"], found["columns"]) == (60, 50)


def test_waits_add_up() -> None:
    link = Link(0.1, 1e6, 64)
    assert link.seconds(1, 100, 1e6, at_once=False) == pytest.approx(11.0)
    # 100 requests, 64 at a time.
    assert link.seconds(1, 100, 1e6, at_once=True) == pytest.approx(1.2)
    # Ten reads, one after another; and a hundred that find most in a cache.
    assert link.seconds(10, 100, 0, at_once=True) == pytest.approx(1.0)
    assert link.seconds(100, 30, 0, at_once=True) == pytest.approx(3.0)
