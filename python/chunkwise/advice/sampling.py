"""How small do filters make this data, and how fast are they on it?

Blocks from several places are written with each pipeline, and read by libhdf5 and by chunkwise.
The readers' other costs are subtracted (`chunkwise.model.seconds`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5p, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.advice.calibration import LIBHDF5, one_thread
from chunkwise.files.causes import unread
from chunkwise.grammar import Pipeline
from chunkwise.grammar.boxes import bounded
from chunkwise.measure.target import Target
from chunkwise.model.cost import Shape, Stored
from chunkwise.model.readers import CHUNKWISE, UNCACHED, reader
from chunkwise.model.seconds import Codec, Machine, Speed, parts
from chunkwise.model.traffic import Pattern, traffic
from chunkwise.names import HDF5_ERRORS

# Of each shape, this many bytes in this many places: a tenth of a second of deflate.
PLACES: Final = 4
_SHAPE_NBYTES: Final = 3 << 20
_LARGEST_NBYTES: Final = 4 << 20
_MOST_BLOCKS: Final = 48
# The fastest of each counts, because other work of the machine only adds time.
_PASSES: Final = 3
# Places whose ratios differ by more are worth a word.
UNLIKE: Final = 1.5


@dataclass(frozen=True)
class Samples:
    """Blocks of a dataset, and what filters made of them."""

    codecs: dict[str, Codec]  # For each pipeline that was tried
    # The largest compression ratio among places of the dataset over the smallest.
    unlike: float = 1.0
    constant: bool = False  # Whether all elements that were looked at are equal
    # Pipelines that were not tried, and why.
    left_out: dict[str, str] = field(default_factory=dict)


def take(
    dataset: h5py.Dataset,
    pipelines: Sequence[str],
    shapes: Sequence[Shape],
    machine: Machine,
    folder: str,
    *,
    deadline: float,
    say: Callable[[str], None] = lambda _: None,
) -> Samples:
    """Try filters on a dataset's own data."""
    # What chunks have beyond the array is no data.
    inside = (tuple(map(min, shape, dataset.shape)) for shape in shapes)
    most = _LARGEST_NBYTES // max(1, dataset.dtype.itemsize)
    shapes = list(dict.fromkeys(bounded(shape, most) for shape in inside))
    blocks = {shape: _blocks(dataset, shape) for shape in shapes}
    first = blocks[shapes[0]]
    constant = _is_constant(first)
    path = Path(folder) / "sample.h5"
    tries: dict[str, list[_Try]] = {}
    left_out: dict[str, str] = {}
    datatype = h5t.TypeID.copy(dataset.id.get_type())
    for number, shape in enumerate(shapes):
        for filters in pipelines:
            if tries and time.monotonic() >= deadline and (number or filters in tries):
                continue
            if number and filters not in tries:
                continue
            say(f"trying {filters}")
            try:
                one = _tried(path, datatype, blocks[shape], shape, filters, machine)
            except HDF5_ERRORS as error:
                left_out[filters] = str(error)
                continue
            tries.setdefault(filters, []).append(one)
    codecs = {filters: _codec(filters, found) for filters, found in tries.items()}
    unlike = max((codec.spread for codec in codecs.values()), default=1.0)
    return Samples(codecs, unlike, constant, left_out)


