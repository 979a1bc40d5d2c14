"""Reading what an index refers to, by zarr and xarray."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.support.reading import same


def by_zarr(target: Path, protocol: str = "file") -> Any:
    """The group that the references of an index are, as zarr reads them."""
    zarr = pytest.importorskip("zarr", minversion="3")
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("reference", asynchronous=True, **_storage(target, protocol))
    store = zarr.storage.FsspecStore(files, read_only=True)
    return zarr.open_group(store, mode="r", zarr_format=2, use_consolidated=True)


def _storage(target: Path, protocol: str) -> dict[str, Any]:
    storage: dict[str, Any] = {"fo": str(target), "remote_protocol": protocol}
    if protocol != "file":
        # What zarr asks by coroutines.
        storage["remote_options"] = {"asynchronous": True}
    return storage


def by_xarray(
    target: Path, group: str | None = None, protocol: str = "file", **options: Any
) -> Any:
    """The same, as xarray reads it."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr", minversion="3")
    pytest.importorskip("fsspec")
    return xarray.open_dataset(
        "reference://",
        engine="zarr",
        group=group,
        backend_kwargs={"consolidated": True, "storage_options": _storage(target, protocol)},
        **options,
    )


def assert_same_values(array: Any, dataset: h5py.Dataset) -> None:
    """An array of zarr's has the bytes that h5py reads."""
    theirs = dataset.asstr()[()] if dataset.dtype.kind == "O" else dataset[()]
    theirs = np.asarray(theirs)
    ours = np.asarray(array[...]).astype(theirs.dtype) if theirs.dtype.kind == "O" else array[...]
    assert array.shape == dataset.shape, dataset.name
    ours = np.asarray(ours)
    # zarr may give numbers in the machine's byte order.
    assert ours.dtype.newbyteorder("=") == theirs.dtype.newbyteorder("="), dataset.name
    if theirs.dtype.kind == "O":
        assert ours.tolist() == theirs.tolist(), dataset.name
    else:
        assert same(ours.astype(theirs.dtype), theirs), dataset.name
