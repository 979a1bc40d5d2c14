"""Does work run in a process of its own: measured, written with its proof, ended on request?"""

from __future__ import annotations

import base64
import time
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.model.layout import Layout
from chunkwise.model.seconds import Machine
from chunkwise.viewing import work
from chunkwise.viewing.apart import Running
from chunkwise.viewing.picture import FILL, INFINITE, LEVELS, NAN, picture
from chunkwise.viewing.session import Session
from tests.viewing.test_answers import asked, session

__all__ = ["session"]


def nothing(_: object) -> None:
    """Hear of a step."""


def ended(session: Session) -> dict[str, Any]:
    for _ in range(6000):
        state = session.work({})
        if not state["running"]:
            return state
        time.sleep(0.02)
    raise AssertionError(session.work({}))


@pytest.mark.slow
def test_reads_are_measured_beside_what_is_tried(session: Session, known_machine: Machine) -> None:
    assert known_machine.threads
    reads = ("line:0", "plane:0@walk")
    tried = Layout((24, 10, 10), "none")
    found = work.bench(nothing, session.path, "/cube", reads, None, tried)
    assert found["part"] == "the whole dataset"
    assert found["failed"] == []
    for text in reads:
        assert all(seconds > 0 for seconds in found["reads"][text].values())
    # The page asks for the same in a process of its own.
    words = asked(session, "/cube", "line:0", work="bench")
    assert session.begin(words)["running"]
    with pytest.raises(UsageError, match="other work is running"):
        session.begin(words)
    state = ended(session)
    assert state["error"] == ""
    assert state["result"]["reads"]["line:0"]["libhdf5_s"] > 0


@pytest.mark.slow
def test_the_best_is_what_advise_says(session: Session, known_machine: Machine) -> None:
    assert known_machine.threads
    (name,) = (one.path for one in session.quick.objects if one.path.startswith("/not"))
    session.begin(asked(session, name, "all", work="best"))
    with pytest.raises(UsageError) as refused:
        chunkwise.advise(session.path, name, ["all"])
    assert ended(session)["error"] == str(refused.value)
    heard: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "advise", partial(chunkwise.advise, budget_s=2.0))
        found = work.best(
            lambda step: heard.append(step.text), session.path, "/cube", ["line:0"], "libhdf5-1.10"
        )
    assert found["format"] == "chunkwise-advise"
    assert found["patterns"][0]["present_model_s"] > 0
    assert heard


@pytest.mark.slow
def test_a_new_file_is_written_and_proved(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(session.path).read_bytes()
    monkeypatch.chdir(tmp_path)
    words = asked(session, "/cube", work="write", chunk="24x10x10", filters="none")
    with pytest.raises(UsageError, match="name the new file"):
        session.begin(words)
    words["out"] = [str(tmp_path / "new_repacked.h5")]
    session.begin(words)
    state = ended(session)
    assert state["error"] == ""
    assert any("verified" in line for line in state["result"])
    (out,) = tmp_path.glob("*_repacked.h5")
    with h5py.File(out) as file, h5py.File(session.path) as source:
        assert file["cube"].chunks == (24, 10, 10)
        assert np.array_equal(file["cube"][()], source["cube"][()])
    assert Path(session.path).read_bytes() == before
    # Nothing that exists is replaced.
    written = out.read_bytes()
    for there in (str(out), session.path):
        with pytest.raises(UsageError, match="exists: give the new file another name"):
            session.begin(words | {"out": [there]})
    assert out.read_bytes() == written
    assert Path(session.path).read_bytes() == before


@pytest.mark.slow
def test_what_is_written_can_be_ended(tmp_path: Path) -> None:
    source, out = tmp_path / "large.h5", tmp_path / "out.h5"
    values = np.random.default_rng(0).integers(0, 99, (400, 300, 100)).astype("i4")
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 300, 100), compression=1)
    running = Running("write")
    running.begin(str(source), str(out), "/x", "400x1x1", "deflate:9")
    while running.step is None and running.is_running:
        time.sleep(0.01)
    running.cancel()
    while running.is_running:
        time.sleep(0.01)
    assert running.error == "ended: it wrote no file"
    assert [one.name for one in tmp_path.iterdir()] == ["large.h5"]


def test_a_crash_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunkwise.viewing.apart._CODE", "import os; os.abort()")
    running = Running("picture")
    assert running.run("x") is None
    assert "came to no end" in running.error


@pytest.mark.parametrize("shown", [(0, 1), (1, 0), (-1, 1)])
def test_a_picture_is_the_plane_s_values(tmp_path: Path, shown: tuple[int, int]) -> None:
    path = tmp_path / "x.h5"
    values = np.arange(50.0 * 40).reshape(50, 40)
    values[3, 4], values[5, 6], values[7, 8] = np.nan, np.inf, -9
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(7, 9), fillvalue=-9.0)
    found = picture(nothing, str(path), "/x", *shown, [3, 0])
    levels = np.frombuffer(base64.b64decode(found["levels"]), np.uint8)
    levels = levels.reshape(found["rows"], found["columns"])
    plane = {(0, 1): values, (1, 0): values.T, (-1, 1): values[3:4]}[shown]
    assert levels.shape == plane.shape
    assert (levels == NAN).tolist() == np.isnan(plane).tolist()
    assert (levels == INFINITE).tolist() == np.isinf(plane).tolist()
    assert (levels == FILL).tolist() == (plane == -9).tolist()
    usual = np.isfinite(plane) & (plane != -9)
    low, high = found["range"]
    assert (low, high) == (plane[usual].min(), plane[usual].max())
    back = low + levels[usual] / (LEVELS - 1) * (high - low)
    assert np.abs(back - plane[usual]).max() <= (high - low) / (LEVELS - 1)


def test_a_picture_decodes_a_bounded_part(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 15, 1 << 15), "f8", chunks=(512, 512), fillvalue=1)
        file.create_dataset("large", (1 << 15, 1 << 15), "f8", chunks=(1 << 13, 1 << 13))
        file.create_dataset("text", data=np.array([b"a", b"b"]), chunks=(1,))
        file.create_dataset("many", (2,) * 30, "i1", chunks=(1,) * 30)
    found = picture(nothing, str(path), "/x", 0, 1, [0, 0])
    assert found["range"] is None
    assert found["special"] == [FILL]
    # 2 MiB a chunk, of which at most 64 are decoded.
    assert 16 <= found["rows"] * found["columns"] <= 64
    assert picture(nothing, str(path), "/many", 28, 29, [0] * 30)["rows"] == 2
    with pytest.raises(UsageError, match="too much to decode"):
        picture(nothing, str(path), "/large", 0, 1, [0, 0])
    with pytest.raises(UsageError, match="no numbers"):
        picture(nothing, str(path), "/text", -1, 0, [0])


def test_the_page_s_picture_comes_from_another_process(session: Session) -> None:
    words = asked(session, "/cube") | {"at": ["3,0,0"], "shown": ["1,2"]}
    found = session.picture(words)
    with h5py.File(session.path) as file:
        plane = file["cube"][3]
    assert found["range"] == [plane.min(), plane.max()]
    for shown in ("1,1", "0,7", "-2,1", "1"):
        with pytest.raises(UsageError):
            session.picture(words | {"shown": [shown]})
