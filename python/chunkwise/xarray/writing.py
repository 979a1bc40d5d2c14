"""How is an xarray dataset of Dask arrays written to a netCDF-4 file?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from chunkwise.dask.arrays import computed, write_arrays
from chunkwise.dask.writing import Progress, Tally, Written, require_dask, scheduler_of
from chunkwise.errors import UsageError
from chunkwise.files.dimensions import NOT_ITS_COORDINATE
from chunkwise.files.superblock import read_superblock
from chunkwise.grammar import Effort
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import open_index
from chunkwise.newfile.publish import new_file
from chunkwise.newfile.target import writing_to
from chunkwise.xarray.skeleton import (
    Later,
    engine_of,
    held_nbytes,
    require_valid,
    rounded_names,
    write_skeleton,
)

# A file with more than this besides its Dask arrays is not made in memory.
_MOST_IN_MEMORY_NBYTES: Final = 256 << 20
# xarray's name for a data array that cannot have its own.
_NAMELESS: Final = "__xarray_dataarray_variable__"
_ITS_NAME: Final = "__xarray_dataarray_name__"


def to_netcdf(
    dataset: Any,
    path: str | os.PathLike[str],
    *,
    group: str | None = None,
    engine: str | None = None,
    encoding: Mapping[Any, Mapping[str, Any]] | None = None,
    unlimited_dims: Iterable[Any] | None = None,
    invalid_netcdf: bool = False,
    overwrite: bool = True,
    effort: Effort = "as-stated",
    client: Any = None,
    in_flight: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write a dataset to a new netCDF-4 file; Dask arrays are encoded and written by all workers.

    The file is the one that `xarray.Dataset.to_netcdf` makes.  Variables of Dask arrays are
    written in parallel.  What workers cannot write goes through xarray or h5py, one block at a
    time: strings, scalars, filters without an encoder here.

    Parameters
    ----------
    dataset : xarray.Dataset or xarray.DataArray
        What to write.
    path : path
        The file.  It appears when it is complete and on storage, or not at all.  All workers
        must see its folder, and run as the same user.
    group : str, optional
        The netCDF-4 group in which all is written.
    engine : {"netcdf4", "h5netcdf"}, optional
        With which library xarray makes the file; by default the first that is installed.
    encoding : mapping, optional
        As xarray has it, such as ``{"t": {"zlib": True, "complevel": 4}}``.
    unlimited_dims : iterable of hashable, optional
        Dimensions that can grow; by default those of the dataset's encoding.
    invalid_netcdf : bool, default False
        As xarray has it, with `engine` h5netcdf.
    overwrite : bool, default True
        Replace a file of that name, once the new one is complete.
    effort : {"as-stated", "fast"}, default "as-stated"
        How deflate's encoder is chosen: one whose files are no larger than zlib's at the level
        of the encoding, or the fastest one.
    client, in_flight, progress : optional
        As in `chunkwise.dask.to_hdf5`.

    Returns
    -------
    Written
        What it came to; its `by_client` names the variables that were not written in parallel.

    Raises
    ------
    ChunkwiseError
        What cannot be written, or where; nothing is left of the file.
    Exception
        What xarray raises about the dataset and its encoding.
    """
    require_dask()
    scheduler = scheduler_of(client)
    dataset = _as_dataset(dataset)
    require_valid(dataset)
    maker = engine_of(engine)
    if isinstance(unlimited_dims, str):
        unlimited_dims = [unlimited_dims]
    rounded = rounded_names(dataset, encoding) if maker == "netcdf4" else frozenset()
    later = Later(lambda array: computed(array, scheduler), rounded)
    done = Written()
    with new_file(path, overwrite=overwrite) as claim:
        with writing_to(claim.place.said):
            os.close(claim.make_partial())
        in_memory = held_nbytes(dataset, later) <= _MOST_IN_MEMORY_NBYTES
        image = write_skeleton(
            dataset,
            None if in_memory else str(claim.partial),
            later,
            engine=maker,
            group=group,
            encoding=encoding,
            unlimited_dims=None if unlimited_dims is None else list(unlimited_dims),
            invalid_netcdf=invalid_netcdf,
        )
        if in_memory:
            with writing_to(claim.place.said):
                _put(image, claim)
        done.by_client.update(later.by_xarray)
        if later.arrays:
            _write_later(claim, later, group, scheduler, done, in_flight, progress, effort)
    return done


def _put(image: bytes | memoryview, claim: Claim) -> None:
    """Write the bytes of a file up to where it says that it ends."""
    with os.fdopen(claim.open_partial(os.O_RDWR), "r+b") as partial:
        partial.write(image)
        partial.flush()
        superblock = read_superblock(claim.partial)
        if superblock is not None:
            partial.truncate(superblock.end)


def _write_later(
    claim: Claim,
    later: Later,
    group: str | None,
    scheduler: Any,
    done: Written,
    in_flight: int | None,
    progress: Progress | None,
    effort: Effort,
) -> None:
    total = sum(array.nbytes for array in later.arrays.values())
    tally = Tally(progress, total)
    with open_index(claim, "r+") as index:
        root = index.file["/" if group is None else group]
        arrays = []
        for name, array in later.arrays.items():
            made = root.get(NOT_ITS_COORDINATE + name)
            made = root[name] if made is None else made
            if made.shape != array.shape:
                # netCDF-C stores no length of an unlimited dimension without a coordinate.
                made.resize(array.shape)
            if array.dtype != made.dtype and not array.dtype.kind == made.dtype.kind == "S":
                # As the library would do with which xarray writes.
                array = array.astype(made.dtype)
            arrays.append((name, array, made))
        write_arrays(
            claim, index, arrays, scheduler, done, in_flight, tally, effort=effort, refuse=False
        )
        done.stored_nbytes = sum(made.id.get_storage_size() for _, _, made in arrays)


def _as_dataset(given: Any) -> Any:
    try:
        import xarray as xr
    except ImportError as wrong:
        raise UsageError(f"xarray is needed for this ({wrong}): pip install xarray") from None

    if isinstance(given, xr.Dataset):
        return given
    if not isinstance(given, xr.DataArray):
        raise UsageError(f"{type(given).__name__}: give an xarray.Dataset or xarray.DataArray")
    # As xarray's own method has it, so that xarray.open_dataarray finds it again.
    if given.name is None:
        return given.to_dataset(name=_NAMELESS)
    if given.name in given.coords or given.name in given.dims:
        made = given.to_dataset(name=_NAMELESS)
        made.attrs[_ITS_NAME] = given.name
        return made
    return given.to_dataset()
