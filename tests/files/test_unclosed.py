"""What is a file whose writer was killed good for, and do the commands offered for it save it?"""

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import netCDF4
import numpy as np
import numpy.typing as npt
import pytest

import chunkwise
from chunkwise import measure
from chunkwise.errors import BusyError, FileFormatError, UsageError
from chunkwise.files.superblock import read_superblock
from chunkwise.files.unclosed import is_unclosed, open_unclosed
from chunkwise.inspection import inspect
from chunkwise.remedy.records import ClearCopy, Copy, FollowWriter
from chunkwise.remedy.spelling import in_short, spelled
from chunkwise.verdicts import Exit
from tests.support.commands import ended
from tests.support.processes import ran
from tests.support.tools import paste, require_tool

# Ends as a killed program does: nothing is closed, nothing is tidied up.
KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
SWMR_LOOP = """
f.swmr_mode = True
for i in range(40):
    d.resize(10 * i + 10, 0)
    d[10 * i:] = np.random.default_rng(i).integers(0, 9, (10, 100))
    if i % {every} == {every} - 1:
        d.flush()
"""
MADE = """
import h5py, numpy as np
f = h5py.File("run.h5", "w", libver="latest"{options})
d = f.create_dataset("g/x", (0, 100), "i4", maxshape=(None, 100), chunks=(10, 100){filters})
f["title"] = "a run"
"""
LOOP = """
for i in range(40):
    d.resize(10 * i + 10, 0)
    d[10 * i:] = np.random.default_rng(i).integers(0, 9, (10, 100))
    if i == {last}:
        f.flush()
"""
REOPENED = 'f.close(); f = h5py.File("run.h5", "r+", libver="latest"); d = f["g/x"]\n'
BY_CHUNKWISE = """
import chunkwise, numpy as np
f = chunkwise.open("run.h5", "w", libver="latest")
d = f.create_dataset("g/x", (400, 100), "i4", chunks=(10, 100), compression="gzip")
f["title"] = "a run"
for i in range(40):
    d[10 * i: 10 * i + 10] = np.random.default_rng(i).integers(0, 9, (10, 100))
f.flush()
"""
WRITERS = {
    "swmr": MADE.format(options="", filters="") + SWMR_LOOP.format(every=1),
    "swmr, flushed now and then": MADE.format(options="", filters="") + SWMR_LOOP.format(every=7),
    "swmr, compressed": MADE.format(options="", filters=", compression=1, shuffle=True")
    + SWMR_LOOP.format(every=1),
    "swmr, opened again": MADE.format(options="", filters="")
    + REOPENED
    + SWMR_LOOP.format(every=1),
    "swmr, user block": MADE.format(options=", userblock_size=1024", filters="")
    + SWMR_LOOP.format(every=1),
    "swmr, pages": MADE.format(options=', fs_strategy="page"', filters="")
    + SWMR_LOOP.format(every=1),
    "flushed": MADE.format(options="", filters="") + LOOP.format(last=39),
    "flushed before the last writes": MADE.format(options="", filters="") + LOOP.format(last=20),
    "user block": MADE.format(options=", userblock_size=1024", filters="") + LOOP.format(last=39),
    "chunkwise": BY_CHUNKWISE,
}
SHORTER = {"swmr, flushed now and then": 350, "flushed before the last writes": 210}


def expected(rows: int) -> npt.NDArray[np.int64]:
    steps = [np.random.default_rng(i).integers(0, 9, (10, 100)) for i in range(40)]
    return np.concatenate(steps)[:rows]


@cache
def left_by(writer: str) -> bytes:
    """Have a writer killed at work, and give what it leaves: the same each time."""
    code = WRITERS[writer] + KILL
    with TemporaryDirectory() as folder:
        done = ran([sys.executable, "-c", code], cwd=folder)
        assert done.returncode < 0, done.stderr
        return Path(folder, "run.h5").read_bytes()


def killed(writer: str, folder: Path) -> Path:
    """Write the file that a writer left which was killed."""
    path = folder / "run.h5"
    path.write_bytes(left_by(writer))
    return path


def check(path: Path, writer: str) -> None:
    """All that readers of the file itself could see is in a copy of it."""
    with h5py.File(path) as file:
        rows = SHORTER.get(writer, 400)
        assert file["title"][()] == b"a run"
        values = file["g/x"][...]
    assert values.shape[0] >= rows
    assert np.array_equal(values[:rows], expected(rows))


@pytest.mark.parametrize("writer", WRITERS)
def test_the_commands_save_all_that_was_flushed(writer: str, tmp_path: Path) -> None:
    require_tool("h5clear")
    path = killed(writer, tmp_path)
    before = path.read_bytes()
    facts = inspect(path)
    (finding,) = [each for each in facts.findings if each.code == "not-closed"]
    commands = [fix for fix in finding.fixes if fix.tool in ("chunkwise", "h5clear")]
    assert [fix.tool for fix in commands] == ["chunkwise", "h5clear"]
    for fix in spelled([Copy("run.h5", by_us=True), ClearCopy("run.h5")]):
        paste(fix.text, tmp_path)
    assert path.read_bytes() == before
    for copy in ("run_repacked.h5", "run_cleared.h5"):
        check(tmp_path / copy, writer)
        assert all(each.code != "not-closed" for each in inspect(tmp_path / copy).findings)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "run.h5",
        "run_cleared.h5",
        "run_repacked.h5",
    ]


