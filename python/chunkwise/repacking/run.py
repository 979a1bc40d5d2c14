"""How is one file repacked, from the rules to the finished target?

open -> look -> plan -> claim the place -> write -> verify -> bring into place
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import h5py
from h5py import h5f

from chunkwise import _native, system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.classic import classic_end
from chunkwise.files.durable import free_nbytes
from chunkwise.files.mended import Mended, copy_mended, mended, open_mended, wide_lengths
from chunkwise.files.netcdf3 import is_netcdf3
from chunkwise.files.unclosed import closed_patch, copy_patched, is_unclosed, open_readable
from chunkwise.grammar import format_size
from chunkwise.inspection import inspect
from chunkwise.inspection.findings.file import page_that_serves
from chunkwise.memory import default_budget
from chunkwise.names import printable
from chunkwise.newfile.claim import BEFORE, JOURNAL, Claim, claimed, let_go
from chunkwise.newfile.publish import noting_it_stays, publish
from chunkwise.newfile.target import Place, writing_to
from chunkwise.patterns import StatedPattern
from chunkwise.proof.compare import prove
from chunkwise.proof.conversion import as_proved_netcdf4
from chunkwise.proof.records import Allowed, Proved
from chunkwise.repacking.creation import require_room_for_user_block
from chunkwise.repacking.facts import look
from chunkwise.repacking.options import Options
from chunkwise.repacking.orphans import orphans
from chunkwise.repacking.plan import Plan, make_plan, require_readable, who_loses
from chunkwise.repacking.progress import Moment, ProgressReporter, Watch
from chunkwise.repacking.records import Summary, result_of
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.work import Executor, Run, carry_out
from chunkwise.settings import settings
from chunkwise.verifying.file import ends_early
from chunkwise.words import counted, format_ratio

# Pages that make a file this many times as large are worth a word.
_LARGER: Final = 1.1

# Most bytes of decoded chunks that are kept while a result is compared with its source.
_CACHE_NBYTES: Final = 256 << 20


@dataclass(frozen=True)
class Job:
    """How any file is repacked."""

    rules: Rules = field(default_factory=Rules)  # For the datasets, and for the file
    options: Options = field(default_factory=Options)
    access: tuple[StatedPattern, ...] = ()  # Access patterns for ``auto`` chunks
    # Whether to continue a stopped run, and to leave what this one has done if stopped.
    resume: bool = False
    strict: bool = True  # Whether a rule that means no dataset of the file is an error
    # Whether a file that needs no change is copied in place; else it is left alone.
    anew: bool = False


@contextmanager
def planned(job: Job, source: str | Path) -> Iterator[tuple[h5py.File, Plan]]:
    """Open a source and plan its repack; the file is closed when the block ends."""
    shown = None if job.options.salvage else _mended(Path(source), salvage=False)
    with open_readable(source) if shown is None else open_mended(source, shown) as file:
        if file.id.get_intent() != h5f.ACC_RDONLY:
            raise UsageError(
                f"{printable(str(source))}: is open for writing in this process; close it first"
            )
        require_room_for_user_block(file, job.options)
        budget = job.options.memory_nbytes or default_budget()
        salvage, avoid = job.options.salvage, job.options.avoid[0]
        contents = look(file, salvage=salvage, avoid=avoid)
        plan = make_plan(contents, job.rules, job.options, budget, job.access, strict=job.strict)
        require_readable(file, plan, job.options)
        yield file, replace(plan, readers=who_loses(file, plan, job.options))


def check_room(place: Place, plan: Plan) -> str | None:
    """Compare what will be written with what is free."""
    free = free_nbytes(place.target.parent)
    certain = sum(
        step.out_nbytes
        for step in plan.steps
        if step.action == "copied" or not step.wanted.pipeline.filters
    )
    expected = plan.out_nbytes
    said = f"{printable(place.said)}: {format_size(free)} are free on this disk"
    if certain > free:
        raise CannotWriteError(
            f"{said}, and at least {format_size(certain)} are needed; make room, or write "
            "elsewhere"
        )
    if expected > free:
        return f"{said}, and about {format_size(expected)} are expected to be needed"
    return None


def run(
    job: Job,
    place: Place,
    watch: Watch,
    executor: Executor | None = None,
) -> Summary:
    """Repack one file."""
    watch(Moment("planning"))
    with (
        ExitStack() as placed,
        closed(place, job.options) as readable,
        planned(job, readable) as (file, plan),
    ):
        needed = job.anew or plan.changes or job.options.reshapes_file
        if place.in_place and readable == place.source and not needed:
            return _left(place, plan)
        return run_plan(job, place, file, plan, watch, placed, executor)


@contextmanager
def closed(place: Place, options: Options) -> Iterator[Path]:
    """Give the source, or for the block's time a copy of it that libhdf5 opens."""
    # There is one of a file that its writer did not close, of one that states its end too early,
    # of one of netCDF-3, and with `salvage` of one that is cut off, or whose first bytes are
    # damaged.
    #
    # The copy is what libhdf5 opens: repacking needs stored chunks at their addresses in a file.
    patch = closed_patch(place.source)
    found = _mended(place.source, salvage=options.salvage) if patch is None else None
    if patch is None and found is None:
        proves = options.verify != "none"
        with as_proved_netcdf4(place.source, place.target.parent, proves=proves) as copy:
            yield copy
        return
    with TemporaryDirectory(prefix=f"{place.folder.name}.", dir=place.target.parent) as folder:
        copy = Path(folder, place.source.name)
        with writing_to(place.said):
            if found is None:
                copy_patched(place.source, copy, patch)
            else:
                copy_mended(place.source, copy, found)
        yield copy


