"""What is the report of these results?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.report import advice, benches, studies
from chunkwise.report.model import Report, Section
from chunkwise.report.sources import Advised, Source, read
from chunkwise.studies.load import load
from chunkwise.studies.results import StudyResults


def report(paths: Sequence[str | Path]) -> Report:
    """Make the report of saved results; studies come first.

    Raises
    ------
    UsageError
        A file cannot be read, or is something else.
    """
    found = read(paths)
    sources = [source for source, _ in found]
    made = [_section(source, path, f"r{n}") for n, (source, path) in enumerate(found, 1)]
    told_apart = _told_apart(_scaled(made, sources))
    sections = sorted(told_apart, key=lambda section: not section.of_study)
    title = "What each access pattern takes"
    if all(section.of_advice for section in sections):
        title = "How the data should be stored"
    if any(section.of_study for section in sections):
        title = "Does the papers' advice still stand?"
    return Report(title, tuple(sections))


def _section(source: Source, path: str | Path, id_: str) -> Section:
    if isinstance(source, StudyResults):
        return studies.section(source, load(source.source or source.study), id_)
    of = "advise" if isinstance(source, Advised) else "bench"
    try:
        if isinstance(source, Advised):
            return advice.section(source.values, source.path, id_)
        return benches.section(*source, id_)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise UsageError(
            f"{printable(str(path))}: is no whole file of chunkwise {of} "
            f"({printable(f'{type(wrong).__name__}: {wrong}')})"
        ) from None


def _scaled(sections: Sequence[Section], sources: Sequence[Source]) -> list[Section]:
    """Name the scale if a study was run at several."""
    runs = [source for source in sources if isinstance(source, StudyResults)]
    several = {
        one.study
        for one in runs
        for other in runs
        if one.study == other.study and one.scale != other.scale
    }
    return [
        replace(section, title=f"{section.title}, {source.scale}")
        if isinstance(source, StudyResults) and source.study in several
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
