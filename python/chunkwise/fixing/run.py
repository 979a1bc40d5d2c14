"""How is one file fixed, from its findings to the gain?

inspect (-> advise) -> choose -> promise -> measure -> repack (verified) -> measure -> inspect
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from chunkwise.errors import CannotJudgeError, ChunkwiseError, CorruptDataError
from chunkwise.files.answers import about, carry
from chunkwise.files.identity import Identity
from chunkwise.files.netcdf3 import as_netcdf4
from chunkwise.fixing.choose import MISMATCH, Choice, choose
from chunkwise.fixing.measuring import Measured, questions
from chunkwise.fixing.proving import proved
from chunkwise.fixing.records import FindingRecord, Fixed, Metadata
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import Finding
from chunkwise.model.layout import FileLayout, Layout, as_pattern
from chunkwise.names import printable
from chunkwise.newfile.publish import noting_it_stays
from chunkwise.newfile.target import ConvertedPlace, Place
from chunkwise.newfile.target import choose as where
from chunkwise.patterns import StatedPattern
from chunkwise.proof.conversion import as_proved_netcdf4
from chunkwise.remedy.records import Examine
from chunkwise.remedy.spelling import in_short
from chunkwise.repacking.options import Options
from chunkwise.repacking.progress import Watch
from chunkwise.repacking.records import Summary
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job, check_room, planned
from chunkwise.repacking.run import run as repack
from chunkwise.verdicts import FileVerdict

DEFAULT_SECONDS: Final = 30.0
# With other chunks, filters may do worse than a sample showed: then it is mended again.
_ROUNDS: Final = 3


@dataclass(frozen=True)
class FixRequest:
    """What the caller wants done, for any file."""

    # Patterns that will be read; none for those that inspect looks at.
    access: tuple[StatedPattern, ...] = ()
    merge: bool = False  # Whether virtual and external datasets become the file's own data
    options: Options = field(default_factory=Options)  # How the file is written
    seconds: float = DEFAULT_SECONDS  # What measuring may take; 0 for no measurement
    resume: bool = False  # Whether to go on from what a stopped run left
    # What measuring layouts for the largest datasets may take; 0 takes what findings offer.
    advise_s: float = 0.0


@dataclass(frozen=True)
class Doing:
    """Functions that inspect a file, and that learn of progress."""

    # Collects the facts, for these patterns; if the file may be damaged, in its own process.
    inspect: Callable[[str, Sequence[StatedPattern]], FileFacts]
    announce: Callable[[str], None]  # Gets what is done next, in words; may raise to end the run
    watch: Watch  # Learns about the progress of the repack; may raise to end the run


def doing(announce: Callable[[str], None] | None, watch: Watch | None) -> Doing:
    """Look at files in this process."""
    return Doing(
        lambda path, access: inspect(path, access=access),
        announce or (lambda _: None),
        watch or (lambda _: None),
    )


def job_of(layout: FileLayout, request: FixRequest) -> Job:
    """Say to repack what a file is to have."""
    patterns = [(as_pattern(one.path), one) for one in layout.datasets]
    chunk = {p: one.chunk for p, one in patterns if one.chunk is not None}
    filters = {p: one.filters for p, one in patterns if one.filters is not None}
    options = replace(
        request.options,
        merge=layout.merge,
        low=layout.low or request.options.low,
        page_nbytes=layout.page_nbytes or request.options.page_nbytes,
        metadata_block_nbytes=layout.metadata_block_nbytes
        or request.options.metadata_block_nbytes,
    )
    # The finding may be free space, or the order of chunks: an unchanged copy fixes those.
    return Job(Rules.of(chunk or None, filters or None), options, resume=request.resume, anew=True)


def plan(source: str, request: FixRequest, do: Doing, place: Place | None = None) -> Fixed:
    """Say what would be done to a file, and what it would gain, without writing anything."""
    with as_netcdf4(Path(source)) as readable:
        return _plan(source, str(readable), request, do, place)


def _plan(
    source: str, readable: str, request: FixRequest, do: Doing, place: Place | None
) -> Fixed:
    begin = time.monotonic()
    facts, choice, _ = _considered(source, readable, request, do)
    said = None if place is None else place.said
    if choice.layout is None:
        return _untouched(facts, choice, begin)
    with planned(job_of(choice.layout, request), readable) as (_, steps):
        if place is not None:
            check_room(place, steps)
        return replace(
            _begun(facts, choice),
            target=said,
            outcome="planned",
            left=_found(choice.left),
            gains=tuple(one.promised for one in questions(facts, choice, request.access)),
            target_nbytes=steps.out_nbytes,
            expected_s=steps.expected_s,
            elapsed_s=time.monotonic() - begin,
        )


def mend(source: str, place: Place, request: FixRequest, do: Doing) -> Fixed:
    """Mend one file: find, choose, write, verify, and measure before and after."""
    proves = request.options.verify != "none"
    with as_proved_netcdf4(place.source, place.target.parent, proves=proves) as readable:
        if readable != place.source:
            # Measured and repacked is the copy; the target is what it would be.
            place = ConvertedPlace(
                readable,
                place.target,
                Identity.settled(readable),
                place.said,
                place.replaces,
                original=place,
            )
        return _mend(source, place, request, do)


def _mend(source: str, place: Place, request: FixRequest, do: Doing) -> Fixed:
    begin = time.monotonic()
    file = str(place.source)
    facts, choice, best = _considered(source, file, request, do)
    if choice.layout is None:
        return _untouched(facts, choice, begin)
    measurable = questions(facts, choice, request.access)
    measured = (
        Measured(measurable, request.seconds, do.announce)
        if measurable and request.seconds > 0
        else None
    )
    if measured is not None and place.in_place:
        measured.prepare(file, "before")
        measured.measure("before")
    do.announce("writing")
    known = about(file)
    summary = repack(job_of(choice.layout, request), place, do.watch)
    with noting_it_stays(place.said):
        target = str(place.target)
        carry(known, target)
        choice, summary, after = _once_more(choice, summary, best, target, request, do)
        gains = tuple(one.promised for one in measurable)
        if measured is not None:
            if not place.in_place:
                measured.prepare(file, "before")
            measured.prepare(target, "after")
            measured.measure(*(("after",) if place.in_place else ("before", "after")))
            gains = measured.gains()
        return replace(
            _begun(facts, choice),
            target=place.said,
            outcome="fixed",
            left=_found(after.findings),
            gains=gains,
            in_turns=not place.in_place,
            target_nbytes=Path(target).stat().st_size,
            metadata_after=_metadata(after),
            repacked=summary,
            elapsed_s=time.monotonic() - begin,
        )


def _considered(
    source: str, readable: str, request: FixRequest, do: Doing
) -> tuple[FileFacts, Choice, dict[str, Layout]]:
    """Look at a file that can be read, by the name of its source, and choose; what was proved."""
    do.announce("reading and sampling the file")
    facts = replace(do.inspect(readable, request.access), path=source)
    _require_whole(facts)
    best = _proved(facts, readable, request, do)
    facts = _beside_measured(facts, best)
    return facts, _chosen(facts, request, best), best


def _beside_measured(facts: FileFacts, best: Mapping[str, Layout]) -> FileFacts:
    """Leave out what the model finds wrong with chunks that were measured to be best."""
    found = {one.path: one.dataset for one in facts.objects}

    def is_best(path: str | None) -> bool:
        dataset = None if path is None else found.get(path)
        if path is None or path not in best or dataset is None:
            return False
        return best[path].chunks == (None if dataset.chunks is None else dataset.chunks.shape)

    refuted = [one for one in facts.findings if one.code == MISMATCH and is_best(one.path)]
    return replace(facts, findings=tuple(one for one in facts.findings if one not in refuted))


def _require_whole(facts: FileFacts) -> None:
    """Refuse a file of which something is damaged, or that HDF5 refuses: no copy could keep it."""
    kinds = {FileVerdict.DAMAGED: CorruptDataError, FileVerdict.UNJUDGED: CannotJudgeError}
    for finding in facts.findings:
        lost = finding.verdict is FileVerdict.DAMAGED or finding.code == "unreadable-object"
        if lost and finding.verdict in kinds:
            where = f"{printable(facts.path)}: {printable(finding.path or '/')}"
            raise kinds[finding.verdict](
                f"{where}: {finding.verdict}: {finding.summary} What is readable is saved by: "
                f"{in_short(Examine(facts.path, salvage=True))}"
            )


def _proved(facts: FileFacts, file: str, request: FixRequest, do: Doing) -> dict[str, Layout]:
    if not request.advise_s:
        return {}
    readers = request.options.readers
    return proved(
        facts,
        file,
        request.access,
        budget_s=request.advise_s,
        readers=readers,
        announce=do.announce,
    )


def _chosen(facts: FileFacts, request: FixRequest, best: dict[str, Layout]) -> Choice:
    return choose(facts, merge=request.merge, readers=request.options.readers, proved=best)


def _once_more(
    choice: Choice,
    summary: Summary,
    best: dict[str, Layout],
    target: str,
    request: FixRequest,
    do: Doing,
) -> tuple[Choice, Summary, FileFacts]:
    """Look at the result, and mend in place what is found in it only now."""
    for _ in range(_ROUNDS):
        do.announce("looking at the result")
        facts = _beside_measured(do.inspect(target, request.access), best)
        more = _chosen(facts, request, best)
        if more.layout is None:
            break
        do.announce("writing once more")
        again = FixRequest(request.access, request.merge, request.options, 0.0)
        try:
            # Made by this run, also where its permissions forbid to write to it.
            place = where(target, None, in_place=True, force=True)
            known = about(target)
            repack(job_of(more.layout, again), place, do.watch)
            carry(known, target)
        except ChunkwiseError as error:
            # What is there is complete and verified.
            warnings = (*summary.warnings, f"could not be improved further: {error}")
            return choice, replace(summary, warnings=warnings), facts
        choice = choice.then(more)
    return choice, summary, facts


def _begun(facts: FileFacts, choice: Choice) -> Fixed:
    return Fixed(
        source=facts.path,
        target=None,
        outcome="nothing to mend",
        findings=_found(facts.findings),
        changes=choice.changes,
        why=choice.why,
        layout=choice.layout,
        source_nbytes=facts.nbytes,
        metadata_before=_metadata(facts),
        taken_for=facts.taken_for,
    )


def _untouched(facts: FileFacts, choice: Choice, begin: float) -> Fixed:
    return replace(
        _begun(facts, choice),
        left=_found(choice.left),
        target_nbytes=facts.nbytes,
        elapsed_s=time.monotonic() - begin,
    )


def _found(findings: Iterable[Finding]) -> tuple[FindingRecord, ...]:
    return tuple(
        FindingRecord(one.code, one.severity, one.path, one.summary, one.is_offer)
        for one in findings
    )


def _metadata(facts: FileFacts) -> Metadata | None:
    found = facts.metadata
    return None if found is None else Metadata(found.list_requests, found.blocks)
