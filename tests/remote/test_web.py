"""Are files read over HTTP as they are on disk, and with how many requests?"""

import contextlib
import io
import os
import pickle
import random
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import FileChangedError, FileFormatError, RemoteError, UsageError
from chunkwise.remote import opening
from chunkwise.remote.blocks import FRONT_NBYTES
from chunkwise.remote.faults import Patience
from tests.support.threads import run_in_threads
from tests.support.web import Server, serving

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

SHAPE = (40, 60, 80)


def made(**options: Any) -> bytes:
    """A file with data of all layouts, behind a group and attributes."""
    stream = io.BytesIO()
    values = np.random.default_rng(1).integers(0, 50, SHAPE).astype("i4")
    with h5py.File(stream, "w", **options) as file:
        group = file.create_group("group")
        group.attrs["about"] = "x" * 2000
        chunked = {"data": values, "chunks": (1, 60, 80)}
        # First, so that what follows is not fetched with the front.
        group.create_dataset("contiguous", data=values)
        group.create_dataset("filtered", compression=4, shuffle=True, **chunked)
        group.create_dataset("plain", **chunked)
        group.create_dataset("words", data=["one", "two", "three"])
        group.create_dataset("sparse", (100, 100), "f8", chunks=(10, 10), fillvalue=7)[5:15, 3] = 1
    return stream.getvalue()


@pytest.fixture(scope="module")
def content() -> bytes:
    return made()


@pytest.fixture
def server(content: bytes) -> Iterator[Server]:
    with serving({"/a.h5": content}, tags={"/a.h5": '"first"'}) as told:
        yield told


INDICES = (
    np.s_[:], np.s_[3:30:2, 5, ::7], np.s_[::-1, 4:9], np.s_[[1, 2, 30], 3, :], np.s_[39, 59, 79],
    np.s_[5:5],
)  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"userblock_size": 1024}], ids=str)
def test_what_is_read_is_what_h5py_reads(options: dict[str, Any]) -> None:
    content = made(**options)
    with (
        serving({"/a.h5": content}) as server,
        h5py.File(io.BytesIO(content)) as theirs,
        chunkwise.open(f"{server.url}/a.h5") as ours,
    ):
        assert list(ours["group"]) == list(theirs["group"])
        assert dict(ours["group"].attrs) == dict(theirs["group"].attrs)
        assert ours["group/words"].asstr()[:].tolist() == ["one", "two", "three"]
        for name in ("filtered", "plain", "contiguous"):
            ours_of, values = ours["group"][name], theirs["group"][name][...]
            for index in INDICES:
                np.testing.assert_array_equal(ours_of[index], values[index])
            assert ours_of.explain()["reason"] is None
            points = [(3, 5, 9), (30, 0, 2), (3, 5, 9)]
            np.testing.assert_array_equal(
                ours_of.read(chunkwise.points(points)), [values[point] for point in points]
            )
        np.testing.assert_array_equal(ours["group/sparse"][...], theirs["group/sparse"][...])


@settings(max_examples=15)
@given(data=st.data())
def test_any_selection_is_read_as_from_disk(server: Server, content: bytes, data: Any) -> None:
    name = data.draw(st.sampled_from(["filtered", "plain", "contiguous"]))
    index = tuple(
        slice(begin, data.draw(st.integers(begin, n)), data.draw(st.integers(1, 9)))
        for n in SHAPE
        for begin in [data.draw(st.integers(0, n))]
    )
    chunkwise.cache_clear()
    with h5py.File(io.BytesIO(content)) as theirs, chunkwise.open(f"{server.url}/a.h5") as ours:
        expected = theirs["group"][name][index]
        np.testing.assert_array_equal(ours["group"][name][index], expected)


@pytest.mark.parametrize("latency_s", [0.02, 0.1])
def test_a_read_takes_few_rounds_and_few_bytes_more(latency_s: float) -> None:
    stream = io.BytesIO()
    rng = np.random.default_rng(2)
    values = rng.integers(0, 1 << 30, (200, 64, 64), dtype="i4")
    with h5py.File(stream, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 64, 64), compression=1)
        stored = [file["x"].id.get_chunk_info(i).size for i in range(200)]
    with serving({"/a.h5": stream.getvalue()}, latency_s=latency_s) as server:
        with chunkwise.open(f"{server.url}/a.h5") as file:
            np.testing.assert_array_equal(file["x"][100:160], values[100:160])
        needed = sum(stored[100:160])
        # The front, and blocks of the index; both a fixed amount.
        assert server.nbytes - needed <= FRONT_NBYTES + 12 * (32 << 10)
        assert len(server.asked) <= 60 + 14


