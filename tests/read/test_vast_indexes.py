"""Datasets of very many chunks, few of them written, cost what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.inspection import inspect
from tests.support.reading import same

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
    assert (plan["path"], plan["missing_chunks"]) == ("chunked", 4)


@pytest.mark.parametrize("dtype", ["u1", h5py.string_dtype()], ids=["plain", "strings"])
@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
def test_repacking_and_inspecting_cost_what_is_written(
    tmp_path: Path, dtype: Any, filters: dict[str, Any]
) -> None:
    """Of 10^12 chunks one is written; nobody may go through the rest."""
    path, other = tmp_path / "vast.h5", tmp_path / "other.h5"
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("d", (10**12,), dtype, chunks=(1,), maxshape=(None,), **filters)
        d[5] = 7 if dtype == "u1" else "seven"
    facts = inspect(path)
    (found,) = (each.dataset for each in facts.objects if each.dataset is not None)
    assert found.chunks is not None
    assert (found.chunks.allocated, found.chunks.pairs) == (1, 0)
    for rules in (None, "d:zstd") if dtype == "u1" else (None,):
        # Of strings around the one that is written, the proof looks at what memory holds.
        chunkwise.repack(path, other, filters=rules, memory=2**20, force=True)
        with h5py.File(path) as f, h5py.File(other) as g:
            assert g["d"].shape == (10**12,)
            assert same(g["d"][:9], f["d"][:9])
