"""How long do patterns take if no machine was measured?

These figures choose chunks wherever a choice must be the same for everyone.  They lie between
those of memory and of a disk, and promise nobody a time.  `nominal_s` is the model (`traffic`,
`seconds`) with them; `quick_s` computes its main terms for thousands of shapes at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from chunkwise.model.cost import Shape, Stored
from chunkwise.model.fitting import NOMINAL
from chunkwise.model.geometry import Axis
from chunkwise.model.readers import CHUNKWISE, Reader
from chunkwise.model.seconds import Codec, Machine, Rates, Speed, parts
from chunkwise.model.traffic import Pattern, reader_of, traffic

# To find and start a chunk in memory, for single reads: h5py's processor time, 400 layouts.
LOAD_S: Final = 1e-5
# To find a chunk in memory and start zlib, at the most: a change is judged by this.
_FOUND_S: Final = 4e-6
_STARTED_S: Final = 5e-5
# To fill a sieve buffer from memory, besides its bytes.
_FILLED_S: Final = 5e-7
# The same from storage slower than memory, and faster than a disk or object store (10 ms).
STORED_LOAD_S: Final = 3e-4
# If nobody says what is read, or from where: a choice that also suits slow storage.
ANYWHERE_LOAD_S: Final = 2e-3
# zlib's usual speed, one core.
DECODED_NBYTES_PER_S: Final = 256 << 20
_RATIO: Final = 0.5
_RATES: Final = Rates(
    call_s=1e-5,
    touch_s=5e-7,
    crowd_s=1e-7,
    load_s=LOAD_S,
    piece_s=4e-6,
    run_s=4e-9,
    copy_s=2e-10,
    fetch_s=1e-10,
    index_s=1e-6,
    irregular_s=2e-8,
)
# Once for a file is not once for each read: neither the start nor the list of its chunks.
_OUR_RATES: Final = replace(NOMINAL[CHUNKWISE, False], walk_s=0.0, index_s=0.0)
CODEC: Final = Codec(
    "shuffle+deflate:4",
    (((), _RATIO),),
    {"libhdf5": Speed(0.0, 1 / DECODED_NBYTES_PER_S)},
    {"libhdf5": Speed(0.0, 4 / DECODED_NBYTES_PER_S)},
)


def nominal_s(
    stored: Stored, patterns: Sequence[Pattern], reader: Reader, *, load_s: float = LOAD_S
) -> float:
    """Predict the seconds of patterns, each as often as its weight says."""
    total = 0.0
    rates = replace(_OUR_RATES if reader.name == CHUNKWISE else _RATES, load_s=load_s)
    if not stored.chunked and reader.name != CHUNKWISE:
        # No chunk is found for a buffer; filled from storage, it takes what one does.
        rates = replace(rates, piece_s=max(_FILLED_S, load_s - LOAD_S))
    machine = Machine({"libhdf5": rates}, {"libhdf5": rates})
    codec = CODEC if stored.filtered else Codec("none")
    for one in patterns:
        found = traffic(stored, one, reader_of(one, reader))
        each = parts(
            found, stored.chunks, stored.itemsize, codec, machine, "libhdf5", writing=one.writes
        )
        total += one.weight * sum(each.values())
    return total


def memory_load_s(*, filtered: bool) -> float:
    """Return the seconds to find a chunk of a file in memory, and to start its filters."""
    return _STARTED_S if filtered else _FOUND_S


def slowdown(
    before: Stored, after: Stored, patterns: Sequence[Pattern], readers: Sequence[Reader]
) -> float:
    """Return how many times as long reading takes in other chunks, from memory."""
    # For the reader that suffers most, of all patterns together.
    load_s = memory_load_s(filtered=after.filtered)
    return max(
        nominal_s(after, patterns, one, load_s=load_s)
        / nominal_s(before, patterns, one, load_s=load_s)
        for one in readers
    )


def quick_s(
    shape: Shape,
    itemsize: int,
    shapes: npt.NDArray[np.int64],
    patterns: Sequence[Pattern],
    reader: Reader,
    *,
    load_s: float = LOAD_S,
) -> npt.NDArray[np.float64]:
    """Predict about the same for many chunk shapes at once: chunks touched, loaded, decoded."""
    # Collisions in a cache's hash table and the length of runs are left out.
    nbytes = shapes.astype(np.float64).prod(axis=1) * itemsize
    sides, places = zip(
        *(np.unique(shapes[:, axis], return_inverse=True) for axis in range(len(shape))),
        strict=True,
    )
    each_s = load_s + nbytes / DECODED_NBYTES_PER_S + _RATES.fetch_s * _RATIO * nbytes
    total = np.zeros(len(shapes))
    for one in patterns:
        along = [
            _Along(extent, block, [int(n) for n in lengths], where)
            for extent, block, lengths, where in zip(shape, one.block, sides, places, strict=True)
        ]
        room = reader_of(one, reader).cache_nbytes // nbytes
        touches, loads, chunks = _counted(along, one, room)
        slowness = 4.0 if one.writes else 1.0
        total += one.weight * (
            touches * _RATES.touch_s + slowness * loads * each_s + chunks * _RATES.index_s
        )
    return total


class _Along:
    """One dimension of a pattern, for each of many chunk shapes."""

    def __init__(
        self, extent: int, block: int, sides: list[int], where: npt.NDArray[np.intp]
    ) -> None:
        axes = [Axis(extent, block, side) for side in sides]

        def each(values: list[float]) -> npt.NDArray[np.float64]:
            return np.array(values)[where]

        self.positions = axes[0].positions
        self.touches = each([float(axis.touches) for axis in axes])
        self.chunks = each([float(axis.chunks) for axis in axes])
        self.widest = each([float(axis.widest) for axis in axes])
        self.held = each([1.0 if axis.nested else 2.0 for axis in axes])


def _counted(
    along: list[_Along], pattern: Pattern, room: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Count chunks touched, chunks loaded, and different ones among them."""
    touches = np.prod([one.touches for one in along], axis=0)
    chunks = np.prod([one.chunks for one in along], axis=0)
    number = math.prod(one.positions for one in along)
    reads = min(number, pattern.operations or number)
    share = reads / number
    in_order = not pattern.scattered and pattern.selections is None
    if in_order:
        order = range(len(along)) if pattern.order is None else pattern.order
        loads = np.minimum(touches, _decodes([along[axis] for axis in order], room) * chunks)
        return touches * share, loads * share, chunks
    each = touches / number
    touched = reads * each
    touched_share = 1 - (1 - np.minimum(1.0, each / chunks)) ** reads
    distinct = np.maximum(np.minimum(touched, chunks * touched_share), 1.0)
    lost = np.where(room >= each, np.maximum(0.0, 1 - room / chunks), 1.0)
    return touched, distinct + (touched - distinct) * lost, distinct


def _decodes(along: list[_Along], room: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how often a walk decodes each chunk: `Walk.decodes_per_chunk` for several shapes."""
    decodes = np.ones_like(room)
    lost = np.zeros(room.shape, bool)
    faster = np.ones_like(room)
    slower = [np.ones_like(room)]
    for one in along[:-1]:
        slower.append(slower[-1] * one.widest)
    for one, before in zip(reversed(along), reversed(slower), strict=True):
        held = before * one.widest * np.where(faster == 1, 1.0, one.held) * faster
        held = np.where((faster == 1) & (before == 1), 1.0, held)
        again = (one.touches > one.chunks) & (lost | (held > room))
        decodes = np.where(again, decodes * one.touches / one.chunks, decodes)
        lost |= again
        faster = faster * one.chunks
    return decodes
