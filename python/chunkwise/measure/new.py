"""How is data measured that has no file yet?

It is generated in a scratch file, from its description, and measured like any file.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5p

from chunkwise.errors import UsageError
from chunkwise.files.room import free_nbytes
from chunkwise.grammar import Pipeline, format_size
from chunkwise.measure.described import (
    DATASET,
    Elements,
    alike,
    compressed,
    described,
    fill,
    noisy,
    repeated,
    times_smaller,
)
from chunkwise.measure.results import Results
from chunkwise.measure.run import run
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SPARE_NBYTES, scratch_folder
from chunkwise.model.chunk_shape import PAGE_NBYTES, default_chunk

# The file that lines to paste name.
FILE: Final = "new.nc"
# Larger data gets a sample of this many bytes, unless the user asks for more.
SAMPLE_NBYTES: Final = 128 << 20
_LARGEST_SLAB_NBYTES: Final = 1 << 30
# Noise for each byte of an element of generated data.
_SMOOTH_BITS: Final = 2.0
# The default compression.
_FILTERS: Final = "shuffle+deflate:1"


def run_new(
    shape: str | Sequence[int],  # In elements: ``"8760x721x1440"``, or a sequence
    dtype: str,  # As NumPy writes it: ``"f4"``, ``">i2"``
    space: Space | None = None,
    *,
    # A file whose largest chunked dataset, or ``FILE:DATASET`` whose dataset, holds data like it.
    like: str | os.PathLike[str] | None = None,
    # Instead: how many times smaller filters make it, as ``"3x"``.  With neither, something smooth
    # is made up.
    compress: str | float | None = None,
    # Of larger data a sample of at most so many bytes is made; None for 128 MiB, or for one slab
    # of chunks if that is more.
    sample_nbytes: int | None = None,
    scratch: str | None = None,
    **options: Any,
) -> Results:
    """Time access patterns on data that has no file yet, only a description.

    It is stored as a new dataset would be, in the chunks of ``auto``, under the first filters
    that `space` names; so that is what ``stored`` means in `space`.  `options` are those of
    `chunkwise.measure.run`; the results' `Target.made` says what was made up.
    """
    extents, kind = described(shape, dtype)
    if like is not None and compress is not None:
        raise UsageError("--like shows how well the data compresses: leave --compress out")
    if options.get("save") is not None:
        raise UsageError(
            "--save belongs to one file, and described data is made anew: leave it out"
        )
    space = space or Space()
    with scratch_folder(scratch) as folder:
        _say(options, "making up the data")
        target = _made(extents, kind, space, like, compress, sample_nbytes, folder)
        slab_nbytes = target.nbytes // extents[0] * min((target.chunks or (1,))[0], extents[0])
        most = _most_nbytes(slab_nbytes, sample_nbytes)
        results = run(target, None, space, sample_nbytes=most, scratch=scratch, **options)
    # Lines to paste are about the file that will be there.
    there = replace(target, file=FILE, storage=FILE)
    read = replace(results.target, file=FILE, storage=FILE, made=target.made)
    return replace(results, target=read, original=there)


def _say(options: dict[str, Any], text: str) -> None:
    progress = options.get("progress")
    if progress is not None:
        progress(Step(text))


def _made(
    shape: tuple[int, ...],
    kind: np.dtype[Any],
    space: Space,
    like: str | os.PathLike[str] | None,
    compress: str | float | None,
    sample_nbytes: int | None,
    folder: str,
) -> Target:
    """Make the data up, or as much of it as is read."""
    chunks = default_chunk(shape, kind.itemsize, None, grown_nbytes=PAGE_NBYTES)
    filters = _filters(space)
    row_nbytes = math.prod(shape[1:]) * kind.itemsize
    most = _most_nbytes(row_nbytes * min(chunks[0], shape[0]), sample_nbytes)
    # No more than is read is made; it is the whole, again and again.
    slab = min(chunks[0], shape[0])
    rows = min(shape[0], max(1, most // (row_nbytes * slab)) * slab)
    free = free_nbytes(folder)
    if free < rows * row_nbytes + SPARE_NBYTES:
        raise UsageError(
            f"{folder}: {format_size(rows * row_nbytes)} of generated data need more than the "
            f"{format_size(free)} that are free; name a folder with --scratch, or a --sample"
        )
    path = str(Path(folder) / "made.h5")
    with contextlib.ExitStack() as stack:
        elements, said = _elements(kind, filters, chunks, like, compress, stack)
        first = elements(0, slab, shape)
        if like is not None and (first == first.flat[0]).all():
            raise UsageError(f"--like {os.fspath(like)}: all elements of the sample are equal")
        name = DATASET if rows == shape[0] else "part"
        with h5py.File(path, "w") as file:
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_chunk(chunks)
            Pipeline.parse(filters).apply(dcpl)
            part = file.create_dataset(name, (rows, *shape[1:]), kind, dcpl=dcpl)
            fill(part, elements, rows)
            if name == DATASET:
                stored_nbytes = part.id.get_storage_size()
            else:
                stored_nbytes = part.id.get_storage_size() * shape[0] // rows
                repeated(file, DATASET, name, shape)
    return replace(
        look(path, DATASET), chunks=chunks, filters=filters, layout="chunked",
        stored_nbytes=stored_nbytes, file_filters=(filters,), made=said,
    )  # fmt: skip


def _elements(
    kind: np.dtype[Any],
    filters: str,
    chunks: tuple[int, ...],
    like: str | os.PathLike[str] | None,
    compress: str | float | None,
    stack: contextlib.ExitStack,
) -> tuple[Elements, str]:
    """Return the stand-in for the elements, and say what it is."""
    if like is not None:
        return stack.enter_context(alike(like, kind)), f"data like that of {os.fspath(like)}"
    if compress is None:
        said = "made-up smooth data; --like FILE or --compress 3x say more of yours"
        return noisy(kind, _SMOOTH_BITS * kind.itemsize), said
    times = times_smaller(compress)
    by = filters if Pipeline.parse(filters).filters else _FILTERS
    return compressed(times, by, chunks, kind), f"made-up data that {by} makes {times:g}x smaller"


def _filters(space: Space) -> str:
    """Return the filters that a new dataset gets: the first that are named."""
    named = [text for text in space.axes.get("filter", ()) if text != "stored"]
    return str(Pipeline.parse(named[0]).as_stated) if named else _FILTERS


def _most_nbytes(slab_nbytes: int, asked: int | None) -> int:
    """Return the size above which only a sample of the data is taken."""
    if asked is not None:
        return asked
    return max(SAMPLE_NBYTES, slab_nbytes if slab_nbytes <= _LARGEST_SLAB_NBYTES else 0)
