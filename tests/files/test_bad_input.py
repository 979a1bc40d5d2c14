"""Does bad input end in one line, exit code 2, no traceback and nothing left behind?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.processes import ran


def text_file(folder: Path) -> list[str]:
    (folder / "a.h5").write_text("temperature,pressure\n")
    return ["a.h5"]


def netcdf3(folder: Path) -> list[str]:
    (folder / "a.nc").write_bytes(b"CDF\x01" + bytes(100))
    return ["a.nc"]


def truncated(folder: Path) -> list[str]:
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = np.arange(1000)
    os.truncate(folder / "a.h5", 5000)
    return ["a.h5"]


def empty(folder: Path) -> list[str]:
    (folder / "a.h5").touch()
    return ["a.h5"]


def missing(folder: Path) -> list[str]:
    (folder / "run_01.h5").touch()
    return ["run_1.h5"]


def directory(folder: Path) -> list[str]:
    (folder / "runs").mkdir()
    return ["runs"]


def missing_dataset(folder: Path) -> list[str]:
    with h5py.File(folder / "a.h5", "w") as file:
        file["temperature"] = 1
    return ["a.h5", "temprature"]


def group(folder: Path) -> list[str]:
    with h5py.File(folder / "a.h5", "w") as file:
        file["g/x"] = 1
    return ["a.h5", "g"]


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (text_file, "not an HDF5 file"),
        (netcdf3, "chunkwise repack a.nc a_nc4.nc"),
        (truncated, "truncated"),
        (empty, "the file is empty"),
        (missing, "did you mean 'run_01.h5'?"),
        (directory, "a directory"),
        (missing_dataset, "did you mean '/temperature'?"),
        (group, "'/g/x'"),
    ],
)
def test_bad_input_is_one_line_and_its_code(
    tmp_path: Path, prepare: Callable[[Path], list[str]], words: str
) -> None:
    arguments = prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    chunkwise = Path(sys.executable).with_name("chunkwise")
    done = ran([chunkwise, "inspect", *arguments], cwd=tmp_path)
    assert done.returncode == (1 if prepare in (truncated, empty) else 2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("chunkwise: ")
    assert words in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "names.h5", "w") as f:
        f["höhe"] = 1
    done = ran(
        [str(Path(sys.executable).with_name("chunkwise")), "inspect", str(tmp_path / "names.h5")],
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "h\\xf6he" in done.stdout
