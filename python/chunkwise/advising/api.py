"""How should a dataset be stored, for what is read of it, and is that true?

`advise` looks at the dataset, measures the machine (once) and a sample of the data, searches by
the model, measures the best few layouts beside the present one, and answers with what was
measured.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from chunkwise.advise.chunk_shape import PAGE_NBYTES, default_chunk, shrunk
from chunkwise.advise.layout import Layout
from chunkwise.advise.search import Found, Outcome, Problem, chosen, search
from chunkwise.advise.seconds import Codec, Machine
from chunkwise.advising import calibration, concluding, patterns, sampling, wishes
from chunkwise.advising.answer import Advice
from chunkwise.advising.verifying import Part, Proof, cut, measure, part_nbytes, weighed
from chunkwise.benching.schedule import Step
from chunkwise.benching.target import Target, look
from chunkwise.benching.variants import scratch_folder
from chunkwise.errors import UsageError
from chunkwise.files.opening import find_dataset
from chunkwise.files.unclosed import open_readable
from chunkwise.words import LAYOUTS

DEFAULT_BUDGET_S: Final = 60.0
# A trial takes a process: so long, besides what it measures.
_TRIAL_S: Final = 1.0
# Bytes a second in which layouts are written, about.
_WRITTEN_NBYTES_PER_S: Final = 40e6
# Of what is left when the search is over, the share for measuring many layouts once; the rest is
# for measuring the best of them again.
_FIRST_SHARE: Final = 0.55
_FEWEST_LAYOUTS: Final = 2
_MOST_LAYOUTS: Final = 10
_LAST_LAYOUTS: Final = 3
_REPEATS: Final = 3
# Of the budget, what trying filters may take.
_SAMPLING_SHARE: Final = 0.25
_SMALL_NBYTES: Final = 1 << 16

Say = Callable[[Step], None]


def advise(
    path: str | os.PathLike[str],
    dataset: str,
    access: Sequence[str] = (),
    *,
    objective: str = "balanced",
    keep: Sequence[str] = (),
    lossless: bool = True,
    max_size: str | None = None,
    reader: str | None = None,
    budget_s: float = DEFAULT_BUDGET_S,
    calibrate: bool = False,
    scratch: str | None = None,
    progress: Say | None = None,
) -> Advice:
    """Find the chunks, filters and cache that suit a dataset, and measure that they do.

    Parameters
    ----------
    path : str or path
        An HDF5 or netCDF-4 file; it is not changed.
    dataset : str
        The dataset's path.
    access : sequence of str
        What is read or written, as `chunkwise.bench` takes it, with ``weight W``, ``write`` or
        ``append`` behind it: ``"map=1x721x1440 weight 3"``.  Without any, the patterns that
        `inspect` judges by.
    objective : str
        ``read``, ``write``, ``size``; or ``balanced``: reading counts most, and a compressed
        dataset grows by a tenth at most.
    keep : sequence of str
        ``chunk`` or ``filter``: what stays as it is.
    lossless : bool
        Whether only filters are chosen that keep each value.  Others are never proposed; without
        it, one that the dataset has already may stay.
    max_size : str, optional
        The most bytes that it may take: ``"500MB"``, or ``"+10%"`` more than now.
    reader : str, optional
        Who reads: ``libhdf5-1.10``, ``libhdf5-2``, ``netcdf-c``, ``chunkwise``.  None for the
        libhdf5 of this process.
    budget_s : float
        Seconds that the answer may take.  Too few for measurements give an answer by the model,
        which says so.
    calibrate : bool
        Whether this machine is measured again, whatever is known of it.
    scratch : str, optional
        The folder for scratch files; None for the system's.  Whatever is written there is
        removed.
    progress : callable, optional
        Called before each step with a `chunkwise.benching.schedule.Step`.

    Returns
    -------
    Advice
        `Advice.as_dict` is what ``chunkwise advise --json`` prints.

    Raises
    ------
    UsageError
        The dataset cannot be stored in another way, a pattern does not fit, or what is asked
        for contradicts itself.
    ChunkwiseError
        The file cannot be opened or read.

    Examples
    --------
    >>> advice = chunkwise.advise(                              # doctest: +SKIP
    ...     "era5.nc", "t2m", ["map=1x721x1440 weight 3", "series=8760x1x1"]
    ... )
    >>> advice.best.chunks, advice.leave, advice.verified       # doctest: +SKIP
    """
    begun = time.monotonic()
    if not budget_s > 0:
        raise UsageError(f"a budget of {budget_s:g} seconds is no time: give more than 0")
    asked_for = wishes.read(objective, keep, max_size, reader, lossless=lossless)
    target = look(path, dataset)
    _refuse(target)
    asked = patterns.read(access, target.shape, target.itemsize, target.where)
    work = _Work(
        target, asked, bool(access), asked_for, begun, begun + budget_s, scratch, progress
    )
    return work.advice(calibrate=calibrate)


def _refuse(target: Target) -> None:
    """Raise UsageError for what can have no other layout, or nothing to tell of one."""
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
class _Work:
    """One answer, step by step."""

    target: Target
    asked: tuple[patterns.Asked, ...]
    stated: bool
    wishes: wishes.Wishes
    begun: float
    deadline: float
    scratch: str | None
    progress: Say | None

    def say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(Step(text))

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def advice(self, *, calibrate: bool) -> Advice:
        target = self.target
        present = Layout(target.chunks, target.filters)
        with scratch_folder(self.scratch) as folder:
            machine = calibration.machine(again=calibrate, say=self.say)
            samples = self.samples(present, machine, folder)
            problem = self.problem(present, machine, samples)
            self.say("comparing layouts by the model")
            found = search(problem)
            proof = self.proof(problem, found, present, folder)
        return concluding.conclude(
            concluding.Case(
                target=target,
                asked=self.asked,
                stated=self.stated,
                wishes=self.wishes,
                problem=problem,
                samples=samples,
                found=found,
                proof=proof,
                elapsed_s=time.monotonic() - self.begun,
            )
        )

    def samples(self, present: Layout, machine: Machine, folder: str) -> sampling.Samples:
        """Try filters on blocks in the shapes that are the likeliest."""
        target = self.target
        usual = default_chunk(
            target.shape, target.itemsize, None, [one.pattern.block for one in self.asked]
        )
        shapes = [present.chunks or usual, usual, shrunk(usual, target.itemsize, _SMALL_NBYTES)]
        pipelines = wishes.pipelines(self.wishes, present, target.itemsize)
        if wishes.plugins_may_be_used(self.wishes, present):
            _load_plugins()
        deadline = time.monotonic() + _SAMPLING_SHARE * max(0.0, self.left_s)
        with open_readable(target.file) as file:
            found = sampling.take(
                find_dataset(file, target.dataset),
                pipelines,
                shapes,
                machine,
                folder,
                deadline=deadline,
                say=self.say,
            )
        if found.constant:
            raise UsageError(
                f"{target.where}: all elements that were looked at are equal: any filter stores "
                "them in next to nothing, and nothing can be told from that; advise on a file "
                "that holds data"
            )
        return found

    def problem(self, present: Layout, machine: Machine, samples: sampling.Samples) -> Problem:
        target = self.target
        codecs = dict(samples.codecs)
        codecs = corrected(codecs, target)
        if present.chunks is None:
            codecs.setdefault("none", Codec("none"))
        compressed = present.filters not in ("none", "fletcher32", "shuffle")
        problem = Problem(
            shape=target.shape,
            itemsize=target.itemsize,
            patterns=tuple(one.pattern for one in self.asked),
            reader=self.wishes.reader,
            reader_name=self.wishes.reader_name,
            machine=machine,
            codecs=codecs,
            present=present,
            objective=self.wishes.objective,
            keep=self.wishes.keep,
            most_nbytes=self.wishes.most_nbytes(target.stored_nbytes, compressed),
            maxshape=target.maxshape,
        )
        if present.chunks is None and "chunk" in self.wishes.keep:
            raise UsageError(
                f"{target.where} has no chunks: there is nothing to keep; leave --keep chunk out"
            )
        return problem

    def proof(self, problem: Problem, found: Found, present: Layout, folder: str) -> Proof | None:
        """Measure the best few and the present one, first once and then the best again."""
        number = len(self.asked)
        most = part_nbytes(self.left_s)
        writing_s = min(self.target.nbytes, most) / _WRITTEN_NBYTES_PER_S
        each_s = number * _TRIAL_S + writing_s
        affordable = int(_FIRST_SHARE * self.left_s / each_s) - 1
        if affordable < 1:
            return None
        layouts = [
            one.layout for one in chosen(found, problem, min(_MOST_LAYOUTS, affordable), present)
        ]
        layouts = [present, *layouts]
        with cut(self.target, self.asked, most, folder, self.say) as part:
            first = self.measured(
                part, layouts, problem, present, repeat=1, seconds=_FIRST_SHARE * self.left_s
            )
            best = self.best(first, problem, found)
            again = [present, *(one for one in best if one != present)][: _LAST_LAYOUTS + 1]
            if len(again) < _FEWEST_LAYOUTS or self.left_s < len(again) * each_s:
                return first
            last = self.measured(
                part, again, problem, present, repeat=_REPEATS, seconds=max(1.0, self.left_s)
            )
        return joined(first, last)

    def measured(
        self,
        part: Part,
        layouts: Sequence[Layout],
        problem: Problem,
        present: Layout,
        *,
        repeat: int,
        seconds: float,
    ) -> Proof:
        return measure(
            part,
            layouts,
            self.asked,
            problem,
            repeat=repeat,
            seconds=seconds,
            ours=True,
            stored=present,
            scratch=self.scratch,
            progress=self.progress,
        )

    def best(self, proof: Proof, problem: Problem, found: Found) -> list[Layout]:
        """Sort the layouts that were measured, the best first."""
        known = {one.layout: one for one in found.ranked}
        return sorted(
            proof.timings,
            key=lambda layout: problem.score(figures(known[layout], proof, self.asked)),
        )


def figures(
    outcome: Outcome, proof: Proof | None, asked: Sequence[patterns.Asked]
) -> tuple[float, float, float]:
    """Return reading, writing and size of a layout, measured as far as they were."""
    read_s, write_s, nbytes = outcome.figures
    timings = proof.timings.get(outcome.layout) if proof is not None else None
    if timings is not None:
        if any(not one.pattern.writes for one in asked):
            read_s = weighed(timings, asked, writes=False)[0]
        if any(one.pattern.writes for one in asked):
            write_s = weighed(timings, asked, writes=True)[0]
    return read_s, write_s, nbytes


def joined(first: Proof, last: Proof) -> Proof:
    """Put two rounds of measurements together; what was measured again is the better known."""
    return Proof(
        last.part,
        {**first.timings, **last.timings},
        {**first.ours, **last.ours},
        {**first.failed, **last.failed},
    )


def corrected(codecs: dict[str, Codec], target: Target) -> dict[str, Codec]:
    """Scale what a few places said of sizes to what the whole dataset takes."""
    known = codecs.get(target.filters)
    if known is None or target.chunks is None or target.filters == "none":
        return codecs
    grid = math.prod(-(-n // c) for n, c in zip(target.shape, target.chunks, strict=True))
    sampled = known.ratio(target.chunks) * grid * target.chunk_nbytes
    factor = min(2.0, max(0.5, target.stored_nbytes / max(1.0, sampled)))
    return {
        name: codec if name in ("none", "fletcher32") else replace(
            codec, ratios=tuple((shape, ratio * factor) for shape, ratio in codec.ratios)
        )
        for name, codec in codecs.items()
    }  # fmt: skip


def _load_plugins() -> None:
    """Make the filters of hdf5plugin known to the libhdf5 here, where it is installed."""
    try:
        importlib.import_module("hdf5plugin")
    except ImportError:
        return
