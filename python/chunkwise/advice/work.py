"""In which order does advice use the machine, a sample, the model and measurements?"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from chunkwise.advice import calibration, concluding, goals, patterns, sampling
from chunkwise.advice.answer import Advice
from chunkwise.advice.goals import Goal
from chunkwise.advice.verifying import Part, Proof, cut, figures, measure, part_nbytes
from chunkwise.errors import UsageError
from chunkwise.files import answers
from chunkwise.files.around import Surroundings
from chunkwise.files.durable import free_nbytes
from chunkwise.files.opening import find_dataset, open_h5
from chunkwise.measure.schedule import Step
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SPARE_NBYTES, scratch_folder
from chunkwise.model.chunk_shape import PAGE_NBYTES, Present, shrunk, suited_chunk
from chunkwise.model.layout import Layout
from chunkwise.model.search import (
    DOUBTED,
    Problem,
    Ranking,
    by_size,
    chosen,
    is_new,
    near,
    search,
)
from chunkwise.model.seconds import Codec, Machine
from chunkwise.patterns import StatedPattern
from chunkwise.patterns import question as stated_question
from chunkwise.words import LAYOUTS

# A trial takes a process: so long, besides what it measures.
_TRIAL_S: Final = 0.5
# Bytes a second in which layouts are written, about.
_WRITTEN_NBYTES_PER_S: Final = 40e6
# Share of the remaining time for many layouts once; the rest repeats the best ones.
_FIRST_SHARE: Final = 0.55
_FEWEST_LAYOUTS: Final = 2
_MOST_LAYOUTS: Final = 10
_LAST_LAYOUTS: Final = 2
# For the best of them, this many that are like it; as many again while there is time.
_NEIGHBOURS: Final = 2
_REPEATS: Final = 3
# Of what was measured, this many of the best filters are tried with other chunks.
_FILTERS_EXPLORED: Final = 2
# Measuring a layout so often takes this many times what measuring it once did, at most.
_REPEATED: Final = 2.5
# The budget's share for trying filters.
_SAMPLING_SHARE: Final = 0.25
# And for comparing layouts by the model, of what is left then.
_SEARCH_SHARE: Final = 0.4
# Files as large as the part, besides the layouts: the part, and what writes are made from.
_BESIDE: Final = 4
_SMALL_NBYTES: Final = 1 << 16

Say = Callable[[Step], None]


def refuse(target: Target) -> None:
    """Raise UsageError for a dataset that cannot have another layout, or gains nothing by it."""
    if target.layout in ("virtual", "external"):
        raise UsageError(
            f"{target.where} is {LAYOUTS[target.layout]}: its data lies elsewhere; advise on the "
            "datasets that hold it, or make it real data first: chunkwise repack --merge"
        )
    if target.layout == "compact":
        raise UsageError(
            f"{target.where} is {LAYOUTS['compact']}: it is read with the header, and at most "
            "64 KiB; there is nothing to gain"
        )
    if target.nbytes <= PAGE_NBYTES:
        raise UsageError(
            f"{target.where} has {target.nbytes:,} bytes: it is read at once however it is "
            "stored; there is nothing to gain"
        )
    if not target.stored_nbytes:
        raise UsageError(
            f"{target.where}: nothing was ever written to it, so that nothing can be tried; "
            "write some of it first, or describe it: chunkwise advise --shape ... --like FILE"
        )


@dataclass
class Work:
    """One answer, step by step."""

    target: Target
    requested: tuple[patterns.Requested, ...]
    stated: bool
    goal: Goal
    begun: float
    deadline: float
    scratch: str | None
    progress: Say | None

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        access: Sequence[str | StatedPattern],
        goal: Goal,
        *,
        begun: float,
        budget_s: float,
        scratch: str | None = None,
        progress: Say | None = None,
    ) -> Work:
        """Look at the dataset, and check that there can be advice on it."""
        target = look(path, dataset)
        refuse(target)
        requested = patterns.read(
            access,
            target.shape,
            target.itemsize,
            target.where,
            Surroundings(target.file, target.dataset),
        )
        deadline = begun + budget_s
        return cls(target, requested, bool(access), goal, begun, deadline, scratch, progress)

    def _say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(Step(text))

    @property
    def _present(self) -> Layout:
        return Layout(self.target.chunks, self.target.filters)

    @property
    def _left_s(self) -> float:
        return self.deadline - time.monotonic()

    def advice(self, *, calibrate: bool) -> Advice:
        """Find the answer; `calibrate` measures the machine again."""
        with scratch_folder(self.scratch) as folder:
            problem, samples = self.modelled(folder, calibrate=calibrate)
            self._say("comparing layouts by the model")
            late = time.monotonic() + _SEARCH_SHARE * max(0.0, self._left_s)
            found = search(problem, lambda: time.monotonic() >= late)
            proof = self._proof(problem, found, folder)
        elapsed_s = time.monotonic() - self.begun
        advice = concluding.conclude(
            concluding.Case(
                self.target, self.requested, self.stated, self.goal, problem, samples, found,
                proof, elapsed_s,
            )
        )  # fmt: skip
        if self.stated and advice.verified and self.goal.is_usual:
            self._keep(advice)
        return advice

    def _keep(self, advice: Advice) -> None:
        """Let inspect and fix give the same answer to the same question."""
        gain = (advice.present_read_s or 0.0) / max(1e-12, advice.best_read_s)
        answer = answers.Answer(advice.best.chunks, advice.best.filters, gain)
        answers.keep(self.target.file, *self._question, answer)

    def modelled(self, folder: str, *, calibrate: bool) -> tuple[Problem, sampling.Samples]:
        """Measure the machine and a sample of the data, and nothing else."""
        machine = calibration.machine(again=calibrate, say=self._say)
        samples = self._samples(machine, folder)
        return self._problem(machine, samples), samples

    @cached_property
    def _usual(self) -> tuple[int, ...]:
        """The chunks that all others choose for these patterns, or an earlier measurement did."""
        target, readers = self.target, self.goal.readers
        stated = [one.pattern for one in self.requested] if self.stated else []
        if self.goal.is_usual and (found := answers.kept_chunks(target.file, *self._question)):
            return found
        now = Present.of(target.chunks, target.filters, target.stored_nbytes, readers)
        return suited_chunk(target.shape, target.itemsize, target.maxshape, stated, now, readers)

    @property
    def _question(self) -> tuple[str, str]:
        """The dataset, and what is read of it, as answers are kept."""
        requested = stated_question([one.pattern for one in self.requested])
        return self.target.dataset, requested

    def _samples(self, machine: Machine, folder: str) -> sampling.Samples:
        """Try filters on blocks in the shapes that are the likeliest."""
        target, usual, present = self.target, self._usual, self._present
        shapes = [present.chunks or usual, usual, shrunk(usual, target.itemsize, _SMALL_NBYTES)]
        pipelines = goals.pipelines(self.goal, present, target.itemsize)
        if goals.plugins_may_be_used(self.goal, present):
            # It registers its filters in this libhdf5.
            with suppress(ImportError):
                importlib.import_module("hdf5plugin")
        deadline = time.monotonic() + _SAMPLING_SHARE * max(0.0, self._left_s)
        with open_h5(target.file) as file:
            found = sampling.take(
                find_dataset(file, target.dataset),
                pipelines,
                shapes,
                machine,
                folder,
                deadline=deadline,
                say=self._say,
            )
        if found.constant:
            raise UsageError(
                f"{target.where}: all elements of the sample are equal: any filter stores "
                "them in almost no bytes, which proves nothing; advise on a file "
                "that holds data"
            )
        return found

    def _problem(self, machine: Machine, samples: sampling.Samples) -> Problem:
        target, present = self.target, self._present
        codecs = sampling.corrected(samples.codecs, target)
        if present.chunks is None:
            codecs.setdefault("none", Codec("none"))
        compressed = present.filters not in ("none", "fletcher32", "shuffle")
        nbytes = target.stored_nbytes if compressed else 0
        return Problem(
            shape=target.shape,
            itemsize=target.itemsize,
            patterns=tuple(one.pattern for one in self.requested),
            reader=self.goal.reader,
            reader_name=self.goal.reader_name,
            machine=machine,
            codecs=codecs,
            present=present,
            objective=self.goal.objective,
            most_nbytes=self.goal.most_nbytes(nbytes, stated=self.stated),
            maxshape=target.maxshape,
            storage=calibration.storage_of(target.stored_nbytes, machine),
            barred=goals.barred(present),
            usual=self._usual,
        )

    def _proof(self, problem: Problem, found: Ranking, folder: str) -> Proof:
        """Measure the best few and the present one, first once and then the best again."""
        number = len(self.requested)
        most = part_nbytes(self._left_s)
        writing_s = min(self.target.nbytes, most) / _WRITTEN_NBYTES_PER_S
        each_s = number * _TRIAL_S + writing_s
        affordable = int(_FIRST_SHARE * self._left_s / each_s) - 1
        # bench refuses to fill a disk: fewer layouts at a time then, or none.
        room = free_nbytes(folder) - SPARE_NBYTES
        affordable = min(affordable, room // max(1, min(self.target.nbytes, most)) - _BESIDE)
        if affordable < 1:
            return Proof(Part.all_of(self.target))
        few = chosen(found, problem, min(_MOST_LAYOUTS, affordable), self._present)
        layouts = [self._present, *(one.layout for one in few)]
        with cut(self.target, self.requested, most, folder, self._say) as part:
            begun = time.monotonic()
            seconds = _FIRST_SHARE * self._left_s
            proof = self._measured(part, layouts, problem, repeat=1, seconds=seconds)
            each_s = _REPEATED * (time.monotonic() - begun) / max(1, len(proof.timings))
            return self._refined(part, proof, problem, found, each_s)

    def _refined(
        self, part: Part, proof: Proof, problem: Problem, found: Ranking, each_s: float
    ) -> Proof:
        """Measure the best and its neighbours, until none is better; a layout takes `each_s`.

        Then once what others would choose: an answer must not lose to a rule of thumb.
        """
        present = self._present
        best: Layout | None = None
        while True:
            others = [one for one in self._best(proof, problem, found) if one != present]
            if not others:
                return proof
            tried, repeat = tuple(proof.timings), _REPEATS
            if others[0] == best:
                again = _unexplored(found, problem, others, tried)[:_MOST_LAYOUTS]
                least, repeat = 1, 1
            else:
                # First the present layout, which may be slow; later the former best, again.
                again = [others[0], best] if best else [present, *others[:_LAST_LAYOUTS]]
                best = others[0]
                again += _worth_trying(found, problem, best, (*tried, *again))
                least = _FEWEST_LAYOUTS
            round_s = each_s if repeat > 1 else each_s / _REPEATED
            again = again[: max(0, int(self._left_s / round_s))]
            if len(again) < least:
                return proof
            seconds = max(1.0, self._left_s)
            more = self._measured(part, again, problem, repeat=repeat, seconds=seconds)
            proof = joined(proof, more)

    def _measured(
        self,
        part: Part,
        layouts: Sequence[Layout],
        problem: Problem,
        *,
        repeat: int,
        seconds: float,
    ) -> Proof:
        """Measure layouts in turns; if each is measured once, one by one while there is time."""
        together = [layouts] if repeat > 1 else [[one] for one in layouts]
        deadline = time.monotonic() + seconds
        proof, slowest_s = Proof(part), 0.0
        for number, some in enumerate(together):
            begun = time.monotonic()
            if number >= _FEWEST_LAYOUTS and begun + slowest_s > deadline:
                break
            more = measure(
                part,
                some,
                self.requested,
                problem,
                repeat=repeat,
                seconds=max(1.0, deadline - begun) / (len(together) - number),
                ours_too=self._present,
                scratch=self.scratch,
                progress=self.progress,
            )
            proof = joined(proof, more)
            slowest_s = max(slowest_s, time.monotonic() - begun)
        return proof

    def _best(self, proof: Proof, problem: Problem, found: Ranking) -> list[Layout]:
        """Sort the layouts that were measured, the best first."""
        known = {one.layout: one for one in found.ranked}
        return sorted(
            proof.timings,
            key=lambda layout: problem.score(figures(known[layout], proof, self.requested)),
        )


def _worth_trying(
    found: Ranking, problem: Problem, best: Layout, tried: Sequence[Layout]
) -> list[Layout]:
    """Choose layouts near the best, its chunks under other filters, and what others choose."""
    about = [one for one in near(found, problem, best, len(tried)) if one.layout not in tried]
    other = []
    for one in found.ranked:
        refiltered = one.layout.chunks == best.chunks
        elsewhere = one.names and one.layout.filters == best.filters
        if (refiltered or elsewhere) and one.layout not in tried and problem.fits(one):
            other.append(one)
    both = (*about[:_NEIGHBOURS], *other[:_NEIGHBOURS])
    return list(dict.fromkeys(one.layout for one in both))


def _unexplored(
    found: Ranking, problem: Problem, best: Sequence[Layout], tried: Sequence[Layout]
) -> list[Layout]:
    """List layouts unlike the measured ones that may be better than the best, `best` in order."""
    filters = list(dict.fromkeys(one.filters for one in best))[:_FILTERS_EXPLORED]
    most = DOUBTED + problem.score(problem.outcome(best[0]).figures)
    kept: list[Layout] = []
    able = [
        one
        for one in found.ranked
        if one.layout not in tried and one.layout.filters in filters and problem.fits(one)
    ]
    able = by_size(able, problem)
    for one in sorted(able, key=lambda one: not (one.names and one.layout.filters == filters[0])):
        named = one.names and one.layout.filters == filters[0]
        hopeful = problem.score(one.figures) <= most
        if named or (hopeful and is_new(one.layout, (*tried, *kept))):
            kept.append(one.layout)
    return kept


def joined(first: Proof, last: Proof) -> Proof:
    """Put two rounds of measurements together; what was measured again is the better known."""
    return Proof(
        last.part,
        {**first.timings, **last.timings},
        {**first.samples, **last.samples},
        {**first.ours, **last.ours},
        {**first.failed, **last.failed},
        {**first.ours_samples, **last.ours_samples},
    )
