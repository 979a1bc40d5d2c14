"""Which combinations of parameters are walked?  Those of hdf5-iotest, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.words import nearest
from chunkwise_lab.studies.iotest.settings import PLAIN_META_BLOCK, Settings

# By a combination's attribute: the column of the CSV file that has it.
COLUMNS: Final[Mapping[str, str]] = {
    "slowest": "slowdim",
    "rank": "rank",
    "alignment_increment": "alignment-increment",
    "alignment_threshold": "alignment-threshold",
    "meta_block_size": "meta-block-size",
    "layout": "layout",
    "fill": "fill",
    "format": "fmt",
    "io": "io",
}


@dataclass(frozen=True)
class Combination:
    """One way to write and read the same arrays."""

    number: int = 0  # In the walk, from 1
    # Of the datasets: 2 (for each array and step), 3 (for each step, or array), or 4 (one)
    rank: int = 4
    slowest: str = "step"  # ``step`` or ``array``
    layout: str = "chunked"  # ``contiguous`` or ``chunked``
    fill: str = "false"  # ``true`` where the library writes fill values first
    alignment_increment: int = 1  # Bytes
    alignment_threshold: int = 0
    meta_block_size: int = PLAIN_META_BLOCK
    # ``earliest`` or ``latest``: the lowest version of HDF5's file format.
    format: str = "earliest"
    # ``independent`` or ``collective``; the driver where there is one process.
    io: str = "collective"

    def point(self) -> dict[str, str]:
        """Return its values as text, by the columns of hdf5-iotest's CSV file."""
        return {column: str(getattr(self, name)) for name, column in COLUMNS.items()}

    @property
    def label(self) -> str:
        """Say which one it is, in a few words."""
        fill = "fill" if self.fill == "true" else "no fill"
        return f"rank {self.rank}, {self.slowest} first, {self.layout}, {fill}, {self.io}"


def combinations(settings: Settings, ranks: int) -> Iterator[Combination]:
    """Give all combinations in their order, numbered from 1."""
    alignments = [(1, 0)]
    own = (settings.alignment_increment, settings.alignment_threshold)
    if own != alignments[0]:
        alignments.append(own)
    blocks = list(dict.fromkeys((PLAIN_META_BLOCK, settings.meta_block_size)))
    modes = ["independent", "collective"] if ranks > 1 else [settings.single_process]
    loops = product(
        (2, 3, 4),
        ("step", "array"),
        ("contiguous", "chunked"),
        ("true", "false"),
        alignments,
        blocks,
        ("earliest", "latest"),
        modes,
    )
    for number, (rank, slowest, layout, fill, aligned, block, fmt, io) in enumerate(loops, 1):
        yield Combination(number, rank, slowest, layout, fill, *aligned, block, fmt, io)


def chosen(settings: Settings, ranks: int, only: Sequence[str] = ()) -> list[Combination]:
    """Return the requested combinations, with their numbers in the whole walk."""
    found = list(combinations(settings, ranks))
    wanted: dict[str, set[str]] = {}
    for text in only:
        name, equals, value = text.partition("=")
        if not equals or name not in COLUMNS.values():
            raise UsageError(
                f"--only {printable(text)}: no COLUMN=VALUE{nearest(name, COLUMNS.values())}; "
                f"columns are {', '.join(COLUMNS.values())}"
            )
        known = dict.fromkeys(one.point()[name] for one in found)
        if value not in known:
            raise UsageError(
                f"--only {printable(text)}: the walk has {name} {', '.join(known)} here"
            )
        wanted.setdefault(name, set()).add(value)
    if settings.one_case > len(found):
        raise UsageError(
            f"one-case = {settings.one_case}: the walk has {len(found)} combinations here"
        )
    return [
        one
        for one in found
        if settings.one_case in (0, one.number)
        and all(one.point()[name] in values for name, values in wanted.items())
    ]