def _mended(source: Path, *, salvage: bool) -> Mended | None:
    found = wide_lengths(source) or (mended(source) if salvage else ends_early(source))
    # Any bytes behind a signature might be such a file.
    is_empty = found is not None and found.lacks_root and not orphans(source)
    return None if is_empty else found


def _left(place: Place, plan: Plan) -> Summary:
    """Return the result for a file to which nothing was done."""
    return Summary(
        source=str(place.source),
        target=place.said,
        source_nbytes=place.identity.content[0],
        target_nbytes=place.identity.content[0],
        datasets=tuple(result_of(step, step.source.stored_nbytes) for step in plan.steps),
        verified="none",
        left=True,
    )


def run_plan(
    job: Job,
    place: Place,
    file: h5py.File,
    plan: Plan,
    watch: Watch,
    placed: ExitStack,
    executor: Executor | None = None,
) -> Summary:
    """Carry out the plan of a file that is open; see `run`."""
    # What leaves `placed` by an exception gets a note if the new file is in place.
    begin = time.monotonic()
    warning = check_room(place, plan)
    before = place.source.stat().st_size
    executor = executor or Executor()
    with claimed(place, resume=job.resume) as claim, ExitStack() as opened:
        identity = _identity(job, place, plan)
        journal, descriptor = _journal(claim, identity, opened)
        executor.note_to(descriptor, identity)
        run = carry_out(claim, file, plan, job.options, journal, watch, executor)
        proved = _proved(file, claim, plan, job.options, watch, executor, _lost(run))
        watch(Moment("syncing"))
        del journal  # Its file goes with the claim.
        if place.in_place and not system.REPLACES_OPEN:
            file.close()
        publish(claim)
        placed.enter_context(noting_it_stays(place.said))
    missing = _missing(place, salvage=job.options.salvage)
    said = (warning, *run.warnings, *missing, _paged(place, before, job.options.page_nbytes))
    return Summary(
        source=str(place.source),
        target=place.said,
        source_nbytes=before,
        target_nbytes=place.target.stat().st_size,
        datasets=tuple(run.results),
        missing=tuple(run.missing),
        verified="none" if proved is None else "proof",
        proof=proved,
        warnings=tuple(one for one in said if one),
        elapsed_s=time.monotonic() - begin,
        readers=plan.readers,
    )


