"""How is data described that has no file yet, and what stands in for its elements?

By its shape and type, and similar data: a file that has some, or how many times smaller filters
make it.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5p

from chunkwise.errors import UsageError
from chunkwise.files.opening import find_dataset
from chunkwise.files.unclosed import open_readable
from chunkwise.grammar import Pipeline, format_shape, parse_shape
from chunkwise.measure.target import look

# The name in lines to paste if none was given.
DATASET: Final = "data"
# Elements are generated in pieces of about this many bytes.
_PIECE_NBYTES: Final = 16 << 20
# The slow part: elements for a radian, and its height.
_WAVE: Final = 40.0
_HEIGHT: Final = 8.0
_TRIES: Final = 14
# HDF5 looks at each part of a virtual dataset in turn.
_MOST_TIMES: Final = 10_000
# It has to come this close.
_CLOSE: Final = 0.1


def described(
    shape: str | Sequence[int], dtype: str
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the shape and the type of a dataset that is not there yet."""
    extents = parse_shape(shape) if isinstance(shape, str) else tuple(map(int, shape))
    if not isinstance(extents, tuple) or not extents or min(extents) < 1:
        raise UsageError(
            f"--shape {shape}: write the extents in elements, each at least 1, as 8760x721x1440"
        )
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise UsageError(f"--type {dtype}: write a type as NumPy does: f4, i2, >f8, u1") from None
    if kind.kind not in "iufcb":
        raise UsageError(f"--type {dtype}: only numbers can be described before there is a file")
    return extents, kind


