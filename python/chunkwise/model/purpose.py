"""What is a dataset's layout for: which ways of reading fit it, and why?

Chunk shapes, attributes and names of dimensions say how a writer expects it to be read.  Only what
fits is judged; every other way of reading is a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from chunkwise.grammar import format_shape
from chunkwise.model.chunk_shape import TINY_CHUNK_NBYTES, USUAL_READS
from chunkwise.model.geometry import line, piece, plane
from chunkwise.model.traffic import Pattern
from chunkwise.words import joined

Shape = tuple[int, ...]
Kind = Literal["image", "frame", "spectrum", "sparse"]
Axis = Literal["T", "Z", "Y", "X"]

# As many colours has an image at most.
_MOST_CHANNELS: Final = 4
# Shorter sides are no image's.
_SHORTEST_SIDE: Final = 16
# Elements of a row of a sparse matrix: hundreds, in matrices of cells and genes.
_SPARSE_ROW: Final = 256


@dataclass(frozen=True, slots=True)
class Signs:
    """What a file says of a dataset besides its shape and its chunks."""

    kind: Kind | None = None  # What it holds, by classes and attributes
    axes: tuple[Axis | None, ...] = ()  # What each dimension is; empty if nothing says it


@dataclass(frozen=True, slots=True)
class Use:
    """A way of reading that fits a dataset."""

    name: str  # In the plural: ``frames``
    block: Shape  # What one read takes
    at_random: bool = False  # Whether it is also read in no order

    def patterns(self, shape: Shape) -> Iterator[Pattern]:
        """Give it as the model takes it."""
        yield Pattern(self.name, self.block)
        number = math.prod(-(-n // b) for n, b in zip(shape, self.block, strict=True))
        if self.at_random and number > 1:
            yield Pattern(self.name, self.block, None, True, min(number, USUAL_READS))


@dataclass(frozen=True, slots=True)
class Purpose:
    """The ways of reading that fit a dataset, the smallest read first; reading all of it fits."""

    uses: tuple[Use, ...] = ()
    why: str = ""  # How that is known
    signs: Signs = Signs()

    @property
    def in_words(self) -> str:
        """Say what is judged: ``frames (1x514x1030): each chunk is one of them``."""
        said = joined([f"{one.name} ({format_shape(one.block)})" for one in self.uses])
        return f"{said}: {self.why}"

    def named(self, block: Shape) -> Use | None:
        """Find the use that reads such blocks; None for a guess."""
        return next((one for one in self.uses if one.block == block), None)


NO_SIGNS: Final = Signs()


@lru_cache(maxsize=1024)
def purpose(
    shape: Shape,
    chunks: Shape | None,  # None for data in one piece
    itemsize: int,
    signs: Signs = NO_SIGNS,
) -> Purpose:
    """Recognize what a dataset is read by."""
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    if len(axes) < 2:
        if signs.kind == "sparse":
            block = tuple(min(n, _SPARSE_ROW) for n in shape)
            use = Use("rows of a sparse matrix", block, at_random=True)
            return Purpose((use,), "'indptr' lies beside it", signs)
        return Purpose((Use("pieces", piece(shape, itemsize)),), "it has one dimension")
    said = _said(shape, itemsize, signs)
    unit = None if chunks is None else _unit(shape, chunks, itemsize)
    if unit is None:
        rows = (Use("rows", line(shape, axes[-1])), Use("steps", plane(shape, axes[0])))
        one = dict.fromkeys(rows if said is None else (said, *rows))
        why = "in order, because nothing says what else is read"
        why = "in order, as it is stored" if chunks is None else why
        return Purpose(_each_once(one), why, signs)
    block, number = unit
    name = said.name if said is not None and said.block == block else _name(shape, block, signs)
    uses = [Use(name, block, said is not None and said.block == block)]
    if said is not None:
        uses.append(said)
    if number > 1 and block[axes[-1]] > 1:
        uses.insert(0, Use("rows", line(shape, axes[-1])))
    held = (
        "is one" if number == 1 else "is a part of one" if number < 1 else f"holds {number:,.0f}"
    )
    found = _each_once(uses)
    why = f"each chunk {held} of {'them' if len(found) == 1 else f'the {name}'}"
    return Purpose(found, why, signs)


def in_words(shape: Shape, block: Shape) -> str:
    """Name a block as a scientist would, if nothing says what the data is."""
    return _name(shape, block, NO_SIGNS)


def _each_once(uses: Sequence[Use] | dict[Use, None]) -> tuple[Use, ...]:
    found: dict[Shape, Use] = {}
    for one in uses:
        found.setdefault(one.block, one)
    return tuple(found.values())


def _unit(shape: Shape, chunks: Shape, itemsize: int) -> tuple[Shape, float] | None:
    """Give the block that chunks are made of, and how many of it a chunk holds."""
    lengths = list(zip(shape, chunks, strict=True))
    whole = [n > 1 and c >= n for n, c in lengths]
    several = [n > 1 and c > 1 for n, c in lengths]
    if all(n == 1 or c >= n for n, c in lengths) or not any(several):
        return None
    tiny = math.prod(chunks) * itemsize < TINY_CHUNK_NBYTES
    if any(n > 1 and c == 1 for n, c in lengths) and (not tiny or whole == several):
        block = tuple(n if one else 1 for n, one in zip(shape, several, strict=True))
    elif any(whole):
        block = tuple(n if one else 1 for n, one in zip(shape, whole, strict=True))
    else:
        return None
    return block, math.prod(min(n, c) for n, c in lengths) / math.prod(block)


def _said(shape: Shape, itemsize: int, signs: Signs) -> Use | None:
    """Give what is read by what the file says: images, frames, spectra."""
    rank = len(shape)
    kind, sides = signs.kind, 2
    channels = rank >= 4 and min(shape[-3:]) <= _MOST_CHANNELS
    if kind is None and channels and itemsize == 1:
        kind = "image"
    if kind not in ("image", "frame", "spectrum") or rank < 2:
        return None
    if kind == "spectrum":
        sides = 1
    elif channels or (rank == 3 and kind == "image" and shape[-1] <= _MOST_CHANNELS):
        sides = 3
    if sides > 1 and sorted(shape[-sides:])[-2] < _SHORTEST_SIDE:
        return None
    block = (1,) * (rank - sides) + shape[rank - sides :]
    names = {"image": "images", "frame": "frames", "spectrum": "spectra"}
    return None if block == shape else Use(names[kind], block, at_random=kind != "spectrum")


def _name(shape: Shape, block: Shape, signs: Signs) -> str:
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    long = [axis for axis in axes if block[axis] > 1]
    across = [axis for axis in axes if axis not in long]
    kinds = {signs.axes[axis] for axis in long} if signs.axes else set()
    if kinds == {"Y", "X"}:
        return "maps"
    if kinds == {"T"}:
        return "series"
    if kinds == {"Z"}:
        return "profiles"
    if len(long) == 1:
        return "rows" if long == axes[-1:] else f"lines along dimension {long[0]}"
    if len(across) == 1:
        return f"planes across dimension {across[0]}"
    return "blocks"
