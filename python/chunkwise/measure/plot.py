"""What do the effects of a run look like, in a terminal?"""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from chunkwise.measure.effects import Effect, effects
from chunkwise.measure.labels import library_label, version, zlib_label
from chunkwise.measure.printing import plain_table
from chunkwise.measure.results import Results
from chunkwise.words import format_speed

# Characters of the longest bar.
_WIDTH = 26
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def effects_plot(results: Results) -> Table | None:
    """Draw a bar for each value of each axis that was varied; None if there is none.

    A bar's length is the logarithm of how many times as fast (to the right, the faster the
    longer), with the slowest value of the axis at the left edge.
    """
    found = effects(results)
    if not set(found) - {"reader"}:
        return None
    # A bar of the full width is at least a factor of two, so that noise looks small.
    widest = max(math.log10(2), *(_decades(worth) for worth in found.values()))
    table = plain_table()
    table.add_column("what it is worth", no_wrap=True)
    table.add_column("value", overflow="fold", max_width=24)
    table.add_column("speed", justify="right", no_wrap=True)
    table.add_column("slower to faster", no_wrap=True)
    table.add_column("pairs", justify="right", no_wrap=True)
    for axis, worth in found.items():
        lowest = min(effect.speed for effect in worth)
        for effect in worth:
            share = math.log10(effect.speed / lowest) / widest
            first = effect is worth[0]
            table.add_row(
                Text(axis if first else ""),
                Text(_value(results, effect)),
                ("~" if effect.estimated else "") + format_speed(effect.speed),
                Text(bar(share)),
                "-" if first else f"{effect.pairs:,}",
                end_section=effect is worth[-1],
            )
    return table


def _decades(worth: list[Effect]) -> float:
    speeds = [effect.speed for effect in worth]
    return math.log10(max(speeds) / min(speeds))


def bar(share: float, width: int = _WIDTH) -> str:
    """Draw a bar of a share of the width, to an eighth of a character."""
    eighths = max(1, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _value(results: Results, effect: Effect) -> str:
    if effect.axis == "zlib":
        cells = [c for c in results.cells if c.point["zlib"] == effect.value]
        return zlib_label(next((c for c in cells if c.succeeded), cells[0]))
    if effect.axis == "libhdf5":
        cells = [c for c in results.cells if c.point["libhdf5"] == effect.value]
        return library_label(results, next(filter(version, cells), cells[0]))
    return effect.value
