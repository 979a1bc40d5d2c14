"""What do bench and hstest measure of a file that its writer has not closed?"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from chunkwise import measure
from chunkwise.cli import main
from chunkwise.errors import BusyError, FileFormatError
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from tests.files.test_unclosed import check, killed
from tests.support.tools import paste

KILLED = ("swmr", "swmr, compressed", "user block")
# Appends until its standard input is closed.
LIVE = """
import sys, threading
import h5py, numpy as np
f = h5py.File("run.h5", "w", libver="latest")
d = f.create_dataset("g/x", (0, 100), "i4", maxshape=(None, 100), chunks=(10, 100))
f.swmr_mode = True
end = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
i = 0
while not end.wait(0.01):
    d.resize(10 * i + 10, 0)
    d[10 * i:] = np.random.default_rng(i).integers(0, 9, (10, 100))
    d.flush()
    i += 1
    if i == 40:
        print("ready", flush=True)
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """Give a file that another process appends to, in SWMR mode."""
    child = subprocess.Popen(
        [sys.executable, "-c", LIVE],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    try:
        yield tmp_path / "run.h5"
        assert child.poll() is None, "the writer ended before it was measured"
    finally:
        child.communicate()


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["chunkwise", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def measured(path: Path, **axes: tuple[str, ...]) -> measure.Results:
    space = Space({"access": ("row=10x100",), **axes})
    return measure.run(path, "/g/x", space, repeat=1, seconds=30)


@pytest.mark.parametrize("writer", KILLED)
def test_what_a_killed_writer_left_is_measured(writer: str, tmp_path: Path) -> None:
    path = killed(writer, tmp_path)
    before = path.read_bytes()
    readers = ("h5py", "libhdf5", "chunkwise", "chunkwise-py")
    results = measured(path, reader=readers)
    assert [cell.problem for cell in results.cells] == [None] * len(readers)
    swmr = writer.startswith("swmr")
    assert [cell.trial.swmr for cell in results.cells] == [swmr] * len(readers)
    # The engine reads the copy itself; along with a writer, libhdf5 reads.
    assert [cell.fallback for cell in results.cells[2:]] == [
        "the file is open for SWMR" if swmr else None
    ] * 2
    assert results.compared == (0 if swmr else len(readers))
    assert results.file.file == results.target.file == str(path)
    assert results.target.cache_nbytes > 0
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("reopen", ["once", "each"])
def test_a_file_is_measured_while_it_is_written(reopen: str, live: Path) -> None:
    readers = ("h5py", "libhdf5", "chunkwise", "chunkwise-py")
    results = measured(live, reader=readers, reopen=(reopen,))
    assert [cell.problem for cell in results.cells] == [None] * len(readers)
    assert all(cell.trial.swmr and cell.operations >= 40 for cell in results.cells)
    assert not results.mismatches


def test_netcdf_c_is_left_out_beside_others(tmp_path: Path) -> None:
    path = killed("swmr", tmp_path)
    said: list[Step] = []
    space = Space.of(access=["row=10x100"], reader=("h5py", "netcdf4"))
    results = measure.run(path, "/g/x", space, repeat=1, seconds=20, progress=said.append)
    assert [cell.reader for cell in results.cells] == ["h5py"]
    assert [step.text for step in said if step.warning] == [
        "netcdf4 is left out: netCDF-C does not read along with a writer (SWMR)"
    ]
    (alone,) = measured(path, reader=("netcdf4",)).cells
    assert alone.problem is None
    assert not alone.trial.swmr


@pytest.mark.parametrize("writer", ["swmr", "flushed"])
def test_other_ways_to_store_it_are_compared_on_a_copy(writer: str, tmp_path: Path) -> None:
    path = killed(writer, tmp_path)
    for axes in ({"filter": ("stored", "deflate:1")}, {"operation": ("write",)}):
        results = measured(path, reader=("h5py", "chunkwise"), **axes)
        assert [cell.problem for cell in results.cells] == [None] * len(results.cells)
        assert not any(cell.trial.swmr for cell in results.cells)
        assert not results.mismatches
        assert results.compared


@pytest.mark.parametrize("writer", ["swmr", "flushed"])
def test_the_state_of_the_file_is_said_first_and_the_command_saves_it(
    writer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = killed(writer, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "bench", "run.h5", "--budget", 10, "--repeat", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("This file has not been closed: its writer is at work, or was")
    assert max(map(len, lines)) <= 80
    commands = [line.strip() for line in lines if line.startswith("  chunkwise repack ")]
    assert [shlex.split(line)[:3] for line in commands] == [["chunkwise", "repack", "run.h5"]]
    paste(commands[0], tmp_path)
    check(tmp_path / "run_repacked.h5", writer)
    assert path.exists()


def test_a_file_cut_short_is_refused_at_once(tmp_path: Path) -> None:
    """With swmr=True libhdf5 would try to open it for hours."""
    path = killed("flushed", tmp_path)
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size // 2)
        # The mark of a SWMR writer, too.
        stream.seek(11)
        stream.write(b"\x05")
    with pytest.raises(FileFormatError):
        measured(path, reader=("h5py",))


def test_a_locked_file_is_refused(tmp_path: Path) -> None:
    """A writer that no reader may follow holds a lock: the file changes under a reader."""
    code = (
        "import sys, h5py; f = h5py.File('run.h5', 'w', libver='latest'); f['x'] = range(9); "
        "f.flush(); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(BusyError, match="open for writing"):
            measure.run(tmp_path / "run.h5")
        child.communicate()
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["x"].shape == (9,)
