"""Where do the trials of a pattern differ in memory, enough to decide by it?"""

from __future__ import annotations

from typing import Final

from chunkwise.benching.labels import cell_label
from chunkwise.benching.results import Cell, Results
from chunkwise.grammar import format_size
from chunkwise.words import joined

# Less is what libraries and the interpreter differ by.
_NOTICED_NBYTES: Final = 16 << 20
_NOTICED_TIMES: Final = 1.25
# Of more patterns those that differ most.
_MOST_PATTERNS: Final = 3


def memory_notes(results: Results) -> list[str]:
    """Say what trials took at their peak, for each pattern whose trials differ in that.

    Returns
    -------
    list of str
        A sentence for each such pattern, those with the largest differences first; nothing where
        all took about the same, or the system does not tell.
    """
    found: list[tuple[int, str]] = []
    for cells in results.patterns():
        known = [(cell, peak) for cell in cells if (peak := _peak(cell)) is not None]
        if len(known) < 2:
            continue
        least, most = (pick(peak for _, peak in known) for pick in (min, max))
        if most - least < _NOTICED_NBYTES or most < _NOTICED_TIMES * least:
            continue
        figures: dict[str, int] = {}
        for cell, peak in known:
            label = cell_label(results, cell)
            figures[label] = max(peak, figures.get(label, 0))
        said = joined([f"{label} {format_size(peak)}" for label, peak in figures.items()])
        found.append((most - least, f"Peak memory of '{cells[0].access.name}': {said}."))
    found.sort(key=lambda one: -one[0])
    notes = [sentence for _, sentence in found[:_MOST_PATTERNS]]
    if notes:
        notes[-1] += " That of the whole process, Python and libraries included."
    return notes


def _peak(cell: Cell) -> int | None:
    peak = cell.median(lambda m: m.peak_rss_nbytes)
    return None if peak is None else int(peak)
