"""Is a program with HDF5 inside itself known before it runs?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chunkwise.running import program


def test_hdf5_inside_the_program_is_said(tmp_path: Path) -> None:
    true = shutil.which("true")
    if true is None:
        pytest.skip("no program to copy")
    made = tmp_path / "a.out"
    shutil.copy(true, made)
    assert program.find(str(made)).obstacle is None
    with made.open("ab") as file:
        file.write(b"Headers are %u.%u.%u, library is %u.%u.%u\n")
    found = program.find(str(made))
    assert found.obstacle is not None
    assert "h5cc -shlib" in found.obstacle
    assert not found.harms
