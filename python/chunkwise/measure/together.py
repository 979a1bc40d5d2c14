"""What is the result of one setting for a whole file, over several of its datasets?

A chunk cache that is given when a file is opened is one cache for each open dataset, so
the memory is the sum.  The time is the sum of the datasets' times, measured one after another.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from chunkwise.errors import UsageError
from chunkwise.grammar import format_size
from chunkwise.measure.labels import reader_label, setting
from chunkwise.measure.planning import check, spell_out
from chunkwise.measure.printing import plain_table, say
from chunkwise.measure.render import show_briefly
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.run import DEFAULT_SECONDS, run, with_readers
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.names import printable
from chunkwise.trials.readers import NATIVE
from chunkwise.words import counted, format_seconds, format_speed

FORMAT: Final = "chunkwise-bench-datasets"
JSON_VERSION: Final = 1
# What a setting of the whole file is not: what is done, and with which of the datasets.
_WHAT: Final = ("access",)


@dataclass(frozen=True)
class Setting:
    """One setting for all datasets."""

    point: dict[str, str]  # Its value on each axis but the patterns, as text
    cells: tuple[Cell, ...]  # Its trials: of each dataset, for each pattern
    # Seconds of all patterns of all datasets; None if a trial gave no figures.
    total_s: float | None
    estimated: bool  # Whether a trial is extrapolated
    # Of each dataset the chunk cache in force, in the order of the datasets; None if the reader
    # has none of libhdf5's.
    cache_nbytes: tuple[int | None, ...]

    @property
    def caches_nbytes(self) -> int | None:
        """The chunk caches of all datasets together; None if the reader has none."""
        known = [nbytes for nbytes in self.cache_nbytes if nbytes is not None]
        return sum(known) if len(known) == len(self.cache_nbytes) else None


@dataclass(frozen=True)
class Together:
    """What was measured of several datasets of a file."""

    results: tuple[Results, ...]  # Of each dataset

    @property
    def settings(self) -> list[Setting]:
        """The settings that all datasets were measured with, in order."""
        first = self.results[0]
        points = dict.fromkeys(_key(cell) for cell in first.cells)
        return [_setting(self.results, key) for key in points if self._has_all(key)]

    def _has_all(self, key: tuple[tuple[str, str], ...]) -> bool:
        return all(any(_key(cell) == key for cell in one.cells) for one in self.results)

    @property
    def mismatches(self) -> list[str]:
        """Sentences for trials that read different bytes."""
        return [
            f"{printable(one.file.dataset)}: {bad}"
            for one in self.results
            for bad in one.mismatches
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it (docs/bench.md)."""
        found = self.settings
        return {
            "format": FORMAT,
            "version": JSON_VERSION,
            "datasets": [one.as_dict() for one in self.results],
            "settings": [
                {
                    **{name.replace("-", "_"): text for name, text in one.point.items()},
                    "total_s": one.total_s,
                    "speed": _speed(found, one),
                    "extrapolated": one.estimated,
                    "cache_nbytes": list(one.cache_nbytes),
                    "caches_nbytes": one.caches_nbytes,
                }
                for one in found
            ],
        }


def run_together(
    file: str | os.PathLike[str],
    datasets: Sequence[str],  # Paths of at least two; patterns have to fit each of them
    space: Space | None = None,
    *,
    seconds: float = DEFAULT_SECONDS,  # The budget for all of them
    **options: Any,
) -> Together:
    """Time access patterns on several datasets of a file, each with the same settings.

    `options` are those of `chunkwise.measure.run`.
    """
    names = [name.strip("/") for name in datasets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"'{printable(twice)}' is named twice: name each dataset once")
    if options.get("save") is not None:
        raise UsageError("--save belongs to one dataset: leave it out, or measure one at a time")
    whole = with_readers(space or Space())
    for one in datasets:
        # If something makes no sense for the last, that is said before the first is measured.
        target = look(file, one)
        check(target, spell_out(target, whole))
    share = seconds / len(datasets)
    return Together(tuple(run(file, one, space, seconds=share, **options) for one in datasets))


def _key(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in cell.point.items() if name not in _WHAT)


def _setting(results: Sequence[Results], key: tuple[tuple[str, str], ...]) -> Setting:
    mine = [[cell for cell in one.cells if _key(cell) == key] for one in results]
    cells = tuple(cell for each in mine for cell in each)
    times = [cell.total_s for cell in cells]
    known = [seconds for seconds in times if seconds is not None]
    native = dict(key).get("reader") in NATIVE
    return Setting(
        dict(key),
        cells,
        sum(known) if len(known) == len(times) else None,
        any(cell.extrapolated for cell in cells),
        tuple(None if native else _cache_nbytes(each) for each in mine),
    )


def _cache_nbytes(cells: Sequence[Cell]) -> int | None:
    found = (m.actual_cache_nbytes for cell in cells for m in cell.succeeded)
    return next((nbytes for nbytes in found if nbytes is not None), None)


def _speed(found: Sequence[Setting], one: Setting) -> float | None:
    base = found[0].total_s
    return None if base is None or not one.total_s else base / one.total_s


def show_together(found: Together, console: Console) -> None:
    """Print a table for each dataset, then the result of each setting for all of them."""
    for results in found.results:
        show_briefly(results, console)
    settings = found.settings
    many = counted(len(found.results), "dataset")
    table = plain_table(gap=2)
    table.add_column(f"{many} together", overflow="fold")
    for title in ("in all", "speed", "chunk cache each", "sum"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in settings:
        mark = "~" if one.estimated else ""
        speed = _speed(settings, one)
        each = sorted({nbytes for nbytes in one.cache_nbytes if nbytes is not None})
        table.add_row(
            Text(_label(found.results[0], one)),
            "-" if one.total_s is None else mark + format_seconds(one.total_s),
            "-" if speed is None else mark + format_speed(speed),
            " to ".join(map(format_size, dict.fromkeys((each[0], each[-1])))) if each else "-",
            "-" if one.caches_nbytes is None else format_size(one.caches_nbytes),
        )
    console.print(table, highlight=False, markup=False)
    say(
        console,
        "in all: all patterns of all datasets, measured one after another. libhdf5 has a chunk "
        "cache for each dataset that is open: a setting of the whole file (rdcc_nbytes of "
        "h5py.File, H5Pset_cache) takes the sum where all are read to the end.",
        indent="  ",
    )
    if any(dict(one.point).get("reader") in NATIVE for one in settings):
        say(
            console,
            "chunkwise has one cache for all of them (CHUNKWISE_CACHE_NBYTES).",
            indent="  ",
        )
    for text in found.mismatches:
        console.print(Text(f"DIFFERENT BYTES: {text}", style="bold red"))


def _label(results: Results, one: Setting) -> str:
    cell = one.cells[0]
    parts = [reader_label(results, cell.reader)]
    for name in results.varied:
        if name not in ("access", "reader"):
            text = setting(results, cell, name)
            parts.append(f"cache {text}" if name == "cache" and text else text)
    return ", ".join(part for part in parts if part)