def test_a_read_asks_for_all_its_parts_together(content: bytes) -> None:
    """Each waits at the server for all others: one by one, none would be answered."""
    # Thirty neighbours, two a request.
    together = threading.Barrier(15)
    opening.PATIENCE = Patience(attempts=1, timeout_s=120.0)

    def waiting(_: Any) -> bool:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(60)
        return False

    with serving({"/a.h5": content}) as server, chunkwise.open(f"{server.url}/a.h5") as file:
        for name in ("filtered", "plain"):
            dataset = file["group"][name]
            _ = dataset.explain()["stored_nbytes"]
            server.fails = waiting
            together.reset()
            dataset[3:33]
            assert not together.broken
            server.fails = None


@pytest.mark.parametrize("what", ["tag", "time", "length"])
def test_whatever_changes_of_an_object_it_is_another_one(what: str, content: bytes) -> None:
    before, after = "Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"
    with (
        serving(
            {"/a.h5": content}, tags={"/a.h5": '"first"'}, changed={"/a.h5": before}
        ) as served,
        chunkwise.open(f"{served.url}/a.h5") as file,
    ):
        dataset = file["group/filtered"]
        assert dataset[0, 0, 0] >= 0
        if what == "tag":
            served.tags["/a.h5"] = '"second"'
        elif what == "time":
            served.changed["/a.h5"] = after
        else:
            served.files["/a.h5"] = content + bytes(8)
        for _ in range(2):
            with pytest.raises(FileChangedError, match="since it was opened") as met:
                dataset[20:40]
            assert "dataset /group/filtered" in str(met.value)


def test_failures_that_pass_are_not_seen(server: Server, content: bytes) -> None:
    dice = random.Random(3)
    # Each kind once, and then by chance; threads throw in another order each time, so that no
    # request fails more often than it is made.
    kinds: list[str] = []
    first, failed = iter(["status", "cut", "short"]), Counter[str]()

    def failing(handler: Any) -> bool:
        kind = next(first, None) or dice.choice(["well"] * 6 + ["status", "cut", "short"])
        kinds.append(kind)
        wanted = handler.headers["Range"]
        if kind == "well" or failed[wanted] == 5:
            return False
        failed[wanted] += 1
        if kind == "status":
            handler.plain(dice.choice([429, 500, 502, 503]))
        elif kind == "cut":
            handler.close_connection = True
        else:
            handler.send_response(206)
            begin, end = handler.headers["Range"][6:].split("-")
            handler.send_header("Content-Range", f"bytes {begin}-{end}/{len(content)}")
            handler.send_header("ETag", '"first"')
            handler.send_header("Content-Length", str(int(end) + 1 - int(begin)))
            handler.end_headers()
            handler.wfile.write(b"12345")
            handler.close_connection = True
        return True

    opening.PATIENCE = Patience(attempts=12, timeout_s=60.0, pause_s=0.001)
    with chunkwise.open(f"{server.url}/a.h5") as ours, h5py.File(io.BytesIO(content)) as theirs:
        server.fails = failing
        for name in ("filtered", "plain", "contiguous"):
            values = theirs["group"][name][...]
            np.testing.assert_array_equal(ours["group"][name][...], values)
    assert {"status", "cut", "short"} <= set(kinds)


def refuse(status: int, **headers: str) -> Any:
    def fails(handler: Any) -> bool:
        handler.plain(status, b"<html>no</html>", **headers)
        return True

    return fails


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (refuse(404), "there is no such object"),
        (refuse(403), "no right to read it; give storage_options="),
        (refuse(401), "no right to read it; give storage_options="),
        (refuse(500), "500 .*, 5 times; check the network"),
        (refuse(200, Content_Type="text/html"), r"page \(text/html\)"),
        (refuse(200, Content_Type="text/plain"), "begins with '<'"),
        (refuse(302, Location="/a.h5"), "leads nowhere"),
        (refuse(418), "answers 418"),
    ],
)
def test_what_cannot_be_had_is_said_once_and_for_all(
    server: Server, fails: Any, said: str
) -> None:
    server.fails = fails
    url = f"{server.url}/a.h5"
    with pytest.raises((RemoteError, FileFormatError), match=said) as met:
        chunkwise.open(url)
    assert str(met.value).startswith(f"{url}: ")
    assert isinstance(met.value, OSError)


def test_a_redirect_is_followed(server: Server) -> None:
    def elsewhere(handler: Any) -> bool:
        if handler.path != "/old.h5":
            return False
        handler.plain(302, Location="/a.h5")
        return True

    server.fails = elsewhere
    with chunkwise.open(f"{server.url}/old.h5") as file:
        assert file["group/filtered"][3, 4, 5] == file["group/plain"][3, 4, 5]


