"""Are files that other people's software wrote read as h5py reads them?

Set ``CHUNKWISE_FOREIGN_FILES`` to a folder of HDF5 and netCDF-4 files to run this.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from chunkwise.files.objects import walk
from tests.support.reading import assert_reads_like_h5py

VARIABLE = "CHUNKWISE_FOREIGN_FILES"
FOLDER = os.environ.get(VARIABLE)
SLICES = 100

if not FOLDER:
    pytest.skip(f"{VARIABLE} names no folder of files to read", allow_module_level=True)


def hdf5_files() -> list[Path]:
    found = sorted(path for path in Path(FOLDER or "").rglob("*") if path.is_file())
    return [path for path in found if h5py.is_hdf5(path)]


def readable(file: h5py.File) -> Iterator[h5py.Dataset]:
    """The datasets that h5py itself can read."""
    for entry in walk(file):
        if entry.kind != "dataset":
            continue
        dataset = h5py.Dataset(entry.identifier)
        try:
            # An element is enough to know whether type and filters are understood.
            dataset[(0,) * dataset.ndim] if dataset.size else dataset[()]
        except (OSError, TypeError, ValueError, RuntimeError):
            continue
        yield dataset


@pytest.mark.parametrize("path", hdf5_files(), ids=lambda path: path.name)
def test_every_dataset_reads_as_h5py_reads_it(path: Path) -> None:
    pytest.importorskip("hdf5plugin")  # registers the filters of HDF5's plugins
    with h5py.File(path) as file:
        count = 0
        for seed, dataset in enumerate(readable(file)):
            assert_reads_like_h5py(dataset, SLICES, seed)
            count += 1
    assert count > 0, f"{path}: no dataset that h5py can read"


def test_there_are_files() -> None:
    assert hdf5_files(), f"{FOLDER} ({VARIABLE}) holds no HDF5 file"
