"""Datasets of very many chunks, few of them written, cost what is written."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from tests.reading import same

ROWS = (0, 2**29, 2**31 - 1)


@pytest.mark.parametrize("maxshape", [(None, 8), (None, None)], ids=["array", "b-tree"])
def test_chunks_that_were_never_written_are_not_gone_through(
    tmp_path: Path, maxshape: tuple[int | None, ...]
) -> None:
    """libhdf5 lists an array index by going through each element, for a minute here."""
    with h5py.File(tmp_path / "vast.h5", "w", libver="latest") as f:
        d = f.create_dataset(
            "d", (2**31, 8), "<i2", chunks=(1, 8), maxshape=maxshape, fillvalue=-1
        )
        for row in ROWS:
            d[row] = np.arange(8) + row % 100
    with h5py.File(tmp_path / "vast.h5") as f:
        ours = chunkwise.wrap(f["d"])
        for row in ROWS:
            assert same(ours[row, 2:], f["d"][row, 2:])
        assert same(ours[2**29 - 1 : 2**29 + 2], f["d"][2**29 - 1 : 2**29 + 2])
        plan = ours.explain(np.s_[5:9])
    if maxshape[1] is None:
        assert (plan["path"], plan["missing_chunks"]) == ("chunked", 4)
    else:
        assert "an array of 2147483648, which would take too long" in plan["reason"]
