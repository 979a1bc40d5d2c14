"""How is a Dask array written to an HDF5 file?"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy as np
from h5py import h5s

from chunkwise.dask.pieces import aligned, array_pieces, boxes, chosen_chunk
from chunkwise.dask.writing import (
    Progress,
    Tally,
    Written,
    require_dask,
    scheduler_of,
    target_of,
    write_pieces,
)
from chunkwise.errors import UsageError
from chunkwise.files import unwritten
from chunkwise.grammar import Effort
from chunkwise.names import printable
from chunkwise.newfile.index import FileIndex, access_list, open_index
from chunkwise.newfile.publish import new_file
from chunkwise.writing.creating import Request, create

Shape = tuple[int, ...]


def to_hdf5(
    array: Any,
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    filters: str | Mapping[str, str] | None = None,
    chunks: Shape | Mapping[str, Shape] | None = None,
    dtype: Any = None,
    maxshape: Sequence[int | None] | Mapping[str, Sequence[int | None]] | None = None,
    fillvalue: Any = None,
    overwrite: bool = False,
    libver: str | tuple[str, str] | None = None,
    client: Any = None,
    in_flight: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write Dask arrays to a new HDF5 file, encoded and written by all workers.

    Parameters
    ----------
    array : dask.array.Array, or mapping of str to dask.array.Array
        What to write.  NumPy arrays are taken, too.
    path : path
        The file.  It appears when it is complete and on storage, or not at all.  All workers
        must see its folder, and run as the same user.
    name : str, optional
        The dataset's name; none for a mapping, which has the names.
    filters : str or mapping, optional
        As in ``"shuffle+deflate:4"``; a mapping has one for each name.  By default none.
    chunks : tuple of int or mapping, optional
        Shapes of the file's chunks.  By default the array's blocks where they have 32 KiB to
        4 MiB; otherwise a shape of at most 1 MiB that serves rows, columns and steps alike.
    dtype : dtype, optional
        By default the array's.
    maxshape : sequence of int or None, or mapping, optional
        How far the datasets can grow, None without limit; a mapping has one for each name.
    fillvalue : scalar, optional
        What elements have that are not written.
    overwrite : bool, default False
        Replace a file of that name, once the new one is complete.
    libver : str or (str, str), optional
        Format bounds, as h5py has them; by default ``("earliest", "latest")``.
    client : distributed.Client, "threads" or "sync", optional
        Who computes; by default whom Dask would take: the current client, what
        ``dask.config`` says, or threads.
    in_flight : int, optional
        Blocks in work at a time; by default one more for each worker than it has threads.
    progress : callable, optional
        Called with ``(done_nbytes, total_nbytes)`` when a block is written; may raise to end
        the run.

    Returns
    -------
    Written
        What it came to.

    Raises
    ------
    ChunkwiseError
        What cannot be written, or where; nothing is left of the file.

    Notes
    -----
    Add attributes, groups and everything else with h5py, afterwards.

    Examples
    --------
    >>> import dask.array as da
    >>> from chunkwise.dask import to_hdf5
    >>> done = to_hdf5(da.ones((400, 500), chunks=(100, 500)), "a.h5", "ones",
    ...                filters="shuffle+deflate:4")  # doctest: +SKIP
    """
    require_dask()
    scheduler = scheduler_of(client)
    given = _named(array, name)
    wanted = {
        one: _wanted(
            one, values, _of(filters, one), _of(chunks, one), dtype, _of(maxshape, one), fillvalue
        )
        for one, values in given.items()
    }
    done = Written()
    with (
        new_file(path, overwrite=overwrite) as claim,
        open_index(claim, fapl=access_list(libver)) as index,
    ):
        said = printable(claim.place.said)
        made = {
            one: create(index.file["/"], one, f"{said}: '{printable(one)}'", request)
            for one, (_, request) in wanted.items()
        }
        tally = Tally(progress, sum(array.nbytes for array, _ in wanted.values()))
        write_arrays(
            claim,
            index,
            [(one, array, made[one].dataset) for one, (array, _) in wanted.items()],
            scheduler,
            done,
            in_flight,
            tally,
            effort={one: created.effort for one, created in made.items()},
        )
        done.stored_nbytes = sum(one.dataset.id.get_storage_size() for one in made.values())
    return done


