"""How long do patterns take on a file, and on the one that replaces it, in turns?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from chunkwise.errors import ChunkwiseError, CorruptDataError, SelectionError
from chunkwise.files.around import Surroundings
from chunkwise.fixing.choose import Change, Choice
from chunkwise.fixing.records import Gain
from chunkwise.inspection.facts import DatasetFacts, FileFacts
from chunkwise.inspection.promise import promised_s
from chunkwise.measure.planning import trial_of
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.target import look
from chunkwise.measure.verdict import spread, verdict
from chunkwise.model.readers import Reader, this_process
from chunkwise.names import printable
from chunkwise.patterns import Access, Dataset, StatedPattern, as_pattern, as_stated, whole
from chunkwise.trials.pagecache import warm
from chunkwise.trials.trial import Measurement, Trial

READER: Final = "h5py"
# Enough for a median that one disturbed trial does not move.
_REPEATS: Final = 5
_FEWEST: Final = 3
# Chunks that all promises together follow through a cache.
_STEPS: Final = 30_000
# Seconds of a trial besides its reads, and at most with them.
_TRIAL_S: Final = 1.0
_LONGEST_S: Final = 2.0
# Seconds after which a trial without a result is stopped.
_PATIENCE_S: Final = 60.0
_LEAST_PATIENCE_S: Final = 5.0


@dataclass(frozen=True)
class Question:
    """One pattern on one dataset, to be measured before and after."""

    path: str
    access: Access
    promised: Gain


def questions(
    facts: FileFacts, choice: Choice, access: Sequence[StatedPattern]
) -> tuple[Question, ...]:
    """Give the patterns on the datasets that change, those that gain most first."""
    datasets = {one.path: one.dataset for one in facts.objects}
    walks = {
        change: _patterns(facts.path, change.path, dataset, access)
        for change in choice.changes
        if (dataset := datasets[change.path]) is not None
        and dataset.shape
        and 0 not in dataset.shape
        and not dataset.variable_length
    }
    steps = _STEPS // max(1, 2 * sum(map(len, walks.values())))
    found = [
        [_question(change, datasets[change.path], one, steps) for one in accesses]
        for change, accesses in walks.items()
    ]
    # If the seconds run out, the least important part is left out.
    found.sort(key=lambda of_one: -sum(map(_saved_s, of_one)))
    return tuple(one for of_one in found for one in sorted(of_one, key=lambda q: -_saved_s(q)))


def _question(
    change: Change, dataset: DatasetFacts | None, access: Access, most_steps: int
) -> Question:
    """Ask for one pattern, with what the model promises for it."""
    assert dataset is not None
    assert dataset.shape is not None
    pattern, reader = as_pattern(access, dataset.shape), _reader(change.cache_nbytes)
    after = change.chunk_before if change.chunk is None else change.chunk
    layouts = (
        (change.chunk_before, dataset.filters),
        (after, change.filters or dataset.filters),
    )
    before_s, after_s = (
        promised_s(
            dataset, pattern, chunk=chunk, filters=filters, reader=reader, most_steps=most_steps
        )
        for chunk, filters in layouts
    )
    of_one_read = pattern.operations is not None
    reads = pattern.operations or 1
    promised = Gain(
        change.path,
        access.name,
        access.block,
        None if before_s is None else before_s / reads,
        None if after_s is None else after_s / reads,
        cache_nbytes=change.cache_nbytes,
        of_one_read=of_one_read,
    )
    return Question(change.path, access, promised)


def _reader(cache_nbytes: int | None) -> Reader:
    """Return the library here, with so large a chunk cache."""
    here = this_process()
    return here if cache_nbytes is None else replace(here, cache_nbytes=cache_nbytes)


def _saved_s(question: Question) -> float:
    """Seconds that the model promises to save; what has no promise sorts last."""
    before, after = question.promised.promised_before_s, question.promised.promised_after_s
    return 0.0 if before is None or after is None else before - after


def _patterns(
    file: str, path: str, dataset: DatasetFacts, access: Sequence[StatedPattern]
) -> list[Access]:
    """Give the patterns that are stated; if none is, those that the dataset is made for."""
    shape, itemsize = dataset.shape or (), dataset.itemsize
    found = []
    if not access:
        uses = [] if dataset.purpose is None else dataset.purpose.uses
        found = [Access(use.name, use.block) for use in uses if use.block != shape]
        return [*found, Access("all", whole(shape, itemsize))]
    here = Dataset(shape, itemsize, f"'{printable(path)}'", Surroundings(file, path))
    for one in access:
        if one.does == "read":
            with suppress(SelectionError):
                found.append(as_stated(one.on(here), shape)[0])
    return found


class Measured:
    """The measurements of some questions, on the file before and on the one after."""

    def __init__(
        self, questions: Sequence[Question], seconds: float, announce: Callable[[str], None]
    ) -> None:
        fitting = max(1, int(seconds / (2 * _FEWEST * _TRIAL_S)))
        self._measured, self._unmeasured = list(questions[:fitting]), list(questions[fitting:])
        self._seconds, self._announce = seconds, announce
        self._done: dict[tuple[int, str], list[Measurement]] = {}
        self._trials: dict[tuple[int, str], Trial] = {}
        self._reasons: dict[int, str] = {}

    def prepare(self, file: str, side: str) -> None:
        """Get ready to read a file, ``before`` or ``after``, and bring its bytes into memory."""
        warmed: set[str] = set()
        for number, question in enumerate(self._measured):
            try:
                target = look(file, question.path)
            except ChunkwiseError as wrong:
                self._reasons.setdefault(number, str(wrong))
                continue
            if target.storage not in warmed:
                warm(target.storage)
                warmed.add(target.storage)
            each = self._seconds / max(1, 2 * len(self._measured) * _FEWEST) - 0.6
            trial = trial_of(
                target,
                question.access,
                READER,
                cache_nbytes=question.promised.cache_nbytes,
                max_seconds=min(_LONGEST_S, max(0.2, each)),
                timeout_s=min(_PATIENCE_S, max(_LEAST_PATIENCE_S, self._seconds / 4)),
            )
            self._trials[number, side] = trial

    def measure(self, *sides: str) -> None:
        """Measure the sides, in turns if there are two, for their share of the seconds."""
        deadline = time.monotonic() + self._seconds * len(sides) / 2
        took_s: dict[int, float] = {}
        for _ in range(_REPEATS):
            for number, question in enumerate(self._measured):
                if number in self._reasons:
                    continue
                begun = time.monotonic()
                if begun + took_s.get(number, 0.0) >= deadline:
                    return
                for side in sides:
                    self._announce(f"measuring {side}: {question.path} {question.access.name}")
                    self._one(number, side)
                took_s[number] = time.monotonic() - begun

    def _one(self, number: int, side: str) -> None:
        """Measure once."""
        measurement = measure_in_worker(self._trials[number, side])
        if measurement.status != "ok":
            self._reasons.setdefault(number, measurement.error or "it could not be measured")
            return
        self._done.setdefault((number, side), []).append(measurement)

    def gains(self) -> tuple[Gain, ...]:
        """Return the measured figures, beside the promised ones."""
        found = []
        for number, question in enumerate(self._measured):
            before = self._done.get((number, "before"), [])
            after = self._done.get((number, "after"), [])
            of_one = question.promised.of_one_read
            measured = [
                [(one.mean_s if of_one else one.total_s, one.judged_share) for one in each]
                for each in (before, after)
            ]
            totals = [[s for s, _ in each if s] for each in measured]
            slow, fast = ([s * share for s, share in each if s] for each in measured)
            if number in self._reasons or not all(totals):
                reason = self._reasons.get(number, "there was no time to measure it")
                found.append(replace(question.promised, reason=reason))
                continue
            _require_same(question, before, after)
            found.append(
                replace(
                    question.promised,
                    before=spread(totals[0]),
                    after=spread(totals[1]),
                    verdict=verdict(slow, fast).word,
                    repeats=min(map(len, totals)),
                    estimated=any(one.extrapolated for one in (*before, *after)),
                )
            )
        return (*found, *(question.promised for question in self._unmeasured))


def _require_same(
    question: Question, before: Sequence[Measurement], after: Sequence[Measurement]
) -> None:
    """Compare the checksums of the bytes that both sides have read."""
    for one, other in zip(before, after, strict=False):
        for count in one.checksums.keys() & other.checksums.keys():
            if one.checksums[count] != other.checksums[count]:
                raise CorruptDataError(
                    f"'{printable(question.path)}': {question.access.name} reads other values "
                    "from the new file than from the old one; do not use it, and report this"
                )
