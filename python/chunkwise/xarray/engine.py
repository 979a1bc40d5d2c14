"""What does ``engine="chunkwise"`` mean to xarray?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

from chunkwise.errors import FileFormatError, UsageError, like
from chunkwise.names import printable
from chunkwise.words import installing

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

    from chunkwise.file import External
    from chunkwise.xarray.opened import SharedFile

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Options of `open_dataset`: those that say how the file is opened, and those that decode.
_OPENING = (
    *("format", "invalid_netcdf", "phony_dims", "decode_vlen_strings", "driver", "driver_kwds"),
    *("external", "storage_options", "settings"),
)
_DECODING = (
    *("mask_and_scale", "decode_times", "concat_characters", "decode_coords", "drop_variables"),
    *("use_cftime", "decode_timedelta"),
)


class ChunkwiseEntrypoint(BackendEntrypoint):
    """Opens netCDF-4 and HDF5 files, whose data chunkwise reads in parallel.

    xarray calls it: ``xarray.open_dataset(path, engine="chunkwise")``.
    """

    description = "Open netCDF-4 and HDF5 files, read in parallel by chunkwise"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether it is an HDF5 file: by its first bytes, or its name if there is none."""
        if isinstance(filename_or_obj, str | os.PathLike):
            path = os.fspath(filename_or_obj)
            try:
                with open(path, "rb") as stream:  # noqa: PTH123 (a path may be bytes)
                    return stream.read(len(_SIGNATURE)) == _SIGNATURE
            except OSError:
                return str(path).endswith((".nc", ".nc4"))
        return _begins_as_hdf5(filename_or_obj)

    # What xarray would find in the signature.
    open_dataset_parameters = ("filename_or_obj", "group", "lock", *_OPENING, *_DECODING)

    def open_dataset(
        self, filename_or_obj: Any, *, group: str | None = None, lock: Any = None, **options: Any
    ) -> Dataset:
        """Open a group of a file; see `docs/xarray.md`."""
        opening = {name: options.pop(name) for name in _OPENING if name in options}
        return _dataset(_source(filename_or_obj, **opening), group, lock, **options)

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, lock: Any = None, **options: Any
    ) -> dict[str, Dataset]:
        """Open a group and all groups in it; parameters and errors as of `open_dataset`."""
        from chunkwise.xarray.store import group_paths

        opening = {name: options.pop(name) for name in _OPENING if name in options}
        source = _source(filename_or_obj, **opening)
        above = "/" + (group or "").strip("/")
        found = {}
        try:
            for path in group_paths(source, group):
                found[_below(path, above)] = _dataset(source, path, lock, **options)
        except BaseException:
            source.close()
            raise
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Open a group and all groups in it as a tree; options as of `open_groups_as_dict`."""
        from xarray import DataTree

        found = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            tree = DataTree.from_dict(found)
        except BaseException:
            for one in found.values():
                one.close()
            raise
        for path, one in found.items():
            tree[path].set_close(one.close)
        return tree


def _below(path: str, above: str) -> str:
    """A path relative to a group: ``/`` for the root itself, ``.`` for another group."""
    if above == "/":
        return path
    return path[len(above) + 1 :] or "."


def _source(
    given: Any,
    *,
    format: str | None = None,  # None or ``"NETCDF4"``: there is no other
    invalid_netcdf: bool | None = None,
    phony_dims: str | None = None,
    decode_vlen_strings: bool = True,
    driver: str | None = None,
    driver_kwds: Mapping[str, Any] | None = None,
    external: External | None = None,
    storage_options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> SharedFile:
    """Check how a file is to be opened, in this process and others."""
    if phony_dims not in (None, "access", "sort"):
        raise UsageError(f"phony_dims={phony_dims!r}: give 'access' or 'sort'")
    # Imported where it is needed: that takes long.
    if find_spec("h5netcdf") is None:
        raise UsageError(f"engine='chunkwise' needs h5netcdf: {installing('xarray')}")
    import h5py

    from chunkwise.file import File
    from chunkwise.xarray.opened import SharedFile

    options: dict[str, Any] = {
        "invalid_netcdf": invalid_netcdf,
        "phony_dims": phony_dims or "access",
        "decode_vlen_strings": decode_vlen_strings,
        **(driver_kwds or {}),
        **({} if driver is None else {"driver": driver}),
        **({} if external is None else {"external": external}),
    }
    if format not in (None, "NETCDF4"):
        raise UsageError(f"format={format!r}: engine='chunkwise' reads NETCDF4 only")
    if isinstance(given, bytes | bytearray | memoryview):
        raise UsageError(
            "engine='chunkwise' can't open netCDF4/HDF5 as bytes: give a path, or "
            "io.BytesIO(bytes)"
        )
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if isinstance(given, str):
        if "://" not in given:
            # As xarray's own engines have it, which do not follow links.
            given = os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111
        elif options.get("driver") is None:
            # Opened as a URL in each process that reads it.
            options["storage_options"] = storage_options
    elif isinstance(given, h5py.File):
        if external is not None:
            raise UsageError("external=...: is for what is opened here: open the file with it")
        given = given if isinstance(given, File) else File(given.id)
    if not isinstance(given, str | h5py.File) and not _begins_as_hdf5(given):
        raise like(FileFormatError, ValueError())(
            f"{printable(repr(given))}: what it begins with is not the signature of a valid "
            "netCDF4 file, nor of another HDF5 file"
        )
    return SharedFile(given, options, settings or {})


def _begins_as_hdf5(stream: Any) -> bool:
    """Look at the first bytes of a file object, which is then where it was."""
    if not all(hasattr(stream, name) for name in ("read", "seek", "tell")):
        return False
    at = stream.tell()
    try:
        stream.seek(0)
        return bool(stream.read(len(_SIGNATURE)) == _SIGNATURE)
    finally:
        stream.seek(at)


def _dataset(source: SharedFile, group: str | None, lock: Any, **decoding: Any) -> Dataset:
    from chunkwise.xarray.store import Store

    try:
        made = StoreBackendEntrypoint().open_dataset(
            Store(source, group, lock or None), **decoding
        )
    except BaseException:
        source.close()
        raise
    # The store itself stays here when the dataset goes to another process.
    made.set_close(source.close)
    return made