def write_arrays(
    claim: Any,
    index: FileIndex,
    arrays: Sequence[tuple[str, Any, h5py.Dataset]],
    scheduler: Any,
    done: Written,
    in_flight: int | None,
    tally: Tally,
    *,
    effort: Mapping[str, Effort] | Effort = "as-stated",
    refuse: bool = True,
) -> None:
    """Write arrays to datasets of the open file."""
    together, alone = [], []
    for name, array, dataset in arrays:
        done.nbytes += array.nbytes
        if array.size == 0:
            continue
        try:
            if not array.ndim:
                raise UsageError("it has a single element")
            how = effort if isinstance(effort, str) else effort[name]
            target = target_of(index, dataset, name, claim.place.said, how)
        except UsageError as wrong:
            if refuse and dataset.chunks is not None:
                raise
            done.by_client[name] = str(wrong)
            alone.append((array, dataset))
            continue
        chunk = dataset.chunks or (1,) * array.ndim
        blocks = aligned(array.chunks, chunk, array.dtype.itemsize)
        if blocks != array.chunks:
            array = array.rechunk(blocks)
        together.append((array, target))
    for array, dataset in alone:
        for at, block in computed(array, scheduler):
            _assign(dataset, at, block)
            tally.add(block.nbytes)

    pieces = array_pieces(together) if together else ()
    done.blocks, done.again = write_pieces(
        claim, pieces, scheduler, in_flight=in_flight, report=lambda piece: tally.add(piece.nbytes)
    )


def _assign(dataset: h5py.Dataset, at: Any, block: np.ndarray[Any, Any]) -> None:
    unwritten.keep(dataset)
    if block.dtype.kind != "S" or block.dtype != dataset.dtype or not at:
        dataset[at] = block
        return
    # netCDF's characters end with a null by their type, and h5py converts them to nothing else.
    space = dataset.id.get_space()
    space.select_hyperslab(tuple(one.start for one in at), block.shape)
    values = np.ascontiguousarray(block)
    dataset.id.write(h5s.create_simple(block.shape), space, values, dataset.id.get_type())


def computed(array: Any, scheduler: Any) -> Iterator[tuple[Any, np.ndarray[Any, Any]]]:
    """Compute an array block by block, in this process's memory one at a time."""
    indices = [box.slices for _, box in boxes(array.chunks)]
    if isinstance(scheduler, str):
        for at in indices:
            yield at, np.asarray(array[at].compute(scheduler=scheduler))
        return
    # Workers compute the next ones while this process writes.
    ahead = sum(scheduler.nthreads().values()) + 1
    waiting: deque[Any] = deque()
    left = iter(indices)
    for at in indices:
        while len(waiting) < ahead and (following := next(left, None)) is not None:
            waiting.append(scheduler.compute(array[following]))
        yield at, np.asarray(waiting.popleft().result())


def _named(array: Any, name: str | None) -> dict[str, Any]:
    if isinstance(array, Mapping):
        if name is not None:
            raise UsageError(f"name {name!r}: a mapping has the names; leave it out")
        if not array:
            raise UsageError("the mapping is empty: give at least one array")
        return {str(one): values for one, values in array.items()}
    if name is None:
        raise UsageError("name: give the dataset's, as in to_hdf5(array, 'a.h5', 'name')")
    return {name: array}


def _of(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else given


def _wanted(
    name: str,
    given: Any,
    filters: str | None,
    chunks: Shape | None,
    dtype: Any,
    maxshape: Sequence[int | None] | None,
    fillvalue: Any,
) -> tuple[Any, Request]:
    """Give the array to be written, and how it is stored."""
    import dask.array as da

    shown = f"'{printable(name)}'"
    array = given if isinstance(given, da.Array) else da.asarray(given)
    if any(np.isnan(n) for n in array.shape):
        raise UsageError(
            f"{shown}: its shape is not known; call compute_chunk_sizes() on the array first"
        )
    if isinstance(array._meta, np.ma.MaskedArray):
        raise UsageError(
            f"{shown}: is masked, which HDF5 does not know; use dask.array.ma.filled first"
        )
    if dtype is not None and array.dtype != dtype:
        array = array.astype(dtype)
    _require_storable(shown, array.dtype)
    if chunks is not None and maxshape is None:
        fitting = map(min, chunks, (max(1, n) for n in array.shape))
        chunks = tuple(fitting) if len(chunks) == array.ndim else chunks
    elif chunks is None and array.ndim:
        shape = tuple(max(1, n) for n in array.shape)
        blocks = tuple(tuple(n for n in one if n) or (1,) for one in array.chunks)
        chunks = chosen_chunk(shape, array.dtype.itemsize, blocks, maxshape)
    if not array.size and maxshape is None:
        chunks = None  # HDF5 has no chunks along an extent of 0 that cannot grow.
    if chunks is None:
        filters = maxshape = None
    request = Request(
        array.shape, array.dtype, None, chunks, maxshape, filters or None, (), fillvalue, {}
    )
    return array, request


def _require_storable(shown: str, dtype: np.dtype[Any]) -> None:
    remedies = {
        "O": "are Python objects: give a fixed length, as in array.astype('S20'), or write them "
        "with h5py afterwards",
        "U": "are NumPy's strings: give them as bytes, as in array.astype('S20')",
        "M": "are times: write array.view('int64') and an attribute that says the unit",
        "m": "are time spans: write array.view('int64') and an attribute that says the unit",
    }
    if dtype.kind in remedies:
        raise UsageError(f"{shown}: its elements {remedies[dtype.kind]}")
