"""What is the result of a run with many settings, in plain words?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chunkwise.measure.effects import Change, best, how, single_changes, worst
from chunkwise.measure.labels import change_label, full_label
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.verdict import FEWEST, verdict
from chunkwise.model import worth
from chunkwise.trials.trial import Operation
from chunkwise.words import format_ratio, format_seconds, joined

_VERBS: Final[dict[Operation, str]] = {"read": "read", "write": "written"}


def closing(results: Results) -> list[str]:
    """Say, of each operation: what was slowest, what helps it, and what makes no difference."""
    if not set(how(results)) - {"reader"}:
        return []
    paragraphs = []
    for operation in dict.fromkeys(cell.operation for cell in results.cells):
        cells = [c for c in results.cells if c.operation == operation and c.total_s]
        if len(cells) > 1:
            paragraphs.append(_paragraph(results, cells))
    return paragraphs


def _paragraph(results: Results, cells: Sequence[Cell]) -> str:
    slowest = worst(cells)
    rivals = [cell for cell in cells if cell.pattern == slowest.pattern]
    fastest = best(rivals)
    verb = _VERBS[slowest.operation]
    text = (
        f"Slowest: '{slowest.access.name}' {verb} by {full_label(results, slowest)}: "
        f"{_time(slowest)}."
    )
    if fastest is slowest:
        return text
    text += (
        f" Fastest of that pattern: {full_label(results, fastest)}: {_time(fastest)}, "
        f"{format_ratio((slowest.total_s or 0.0) / (fastest.total_s or 1.0))} as fast."
    )
    changes = single_changes(results, slowest)
    helps = [change for change in changes if _is_real(slowest, change)]
    unsure = [c for c in changes if c not in helps and _is_too_rare(slowest, c)]
    idle = [change.axis for change in changes if change not in helps and change not in unsure]
    if helps:
        text += f" One change to the slowest alone makes it: {_said(results, helps)}."
    if unsure:
        text += f" Measured too rarely to be certain: {_said(results, unsure, 'seems ')}."
    if idle:
        said = joined(idle)
        text += (
            f" {said[0].upper()}{said[1:]} alone: no difference that the spread allows to tell."
        )
    return text


def _said(results: Results, changes: Sequence[Change], how: str = "") -> str:
    return "; ".join(
        f"{change_label(results, change.cell, change.axis)} {how}"
        f"{format_ratio(change.speed)} as fast"
        for change in changes
    )


def _time(cell: Cell) -> str:
    return ("~" if cell.extrapolated else "") + format_seconds(cell.total_s or 0.0)


def _is_real(start: Cell, change: Change) -> bool:
    """Whether a change gains more than the spread of the repeats explains."""
    if change.speed < worth.MEASURED:
        return False
    before, after = (
        [m.total_s for m in cell.succeeded if m.total_s] for cell in (start, change.cell)
    )
    return verdict(before, after, worth.MEASURED).word == "faster"


def _is_too_rare(start: Cell, change: Change) -> bool:
    """Whether a change seems to gain something, and was not measured often enough to tell."""
    repeats = min(len(start.succeeded), len(change.cell.succeeded))
    return change.speed >= worth.MEASURED and repeats < FEWEST
