"""What does bench say of a file that its writer has not closed?"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from chunkwise import measure
from chunkwise.cli import main
from chunkwise.errors import BusyError, FileFormatError
from chunkwise.verdicts import Exit
from tests.files.test_unclosed import check, killed
from tests.support.tools import paste


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["chunkwise", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


@pytest.mark.parametrize("writer", ["swmr", "flushed"])
def test_it_is_refused_with_the_command_that_saves_it(
    writer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = killed(writer, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "bench", "run.h5") == Exit.UNJUDGED
    (line,) = capsys.readouterr().err.splitlines()
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