@pytest.mark.parametrize("writer", [name for name in WRITERS if name.startswith("swmr")])
def test_nothing_that_swmr_readers_see_is_lost(writer: str, tmp_path: Path) -> None:
    path = killed(writer, tmp_path)
    scope: dict[str, Any] = {"h5py": h5py}
    exec(in_short(FollowWriter(str(path))) or "", scope)
    with scope["file"] as file:
        followed = file["g/x"][...]
    chunkwise.repack(path, tmp_path / "copy.h5")
    with h5py.File(tmp_path / "copy.h5") as file:
        assert np.array_equal(file["g/x"][...], followed)
    unclosed = open_unclosed(path)
    assert unclosed is not None
    with unclosed as file:
        assert np.array_equal(file["g/x"][...], followed)


def test_what_h5clear_alone_would_lose(tmp_path: Path) -> None:
    """Why the commands are as they are: should h5clear change, they can be simpler."""
    require_tool("h5clear")
    path = killed("swmr", tmp_path)
    superblock = read_superblock(path)
    assert superblock is not None
    assert superblock.end < 10_000 < path.stat().st_size
    subprocess.run(["h5clear", "-s", path], check=True)
    assert path.stat().st_size == superblock.end


@pytest.mark.parametrize("writer", WRITERS)
def test_inspect_shows_what_is_there(writer: str, tmp_path: Path) -> None:
    facts = inspect(killed(writer, tmp_path))
    (found,) = [each.dataset for each in facts.objects if each.path == "/g/x"]
    assert found is not None
    assert found.chunks is not None
    assert found.chunks.allocated >= SHORTER.get(writer, 400) // 10
    assert facts.metadata is not None
    assert facts.metadata.raw_nbytes >= (found.stored_nbytes or 0) > 0
    codes = [finding.code for finding in facts.findings]
    assert codes[0] == "not-closed"
    assert "lost-space" not in codes
    for finding in facts.findings[1:]:
        assert all(fix.writing or fix.repacks for fix in finding.fixes)


def test_other_chunks_straight_from_the_file(tmp_path: Path) -> None:
    path = killed("swmr, compressed", tmp_path)
    summary = chunkwise.repack(path, tmp_path / "copy.h5", chunk="100x100", filters="zstd:3")
    assert any("did not close it" in warning for warning in summary.warnings)
    with h5py.File(tmp_path / "copy.h5") as file:
        assert file["g/x"].chunks == (100, 100)
    with chunkwise.open(tmp_path / "copy.h5") as copy:
        values: Any = copy["g/x"]
        assert np.array_equal(values[...], expected(400))


def test_many_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    killed("swmr", folder)
    with h5py.File(folder / "closed.h5", "w") as file:
        file["x"] = 1
    paste("chunkwise repack in -o out", tmp_path)
    assert sorted(p.name for p in (tmp_path / "out").glob("*.h5")) == ["closed.h5", "run.h5"]
    check(tmp_path / "out" / "run.h5", "swmr")


def test_not_in_place(tmp_path: Path) -> None:
    path = killed("swmr", tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="may still be at work"):
        chunkwise.repack(path, in_place=True)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.h5"]


def test_opening_says_what_saves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed("swmr", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError) as raised:
        chunkwise.open("run.h5")
    said = str(raised.value)
    assert str(in_short(FollowWriter("run.h5"))) in said
    command = said.rpartition("saved by: ")[2]
    paste(command, tmp_path)
    check(tmp_path / "run_repacked.h5", "swmr")


def test_a_file_of_the_usual_format_needs_no_saving(tmp_path: Path) -> None:
    """netCDF-C's files have no mark: what was flushed is simply there."""
    code = (
        "import netCDF4; f = netCDF4.Dataset('run.h5', 'w'); f.createDimension('t', None)\n"
        "v = f.createVariable('x', 'i4', ('t',)); v[0:100] = range(100); f.sync()\n"
    )
    subprocess.run([sys.executable, "-c", code + KILL], cwd=tmp_path, check=False)
    path = tmp_path / "run.h5"
    assert not is_unclosed(path)
    assert all(each.code != "not-closed" for each in inspect(path).findings)
    with netCDF4.Dataset(path) as file:
        assert file["x"][:].tolist() == list(range(100))


def test_a_file_cut_below_its_end_is_not_promised_anything(tmp_path: Path) -> None:
    path = killed("flushed", tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FileFormatError, match="truncated"):
        chunkwise.repack(path, tmp_path / "copy.h5")
    shutil.copy(path, tmp_path / "b.h5")
    assert open_unclosed(path) is None


# bench ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", ["swmr", "flushed"])
def test_it_is_refused_with_the_command_that_saves_it(writer: str, tmp_path: Path) -> None:
    path = killed(writer, tmp_path)
    done = ended("bench", "run.h5", cwd=tmp_path)
    assert done.returncode == Exit.UNJUDGED
    (line,) = done.stderr.splitlines()
    assert line.startswith("chunkwise: run.h5: its writer did not close it")
    _, _, command = line.partition("saved by: ")
    assert shlex.split(command)[:3] == ["chunkwise", "repack", "run.h5"]
    paste(command, tmp_path)
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
        measure.run(path, "/g/x")


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
