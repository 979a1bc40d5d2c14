"""How is a plan carried out, by this process, ranks of MPI, or workers of Dask?"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import CannotWriteError, ChunkwiseError, CorruptDataError, UsageError
from chunkwise.files.native import damaged_metadata
from chunkwise.files.objects import header_address, open_at
from chunkwise.files.stored import stored_nbytes
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import FileIndex
from chunkwise.newfile.target import cannot_write, writing_to
from chunkwise.proof.compare import Sharing
from chunkwise.proof.records import GOES_ON
from chunkwise.repacking.creation import CreatedFile, create
from chunkwise.repacking.options import Options
from chunkwise.repacking.orphans import leave_out, orphans, real_end
from chunkwise.repacking.plan import Plan, Step
from chunkwise.repacking.progress import ProgressReporter, Watch
from chunkwise.repacking.records import DatasetResult, Missing, result_of
from chunkwise.repacking.trial import has_plugins, stored_filters
from chunkwise.words import counted

# Called with bytes done, stored bytes read and written.
Report = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Copied:
    """The result of copying a dataset; see `_native.CopyResult`."""

    decodes: int
    chunks_written: int
    chunks_replayed: int
    stored_nbytes_written: int
    tuning: str | None
    lost_chunks: list[tuple[list[int], str]]
    through_libhdf5: str | None
    elapsed_s: float


class Executor:
    """Work by this process alone; classes derived from it share some with others."""

    def create(self, claim: Claim, source: h5py.File, options: Options) -> FileIndex | CreatedFile:
        """Create the target."""
        return create(claim, source, options)

    def note_to(self, journal: int, identity: bytes) -> None:
        """Append what others note to a journal; its descriptor stays the caller's."""

    def begin(self, claim: Claim, source: h5py.File) -> None:
        """Let others open the source, and the partial file that now exists."""

    # Of a large dataset, while the target is open -------------------------------------

    def shares(self, made: h5d.DatasetID, nbytes: int, *, raw: bool) -> bool:
        """Whether others copy parts of a dataset of `nbytes` bytes into this one."""
        del made, nbytes, raw
        return False

    def copy(
        self,
        path: str,
        made: h5d.DatasetID,
        nbytes: int,
        report: Report,
        how: dict[str, Any],  # More arguments of `_native.copy_data`
    ) -> Copied | _native.CopyResult:
        """Copy such a dataset, together with others."""
        raise NotImplementedError

    # Of some datasets, after the target is closed -------------------------------------

    def takes(self, step: Step) -> bool:
        """Whether others write the data of a dataset into the target, complete but for that."""
        del step
        return False

    def write(self, claim: Claim, source: h5py.File, steps: Sequence[Step]) -> list[DatasetResult]:
        """Let them write these data into the closed partial file."""
        del claim, source, steps
        return []

    def sharing(
        self, claim: Claim, memory_nbytes: int, report: Callable[[int], None]
    ) -> Sharing | None:
        """Return what lets others compare the result with the source, too."""
        del claim, memory_nbytes, report
        return None


# Datasets of no more than this go side by side...
_SMALL_NBYTES: Final = 8 << 20
# ... if this many times their size fits each one's share of memory, and one block is enough...
_TIMES: Final = 16
# ... and at most this many at a time, because each is open in libhdf5.
_TOGETHER: Final = 64


@dataclass
class Run:
    """The result of a run."""

    # One for each dataset, in the plan's order.
    results: list[DatasetResult] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # What was kept otherwise than it was
    missing: list[Missing] = field(default_factory=list)  # What could not be read


def carry_out(
    claim: Claim,
    source: h5py.File,
    plan: Plan,
    options: Options,
    journal: _native.Journal,
    watch: Watch,
    executor: Executor,
) -> Run:
    """Write the target's partial file."""
    run, place = Run(), claim.place
    others = [step for step in plan.steps if executor.takes(step)]
    with writing_to(place.said, HDF5_ERRORS):
        target = executor.create(claim, source, options)
    try:
        executor.begin(claim, source)
        copying = Copying(run, source, target.file, plan, options, journal, watch, executor)
        copying.fill(claim, others)
    except BaseException as wrong:
        target.give_up()
        ours = isinstance(wrong, ChunkwiseError) and not isinstance(wrong, CannotWriteError)
        if isinstance(wrong, HDF5_ERRORS) and not ours:
            # Everything in the source was opened before; so the refusal is about writing.
            raise cannot_write(place.said, wrong) from wrong
        raise
    with writing_to(place.said, HDF5_ERRORS):
        target.close()
        if others:
            made = {one.path: one for one in executor.write(claim, source, others)}
            run.results = [made.get(one.path, one) for one in run.results]
        place.require_unchanged()
        copy_user_block(claim, source.userblock_size)
    return run


