"""What would the same data cost in other chunks, or with other filters?

A variant is written from the dataset's own data; of a large one from a sample, whole slabs of
chunks, from which the stored variant is also made, so that all hold the same.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5o, h5p, h5s

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, CorruptDataError, UsageError
from chunkwise.files.answers import kept_chunks
from chunkwise.files.around import Surroundings
from chunkwise.files.durable import free_nbytes
from chunkwise.files.filters import missing_filter
from chunkwise.files.opening import find_dataset, open_h5
from chunkwise.grammar import Pipeline, format_shape, format_size, parse_shape
from chunkwise.measure import netcdf3
from chunkwise.measure.target import Target, look
from chunkwise.memory import default_budget
from chunkwise.model.chunk_shape import Present, suited_chunk
from chunkwise.model.layout import Layout
from chunkwise.names import HDF5_ERRORS, encode_name, hdf5_reason
from chunkwise.patterns import Access, as_stated, question
from chunkwise.patterns.around import chunk_by_names
from chunkwise.trials.formats import FORMATS, NETCDF4, is_netcdf3
from chunkwise.words import counted

# The most that is written for each variant, unless the user asks for more.
SAMPLE_NBYTES: Final = 1 << 30
# Rows are copied in pieces of about this many bytes.
PIECE_NBYTES: Final = 64 << 20
# Free space that is left alone.
SPARE_NBYTES: Final = 64 << 20


@dataclass(frozen=True)
class Variant:
    """One way to store the data."""

    chunks: tuple[int, ...] | None  # Chunk shape; None for contiguous
    filters: str  # The pipeline, ``none`` if there is none
    format: str = NETCDF4  # The file format: a name of `chunkwise.trials.formats.FORMATS`

    def __str__(self) -> str:
        if is_netcdf3(self.format):
            return FORMATS[self.format]
        return str(Layout(self.chunks, self.filters))


@dataclass(frozen=True)
class Prepared:
    """The variants of a dataset, ready to be read and to be written."""

    # Where each is read; the stored one is the file itself, unless a sample was taken.
    reading: dict[Variant, Target]
    writing: dict[Variant, Target]  # A dataset without data, like the one to be written
    # A file with all elements in C order, as they are stored, for those who write them.
    data: str | None
    folder: str  # For files of a moment
    # Indexes of the slowest dimension that the sample has; None if all is there.
    sampled: int | None


def stored(target: Target) -> Variant:
    """Return how a dataset is stored."""
    return Variant(target.chunks, target.filters)


def variant_of(
    target: Target,
    chunk: str,
    pipeline: str,
    format: str = NETCDF4,
    accesses: Sequence[Access] = (),
) -> Variant:
    """Read how the data should be stored."""
    if is_netcdf3(format):
        netcdf3.check(target, format)
        return Variant(None, "none", format)
    shape = _shape(target, chunk, accesses)
    filters = target.filters if pipeline == "stored" else str(Pipeline.parse(pipeline))
    if shape is None and filters != "none":
        raise UsageError(
            f"{target.where}: contiguous data takes no filters; write --filter none, or "
            "leave contiguous out"
        )
    return Variant(shape, filters)


def suitable_chunks(target: Target, accesses: Sequence[Access]) -> tuple[int, ...]:
    """Return what ``repack --chunk auto`` chooses for a dataset and stated patterns."""
    patterns = [as_stated(one, target.shape)[1] for one in dict.fromkeys(accesses)]
    now = Present.of(target.chunks, target.filters, target.stored_nbytes)
    return kept_chunks(target.file, target.dataset, question(patterns)) or suited_chunk(
        target.shape, target.itemsize, target.maxshape, patterns, now
    )


def _shape(target: Target, text: str, accesses: Sequence[Access]) -> tuple[int, ...] | None:
    around = Surroundings(target.file, target.dataset)
    shape = chunk_by_names(text, target.shape, around, target.where) or parse_shape(text)
    if shape == "stored":
        return target.chunks
    if shape == "contiguous":
        return None
    if shape == "auto":
        return suitable_chunks(target, accesses)
    if len(shape) != len(target.shape):
        raise UsageError(
            f"chunks of {text} have {counted(len(shape), 'dimension')}, but {target.where} has "
            f"{len(target.shape)} (shape {format_shape(target.shape)})"
        )
    most = target.maxshape or target.shape
    if any(n is not None and c > n for n, c in zip(most, shape, strict=True)):
        raise UsageError(
            f"chunks of {text} are larger than {target.where} (shape {format_shape(target.shape)})"
        )
    return tuple(shape)


@contextlib.contextmanager
def prepared(
    target: Target,
    reading: Sequence[Variant],
    writing: Sequence[Variant] = (),
    sample_nbytes: int = SAMPLE_NBYTES,
    scratch: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    elements: bool = False,
    repacked: Collection[Variant] = (),
) -> Iterator[Prepared]:
    """Write the variants that the file does not have, for as long as the block lasts."""
    # Those in `repacked` are encoded as by `chunkwise repack`, the others by libhdf5.
    only_stored = set(reading) <= {stored(target)} and not writing
    rows = None if only_stored else _sampled_rows(target, sample_nbytes)
    missing = [v for v in reading if rows is not None or v != stored(target)]
    extent = target.shape[0] if rows is None else len(rows)
    sampled = replace(target, shape=(extent, *target.shape[1:]))
    nbytes = sampled.nbytes
    with scratch_folder(scratch) as folder:
        # Writing needs memory for its elements, and one file at a time.
        elements = elements or bool(writing) or any(is_netcdf3(v.format) for v in missing)
        files = len(missing) + elements + bool(writing)
        free = free_nbytes(folder)
        if files and free < files * nbytes + SPARE_NBYTES:
            raise UsageError(
                f"{folder}: {counted(files, 'variant')} of {format_size(nbytes)} need more than "
                "the "
                f"{format_size(free)} that are free; name a folder with --scratch, or a smaller "
                "--sample"
            )
        targets, likes, data = {v: target for v in reading if v not in missing}, {}, None
        if elements:
            progress("reading every element")
            data = str(Path(folder) / "elements")
            _write_elements(target, rows, data)
        for number, variant in enumerate(missing):
            progress(f"writing {variant}")
            path = Path(folder) / f"{number}.h5"
            if is_netcdf3(variant.format):
                targets[variant] = netcdf3.write(sampled, variant.format, str(data), path)
            else:
                write(target, variant, rows, path, repacked=variant in repacked)
                targets[variant] = look(path, target.dataset)
        for number, variant in enumerate(writing):
            path = Path(folder) / f"like-{number}.h5"
            write(target, variant, rows, path, empty=True)
            likes[variant] = look(path, target.dataset)
            if is_netcdf3(variant.format):
                likes[variant] = netcdf3.like(likes[variant], variant.format)
        yield Prepared(targets, likes, data, folder, None if rows is None else len(rows))


@contextlib.contextmanager
def scratch_folder(scratch: str | None) -> Iterator[str]:
    """Make a folder that goes with the block."""
    try:
        made = tempfile.TemporaryDirectory(prefix="chunkwise-", dir=scratch)
    except OSError as error:
        raise UsageError(
            f"--scratch {scratch or tempfile.gettempdir()}: cannot be written to: "
            f"{error.strerror}; name another folder"
        ) from None
    with made as folder:
        yield folder


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


def write(
    target: Target,
    variant: Variant,
    rows: list[int] | None,
    path: Path,
    *,
    empty: bool = False,
    repacked: bool = False,
) -> None:
    """Write the data, or a sample of it, as a variant; or a dataset that has none yet."""
    with open_h5(target.file) as source, h5py.File(path, "w") as file:
        dataset = find_dataset(source, target.dataset)
        missing_filter(dataset.id.get_create_plist())
        try:
            made = create(file, target.dataset, dataset, rows, variant)
            if empty:
                return
            if repacked and rows is None:
                _repack(target, dataset, made, variant)
            else:
                for first, last in _pieces(target, len(made), variant.chunks):
                    made[first:last] = _read_rows(target, dataset, rows, first, last)
        except HDF5_ERRORS as error:
            if isinstance(error, ChunkwiseError):
                raise
            raise UsageError(
                f"{target.where}: cannot be written as {variant}: {hdf5_reason(error)}"
            ) from None


def _repack(target: Target, dataset: h5py.Dataset, made: h5py.Dataset, variant: Variant) -> None:
    """Copy the data as ``chunkwise repack`` does: its encoders make other streams than zlib."""
    _native.copy_data(
        library(),
        dataset.id.id,
        made.id.id,
        label=target.where,
        memory_nbytes=default_budget(),
        effort=Pipeline.parse(variant.filters).effort,
    )


def _write_elements(target: Target, rows: list[int] | None, path: str) -> None:
    """Write all elements, or those of the sample, in C order, as they are stored."""
    with open_h5(target.file) as source, Path(path).open("wb") as stream:
        dataset = find_dataset(source, target.dataset)
        missing_filter(dataset.id.get_create_plist())
        extent = target.shape[0] if rows is None else len(rows)
        for first, last in _pieces(target, extent, target.chunks):
            read = np.ascontiguousarray(_read_rows(target, dataset, rows, first, last))
            try:
                read.tofile(stream)
            except OSError as error:
                reason = error.strerror or error
                raise UsageError(
                    f"{path}: cannot be written: {reason}; name a folder with --scratch"
                ) from None


def _pieces(
    target: Target, extent: int, chunks: tuple[int, ...] | None
) -> Iterator[tuple[int, int]]:
    """Cut rows into pieces of whole chunks, so that none is encoded twice."""
    row_nbytes = max(1, target.nbytes // target.shape[0])
    length = chunks[0] if chunks else 1
    step = max(1, PIECE_NBYTES // row_nbytes // length) * length
    for first in range(0, extent, step):
        yield first, min(first + step, extent)


def create(
    file: h5py.File,
    name: str,
    like: h5py.Dataset,
    rows: list[int] | None,  # Indexes of the slowest dimension that it has; None for all
    variant: Variant,
) -> h5py.Dataset:
    """Make a dataset of the same stored type, in other chunks and under other filters."""
    shape = like.shape if rows is None else (len(rows), *like.shape[1:])
    dcpl = like.id.get_create_plist()
    if dcpl.get_layout() not in (h5d.CHUNKED, h5d.CONTIGUOUS) or dcpl.get_external_count():
        dcpl = h5p.create(h5p.DATASET_CREATE)
    for number in reversed(range(dcpl.get_nfilters())):
        dcpl.remove_filter(dcpl.get_filter(number)[0])
    if variant.chunks is None:
        dcpl.set_layout(h5d.CONTIGUOUS)
        space = h5s.create_simple(shape)
    else:
        # Chunks that are longer than the sample would be mostly empty.
        longest = variant.chunks[0] if rows is None else min(variant.chunks[0], len(rows))
        dcpl.set_chunk((longest, *variant.chunks[1:]))
        Pipeline.parse(variant.filters).apply(dcpl)
        largest = tuple(
            h5s.UNLIMITED if most is None else most for most in (like.maxshape or shape)
        )
        space = h5s.create_simple(shape, largest)
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    path = encode_name("/" + name.strip("/"))
    made = h5d.create(file.id, None, like.id.get_type().copy(), space, dcpl)
    h5o.link(made, file.id, path, lcpl=lcpl)
    return h5py.Dataset(made)


def _read_rows(
    target: Target, dataset: h5py.Dataset, rows: list[int] | None, first: int, last: int
) -> npt.NDArray[Any]:
    """Read rows of the data, or of the sample of it."""
    wanted = np.arange(first, last) if rows is None else np.array(rows[first:last])
    slabs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1)
    spans = [(int(slab[0]), int(slab[-1]) + 1) for slab in slabs if len(slab)]
    try:
        read: list[npt.NDArray[Any]] = [dataset[begin:end] for begin, end in spans]
    except HDF5_ERRORS as error:
        if isinstance(error, ChunkwiseError):
            raise
        raise _damaged(target, dataset, spans, hdf5_reason(error)) from None
    if not read:
        read = [dataset[:0]]
    return read[0] if len(read) == 1 else np.concatenate(read)


def _damaged(
    target: Target, dataset: h5py.Dataset, spans: list[tuple[int, int]], reason: str
) -> CorruptDataError:
    """Name the first chunk of some rows that cannot be read: an element of each is tried."""
    remedy = "get the file again or restore it, or name another dataset"
    for origin in _origins(dataset, spans):
        try:
            dataset[origin]
        except HDF5_ERRORS as error:
            return CorruptDataError(
                f"{target.where}: the chunk at element {list(origin)} cannot be read: "
                f"{hdf5_reason(error)}; {remedy}"
            )
    return CorruptDataError(f"{target.where}: cannot be read: {reason}; {remedy}")


def _origins(dataset: h5py.Dataset, spans: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Give the first element of each chunk that some rows touch; nothing without chunks."""
    if dataset.chunks is None:
        return
    length, *others = dataset.chunks
    _, *extents = dataset.shape
    across = [range(0, n, c) for n, c in zip(extents, others, strict=True)]
    for begin, end in spans:
        yield from product(range(begin // length * length, end, length), *across)