def test_a_server_that_knows_no_parts_is_not_asked_for_the_whole() -> None:
    content = made() + bytes(300_000)

    def whole(handler: Any) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        return True

    said = r"sends the whole file .* download it first"
    with serving({}, fails=whole) as server, pytest.raises(RemoteError, match=said):
        chunkwise.open(f"{server.url}/a.h5")
    small = _tiny()

    def all_of_it(handler: Any) -> bool:
        handler.plain(200, small)
        return True

    # What is small enough is taken whole.
    with serving({}, fails=all_of_it) as server, chunkwise.open(f"{server.url}/a.h5") as file:
        assert file["x"][...].tolist() == [0, 1, 2]


def _tiny() -> bytes:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["x"] = [0, 1, 2]
    return stream.getvalue()


def test_a_request_that_fails_for_good_names_url_dataset_and_chunk(server: Server) -> None:
    with chunkwise.open(f"{server.url}/a.h5") as file:
        dataset = file["group/filtered"]
        assert dataset[0, 0, 0] >= 0
        server.fails = refuse(503)
        with pytest.raises(RemoteError) as met:
            dataset[37]
        said = str(met.value)
        assert said.startswith(f"{server.url}/a.h5: dataset /group/filtered: the chunk at element")
        assert "[37, 0, 0]" in said
        assert "503" in said
        # Once the server is well again, so is the file.
        server.fails = None
        opening_pause()
        assert dataset[37].shape == (60, 80)


def opening_pause() -> None:
    """Wait until what failed is asked for again."""
    threading.Event().wait(2.1)


def test_a_server_that_says_nothing_is_not_waited_for(server: Server) -> None:
    opening.PATIENCE = Patience(attempts=2, timeout_s=0.1, pause_s=0.01)
    stop = threading.Event()
    server.fails = lambda _: bool(stop.wait(5)) or True
    with pytest.raises(RemoteError, match="2 times; check the network"):
        chunkwise.open(f"{server.url}/a.h5")
    stop.set()


def test_what_libhdf5_cannot_get_is_no_missing_object(server: Server) -> None:
    """A failing network is an error, never an absent name."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["pad"] = np.zeros(500_000)
        late = file.create_group("late")
        for number in range(300):
            late[f"x{number}"] = number
    server.files["/late.h5"] = stream.getvalue()
    with chunkwise.open(f"{server.url}/late.h5") as file:
        server.fails = refuse(403)
        for ask in (
            lambda: "late" in file,
            lambda: file.get("late/x7"),
            lambda: list(file["late"]),
            lambda: file["late/x3"][()],
        ):
            with pytest.raises(RemoteError, match=r"late\.h5: the server answers 403"):
                ask()


def test_wrong_uses_are_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can only be read"):
        chunkwise.open(f"{server.url}/a.h5", "r+")
    with pytest.raises(UsageError, match="fsspec does not take it"):
        chunkwise.open("nonsense://x/y.h5")
    with pytest.raises(UsageError, match="storage_options"):
        chunkwise.open(tmp_path / "x.h5", storage_options={})
    server.files["/b.h5"] = b"abc" * 1000
    with pytest.raises(FileFormatError, match="not an HDF5 file"):
        chunkwise.open(f"{server.url}/b.h5")


def test_a_file_goes_to_another_process_by_its_url(server: Server) -> None:
    with chunkwise.open(f"{server.url}/a.h5", storage_options={"headers": {"X-A": "b"}}) as file:
        copy = pickle.loads(pickle.dumps(file["group/filtered"]))
        np.testing.assert_array_equal(copy[7], file["group/filtered"][7])
        copy.file.close()
    assert all(headers.get("X-A") == "b" for headers in server.headers)


def test_many_threads_read_one_file(server: Server) -> None:
    with chunkwise.open(f"{server.url}/a.h5") as file:
        expected = file["group/contiguous"][...]

        def read(number: int) -> None:
            part = file["group"][("filtered", "plain", "contiguous")[number % 3]]
            assert (part[number : number + 9] == expected[number : number + 9]).all()

        run_in_threads([partial(read, number) for number in range(12)])
    assert not [one.name for one in threading.enumerate() if "chunkwise" in one.name]


def test_a_forked_child_reads_on(server: Server) -> None:
    with chunkwise.open(f"{server.url}/a.h5") as file:
        dataset = file["group/filtered"]
        expected = dataset[10:20]
        child = os.fork()
        if not child:
            code = 1
            try:
                chunkwise.cache_clear()
                code = 0 if (dataset[10:20] == expected).all() else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(dataset[20:30], file["group/plain"][20:30])
