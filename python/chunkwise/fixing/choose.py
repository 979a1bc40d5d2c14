"""Which chunks, filters and pages should a file have instead of its own, and why?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from chunkwise.grammar import Pipeline
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import Finding
from chunkwise.model.layout import DatasetLayout, FileLayout, Layout, together
from chunkwise.model.readability import FORMAT_OF_LOW, Needs, losses, program
from chunkwise.model.readers import this_process

# A person decides this: one file instead of several takes the room of all of them.
ASKED_FOR: Final = "data-elsewhere"
# By the model: measurements may refute it.
MISMATCH: Final = "access-mismatch"
# Why a dataset has what no finding asks for.
MEASURED: Final = "advise"
NOTHING: Final[Mapping[str, Layout]] = MappingProxyType({})


@dataclass(frozen=True)
class Change:
    """The new layout of one dataset, and the old one.

    Attributes
    ----------
    path
        The dataset.
    chunk_before, chunk
        Chunk shapes; None for data that is not chunked, and in `chunk` for what stays.
    filters_before, filters
        Pipelines; None in `filters` for what stays.
    why
        Codes of the findings that it mends, and ``advise`` for what was measured to be best.
    cache_nbytes
        The chunk cache of the reader that findings are about, where that is less than what reads
        here have; None for the library's own.
    """

    path: str
    chunk_before: tuple[int, ...] | None
    chunk: tuple[int, ...] | None
    filters_before: str
    filters: str | None
    why: tuple[str, ...]
    cache_nbytes: int | None = None


@dataclass(frozen=True)
class Choice:
    """What a file is to have."""

    layout: FileLayout | None  # All of it; None if nothing is to change
    changes: tuple[Change, ...]  # The part of each dataset
    why: tuple[str, ...]  # Codes of the findings about the file as a whole that it mends
    left: tuple[Finding, ...]  # Findings that it does not mend

    def then(self, more: Choice) -> Choice:
        """Return this choice, and what was chosen for its result."""
        changes = {change.path: change for change in self.changes}
        for change in more.changes:
            first = changes.get(change.path, change)
            changes[change.path] = replace(
                change,
                chunk_before=first.chunk_before,
                chunk=change.chunk or first.chunk,
                filters_before=first.filters_before,
                filters=change.filters or first.filters,
                why=tuple(dict.fromkeys((*first.why, *change.why))),
            )
        found = [one for one in (more.layout, self.layout) if one is not None]
        why = tuple(dict.fromkeys((*self.why, *more.why)))
        return Choice(together(found), tuple(changes.values()), why, more.left)


def choose(
    facts: FileFacts,
    *,
    merge: bool = False,
    readers: Sequence[str] = (),
    proved: Mapping[str, Layout] = NOTHING,
) -> Choice:
    """Choose what a file is to have."""
    mended = [one for one in facts.findings if one.layout is not None]
    if not merge:
        mended = [one for one in mended if one.code != ASKED_FOR]
    present = _needs(facts)
    programs = [program(name) for name in readers]
    mended = [
        one
        for one in mended
        if one.layout is None or not losses(present, _with(present, one.layout), programs)
    ]
    layout = replace(facts, findings=tuple(mended)).layout
    wanted = {one.path: one for one in layout.datasets} if layout is not None else {}
    datasets = {one.path: one.dataset for one in facts.objects if one.dataset is not None}
    changes, layouts = [], []
    for path, dataset in datasets.items():
        own = wanted.get(path, DatasetLayout(path))
        if path in proved:
            filters = proved[path].filters
            own = DatasetLayout(
                path, proved[path].chunks, None if filters == dataset.filters else filters
            )
        chunk = own.chunk
        before = None if dataset.chunks is None else dataset.chunks.shape
        if chunk == before:
            chunk = None
        if chunk is None and own.filters is None:
            continue
        layouts.append(replace(own, chunk=chunk))
        codes = tuple(dict.fromkeys(one.code for one in mended if one.path == path))
        if path in proved:
            codes = (*codes, MEASURED)
        # A layout measured as best is best with the cache on this machine.
        own_findings = [one for one in mended if one.path == path and path not in proved]
        cache = _cache_nbytes(own_findings)
        changes.append(Change(path, before, chunk, dataset.filters, own.filters, codes, cache))
    of_file = tuple(dict.fromkeys(one.code for one in mended if _is_of_file(one)))
    if layouts or of_file:
        layout = replace(layout or FileLayout(), datasets=tuple(layouts))
    else:
        layout = None
    followed = {change.path for change in changes}
    left = tuple(
        one
        for one in facts.findings
        if one not in mended or not (_is_of_file(one) or one.path in followed)
    )
    return Choice(layout, tuple(changes), of_file, left)


def _cache_nbytes(findings: Sequence[Finding]) -> int | None:
    """Return the smallest cache that findings are about, if it is less than h5py has here."""
    sizes = [n for one in findings if isinstance(n := one.evidence.get("cache_nbytes"), int)]
    return min((n for n in sizes if n < this_process().cache_nbytes), default=None)


def _needs(facts: FileFacts) -> Needs:
    """Say what a file needs from its readers."""
    datasets = [one.dataset for one in facts.objects if one.dataset is not None]
    return Needs(
        frozenset(one.name for d in datasets for one in Pipeline.parse(d.filters).filters),
        facts.file_format.oldest_reader,
        any(dataset.layout == "virtual" for dataset in datasets),
        facts.file_format.space_strategy == "page",
    )


def _with(before: Needs, layout: FileLayout) -> Needs:
    """Return what a file stored in this way needs."""
    pipelines = [one.filters for one in layout.datasets if one.filters is not None]
    more = {one.name for text in pipelines for one in Pipeline.parse(text).filters}
    return replace(
        before,
        filters=before.filters | more,
        oldest_reader=before.oldest_reader if layout.low is None else FORMAT_OF_LOW,
        paged=before.paged or layout.page_nbytes is not None,
    )


def _is_of_file(finding: Finding) -> bool:
    """Whether what mends it is about the file as a whole: its metadata, its space, its order."""
    return finding.layout is not None and not finding.layout.datasets