def _proved(
    source: h5py.File,
    claim: Claim,
    plan: Plan,
    options: Options,
    watch: Watch,
    executor: Executor,
    missing: Sequence[str],  # What salvage could not read
) -> Proved | None:
    """Prove that the closed partial file is what its source is; None if nobody wants a proof."""
    # There is none either where reading the source crashes libhdf5 (``options.avoid``).
    if options.verify == "none" or any(options.avoid):
        return None
    total = (
        step.source.stored_nbytes if step.action == "copied" else step.source.nbytes
        for step in plan.steps
    )
    report = ProgressReporter(watch, "verifying", sum(total)).more
    bounds = {step.source.path: step.bound for step in plan.steps if step.lossy}
    moved = frozenset(step.source.path for step in plan.steps if step.wanted.merged)
    # Chunks that reach into several boxes are kept; both together stay within the budget.
    kept = min(settings().cache_nbytes, _CACHE_NBYTES, plan.memory_nbytes // 4)
    with settings(cache_nbytes=kept):
        return prove(
            source,
            claim.partial,
            claim.place.said,
            allowed=Allowed(bounds, moved, options.salvage, frozenset(missing)),
            memory_nbytes=plan.memory_nbytes // 2,
            report=report,
            sharing=executor.sharing(claim, plan.memory_nbytes, report),
        )


def _paged(place: Place, before: int, page_nbytes: int | None) -> str | None:
    """Say what pages cost that make a file much larger, and which serve as well."""
    after = place.target.stat().st_size
    if page_nbytes is None or after <= _LARGER * before:
        return None
    facts = inspect(place.target, sample=False)
    if facts.metadata is None:
        return None
    page = page_that_serves(facts, facts.metadata)
    if page >= page_nbytes:
        return None
    return (
        f"pages of {format_size(page_nbytes)} make the file {format_ratio(after / before)} as "
        f"large: {format_size(before)} -> {format_size(after)}; smaller ones serve as well: "
        f"--paged {page}"
    )


def _lost(run: Run) -> list[str]:
    """Name objects and attributes that salvage could not read completely."""
    lost = [one.path + (f"@{one.attribute}" if one.attribute else "") for one in run.missing]
    return lost + [one.path for one in run.results if one.lost_chunks]


def _journal(claim: Claim, identity: bytes, opened: ExitStack) -> tuple[_native.Journal, int]:
    """Begin a run's journal, with the entries of the run before; return its descriptor."""

    def held(descriptor: int) -> int:
        opened.callback(let_go, descriptor)
        return descriptor

    with writing_to(claim.place.said):
        before = [held(claim.open(name)) for name in (BEFORE if claim.resumed else ())]
        made = held(claim.make(JOURNAL))
    journal = _native.Journal(made, identity, (before[0], before[1]) if before else None)
    return journal, made


def _missing(place: Place, *, salvage: bool) -> tuple[str, ...]:
    if is_netcdf3(place.source):
        stated, nbytes = classic_end(place.source), place.source.stat().st_size
        if stated is None or nbytes >= stated:
            return ()
        said = f"the source has {counted(nbytes, 'byte')}, and should have {stated:,}"
        return (f"{said}: values beyond its end were read as zeros",)
    if not is_unclosed(place.source):
        found = _mended(place.source, salvage=salvage)
        return () if found is None else (f"the source: {found.said}",)
    return ("the writer of the source did not close it: what it had not flushed is missing",)


def _identity(job: Job, place: Place, plan: Plan) -> bytes:
    """Distinguish runs: by the source as it is, and what the encoded chunks depend on."""
    datasets = [
        (step.source.path, step.action, step.wanted.chunk, str(step.wanted.pipeline))
        for step in plan.steps
    ]
    said = json.dumps([place.identity, job.options.salvage, datasets])
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).digest()
