"""What is the report of these results?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise_lab.report import advice, benches, studies, traced
from chunkwise_lab.report.model import Entry, Index, Kind, Report, Section
from chunkwise_lab.report.sources import Source, read
from chunkwise_lab.studies.items import papers, verdicts
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults

_TITLES: Final[dict[Kind, str]] = {
    "study": "Does the papers' advice still stand?",
    "bench": "What each access pattern takes",
    "advise": "How the data should be stored",
    "trace": "What the program read",
}


def report(paths: Sequence[str | Path]) -> Report:
    """Make the report of saved results; studies come first."""
    found = read(paths)
    sources = [source for source, _ in found]
    made = [_section(source, path, f"r{n}") for n, (source, path) in enumerate(found, 1)]
    told_apart = _told_apart(_scaled(made, sources))
    sections = sorted(told_apart, key=lambda section: not section.of_study)
    kinds = {section.kind for section in sections}
    kind = "study" if "study" in kinds else kinds.pop() if len(kinds) == 1 else "bench"
    of_studies = [source for source in sources if isinstance(source, StudyResults)]
    return Report(_TITLES[kind], tuple(sections), _indexes(of_studies, made))


def _indexes(results: Sequence[StudyResults], sections: Sequence[Section]) -> tuple[Index, ...]:
    """Put the items of the measured papers beside their verdicts and experiments."""
    known = verdicts(results)
    measured = {name.split("/")[0] for name in known}
    blocks = {block.id for section in sections for block in section.blocks}
    ids = {
        f"{one.study}/{name}": f"{section.id}-{name}"
        for one, section in zip(results, [s for s in sections if s.of_study], strict=True)
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


def _section(source: Source, path: str | Path, id_: str) -> Section:
    if isinstance(source, StudyResults):
        return studies.section(source, load(source.source or source.study), id_)
    try:
        if source.saved is not None:
            return benches.section(source.saved, source.values, id_)
        made = advice.section if source.kind == "advise" else traced.section
        return made(source.values, str(path), id_)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise UsageError(
            f"{printable(str(path))}: is no whole file of chunkwise {source.kind} "
            f"({printable(f'{type(wrong).__name__}: {wrong}')})"
        ) from None


def _scaled(sections: Sequence[Section], sources: Sequence[Source]) -> list[Section]:
    """Name the scale if a study was run at several."""
    scales: dict[str, set[str]] = {}
    for source in sources:
        if isinstance(source, StudyResults):
            scales.setdefault(source.study, set()).add(source.scale)
    return [
        replace(section, title=f"{section.title}, {source.scale}")
        if isinstance(source, StudyResults) and len(scales[source.study]) > 1
        else section
        for section, source in zip(sections, sources, strict=True)
    ]


def _told_apart(sections: Sequence[Section]) -> list[Section]:
    """Number runs of the same study, or of the same file."""
    often = Counter(section.title for section in sections)
    seen: Counter[str] = Counter()
    found = []
    for section in sections:
        seen[section.title] += 1
        if often[section.title] > 1:
            section = replace(section, title=f"{section.title}, run {seen[section.title]}")
        found.append(section)
    return found
