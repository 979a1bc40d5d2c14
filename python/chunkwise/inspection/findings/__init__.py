"""What is wrong with a file, as far as its facts show?

Each module looks at one subject; a check takes facts and yields findings, and reads
nothing of the file itself.  docs/findings.md explains each code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from chunkwise.files.answers import Answer
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import SEVERITIES, Finding
from chunkwise.inspection.findings import access, cache, chunks, file, filters, objects, placement
from chunkwise.inspection.findings.subject import DatasetCheck, Subject
from chunkwise.model import worth
from chunkwise.model.readers import Reader
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.records import Chunks, Copy, Create, Examine, GatherMetadata, Remedy
from chunkwise.verdicts import FileVerdict

__all__ = ["find"]

DATASET_CHECKS: tuple[DatasetCheck, ...] = (
    *filters.CHECKS,
    *cache.CHECKS,
    *chunks.CHECKS,
    *placement.CHECKS,
    *access.CHECKS,
)


NOT_MEASURED: Final[Mapping[str, Answer]] = MappingProxyType({})
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
    measured: Mapping[str, Answer] = NOT_MEASURED,
) -> tuple[Finding, ...]:
    """Run every check on a file and all that is in it."""
    found = [finding for check in file.CHECKS for finding in check(facts)]
    for entry in facts.objects:
        found += (finding for check in objects.CHECKS for finding in check(facts.path, entry))
        if entry.dataset is not None:
            patterns = stated.get(entry.path, ())
            best = measured.get(entry.path)
            found += _of_dataset(
                Subject(facts.path, entry.path, entry.dataset, readers, patterns, best)
            )
    of_file = (entry.dataset.filters for entry in facts.objects if entry.dataset is not None)
    pipelines = frozenset(of_file)
    # What copies other datasets as they are has to know their filters.
    found = [_with_copies(finding, pipelines=pipelines) for finding in found]
    found.sort(key=_weight, reverse=True)
    said = list(_together(found))
    state = facts.file_format
    if state.flags or state.early_end is not None or state.refused is not None:
        said = [_for_what_hdf5_refuses(finding) for finding in said]
    if any(finding.verdict is FileVerdict.DAMAGED for finding in said):
        said = [_of_damaged(facts.path, finding) for finding in said]
    return tuple(said)


def _with_copies(finding: Finding, **changes: Any) -> Finding:
    """Give the copies that change datasets these fields."""
    both = ((one, _changes_datasets(one)) for one in finding.remedies)
    remedies = (replace(one, **changes) if changed else one for one, changed in both)
    return replace(finding, remedies=tuple(remedies))


def _changes_datasets(remedy: Remedy) -> TypeGuard[Copy]:
    return isinstance(remedy, Copy) and bool(remedy.datasets)


def _together(found: list[Finding]) -> Iterator[Finding]:
    """Make the commands of the worst finding of each kind name all datasets with it."""
    groups: dict[tuple[str, str, bool], list[Finding]] = {}
    for finding in found:
        key = finding.severity, finding.code, finding.is_offer
        groups.setdefault(key, []).append(finding)
    for finding in found:
        group = groups[finding.severity, finding.code, finding.is_offer]
        if finding is group[0] and len(group) > 1:
            copies = [one for each in group for one in each.remedies if _changes_datasets(one)]
            datasets = dict.fromkeys(one for copy in copies for one in copy.datasets)
            finding = _with_copies(finding, datasets=tuple(datasets))
        yield finding


def _weight(finding: Finding) -> tuple[int, bool, int]:
    for_everyone = finding.code != "reads-exceed-cache"
    return SEVERITIES.index(finding.severity), for_everyone, finding.waste_nbytes


def _of_dataset(subject: Subject) -> list[Finding]:
    found = [finding for check in DATASET_CHECKS for finding in check(subject)]
    by_code = {finding.code: finding for finding in found}
    # The same copy fixes both.
    weak, useless = by_code.get("weak-compression"), by_code.get("shuffle-useless")
    if weak and useless and weak.remedies == useless.remedies:
        del by_code["shuffle-useless"]
    # The same problem twice: the single chunk is expensive because of the cache.
    if "chunk-exceeds-cache" in by_code:
        by_code.pop("single-chunk", None)
    strided, plain = by_code.get("strided-contiguous"), by_code.get("uncompressed")
    if strided and plain:
        # Chunks for the one, filters for the other: the copy for the filters gives both.
        by_code["strided-contiguous"] = replace(strided, remedies=plain.remedies)
    steps, reads = by_code.get("unlimited-chunk-1"), by_code.get("reads-exceed-cache")
    if steps and reads and steps.block == reads.block:
        by_code["unlimited-chunk-1"] = _both(steps, reads)
        del by_code["reads-exceed-cache"]
    return _with_one_pipeline(_with_one_shape(subject, by_code))


def _with_one_shape(subject: Subject, by_code: dict[str, Finding]) -> dict[str, Finding]:
    """Make all findings about a dataset offer the same chunks: it can have only one shape."""
    # A finding by itself may offer what is next to the dataset's own shape.  Where patterns are
    # stated, where several do not agree, or where what is offered would have a finding again, the
    # rule for all datasets decides (`chunks.offered_chunks`).  If every shape makes a way of
    # reading slower that was stated or fits, or if nobody stated a pattern and every shape has a
    # finding again, all of them are only offers.
    rivals = {
        code: found
        for code, found in by_code.items()
        if _shape(found) is not None and not found.is_offer
    }
    shapes = {shape for found in rivals.values() if (shape := _shape(found)) is not None}
    if not shapes:
        return by_code
    offered = chunks.offered_chunks(subject)
    if subject.stated and shapes <= {offered} and not chunks.harms_stated(subject, offered):
        return by_code
    own = [*shapes] if len(shapes) == 1 else []
    tried = [offered, *own] if subject.stated else [*own, offered]
    if not subject.stated:
        tried.append(chunks.chunks_for_uses(subject))
    agreed = next((one for one in tried if _serves(subject, one)), None)
    if agreed is None and subject.stated and not chunks.harms_stated(subject, offered):
        agreed = offered
    if agreed is None:
        return by_code | {code: replace(one, is_offer=True) for code, one in rivals.items()}
    if shapes == {agreed}:
        return by_code
    anew = {one.code: one for one in chunks.check_reach(subject, agreed)}
    copies = chunks.other_chunks(subject, agreed)
    found = dict(by_code)
    for code, rival in rivals.items():
        at = next(i for i, one in enumerate(rival.remedies) if _rechunks(one))
        kept = [one for one in rival.remedies if not _rechunks(one)]
        found[code] = replace(
            anew.get(code, rival), remedies=(*kept[:at], *copies, *kept[at:]), block=rival.block
        )
    return found


def _serves(subject: Subject, shape: Chunks) -> bool:
    """Whether a dataset in chunks of this shape would have no finding that asks for others."""
    instead = chunks.if_chunked(subject, shape)
    checks = (*cache.CHECKS, *chunks.CHECKS, *access.CHECKS)
    again = (one for check in checks for one in check(instead))
    if any(_shape(one) is not None and not one.is_offer for one in again):
        return False
    if subject.stated:
        return not chunks.harms_stated(subject, shape)
    return chunks.slowdown(subject, shape) <= worth.HARMLESS


def _rechunks(remedy: Remedy) -> TypeGuard[Copy]:
    return isinstance(remedy, Copy) and remedy.rechunks


def _shape(found: Finding) -> Chunks | None:
    """Give the chunks that a finding offers in place of others."""
    copies = (one.datasets[0] for one in found.remedies if _rechunks(one))
    return next((one.chunks for one in copies if one.is_ours), None)


def _with_one_pipeline(by_code: dict[str, Finding]) -> list[Finding]:
    """Make all findings about a dataset offer the same filters."""
    offering = [by_code[code] for code in _BY_FILTERS if code in by_code]
    offering = [found for found in offering if found.remedies and not found.is_offer]
    if len({_pipelines(found) for found in offering}) < 2:
        return list(by_code.values())
    first, *others = offering
    agreed = {one.code: replace(one, remedies=first.remedies) for one in others}
    return list((by_code | agreed).values())


def _pipelines(found: Finding) -> tuple[str | None, ...]:
    copies = (copy for copy in found.remedies if isinstance(copy, Copy))
    return tuple(one.filters for copy in copies for one in copy.datasets)


def _both(chunks: Finding, cache: Finding) -> Finding:
    """Join two findings about the same reads: what the chunks and what the cache do to them."""
    return replace(
        chunks,
        severity=max(chunks.severity, cache.severity, key=SEVERITIES.index),
        summary=f"{chunks.summary} {cache.summary}",
        evidence=chunks.evidence | cache.evidence,
        # One offer of other chunks is enough.
        remedies=(*chunks.remedies, *(one for one in cache.remedies if not _rechunks(one))),
        waste_nbytes=max(chunks.waste_nbytes, cache.waste_nbytes),
    )


def _of_damaged(file: str, finding: Finding) -> Finding:
    """Leave out what copies a damaged file into another layout; offer what saves its rest."""
    if finding.verdict is FileVerdict.DAMAGED:
        return replace(finding, remedies=(Examine(file, salvage=True), Examine(file)))
    kept = (Create(one) if isinstance(one, Copy) else one for one in finding.remedies)
    return replace(finding, remedies=tuple(kept))


def _for_what_hdf5_refuses(finding: Finding) -> Finding:
    """Leave out what opens a file that libhdf5 refuses as it is, wholly or in part."""
    if finding.code in ("not-closed", "early-end", "refused-here"):
        return finding
    kept: list[Remedy] = []
    for one in finding.remedies:
        if isinstance(one, Copy):
            kept += (replace(one, by_us=True), Create(one))
        elif isinstance(one, GatherMetadata):
            kept.append(one)
    return replace(finding, remedies=tuple(kept))