def source_of(like: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the file and the dataset that ``--like FILE[:DATASET]`` names."""
    text = os.fspath(like)
    path, colon, name = text.rpartition(":")
    target = look(path, name) if colon and not Path(text).exists() else look(text)
    return target.file, target.dataset


def check_like(like: str | os.PathLike[str], known: h5py.Dataset, kind: np.dtype[Any]) -> None:
    """Raise UsageError if similar data has elements of another size."""
    if known.dtype.itemsize != kind.itemsize:
        raise UsageError(
            f"--like {os.fspath(like)}: '{known.name}' has elements of {known.dtype.itemsize} "
            f"bytes, and {kind.str} has {kind.itemsize}: name data of that type, as FILE:DATASET"
        )


def smooth(number: int, kind: np.dtype[np.generic], rows: int = 64) -> npt.NDArray[Any]:
    """Make up data: a walk at random along rows, its last digits noise."""
    generator = np.random.default_rng(0)
    steps = generator.normal(size=(rows, -(-number // rows))).cumsum(axis=1)
    if kind.kind in "iub":
        steps = np.abs(steps).round() % 120
    return steps.round(2).astype(kind)


def times_smaller(text: str | float) -> float:
    """Read how many times smaller filters make data: ``3x``, ``2.5``."""
    try:
        times = float(str(text).removesuffix("x"))
    except ValueError:
        times = math.nan
    if not 1 <= times < math.inf:
        raise UsageError(f"--compress {text}: write how many times smaller it gets: 3x, 1.5x")
    return times


class Elements(Protocol):
    """What stands in for the elements of data that is not there."""

    def __call__(self, first: int, last: int, shape: Sequence[int]) -> npt.NDArray[Any]:
        """Give indexes `first` to `last` of the slowest dimension, as wide as `shape` says."""


@contextlib.contextmanager
def alike(like: str | os.PathLike[str], kind: np.dtype[Any]) -> Iterator[Elements]:
    """Return elements of existing data; after its end, again from the beginning."""
    file, name = source_of(like)
    with open_readable(file) as source:
        known = find_dataset(source, name)
        check_like(like, known, kind)

        def elements(first: int, last: int, shape: Sequence[int]) -> npt.NDArray[Any]:
            wanted = (last - first, *shape[1:])
            if len(known.shape) == len(shape):
                rows = np.arange(first, last) % known.shape[0]
                across = tuple(slice(0, n) for n in shape[1:])
                pieces = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
                read = [known[(slice(int(p[0]), int(p[-1]) + 1), *across)] for p in pieces]
                found = np.concatenate(read)
                for axis, side in list(enumerate(wanted))[1:]:
                    if found.shape[axis] < side:
                        found = np.take(found, np.arange(side), axis=axis, mode="wrap")
            else:
                # Of another rank: its elements in their order.
                row = max(1, math.prod(known.shape[1:]))
                begin = first * math.prod(shape[1:]) // row % known.shape[0]
                many = -(-math.prod(wanted) // row)
                found = np.resize(known[begin : begin + many], wanted)
            same = found.dtype.kind == kind.kind
            return np.ascontiguousarray(found.astype(kind) if same else found.view(kind))

        yield elements


def compressed(
    times: float, filters: str, chunks: tuple[int, ...], kind: np.dtype[Any]
) -> Elements:
    """Make up elements that filters make so many times smaller, as far as their type allows.

    Something that changes slowly along each dimension, and noise in as many of the last bits as
    it takes.
    """
    most = kind.itemsize // (2 if kind.kind == "c" else 1) * 8

    def ratio(bits: float) -> float:
        return smaller(noisy(kind, bits)(0, chunks[0], chunks), filters)

    low, high = 0.0, 1.0 if kind.kind == "b" else float(most)
    ends = ratio(low), ratio(high)
    close = 1 + _CLOSE
    if not ends[1] / close <= times <= ends[0] * close:
        raise UsageError(
            f"--compress {times:g}x: generated data of type {kind.str} gets from "
            f"{ends[1]:.1f} to {ends[0]:.1f} times smaller by {filters} in chunks of "
            f"{format_shape(chunks)}: name a number between, or data like it with --like"
        )
    for _ in range(_TRIES):
        middle = (low + high) / 2
        if ratio(middle) > times:
            low = middle
        else:
            high = middle
    return noisy(kind, (low + high) / 2)


def noisy(kind: np.dtype[Any], bits: float) -> Elements:
    """Give elements with noise in the last bits; of floats, in those of the mantissa first."""
    part = kind.itemsize // (2 if kind.kind == "c" else 1)
    unsigned = np.dtype(f"u{part}")
    whole = min(int(bits), 63)

    def elements(first: int, last: int, shape: Sequence[int]) -> npt.NDArray[Any]:
        wanted = (last - first, *shape[1:], kind.itemsize // part)
        generator = np.random.default_rng((first, last))
        noise = generator.integers(0, 1 << whole, wanted, dtype="u8")
        # Of one bit more, a part of the elements has noise.
        has_more = generator.random(wanted, dtype="f4") < (bits - whole) / 2
        noise += has_more.astype("u8") << np.uint64(whole)
        slow = np.zeros(wanted)
        for axis, side in enumerate(wanted[:-1]):
            begin = first if axis == 0 else 0
            along = np.sin(np.arange(begin, begin + side) / _WAVE)
            slow += along.reshape([-1 if a == axis else 1 for a in range(len(wanted))])
        steps = (slow * _HEIGHT + _HEIGHT * len(wanted)).astype("u8")
        pattern = ((steps << whole) + noise).astype(unsigned)
        if kind.kind in "fc":
            pattern = pattern + np.ones(1, f"f{part}").view(unsigned)
            # Neither infinite nor no number: the highest bit of the exponent is never set.
            pattern &= unsigned.type(((1 << 8 * part) - 1) ^ (1 << (8 * part - 2)))
            values = pattern.view(f"f{part}").view(f"{kind.kind}{kind.itemsize}")
        elif kind.kind == "b":
            values = (pattern & 1).astype("bool")
        else:
            values = pattern.view(f"{kind.kind}{part}")
        return np.ascontiguousarray(values.reshape(wanted[:-1]).astype(kind))

    return elements


def smaller(piece: npt.NDArray[Any], filters: str) -> float:
    """Return how many times smaller filters make a chunk."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(piece.shape)
    Pipeline.parse(filters).apply(dcpl)
    with h5py.File("tried", "w", driver="core", backing_store=False) as file:
        made = file.create_dataset("piece", data=piece, dcpl=dcpl)
        return piece.nbytes / max(1, int(made.id.get_storage_size()))


def fill(dataset: h5py.Dataset, elements: Elements, rows: int) -> None:
    """Write elements to the first rows of a dataset, whole chunks at a time."""
    shape = dataset.shape
    length = dataset.chunks[0] if dataset.chunks else 1
    row_nbytes = max(1, math.prod(shape[1:]) * dataset.dtype.itemsize)
    step = max(1, _PIECE_NBYTES // row_nbytes // length) * length
    for first in range(0, rows, step):
        last = min(rows, first + step)
        dataset[first:last] = elements(first, last, shape)


def repeated(file: h5py.File, name: str, tile: str, shape: tuple[int, ...]) -> None:
    """Make a dataset that is another one, again and again along its slowest dimension."""
    rows = file[tile].shape[0]
    if shape[0] > _MOST_TIMES * rows:
        raise UsageError(
            f"--shape {format_shape(shape)}: too large to generate from a sample; give a larger "
            "--sample, or fewer elements along the slowest dimension"
        )
    layout = h5py.VirtualLayout(shape, file[tile].dtype)
    source = h5py.VirtualSource(".", tile, file[tile].shape)
    for first in range(0, shape[0], rows):
        many = min(rows, shape[0] - first)
        layout[first : first + many] = source[:many]
    file.create_virtual_dataset(name, layout)
