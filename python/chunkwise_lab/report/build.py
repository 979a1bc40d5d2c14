"""What is the report of these results?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable
from chunkwise_lab.report import studies
from chunkwise_lab.report.markdown import markdown
from chunkwise_lab.report.model import Entry, Index, Report, Section
from chunkwise_lab.report.page import page
from chunkwise_lab.studies.items import papers, verdicts
from chunkwise_lab.studies.load import NAMES, load
from chunkwise_lab.studies.results import StudyResults


def report(paths: Sequence[str | Path]) -> Report:
    """Make the report of studies' saved results, in the order of the papers."""
    order = {name: number for number, name in enumerate(NAMES)}
    found = sorted(
        (StudyResults.read(path) for path in paths),
        key=lambda one: order.get(one.study, len(order)),
    )
    made = [
        studies.section(one, load(one.source or one.study), f"r{n}")
        for n, one in enumerate(found, 1)
    ]
    sections = map(lambda one, title: replace(one, title=title), made, _titles(found))
    return Report("Does the papers' advice still stand?", tuple(sections), _indexes(found, made))


def _indexes(results: Sequence[StudyResults], sections: Sequence[Section]) -> tuple[Index, ...]:
    """Put the items of the measured papers beside their verdicts and experiments."""
    known = verdicts(results)
    measured = {name.split("/")[0] for name in known}
    blocks = {block.id for section in sections for block in section.blocks}
    # As verdicts are: those of the paper's scale, where there are such.
    pairs = sorted(zip(results, sections, strict=True), key=lambda pair: pair[0].scale != "quick")
    ids = {
        f"{one.study}/{name}": f"{section.id}-{name}"
        for one, section in pairs
        for name in one.outcomes
        if f"{section.id}-{name}" in blocks
    }
    return tuple(
        Index(
            f"{paper.number}: {paper.title}",
            paper.states(known),
            tuple(
                Entry(
                    item.item,
                    item.says,
                    item.means,
                    item.verdict(known),
                    next((ids[name] for name in item.experiments if name in ids), ""),
                )
                for item in paper.items
            ),
        )
        for paper in papers()
        if paper.study in measured
    )


def _titles(results: Sequence[StudyResults]) -> list[str]:
    """Name each study, its scale if it was run at several, and runs of the same by a number."""
    scales: dict[str, set[str]] = {}
    for one in results:
        scales.setdefault(one.study, set()).add(one.scale)
    named = [
        f"{one.study}, {one.scale}" if len(scales[one.study]) > 1 else one.study for one in results
    ]
    often = Counter(named)
    return [
        f"{name}, run {named[:n].count(name) + 1}" if often[name] > 1 else name
        for n, name in enumerate(named)
    ]


def save(report: Report, path: Path) -> None:
    """Write a report in the form that its name asks for."""
    kind = path.suffix.lower()
    if kind in (".html", ".htm"):
        text = page(report)
    elif kind in (".md", ".markdown"):
        text = markdown(report)
    else:
        raise UsageError(
            f"{printable(str(path))}: name a report .html for a page, or .md for Markdown"
        )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWriteError(
            f"{printable(str(path))}: cannot be written: {error.strerror or error}; name another "
            "place"
        ) from None
