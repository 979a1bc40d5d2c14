"""How does xarray write a dataset with one of its stores, without the data of Dask arrays?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from chunkwise.errors import UsageError
from chunkwise.names import printable

Engine = Literal["netcdf4", "h5netcdf"]

# Encodings with which netCDF4 or netCDF-C changes the written values.
_ROUNDING: Final = ("least_significant_digit", "significant_digits")

# A file system in memory, if there is one.
_MEMORY: Final = "/dev/shm"


@dataclass
class Later:
    """What is written once xarray has closed the file; in place of xarray's `ArrayWriter`."""

    # Gives the blocks of an array, and where they are in it, one after another.
    compute: Callable[[Any], Iterator[tuple[Any, Any]]]
    # Names of variables that the library rounds as it writes them.
    rounded: frozenset[str] = frozenset()
    arrays: dict[str, Any] = field(default_factory=dict)  # Names of variables, and their arrays
    # Names of those that were computed and written at once, and why.
    by_xarray: dict[str, str] = field(default_factory=dict)

    def add(self, source: Any, target: Any, region: Any = None) -> None:
        """Take an array, or write it if it is in memory."""
        import dask.array as da

        if not isinstance(source, da.Array):
            target[... if region is None else region] = source
            return
        if not source.size:
            return
        name = str(target.variable_name)
        why = None
        if region is not None:
            why = "only a part of it is written"
        elif source.dtype.kind in "OU":
            why = "its elements are of variable length"
        elif name in self.rounded:
            why = "netCDF rounds its values"
        if why is None:
            self.arrays[name] = source
            return
        self.by_xarray[name] = why
        if region is not None:
            target[region] = source.compute()
            return
        for at, block in self.compute(source):
            target[at or ...] = block


def rounded_names(
    dataset: Any, encoding: Mapping[Any, Mapping[str, Any]] | None
) -> frozenset[str]:
    """Name the variables that netCDF rounds when it writes them."""
    encoding = encoding or {}
    return frozenset(
        str(name)
        for name, variable in dataset.variables.items()
        if any(encoding.get(name, variable.encoding).get(one) is not None for one in _ROUNDING)
    )


def engine_of(engine: str | None) -> Engine:
    """Choose who makes the file, as xarray does."""
    if engine not in (None, "netcdf4", "h5netcdf"):
        raise UsageError(f"engine {engine!r}: write netcdf4 or h5netcdf")
    for one, module in (("netcdf4", "netCDF4"), ("h5netcdf", "h5netcdf")):
        if engine in (None, one):
            try:
                __import__(module)
            except ImportError as wrong:
                if engine is not None:
                    raise UsageError(
                        f"engine {engine!r}: cannot be imported ({wrong}): pip install {module}"
                    ) from None
            else:
                return one  # type: ignore[return-value]
    raise UsageError("xarray needs netCDF4 or h5netcdf to make the file: pip install netCDF4")


def held_nbytes(dataset: Any, later: Later) -> int:
    """Bytes of the variables that xarray itself writes, about."""
    return sum(
        variable.nbytes
        for name, variable in dataset.variables.items()
        if variable.chunks is None or variable.dtype.kind in "OU" or name in later.rounded
    )


def write_skeleton(
    dataset: Any,
    path: str | None,
    later: Later,
    *,
    engine: Engine,
    group: str | None,
    encoding: Mapping[Any, Mapping[str, Any]] | None,
    unlimited_dims: Sequence[Any] | None,
    invalid_netcdf: bool,
) -> bytes | memoryview:
    """Let xarray create the file, and give its bytes."""
    if unlimited_dims is None:
        unlimited_dims = dataset.encoding.get("unlimited_dims")
    if isinstance(unlimited_dims, str):
        unlimited_dims = [unlimited_dims]
    if engine == "netcdf4" and invalid_netcdf:
        raise UsageError("invalid_netcdf: is an option of engine='h5netcdf' alone")
    more: dict[str, Any] = {"invalid_netcdf": True} if invalid_netcdf else {}
    store, close = _store(engine, path, group, more)
    image: bytes | memoryview = b""
    try:
        dataset.dump_to_store(
            store,
            writer=later,
            encoding={name: dict(one) for name, one in (encoding or {}).items()},
            unlimited_dims=None if unlimited_dims is None else list(unlimited_dims),
        )
    finally:
        image = close()
    return image


def _store(
    engine: Engine, path: str | None, group: str | None, more: dict[str, Any]
) -> tuple[Any, Callable[[], bytes | memoryview]]:
    """A store of xarray's, and what closes it and gives the bytes of a file in memory."""
    from xarray.backends import H5NetCDFStore, NetCDF4DataStore

    if engine == "netcdf4" and path is None:
        # Not by netCDF-C's own files in memory: they do not keep the order of variables.
        folder = tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
        made = Path(folder.name, "skeleton.nc")
        held = NetCDF4DataStore.open(str(made), mode="w", format="NETCDF4", group=group)

        def close_and_read() -> bytes:
            with folder:
                held.close()
                return made.read_bytes()

        return held, close_and_read
    how: dict[str, Any] = {"mode": "w", "format": "NETCDF4", "group": group, **more}
    if engine == "netcdf4":
        store = NetCDF4DataStore.open(path, **how)
    elif path is not None:
        store = H5NetCDFStore.open(path, **how)
    else:
        how |= {"driver": "core", "driver_kwds": {"backing_store": False}}
        store = H5NetCDFStore.open("in memory", **how)

    def close() -> bytes:
        image = b""
        if path is None:
            file = store._manager.acquire()
            file.flush()
            file._h5file.flush()
            image = file._h5file.id.get_file_image()
        store.close()
        return image

    return store, close


def require_valid(dataset: Any) -> None:
    """Raise UsageError for names that netCDF does not have; values of attributes xarray checks."""
    for name in dataset.variables:
        if not isinstance(name, str) or not name:
            raise UsageError(
                f"variable {printable(repr(name))}: netCDF needs names that are text, and not "
                "empty"
            )