def copy_user_block(claim: Claim, nbytes: int) -> None:
    """Copy what stands before HDF5's own bytes; HDF5 leaves it to others."""
    partial = os.fdopen(claim.open_partial(os.O_RDWR), "r+b")
    with claim.place.source.open("rb") as reading, partial as writing:
        writing.write(reading.read(nbytes))


@dataclass(frozen=True)
class _Copy:
    """One dataset, as `_native.copy_many` takes it."""

    source_id: int
    target_id: int
    label: str
    effort: Literal["as-stated", "fast"]
    raw: bool
    likeness: bytes


@dataclass
class Copying:
    """Fills an open target: large datasets on all threads, small ones side by side."""

    run: Run
    source: h5py.File
    target: h5py.File
    plan: Plan
    options: Options
    journal: _native.Journal
    watch: Watch
    executor: Executor
    reporter: ProgressReporter = field(init=False)
    results: dict[str, DatasetResult] = field(default_factory=dict)
    encoders: _native.Encoders = field(default_factory=_native.Encoders)

    def __post_init__(self) -> None:
        total_nbytes = sum(step.source.nbytes for step in self.plan.steps)
        self.reporter = ProgressReporter(self.watch, "copying", total_nbytes)

    def fill(self, claim: Claim, others: Sequence[Step]) -> None:
        """Write tree and data, but for the data of `others`."""
        plan, options, idle = self.plan, self.options, self.reporter.idle
        steps = {header_address(step.source.address): step for step in plan.steps}
        dcpls = {at: step.dcpl.id for at, step in steps.items() if step.dcpl is not None}
        lost = orphans(Path(self.source.filename)) if options.adopt and not plan.is_whole else []
        salvage = None
        if options.salvage:
            salvage = options.avoid, lost, damaged_metadata(self.source.filename)
        files = self.source.id.id, self.target.id.id
        tree = _native.copy_tree(library(), *files, dcpls, idle, salvage, plan.unlinked)
        few: list[tuple[Step, int]] = []
        for at, made_at in tree.datasets:
            step = steps.get(at)
            if step is None:
                # Not even its plan could be read.
                tree.copy_later(at)
            elif step in others:
                continue
            elif options.salvage:
                try:
                    self.alone(step, made_at)
                except CorruptDataError:
                    # libhdf5 looks for each part of it.
                    tree.copy_later(at)
            elif not self.goes_beside(step):
                self.alone(step, made_at)
            else:
                few.append((step, made_at))
                if len(few) == _TOGETHER:
                    self.together(few)
                    few = []
        self.together(few)
        tree.finish(idle)
        self.run.warnings += tree.warnings
        for path, attribute, elements, reason in tree.missing:
            box = map(tuple, elements) if elements is not None else ()
            self.run.missing.append(Missing(path, reason, attribute, *box))
        if options.salvage:
            self._leave_out(claim.place.source)
        for step in plan.steps:
            kept = result_of(step, step.source.stored_nbytes)
            self.run.results.append(self.results.get(step.source.path, kept))

    def _leave_out(self, original: Path) -> None:
        """Put fill values in place of what lay behind the end of a file that was cut off."""
        end = real_end(original, Path(self.source.filename))
        if end is None:
            return
        known = {(one.path, at) for one in self.results.values() for at, _ in one.lost_chunks}
        for missing in leave_out(self.source, self.target, end):
            if missing.start is None or (missing.path, missing.start) not in known:
                self.run.missing.append(missing)

    def goes_beside(self, step: Step) -> bool:
        """Return whether a dataset is small, and as many as there are threads fit into memory."""
        source, wanted = step.source, step.wanted
        if step.action not in ("copied", "rechunked"):
            return False
        chunks = [math.prod(one or ()) * source.itemsize for one in (source.chunk, wanted.chunk)]
        nbytes = max(source.nbytes, *chunks)
        needed_nbytes = _TIMES * nbytes * self.plan.threads
        return nbytes <= _SMALL_NBYTES and needed_nbytes <= self.plan.memory_nbytes

    def alone(self, step: Step, made_at: int) -> None:
        """Copy one dataset, on all ranks if it is worth it."""
        source = step.source
        report = self.reporter.of(source.path, source.nbytes)
        # Closed here and now: what is still open when a file cannot be closed crashes libhdf5.
        with closing(open_at(self.target.id, made_at)) as made, self._errors_of(step):
            one = self._copy(step, made)
            how: dict[str, Any] = {
                **asdict(one),
                "memory_nbytes": self.plan.memory_nbytes,
                "salvage": self.options.salvage,
            }
            source_id, target_id = how.pop("source_id"), how.pop("target_id")
            copied: _native.CopyResult | Copied
            copyable = source.plain and source.linked and step.action in ("copied", "rechunked")
            if copyable and self.executor.shares(made, source.nbytes, raw=one.raw):
                copied = self.executor.copy(source.path, made, source.nbytes, report, how)
            else:
                copied = _native.copy_data(
                    library(),
                    source_id,
                    target_id,
                    journal=self.journal,
                    encoders=self.encoders,
                    progress=report,
                    **how,
                )
            self._note(step, made, copied)
        self.reporter.ended(source.nbytes)

    def together(self, few: Sequence[tuple[Step, int]]) -> None:
        """Copy some small datasets."""
        if len(few) < 2 or self.plan.threads < 2:
            for step, made_at in few:
                self.alone(step, made_at)
            return
        nbytes = sum(step.source.nbytes for step, _ in few)
        report = self.reporter.of(counted(len(few), "dataset"), nbytes)
        with ExitStack() as opened:
            made = [
                opened.enter_context(closing(open_at(self.target.id, made_at)))
                for _, made_at in few
            ]
            steps = [step for step, _ in few]
            with self._errors_of(*steps):
                results = _native.copy_many(
                    library(),
                    [self._copy(*pair) for pair in zip(steps, made, strict=True)],
                    memory_nbytes=self.plan.memory_nbytes,
                    salvage=self.options.salvage,
                    journal=self.journal,
                    encoders=self.encoders,
                    progress=report,
                )
                for step, one, copied in zip(steps, made, results, strict=True):
                    self._note(step, one, copied)
        self.reporter.ended(nbytes)

    def _label(self, step: Step) -> str:
        return f"{printable(str(self.source.filename))}: '{printable(step.source.path)}'"

    def _copy(self, step: Step, made: Any) -> _Copy:
        pipeline = step.wanted.pipeline
        raw = step.action == "copied" and step.source.chunk is not None
        if raw and step.dcpl is None:
            _require_same_filters(step, made)
        datatype = step.source.identifier.get_type().encode()
        return _Copy(
            source_id=step.source.identifier.id,
            target_id=made.id,
            label=self._label(step),
            effort=pipeline.effort,
            raw=raw,
            likeness=b"%s %s " % (str(step.wanted.chunk).encode(), str(pipeline).encode())
            + datatype,
        )

    @contextmanager
    def _errors_of(self, *steps: Step) -> Iterator[None]:
        """Say which file an error is about, and what helps."""
        try:
            yield
        except CannotWriteError as wrong:
            # Of the target, whose name comes before.
            said = str(wrong)
            for step in steps:
                name = f"'{printable(step.source.path)}'"
                said = said.replace(f"{self._label(step)}: ", f"{name}: ", 1)
            raise CannotWriteError(said) from None
        except CorruptDataError as wrong:
            raise type(wrong)(f"{wrong}; {GOES_ON}") from None

    def _note(self, step: Step, made: Any, copied: _native.CopyResult | Copied) -> None:
        """Keep the result of copying."""
        taken = copied.stored_nbytes_written
        if copied.through_libhdf5 is not None:
            # libhdf5 handles its filters, and their effect on the data.
            made.flush()
            taken = stored_nbytes(made)
        self.results[step.source.path] = replace(
            result_of(step, taken),
            chunks=copied.chunks_written,
            decodes=copied.decodes,
            replayed=copied.chunks_replayed,
            encoder=copied.tuning,
            through_libhdf5=copied.through_libhdf5,
            lost_chunks=tuple((tuple(origin), reason) for origin, reason in copied.lost_chunks),
            elapsed_s=copied.elapsed_s,
        )


def _require_same_filters(step: Step, made: h5d.DatasetID) -> None:
    """Raise UsageError if stored chunks would not be decoded as they were encoded."""
    ours, theirs = made.get_create_plist(), step.source.identifier.get_create_plist()
    if has_plugins(theirs) and stored_filters(ours) != stored_filters(theirs):
        raise UsageError(
            f"'{printable(step.source.path)}': its filters ({step.source.pipeline}) cannot be set "
            "as they are stored; name other filters by a rule for it"
        )
