"""Why did it take so long, and what helps, before that is said in words?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chunkwise.measure.results import Cell, Results
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant
from chunkwise.model import worth
from chunkwise.remedy.commands import commands
from chunkwise.remedy.records import (
    CONTIGUOUS,
    Anew,
    Copy,
    Present,
    Remedy,
    in_chunks,
    under_filters,
)
from chunkwise.trials.readers import WITH_LIBRARY_CACHE
from chunkwise.words import format_ratio


@dataclass(frozen=True)
class Cause:
    """What makes a pattern slow."""

    why: str  # In one sentence
    # What helps: one of them, or a copy and the cache that it is to be opened with.
    remedies: tuple[Remedy, ...] = ()
    effect: str | None = None  # What they change, and whether that was measured or computed


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


def copied(target: Target, variant: Variant) -> tuple[Copy, ...]:
    """Store a dataset as a variant, in a copy that loses nothing else of the file.

    Only copies for which there is a command.
    """
    now = Present(target.filters, shape=target.shape)
    found: tuple[Copy, ...]
    if variant.chunks is None:
        found = (Copy(target.file, (Anew(target.dataset, CONTIGUOUS, None, now),)),)
    elif variant.filters == target.filters:
        found = in_chunks(target.file, target.dataset, variant.chunks, now)
    else:
        # Chunks are stated also if they stay: nccopy chooses others for small variables.
        found = under_filters(target.file, target.dataset, variant.filters, now, variant.chunks)
    kept = (replace(one, pipelines=frozenset(pipelines(target))) for one in found)
    return tuple(one for one in kept if any(commands(one)))


def pipelines(target: Target) -> list[str]:
    """Name the pipelines that a copy of the file has to deal with."""
    return sorted({target.filters, *target.file_filters} - {"none"})
