"""Do measurements show that another way of storing the data helps?"""

from __future__ import annotations

from dataclasses import replace

from chunkwise.measure.restoring import commands
from chunkwise.measure.results import Advice, Cell, Results
from chunkwise.measure.variants import Variant
from chunkwise.trials.readers import WITH_LIBRARY_CACHE
from chunkwise.words import format_ratio

# Less than this is not worth another file.
MUCH = 2.0


def verified(advice: Advice, results: Results, main: Variant) -> Advice:
    """Offer measured chunks or filters in place of computed ones, if there are any.

    The advice is about the data stored as `main`.
    """
    others = [variant for variant in results.variants if variant != main]
    worst = max(
        (c for c in results.cells if c.variant == main and c.reader in WITH_LIBRARY_CACHE),
        key=total,
        default=None,
    )
    if worst is None or not others:
        return advice
    rivals = [
        cell
        for cell in results.cells
        if cell.variant in others
        and (cell.access, cell.reader, cell.cache_nbytes)
        == (worst.access, worst.reader, worst.cache_nbytes)
        and cell.total_s
    ]
    best = min(rivals, key=total, default=None)
    if best is None or best.variant is None or total(worst) < MUCH * total(best):
        return advice
    target, variant = results.file, best.variant
    gained = f"all reads of '{worst.access.name}' {format_ratio(total(worst) / total(best))}"
    effect = f"measured: {gained} as fast, stored as {variant}"
    texts = [fix.text for fix in commands(target, variant)]
    if not texts:
        return replace(advice, effect=f"{advice.effect}; {effect}" if advice.effect else effect)
    return replace(advice, fix=texts[0], effect=effect, in_c=None)


def total(cell: Cell) -> float:
    """Return the seconds of a cell; 0 without any."""
    return cell.total_s or 0.0
