"""What will be done to each dataset, at what cost, and can it be done at all?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import h5py
from h5py import h5f

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import CannotJudgeError, UsageError
from chunkwise.files.filters import missing_filter
from chunkwise.grammar import format_size
from chunkwise.grammar.parameters import carried, rounds
from chunkwise.model.readability import Needs, losses, require, sentences
from chunkwise.names import printable
from chunkwise.patterns import StatedPattern
from chunkwise.remedy.tools import NATIVE_FILTERS
from chunkwise.repacking import estimate
from chunkwise.repacking.bounds import EXACT, Bound, bound_of
from chunkwise.repacking.decide import NewLayout, decide
from chunkwise.repacking.facts import Contents, SourceDataset, missing_behind
from chunkwise.repacking.options import Options
from chunkwise.repacking.rules import Rules, require_matches
from chunkwise.repacking.trial import (
    creation_list,
    has_plugins,
    refusal,
    scratch,
    stored_filters,
)
from chunkwise.words import counted

_OF_SUPERBLOCK: Final = {0: "1.6", 1: "1.6", 2: "1.8", 3: "1.10"}
# The oldest libhdf5 that reads what a lower bound makes.
_OF_BOUND: Final = {
    "earliest": "1.6",
    "v108": "1.8",
    "v110": "1.10",
    "v112": "1.12",
    "v114": "1.12",
    "v200": "2.0",
    "latest": "2.0",
}
Action = Literal["copied", "rechunked", "by libhdf5", "kept"]


@dataclass(frozen=True)
class Step:
    """What happens to one dataset."""

    source: SourceDataset  # The dataset
    wanted: NewLayout  # Its new layout; the stored one if nothing changes
    # ``copied``: its stored bytes as they are.  ``rechunked``: by the engine, on all threads.
    # ``by libhdf5``: elements whose bytes mean nothing in another file. ``kept``: with the objects
    # of the file (no data, a few bytes, or data elsewhere).
    action: Action
    dcpl: Any | None  # What the target's dataset is made from; None for the source's own list
    out_nbytes: int  # Bytes stored in the target, estimated unless copied
    memory_nbytes: int = 0  # What the work takes at most
    chunks: int = 0  # Chunks of the source, and how often one is decoded: equal where each is once
    decodes: int = 0
    expected_s: float = 0.0  # Rough
    changes: bool = True  # Whether chunk shape, filters or place of the data change

    @property
    def lossy(self) -> bool:
        """Whether values are rounded, since they pass filters that do so."""
        return self.action == "rechunked" and rounds(self.wanted.pipeline)

    @property
    def bound(self) -> Bound:
        """How far its values may be from the source's."""
        if not self.lossy:
            return EXACT
        dataset = h5py.Dataset(self.source.identifier)
        fill = dataset.fillvalue if dataset.dtype.kind in "iuf" else None
        return bound_of(self.wanted.pipeline, dataset.dtype, fill)


