"""Do measurements show that another way of storing the data helps?"""

from __future__ import annotations

from dataclasses import replace

from chunkwise.measure.cause import Cause
from chunkwise.measure.restoring import copied
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.variants import Variant
from chunkwise.model import worth
from chunkwise.trials.readers import WITH_LIBRARY_CACHE
from chunkwise.words import format_ratio


def verified(cause: Cause, results: Results, main: Variant) -> Cause:
    """Offer measured chunks or filters in place of computed ones, if there are any.

    The cause is about the data stored as `main`.
    """
    others = [variant for variant in results.variants if variant != main]
    worst = max(
        (c for c in results.cells if c.variant == main and c.reader in WITH_LIBRARY_CACHE),
        key=total,
        default=None,
    )
    if worst is None or not others:
        return cause
    rivals = [
        cell
        for cell in results.cells
        if cell.variant in others
        and (cell.access, cell.reader, cell.cache_nbytes)
        == (worst.access, worst.reader, worst.cache_nbytes)
        and cell.total_s
    ]
    best = min(rivals, key=total, default=None)
    if best is None or best.variant is None or total(worst) < worth.NOTICED * total(best):
        return cause
    target, variant = results.file, best.variant
    effect = f"{faster(worst, best)}, stored as {variant}"
    copies = copied(target, variant)
    if not copies:
        return replace(cause, effect=f"{cause.effect}; {effect}" if cause.effect else effect)
    return replace(cause, remedies=copies, effect=effect)


def faster(slow: Cell, fast: Cell) -> str:
    """Say how much faster all reads are, and whether all of them were done."""
    ratio = format_ratio(total(slow) / total(fast))
    estimated = slow.extrapolated or fast.extrapolated
    how = "estimated from a part of the reads" if estimated else "measured"
    return f"{how}: all reads of '{slow.access.name}' {'~' * estimated}{ratio} as fast"


def total(cell: Cell) -> float:
    """Return the seconds of a cell; 0 without any."""
    return cell.total_s or 0.0
