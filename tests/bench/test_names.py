"""Does bench measure datasets and files of any name, whoever reads or writes?"""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.measure.space import Space


@pytest.mark.parametrize("reader", ["libhdf5", "chunkwise", "h5py", "chunkwise-py"])
@pytest.mark.parametrize("axes", [{}, {"reopen": ("each",)}, {"operation": ("write",)}])
def test_names_may_be_any_bytes(
    reader: str, axes: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    path = tmp_path / "\udcffé.h5"
    name = b"/g\x9b/d\xff\xc3"
    values = np.arange(6000, dtype="i4").reshape(60, 100)
    with h5py.File(path, "w") as file:
        file.create_group(b"g\x9b").create_dataset(b"d\xff\xc3", data=values, chunks=(6, 100))
    space = Space({"access": ("row=1x100",), "reader": (reader,), **axes})
    results = measure.run(path, os.fsdecode(name), space, repeat=1, seconds=10)
    (cell,) = results.cells
    assert cell.problem is None
    assert cell.fallback is None
    if "reopen" not in axes and reader in ("libhdf5", "h5py"):
        assert cell.succeeded[0].breakdown is not None
