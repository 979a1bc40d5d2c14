"""Is what is said of Windows true, as far as another system can tell?"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import system
from chunkwise.cli.main import NOT_OF_WINDOWS, OF_LINUX
from chunkwise.errors import CannotWriteError
from tests.conftest import WINDOWS
from tests.support.commands import run
from tests.support.processes import ROOT, ran

TESTS = WINDOWS.parent
# Runs Windows's Python; `make smoke-windows` and `make test-windows` have one.
PYTHON = os.environ.get("CHUNKWISE_WINDOWS_PYTHON")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_each_test_that_is_skipped_there_exists_and_is_listed_once() -> None:
    import tomllib

    listed = [name for names in tomllib.loads(WINDOWS.read_text()).values() for name in names]
    assert len(listed) == len(set(listed))
    for name in listed:
        path, _, function = name.partition("[")[0].partition("::")
        code = Path(TESTS, path).read_text()
        assert not function or re.search(rf"^ *def {function}\(", code, re.MULTILINE), name


@pytest.mark.parametrize("command", [*OF_LINUX, *NOT_OF_WINDOWS])
def test_a_command_that_does_not_work_there_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(system, "LINUX", False)
    monkeypatch.setattr(system, "FORKS", False)
    done = run(command, "--help")
    assert done.code == 3
    assert len(done.err.splitlines()) == 1
    assert "Linux" in done.err


def test_a_file_of_many_ranks_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from chunkwise import parallel

    monkeypatch.setattr(system, "FORKS", False)
    with pytest.raises(ValueError, match="MPI is not supported on Windows"):
        parallel.open(tmp_path / "a.h5", "w")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(PYTHON is None, reason="no Python for Windows: make smoke-windows has one")
def test_files_and_values_are_those_of_linux() -> None:
    def made(python: str) -> dict[str, Any]:
        done = ran([python, "-m", "tests.support.everywhere"], cwd=ROOT, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    assert PYTHON is not None
    assert made(PYTHON) == made(sys.executable)


def test_why_a_file_cannot_be_replaced_is_said_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(1000)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        # As Windows does; libhdf5 has closed the source by then.
        there = h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)
        assert os.fsencode(path) not in map(h5py.h5f.get_name, there)
        raise PermissionError("it is open in this program or another")

    monkeypatch.setattr(system, "REPLACES_OPEN", False)
    monkeypatch.setattr(system, "replace_at", refuse)
    with pytest.raises(CannotWriteError, match=r"a\.h5: .*open in this .*nothing was changed"):
        chunkwise.repack(path, in_place=True, chunk="100", filters="deflate:1")
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]
