"""What would the same data cost in other chunks, or under other filters?

A variant that the file does not have is written to a scratch file, from the dataset's own
data; of a dataset that is too large, from a sample: whole slabs of chunks, spread over
its slowest dimension.  Then every variant is made of that sample, also the one stored, so
that all of them hold the same.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5o, h5p, h5s

from chunkwise.advise.layout import balanced_chunks
from chunkwise.bench.target import Target, look, missing_filter
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.grammar import Pipeline, format_shape, format_size, parse_shape
from chunkwise.objects import HDF5_ERRORS, encode_name, hdf5_reason
from chunkwise.opening import find_dataset, open_h5

# What is written for each variant, at most, unless more is asked for.
SAMPLE_NBYTES: Final = 1 << 30
# Rows are copied in pieces of about so many bytes.
PIECE_NBYTES: Final = 64 << 20
# Free space that is left alone.
SPARE_NBYTES: Final = 64 << 20


@dataclass(frozen=True)
class Variant:
    """One way to store the data.

    Attributes
    ----------
    chunks : tuple of int or None
        Chunk shape; None for contiguous.
    filters : str
        The pipeline, ``none`` if there is none.
    """

    chunks: tuple[int, ...] | None
    filters: str

    def __str__(self) -> str:
        chunks = "contiguous" if self.chunks is None else f"chunks {format_shape(self.chunks)}"
        return f"{chunks}, {'no filter' if self.filters == 'none' else self.filters}"


@dataclass(frozen=True)
class Written:
    """The variants of a dataset, ready to be read.

    Attributes
    ----------
    targets : tuple of Target
        One for each variant, in the order asked for; the stored one is the file itself,
        unless a sample was taken.
    sampled : int or None
        Indexes of the slowest dimension that the sample has; None where all is there.
    """

    targets: tuple[Target, ...]
    sampled: int | None


def stored(target: Target) -> Variant:
    """Return how a dataset is stored."""
    return Variant(target.chunks, target.filters)


def combine(target: Target, chunks: Sequence[str], filters: Sequence[str]) -> list[Variant]:
    """Spell out chunk shapes and pipelines, each of the one with each of the other.

    Parameters
    ----------
    target : Target
        The dataset.
    chunks : sequence of str
        ``stored``, a shape, ``contiguous``, or ``auto``: chunks of which lines along the
        slowest dimension and planes across it touch equally many.
    filters : sequence of str
        ``stored``, or a pipeline such as ``shuffle+deflate:4``, or ``none``.

    Raises
    ------
    UsageError
        A shape or pipeline that makes no sense for this dataset, or filters for
        contiguous data.
    """
    shapes = [_shape(target, text) for text in chunks]
    pipelines = [target.filters if f == "stored" else str(Pipeline.parse(f)) for f in filters]
    for shape in shapes:
        if shape is None and any(pipeline != "none" for pipeline in pipelines):
            raise UsageError(
                f"{target.where}: contiguous data takes no filters; write --filter none, or "
                "leave contiguous out"
            )
    return list(dict.fromkeys(Variant(c, p) for c in shapes for p in pipelines))


def _shape(target: Target, text: str) -> tuple[int, ...] | None:
    shape = parse_shape(text)
    if shape == "stored":
        return target.chunks
    if shape == "contiguous":
        return None
    if shape == "auto":
        axis = next((i for i, n in enumerate(target.shape) if n > 1), 0)
        return balanced_chunks(target.shape, target.itemsize, axis)
    if len(shape) != len(target.shape):
        raise UsageError(
            f"chunks of {text} have {len(shape)} dimensions, but {target.where} has "
            f"{len(target.shape)} (shape {format_shape(target.shape)})"
        )
    too_long = [n for n, c in zip(target.shape, shape, strict=True) if c > n]
    if too_long:
        raise UsageError(
            f"chunks of {text} are larger than {target.where} (shape {format_shape(target.shape)})"
        )
    return tuple(shape)


@contextlib.contextmanager
def written(
    target: Target,
    variants: Sequence[Variant],
    sample_nbytes: int = SAMPLE_NBYTES,
    scratch: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Written]:
    """Write the variants that the file does not have, for as long as the block lasts.

    Parameters
    ----------
    target : Target
        The dataset.
    variants : sequence of Variant
        From `combine`.
    sample_nbytes : int
        Of a larger dataset a sample of at most so many bytes is taken.
    scratch : str, optional
        Where to; None for the system's folder for such files.  Whatever is written there
        is removed at the end, also after an exception.
    progress : callable, optional
        Called with one line before each variant is written.

    Raises
    ------
    UsageError
        No room for them, or one slab of chunks is larger than the sample.
    ChunkwiseError
        The data cannot be read, or HDF5 refuses a variant.
    """
    rows = _sampled_rows(target, sample_nbytes)
    missing = [v for v in variants if rows is not None or v != stored(target)]
    nbytes = target.nbytes if rows is None else target.nbytes // target.shape[0] * len(rows)
    with tempfile.TemporaryDirectory(prefix="chunkwise-", dir=scratch) as folder:
        free = shutil.disk_usage(folder).free
        if missing and free < len(missing) * nbytes + SPARE_NBYTES:
            raise UsageError(
                f"{folder}: {len(missing)} variants of {format_size(nbytes)} need more than the "
                f"{format_size(free)} that are free; name a folder with --scratch, or a smaller "
                "--sample"
            )
        targets = []
        for number, variant in enumerate(variants):
            if variant not in missing:
                targets.append(target)
                continue
            if progress:
                progress(f"writing {variant}")
            path = Path(folder) / f"{number}.h5"
            _write(target, variant, rows, path)
            targets.append(look(path, target.dataset))
        yield Written(tuple(targets), None if rows is None else len(rows))


def _sampled_rows(target: Target, sample_nbytes: int) -> list[int] | None:
    """Choose indexes of the slowest dimension, whole chunks of them; None for all."""
    if target.nbytes <= sample_nbytes:
        return None
    slab = target.chunks[0] if target.chunks else 1
    slab_nbytes = target.nbytes // target.shape[0] * min(slab, target.shape[0])
    number = sample_nbytes // slab_nbytes
    if not number:
        raise UsageError(
            f"{target.where}: one slab of its chunks takes {format_size(slab_nbytes)}, more than "
            f"the sample of {format_size(sample_nbytes)}; give a larger --sample"
        )
    slabs = target.shape[0] // slab
    chosen = sorted({i * slabs // number for i in range(number)})
    return [row for i in chosen for row in range(i * slab, (i + 1) * slab)]


def _write(target: Target, variant: Variant, rows: list[int] | None, path: Path) -> None:
    with open_h5(target.file) as source, h5py.File(path, "w") as file:
        dataset = find_dataset(source, target.dataset)
        missing_filter(dataset.id.get_create_plist())
        extent = dataset.shape[0] if rows is None else len(rows)
        shape = (extent, *dataset.shape[1:])
        try:
            made = _create(file, target.dataset, dataset, shape, variant)
            row_nbytes = max(1, target.nbytes // target.shape[0])
            length = variant.chunks[0] if variant.chunks else 1
            # Whole chunks, so that none is encoded twice.
            step = max(1, PIECE_NBYTES // row_nbytes // length) * length
            for first in range(0, extent, step):
                last = min(first + step, extent)
                made[first:last] = _rows(dataset, rows, first, last)
        except HDF5_ERRORS as error:
            if isinstance(error, ChunkwiseError):
                raise
            raise UsageError(
                f"{target.where}: cannot be written as {variant}: {hdf5_reason(error)}"
            ) from None


def _create(
    file: h5py.File, name: str, like: h5py.Dataset, shape: tuple[int, ...], variant: Variant
) -> h5py.Dataset:
    """Make a dataset of the same stored type, in other chunks and under other filters."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    if variant.chunks is not None:
        dcpl.set_chunk(tuple(map(min, variant.chunks, shape)))
        Pipeline.parse(variant.filters).apply(dcpl)
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    space = h5s.create_simple(shape)
    path = encode_name("/" + name.strip("/"))
    made = h5d.create(file.id, None, like.id.get_type(), space, dcpl)
    h5o.link(made, file.id, path, lcpl=lcpl)
    return h5py.Dataset(made)


def _rows(
    dataset: h5py.Dataset, rows: list[int] | None, first: int, last: int
) -> npt.NDArray[Any]:
    """Read rows of the data, or of the sample of it: slabs are read as such."""
    if rows is None:
        whole: npt.NDArray[Any] = dataset[first:last]
        return whole
    wanted = np.array(rows[first:last])
    slabs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1)
    return np.concatenate([dataset[slab[0] : slab[-1] + 1] for slab in slabs])
