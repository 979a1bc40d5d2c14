"""What is wrong with a file, as far as its facts can tell?

Each module looks at one subject; a check takes facts and yields findings, and reads
nothing of the file itself.  docs/findings.md explains each code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import SEVERITIES, Finding, grouped
from chunkwise.inspection.findings import access, cache, chunks, file, filters, objects, placement
from chunkwise.inspection.findings.subject import DatasetCheck, Subject
from chunkwise.model.fix import Fix, joined
from chunkwise.model.readers import Reader
from chunkwise.model.remedies import keeps_all_data, salvage, verify
from chunkwise.model.traffic import Pattern
from chunkwise.verdicts import Verdict

__all__ = ["find"]

DATASET_CHECKS: tuple[DatasetCheck, ...] = (
    *filters.CHECKS,
    *cache.CHECKS,
    *chunks.CHECKS,
    *placement.CHECKS,
    *access.CHECKS,
)


NOTHING: Final[Mapping[str, tuple[Pattern, ...]]] = MappingProxyType({})
# If several findings offer filters, the first of these is followed.
_BY_FILTERS = (
    "weak-compression",
    "shuffle-missing",
    "shuffle-useless",
    "uncompressed",
    "filters-left-out",
)


def find(
    facts: FileFacts,
    readers: tuple[Reader, ...],
    stated: Mapping[str, tuple[Pattern, ...]] = NOTHING,
) -> tuple[Finding, ...]:
    """Run every check on a file and all that is in it."""
    found = [finding for check in file.CHECKS for finding in check(facts)]
    for entry in facts.objects:
        found += (finding for check in objects.CHECKS for finding in check(facts.path, entry))
        if entry.dataset is not None:
            patterns = stated.get(entry.path, ())
            found += _of_dataset(Subject(facts.path, entry.path, entry.dataset, readers, patterns))
    pipelines = {entry.dataset.filters for entry in facts.objects if entry.dataset is not None}
    found = [_trusted(finding, pipelines) for finding in found]
    if facts.file_format.flags:
        found = [_before_it_is_closed(finding) for finding in found]
    if any(finding.verdict is Verdict.DAMAGED for finding in found):
        found = [_of_damaged(facts.path, finding) for finding in found]
    found.sort(key=_weight, reverse=True)
    return tuple(_together(found))


def _together(found: list[Finding]) -> Iterator[Finding]:
    """Make the commands of the worst finding of each kind name all datasets with it.

    The commands of the others copy the whole file for their own dataset alone.
    """
    groups = grouped(found)
    for finding in found:
        group = groups[finding.severity, finding.code]
        if finding is group[0] and len(group) > 1:
            finding = replace(finding, fixes=tuple(_of_all(fix, group) for fix in finding.fixes))
        yield finding


def _of_all(fix: Fix, group: list[Finding]) -> Fix:
    """Join a command with those by the same tool for the other datasets of a group."""
    if not fix.options:
        return fix
    alike = [each for one in group for each in one.fixes if each.tool == fix.tool and each.options]
    return joined([fix, *alike])


def _weight(finding: Finding) -> tuple[int, bool, int]:
    for_everyone = finding.code != "reads-exceed-cache"
    return SEVERITIES.index(finding.severity), for_everyone, finding.waste_nbytes


def _of_dataset(subject: Subject) -> list[Finding]:
    found = [finding for check in DATASET_CHECKS for finding in check(subject)]
    by_code = {finding.code: finding for finding in found}
    # The same lines fix both.
    weak, useless = by_code.get("weak-compression"), by_code.get("shuffle-useless")
    if weak and useless and weak.fixes == useless.fixes:
        del by_code["shuffle-useless"]
    # The same problem twice: the single chunk is expensive because of the cache.
    if "chunk-exceeds-cache" in by_code:
        by_code.pop("single-chunk", None)
    strided, plain = by_code.get("strided-contiguous"), by_code.get("uncompressed")
    if strided and plain:
        # Chunks for the one, filters for the other: one copy of the file gives both.
        offered = tuple(map(int, str(strided.evidence["offered_chunks"]).split("x")))
        fixes = filters.other_filters(subject, str(plain.evidence["filters"]), offered)
        by_code["strided-contiguous"] = replace(strided, fixes=fixes)
        by_code["uncompressed"] = replace(plain, fixes=fixes)
    steps, reads = by_code.get("unlimited-chunk-1"), by_code.get("reads-exceed-cache")
    if (
        steps
        and reads
        and reads.evidence["pattern"] == f"line along {steps.evidence['dimension']}"
    ):
        by_code["unlimited-chunk-1"] = _both(steps, reads)
        del by_code["reads-exceed-cache"]
    found = _with_one_pipeline(_with_one_shape(subject, by_code))
    return [replace(one, fixes=tuple(sorted(one.fixes, key=_copies_last))) for one in found]


def _copies_last(fix: Fix) -> bool:
    """Sort the command that gives a dataset other chunks before lines that read it as it is."""
    return not (fix.repacks and fix.rechunks)


def _with_one_shape(subject: Subject, by_code: dict[str, Finding]) -> dict[str, Finding]:
    """Make all findings about a dataset offer the same chunks: it can have only one shape.

    A finding by itself may offer what is next to the dataset's own shape.  Where several do not
    agree, or what is offered would have a finding again, the rule for all datasets decides
    (`chunks.offered_chunks`).
    """
    rivals = {code: found for code, found in by_code.items() if _shape(found) is not None}
    shapes = {shape for found in rivals.values() if (shape := _shape(found)) is not None}
    offered = chunks.offered_chunks(subject) if shapes else ()
    if shapes <= {offered} or (len(shapes) == 1 and _serves(subject, *shapes)):
        return by_code
    anew = {one.code: one for one in chunks.check_reach(subject, offered)}
    fixes = chunks.other_chunks(subject, offered)
    agreed = dict(by_code)
    for code, found in rivals.items():
        kept = tuple(fix for fix in found.fixes if not fix.rechunks)
        at = next(i for i, fix in enumerate(found.fixes) if fix.rechunks)
        agreed[code] = replace(anew.get(code, found), fixes=(*kept[:at], *fixes, *kept[at:]))
    return agreed


def _serves(subject: Subject, shape: tuple[int, ...]) -> bool:
    """Whether a dataset in chunks of this shape would not be offered others again."""
    instead = chunks.in_chunks(subject, shape)
    checks = (*cache.CHECKS, *chunks.CHECKS, *access.CHECKS)
    return all(_shape(found) is None for check in checks for found in check(instead))


def _shape(found: Finding) -> tuple[int, ...] | None:
    """Give the chunks that a finding offers in place of others."""
    layouts = (fix.layout for fix in found.fixes if fix.rechunks and fix.layout is not None)
    return next((one.datasets[0].chunk for one in layouts), None)


def _with_one_pipeline(by_code: dict[str, Finding]) -> list[Finding]:
    """Make all findings about a dataset offer the same filters."""
    offering = [by_code[code] for code in _BY_FILTERS if code in by_code and by_code[code].fixes]
    if len({_pipeline(found) for found in offering}) < 2:
        return list(by_code.values())
    first, *others = offering
    return list((by_code | {one.code: replace(one, fixes=first.fixes) for one in others}).values())


def _pipeline(found: Finding) -> str | None:
    return None if found.layout is None else found.layout.datasets[0].filters


def _both(chunks: Finding, cache: Finding) -> Finding:
    """Join two findings about the same reads: what the chunks and what the cache do to them."""
    return replace(
        chunks,
        severity=max(chunks.severity, cache.severity, key=SEVERITIES.index),
        summary=f"{chunks.summary} {cache.summary}",
        evidence=chunks.evidence | cache.evidence,
        # One offer of other chunks is enough.
        fixes=(*chunks.fixes, *(fix for fix in cache.fixes if not fix.rechunks)),
        waste_nbytes=max(chunks.waste_nbytes, cache.waste_nbytes),
    )


def _trusted(finding: Finding, pipelines: set[str]) -> Finding:
    """Leave out commands that would lose other datasets of the file."""
    kept = tuple(fix for fix in finding.fixes if keeps_all_data(fix, pipelines))
    return finding if len(kept) == len(finding.fixes) else replace(finding, fixes=kept)


def _of_damaged(file: str, finding: Finding) -> Finding:
    """Leave out what copies a damaged file into another layout; offer what saves its rest."""
    kept = tuple(
        fix
        for fix in finding.fixes
        if fix.writing or not (fix.rechunks or fix.options or fix.layout)
    )
    if finding.verdict is Verdict.DAMAGED:
        kept = (salvage(file), verify(file))
    return replace(finding, fixes=kept)


def _before_it_is_closed(finding: Finding) -> Finding:
    """Leave out lines that open a file which libhdf5 refuses since its writer did not close it."""
    if finding.code == "not-closed":
        return finding
    kept = tuple(fix for fix in finding.fixes if fix.writing or fix.repacks)
    return replace(finding, fixes=kept)