@dataclass(frozen=True)
class Plan:
    """All steps of a file, in its own order.

    Attributes
    ----------
    steps
        One for each dataset.
    memory_nbytes
        The budget.
    threads
        How many decode and encode.
    readers
        Which programs will read less of the result, a sentence for each reason.
    is_whole
        Whether all objects of the source can be opened.
    unlinked
        As in `facts.Contents`.
    """

    steps: tuple[Step, ...]
    memory_nbytes: int
    threads: int
    readers: tuple[str, ...] = ()
    is_whole: bool = True
    unlinked: tuple[tuple[int, bytes], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether any dataset changes."""
        return any(step.changes for step in self.steps)

    @property
    def in_nbytes(self) -> int:
        """Bytes stored in the source's datasets."""
        return sum(step.source.stored_nbytes for step in self.steps)

    @property
    def out_nbytes(self) -> int:
        """Bytes stored in the target's datasets, estimated."""
        return sum(step.out_nbytes for step in self.steps)

    @property
    def needed_nbytes(self) -> int:
        """Peak memory for data."""
        return max((step.memory_nbytes for step in self.steps), default=0)

    @property
    def expected_s(self) -> float:
        """Seconds, roughly."""
        return sum(step.expected_s for step in self.steps)


def make_plan(
    contents: Contents,
    rules: Rules,
    options: Options,
    memory_nbytes: int,
    access: Sequence[StatedPattern] = (),
    *,
    strict: bool = True,
) -> Plan:
    """Plan a repack of an open file."""
    if strict:
        require_matches(rules.chunks, contents.paths, contents.groups)
        require_matches(rules.filters, contents.paths, contents.groups)
    samples = estimate.Samples()
    steps = []
    with scratch() as memory:
        for source in contents.sources:
            wanted = decide(source, rules, merge=options.merge, access=access)
            steps.append(_step(memory, source, wanted, memory_nbytes, samples))
    if strict:
        _require_effect(steps, rules)
    return Plan(
        tuple(steps),
        memory_nbytes,
        _native.thread_count(),
        is_whole=contents.is_whole,
        unlinked=contents.unlinked,
    )


def _step(
    scratch_file: h5py.File,
    source: SourceDataset,
    wanted: NewLayout,
    memory_nbytes: int,
    samples: estimate.Samples,
) -> Step:
    if wanted.changes(source) and not (wanted.named or wanted.merged):
        missing = missing_filter(source.identifier.get_create_plist())
        if missing is not None:
            wanted = wanted.refused(source, f"cannot be read here: {missing}")
    anew = _encodes_anew(source, wanted)
    if not wanted.changes(source) and not anew:
        return _unchanged(scratch_file, source, wanted, memory_nbytes)
    try:
        dcpl = creation_list(source, wanted.chunk, wanted.pipeline)
    except UsageError as wrong:
        raise UsageError(f"'{printable(source.path)}': {wrong}") from None
    reason, filters = refusal(scratch_file, source, wanted.chunk, dcpl)
    if reason is not None:
        left = wanted.refused(source, reason)
        return _unchanged(scratch_file, source, left, memory_nbytes)
    stored = source.identifier.get_create_plist()
    same = source.chunk == wanted.chunk and filters == stored_filters(stored)
    if same and not wanted.merged and not anew:
        # Written otherwise, the same in the end.
        return _unchanged(scratch_file, source, wanted, memory_nbytes)
    _require_decoder(source, stored)
    sample = None
    if wanted.chunk is not None and wanted.pipeline != source.pipeline:
        sample = samples.of(scratch_file, source, wanted.chunk, wanted.pipeline)
    out = estimate.out_nbytes(source, wanted.chunk, wanted.pipeline, sample)
    if not source.plain:
        out = max(out, source.stored_nbytes)
        return Step(
            source, wanted, "by libhdf5", dcpl, out, expected_s=estimate.library_s(source.nbytes)
        )
    return _rechunked(source, wanted, dcpl, out, memory_nbytes, sample)


def _encodes_anew(source: SourceDataset, wanted: NewLayout) -> bool:
    """Whether a rule names filters that a dataset has, and some of its chunks lack."""
    # A copy would still lack them (filter masks).  Our encoders leave no filter out.
    names = {one.name for one in source.pipeline.filters}
    if not wanted.filtered or not source.plain or not names or not names <= NATIVE_FILTERS:
        return False
    if source.chunk is None or carried(source.pipeline) != source.pipeline:
        return False
    return library().chunk_census(source.identifier.id)["masked"] > 0


def _rechunked(
    source: SourceDataset,
    wanted: NewLayout,
    dcpl: Any,
    out_nbytes: int,
    memory_nbytes: int,
    sample: estimate.Sample | None,
) -> Step:
    try:
        plan = _native.RechunkPlan(
            list(source.shape or ()),
            None if source.chunk is None else list(source.chunk),
            None if wanted.chunk is None else list(wanted.chunk),
            source.itemsize,
            memory_nbytes,
        )
    except UsageError as wrong:
        raise UsageError(f"'{printable(source.path)}': {wrong}") from None
    passes = plan.decodes / plan.source_chunks if plan.source_chunks else 1.0
    return Step(
        source,
        wanted,
        "rechunked",
        dcpl,
        out_nbytes,
        memory_nbytes=plan.memory_nbytes,
        chunks=plan.source_chunks,
        decodes=plan.decodes,
        expected_s=estimate.rechunk_s(source, out_nbytes, passes, wanted.pipeline, sample),
    )


def _unchanged(
    scratch_file: h5py.File, source: SourceDataset, wanted: NewLayout, memory_nbytes: int
) -> Step:
    """Plan for a dataset that stays as it is stored."""
    nbytes = source.stored_nbytes
    if source.layout in ("compact", "virtual", "external") or not source.shape:
        return Step(source, wanted, "kept", None, nbytes, changes=False)
    stored = source.identifier.get_create_plist()
    dcpl = _made_as_stored(source, stored)
    if not source.plain:
        _require_decoder(source, stored)
        seconds = estimate.library_s(source.nbytes)
        return Step(source, wanted, "by libhdf5", dcpl, nbytes, expected_s=seconds, changes=False)
    if dcpl is not None:
        _, filters = refusal(scratch_file, source, source.chunk, dcpl)
        if filters != stored_filters(stored):
            return _completed_otherwise(source, wanted, dcpl, nbytes, memory_nbytes)
    seconds = estimate.copy_s(nbytes)
    return Step(source, wanted, "copied", dcpl, nbytes, expected_s=seconds, changes=False)


def _made_as_stored(source: SourceDataset, stored: Any) -> Any | None:
    """Return a property list for a dataset like the stored one, if its own list fails."""
    # Plugins complete their values when a dataset is made, and would do so twice.
    if not has_plugins(stored):
        return None
    try:
        return creation_list(source, source.chunk, source.pipeline)
    except UsageError:
        return None  # It can be read, perhaps, and not encoded: it is copied as it is.


def _completed_otherwise(
    source: SourceDataset, wanted: NewLayout, dcpl: Any, nbytes: int, memory_nbytes: int
) -> Step:
    """Plan for filters whose values would not be those stored: by an older plugin, mostly."""
    if carried(source.pipeline) != source.pipeline:
        if source.identifier.get_type().committed():
            raise UsageError(
                f"'{printable(source.path)}': its filters ({source.pipeline}) cannot be set as "
                "they are stored, and encoding again may change its values; name other filters "
                "by a rule for it"
            )
        # Without a list of ours, libhdf5 copies it as it is, with the values of its filters.
        seconds = estimate.copy_s(nbytes)
        return Step(source, wanted, "copied", None, nbytes, expected_s=seconds, changes=False)
    _require_decoder(source, source.identifier.get_create_plist())
    step = _rechunked(source, wanted, dcpl, nbytes, memory_nbytes, None)
    return replace(step, changes=False)


def _require_decoder(source: SourceDataset, stored: Any) -> None:
    missing, what = missing_filter(stored), "it"
    if missing is None and source.layout == "virtual":
        behind = missing_behind(source.identifier)
        if behind is not None:
            what, missing = printable(behind[0]), behind[1]
    if missing is not None:
        raise CannotJudgeError(
            f"'{printable(source.path)}': {what} cannot be read here: {missing}"
        )


def _require_effect(steps: Sequence[Step], rules: Rules) -> None:
    """Raise for rules by pattern whose datasets all had to be skipped."""
    for rule in rules.all:
        meant = [step for step in steps if rule.means(step.source.names)]
        if meant and all(step.wanted.left and not step.wanted.ruled for step in meant):
            first = meant[0]
            raise UsageError(
                f"rule {rule.text!r} fits none of the {counted(len(meant), 'dataset')} that it "
                "means: "
                f"'{printable(first.source.path)}' {first.wanted.left[0]}"
            )


def budget_note(plan: Plan) -> str | None:
    """Say what more memory would save, or None if each chunk is decoded once."""
    again = [step for step in plan.steps if step.decodes > step.chunks]
    if not again:
        return None
    worst = max(again, key=lambda step: step.decodes / step.chunks)
    times = worst.decodes / worst.chunks
    return (
        f"with {format_size(plan.memory_nbytes)} of memory, chunks of "
        f"'{printable(worst.source.path)}' are decoded {times:.1f} times; more memory "
        "(--memory) saves time"
    )


def needs(file: h5py.File, plan: Plan, options: Options) -> tuple[Needs, Needs]:
    """Return which filters and formats readers need for a file, and for its copy."""
    fcpl = file.id.get_create_plist()
    paged = fcpl.get_file_space_strategy()[0] == h5f.FSPACE_STRATEGY_PAGE
    version = fcpl.get_version()[0]
    oldest = _OF_SUPERBLOCK.get(version, "1.10")
    before = Needs(
        frozenset(one.name for step in plan.steps for one in step.source.pipeline.filters),
        oldest,
        any(step.source.layout == "virtual" for step in plan.steps),
        paged,
    )
    after = Needs(
        frozenset(one.name for step in plan.steps for one in step.wanted.pipeline.filters),
        oldest if options.low is None else _OF_BOUND[options.low],
        any(step.source.layout == "virtual" and not step.wanted.merged for step in plan.steps),
        paged or options.page_nbytes is not None,
    )
    return before, after


def who_loses(file: h5py.File, plan: Plan, options: Options) -> tuple[str, ...]:
    """Say which programs read less of the copy, a sentence for each reason."""
    return tuple(sentences(losses(*needs(file, plan, options))))


def require_readable(file: h5py.File, plan: Plan, options: Options) -> None:
    """Refuse a plan if one of the stated readers would read less of the result."""
    if options.readers:
        require(options.readers, *needs(file, plan, options), printable(str(file.filename)))