def corrected(codecs: Mapping[str, Codec], target: Target) -> dict[str, Codec]:
    """Scale sizes from a few places to the whole dataset."""
    known = codecs.get(target.filters)
    if known is None or target.chunks is None or target.filters == "none":
        return dict(codecs)
    grid = math.prod(-(-n // c) for n, c in zip(target.shape, target.chunks, strict=True))
    nbytes = grid * target.chunk_nbytes
    if any(one.compresses for one in Pipeline.parse(target.filters).filters):
        if nbytes > 2 * target.nbytes:
            # Most of what is stored is what chunks have beyond the array, which shows nothing.
            return dict(codecs)
        # And little of it is: one value compresses to almost nothing.
        nbytes = target.nbytes
    sampled = known.ratio(target.chunks) * nbytes
    factor = min(2.0, max(0.5, target.stored_nbytes / max(1.0, sampled)))
    return {
        name: codec if name in ("none", "fletcher32") else replace(
            codec, ratios=tuple((shape, ratio * factor) for shape, ratio in codec.ratios)
        )
        for name, codec in codecs.items()
    }  # fmt: skip


# --- blocks --------------------------------------------------------------------------------


def _blocks(dataset: h5py.Dataset, shape: Shape) -> list[npt.NDArray[Any]]:
    """Read blocks of one shape, rows of neighbours at a few places spread over the dataset."""
    nbytes = max(1, math.prod(shape) * dataset.dtype.itemsize)
    number = min(_MOST_BLOCKS, max(1, _SHAPE_NBYTES // nbytes))
    places = min(number, PLACES)
    run = max(1, number // places)
    found: list[npt.NDArray[Any]] = []
    for start in _starts(dataset.shape, shape, places):
        axis = _longest(dataset.shape, shape)
        for i in range(run):
            begin = [*start]
            begin[axis] = start[axis] + i * shape[axis]
            box = tuple(slice(b, b + s) for b, s in zip(begin, shape, strict=True))
            if begin[axis] + shape[axis] > dataset.shape[axis]:
                break
            found.append(_read(dataset, box, shape))
    return found


def _read(dataset: h5py.Dataset, box: tuple[slice, ...], shape: Shape) -> npt.NDArray[Any]:
    """Read a box as it is stored, without conversion."""
    values = np.empty(shape, dataset.dtype)
    try:
        dataset.read_direct(values, box)
    except OSError as error:
        raise unread(dataset.id, error) from error
    return values


def _longest(extents: Shape, shape: Shape) -> int:
    """Return the dimension along which the most blocks lie."""
    counts = [n // s for n, s in zip(extents, shape, strict=True)]
    return counts.index(max(counts))


def _starts(extents: Shape, shape: Shape, places: int) -> list[Shape]:
    """Spread places over an array, in an order of its own along each dimension."""
    generator = np.random.default_rng(0)
    grids = [max(1, n // s) for n, s in zip(extents, shape, strict=True)]
    along = []
    for grid, side in zip(grids, shape, strict=True):
        edges = np.linspace(0, grid, places + 1)
        chosen = [int(generator.integers(int(a), max(int(a) + 1, int(b))))
                  for a, b in pairwise(edges)]  # fmt: skip
        generator.shuffle(chosen)
        along.append([index * side for index in chosen])
    return list(dict.fromkeys(zip(*along, strict=True)))


def _is_constant(blocks: Sequence[npt.NDArray[Any]]) -> bool:
    raw = [block.reshape(-1).view(np.uint8).reshape(block.size, -1) for block in blocks]
    return bool(raw) and all(bool((one == raw[0][0]).all()) for one in raw)


# --- one pipeline in one shape -------------------------------------------------------------


@dataclass(frozen=True)
class _Try:
    shape: Shape
    nbytes: int
    ratios: tuple[float, ...]
    decode: dict[str, float]
    encode: dict[str, float]

    @property
    def ratio(self) -> float:
        return statistics.fmean(self.ratios)


def _tried(
    path: Path,
    datatype: Any,
    blocks: Sequence[npt.NDArray[Any]],
    shape: Shape,
    filters: str,
    machine: Machine,
) -> _Try:
    """Write the blocks as chunks, and read them: seconds of one chunk, each way."""
    itemsize = datatype.get_size()
    nbytes = math.prod(shape) * itemsize
    stacked = (len(blocks) * shape[0], *shape[1:])
    path.unlink(missing_ok=True)
    encoding = 0.0
    sizes = []
    with h5py.File(path, "w", libver="latest") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk(shape)
        dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
        Pipeline.parse(filters).apply(dcpl)
        space = h5s.create_simple(stacked)
        made = h5d.create(file.id, b"x", datatype, space, dcpl)
        memory = h5s.create_simple(shape)
        for i, block in enumerate(blocks):
            space.select_hyperslab((i * shape[0], *(0 for _ in shape[1:])), shape)
            begun = time.perf_counter()
            made.write(memory, space, block, datatype)
            made.flush()
            encoding += time.perf_counter() - begun
        for i in range(len(blocks)):
            origin = (i * shape[0], *(0 for _ in shape[1:]))
            sizes.append(made.get_chunk_info_by_coord(origin).size)
    ratios = tuple(size / nbytes for size in sizes)
    if filters == "none":
        return _Try(shape, nbytes, ratios, {}, {})
    encode_s = max(0.0, encoding / len(blocks) - _written_s(nbytes, machine))
    decode = {name: _decode_s(path, stacked, shape, itemsize, name, machine)
              for name in (LIBHDF5, CHUNKWISE)}  # fmt: skip
    return _Try(shape, nbytes, ratios, decode, {LIBHDF5: encode_s})


def _written_s(nbytes: int, machine: Machine) -> float:
    """Return the seconds of a written chunk besides those of its filters."""
    rates = machine.rates(LIBHDF5, writing=True)
    fixed = rates.call_s + rates.touch_s + rates.load_s + rates.index_s
    return fixed + nbytes * (rates.copy_s + rates.fetch_s)


def _decode_s(
    path: Path, stacked: Shape, shape: Shape, itemsize: int, name: str, machine: Machine
) -> float:
    """Time a walk chunk by chunk, on one thread, less what it costs besides the filters."""
    stored = Stored(stacked, shape, itemsize)
    pattern = Pattern("", shape)
    walk = _native.Walk(stacked, shape)
    who = reader(CHUNKWISE) if name == CHUNKWISE else UNCACHED
    found = traffic(stored, pattern, who)
    besides = sum(parts(found, shape, itemsize, Codec(""), machine, name).values())
    times: list[float] = []
    with one_thread():
        for _ in range(_PASSES):
            _native.cache_clear()
            opened = _native.OpenDataset(library(), str(path), "x", {})
            run = opened.engine_walk if name == CHUNKWISE else opened.walk
            times.append(run(walk, walk.operations, 5.0)["elapsed_s"])
            del opened, run
    chunks = stacked[0] // shape[0]
    return max(0.0, (min(times) - besides) / chunks)


def _codec(filters: str, tries: Sequence[_Try]) -> Codec:
    ratios = tuple((one.shape, one.ratio) for one in tries)
    spread = max((max(one.ratios) / max(1e-9, min(one.ratios)) for one in tries), default=1.0)
    names = [name for name in (LIBHDF5, CHUNKWISE) if all(name in one.decode for one in tries)]
    decode = {name: _line([(t.nbytes, t.decode[name]) for t in tries]) for name in names}
    encode = {LIBHDF5: _line([(t.nbytes, t.encode.get(LIBHDF5, 0.0)) for t in tries])}
    in_blocks = [one.name for one in Pipeline.parse(filters).filters] == ["bitshuffle"]
    return Codec(filters, ratios, decode, encode, spread, in_blocks)


def _line(points: Sequence[tuple[int, float]]) -> Speed:
    """Return the seconds of a chunk and of a byte, from seconds by bytes."""
    # The largest chunks show what bytes cost, the smallest what is left.
    small, large = min(points), max(points)
    nbyte_s = large[1] / max(1, large[0])
    return Speed(max(0.0, small[1] - small[0] * nbyte_s), nbyte_s)
