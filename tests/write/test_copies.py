"""A group of h5py's that copies a dataset or a file of ours copies what was written."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise


@pytest.mark.parametrize("what", ["dataset", "file", "name"])
def test_a_copy_by_h5py_has_what_waits(tmp_path: Path, what: str) -> None:
    with (
        chunkwise.open(tmp_path / "x.h5", "w") as ours,
        h5py.File(tmp_path / "copies.h5", "w") as theirs,
    ):
        d = ours.create_dataset("x", (500,), "i4", chunks=(100,), compression=1)
        # Half a chunk waits for the other half.
        d[:250] = np.arange(250) + 1
        assert d.explain_write()["dirty_chunks"]
        if what == "dataset":
            theirs.copy(d, "y")
        elif what == "file":
            theirs.copy(ours, "all")
        else:
            h5py.Group.copy(ours, "x", theirs, "y")
        got = theirs["all/x" if what == "file" else "y"]
        assert got[:251].tolist() == [*range(1, 251), 0]
