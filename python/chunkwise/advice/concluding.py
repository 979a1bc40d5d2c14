"""What is the answer: which layout, what does it gain, and which lines give it?

It comes from the measurements, or from the model if nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from chunkwise.advice import goals, patterns, sampling
from chunkwise.advice.answer import Advice, CacheAdvice, FrontPoint, PatternAdvice
from chunkwise.advice.verifying import Proof, Timing, figures, sums
from chunkwise.diagnosis.reads import Cause, Reads
from chunkwise.grammar import Pipeline, format_shape, format_size
from chunkwise.measure.target import Target
from chunkwise.measure.verdict import verdict
from chunkwise.model import worth
from chunkwise.model.cost import Stored
from chunkwise.model.layout import Layout
from chunkwise.model.readability import Needs, losses, sentences
from chunkwise.model.readers import CHUNKWISE, DEFAULT_W0, LIBHDF5_1
from chunkwise.model.search import Outcome, Problem, Ranking, by_rule, front, worth_a_look
from chunkwise.names import printable
from chunkwise.patterns import taken_for
from chunkwise.remedy.records import Create, Present, Remedy, in_layout
from chunkwise.words import counted, format_ratio, joined


@dataclass(frozen=True)
class Case:
    """All that is known when a conclusion is drawn."""

    target: Target
    requested: tuple[patterns.Requested, ...]
    stated: bool
    goal: goals.Goal
    problem: Problem
    samples: sampling.Samples
    found: Ranking
    proof: Proof
    elapsed_s: float

    @property
    def present(self) -> Layout:
        """How the dataset is stored."""
        return Layout(self.target.chunks, self.target.filters)

    @property
    def timings(self) -> Mapping[Layout, Mapping[str, Timing]]:
        """What was measured; nothing unless the present layout and another one were."""
        timings = self.proof.timings
        return timings if self.present in timings and len(timings) > 1 else {}

    def outcome(self, layout: Layout) -> Outcome:
        """Return what the model says of a layout."""
        return self.problem.outcome(layout)

    def figures(self, layout: Layout) -> tuple[float, float, float]:
        """Return reading, writing and size, measured as far as they were."""
        read_s, write_s, nbytes = figures(self.outcome(layout), self.proof, self.requested)
        if layout == self.present:
            nbytes = float(self.target.stored_nbytes)
        return read_s, write_s, nbytes


def conclude(case: Case) -> Advice:
    """Draw the conclusion."""
    best = _best(case)
    leave = best == case.present or _within_noise(case, best)
    if leave:
        best = case.present
    target = case.target
    found = tuple(_pattern(case, one, best) for one in case.requested)
    reads = _reads(case)
    cache = _cache(case, reads)
    advice = Advice(
        file=target.file,
        dataset=target.dataset,
        shape=target.shape,
        itemsize=target.itemsize,
        reader=case.goal.title,
        objective=case.goal.objective,
        present=case.present,
        best=best,
        patterns=found,
        stated=case.stated,
        front=_front(case, best),
        present_nbytes=target.stored_nbytes,
        best_nbytes=round(case.figures(best)[2]),
        leave=leave,
        verified=bool(case.timings),
        reason="",
        remedies=() if leave else _remedies(target, best),
        cache=cache,
        open_remedies=_open_remedies(case, reads, cache),
        part=str(case.proof.part) if case.timings else "",
        notes=tuple(_notes(case, best)),
        looked_at=case.found.looked_at,
        measured=len(case.proof.timings),
        elapsed_s=case.elapsed_s,
    )
    return replace(advice, reason=_reason(case, advice))


# --- which layout ----------------------------------------------------------------------------


def _best(case: Case) -> Layout:
    """Return the best layout that was measured; if none was, the model's."""
    problem = case.problem
    timings = case.timings
    if timings:
        # One lucky run is no proof, where others were measured several times.
        repeats = {one: _repeats(timings[one]) for one in timings}
        known = [one for one in timings if repeats[one] > 1 or max(repeats.values()) == 1]
        able = [one for one in known if _fits(case, one)] or known
        return min(able, key=lambda layout: problem.score(case.figures(layout)))
    others = [by_rule(case.found, problem).layout, case.present]
    return min(others, key=lambda one: problem.score(case.figures(one)))


def _fits(case: Case, layout: Layout) -> bool:
    most = case.problem.most_nbytes
    return most is None or case.figures(layout)[2] <= most


def _within_noise(case: Case, best: Layout) -> bool:
    """Whether the best layout is not clearly better than the present one."""
    if not _fits(case, case.present):
        return False
    before, after = case.figures(case.present), case.figures(best)
    gains = [b / max(1e-12, a) for b, a in zip(before, after, strict=True)]
    read, write, size = gains
    grows = size < 1 / (1 + goals.growth(stated=False))
    if grows and read < worth.PROGRAM and case.goal.objective == "balanced":
        # What compresses less may be a little faster in one trial, and slower in the next.
        return True
    wanted = {
        "read": read >= worth.STATED,
        "write": write >= worth.STATED,
        "size": size >= worth.SMALLER,
        "balanced": read >= worth.STATED
        or (size >= worth.SMALLER and read >= 1 / worth.STATED)
        or (write >= worth.STATED and read >= 1),
    }[case.goal.objective]
    if not wanted:
        return True
    if case.problem.score(after) >= case.problem.score(before):
        return True
    if case.timings and case.goal.objective in ("read", "balanced"):
        if size >= worth.SMALLER and read >= 1 / worth.STATED:
            return False
        writes_alone = all(one.pattern.writes for one in case.requested)
        return not writes_alone and not _is_faster(case, best, case.present)
    return False


def _is_faster(case: Case, best: Layout, than: Layout) -> bool:
    """Whether a layout was measured to be faster, by the judge of all measurements."""
    before, after = (sums(case.proof.samples[one], case.requested) for one in (than, best))
    found = verdict(before, after, worth.STATED)
    if found.word == "cannot tell" and found.low is None:
        # Too few repeats for it.  They agree that it is faster: the model's word is believed, as
        # where nothing was measured.
        return case.outcome(than).read_s >= worth.MODELLED * case.outcome(best).read_s
    return found.word == "faster"


def _pattern(case: Case, one: patterns.Requested, best: Layout) -> PatternAdvice:
    name, place = one.pattern.name, case.requested.index(one)
    present, then, ours = (
        None if timing is None else timing.of(one.pattern.reads)
        for timing in (
            case.timings.get(case.present, {}).get(name),
            case.timings.get(best, {}).get(name),
            case.proof.ours.get(name),
        )
    )
    present_s, best_s = (
        case.outcome(x).pattern_s[place] / one.pattern.reads for x in (case.present, best)
    )
    return PatternAdvice(
        name=name,
        text=one.text,
        block=one.pattern.block,
        weight=one.weight,
        writes=one.pattern.writes,
        of_one_read=one.pattern.of_one_read,
        present=present,
        best=then,
        present_model_s=present_s,
        best_model_s=best_s,
        ours=ours,
    )


def _front(case: Case, best: Layout) -> tuple[FrontPoint, ...]:
    """Give the choices, the advised one among them: those that were measured, or the model's.

    What seems better in all by one lucky measurement, within the noise, or by a model that was
    not believed, is no choice.
    """
    measured = case.timings
    if measured:
        outcomes = []
        for layout in measured:
            read_s, write_s, nbytes = case.figures(layout)
            known = replace(case.outcome(layout), read_s=read_s, write_s=write_s)
            outcomes.append(replace(known, nbytes=round(nbytes)))
        found = list(front(outcomes))
    else:
        outcomes = [case.outcome(best)]
        # A layout that the model holds for better, and the answer does not, is none either.
        score = case.problem.score
        least = score(outcomes[0].figures)
        looks = worth_a_look(case.found.front, case.problem)
        found = [one for one in looks if score(one.figures) >= least]
    (advised,) = (one for one in outcomes if one.layout == best)
    found = [one for one in found if not _is_beaten(advised, one)]
    if advised.layout not in [one.layout for one in found]:
        found = sorted([*found, advised], key=lambda one: one.figures)
    return tuple(
        FrontPoint(
            one.layout, one.read_s, one.write_s, one.nbytes, one.layout in measured,
            _repeats(measured.get(one.layout, {})),
        )
        for one in found
    )  # fmt: skip


def _is_beaten(one: Outcome, by: Outcome) -> bool:
    """Whether another layout is as good in reading, writing and size, and better in one."""
    pairs = list(zip(by.figures, one.figures, strict=True))
    return by.layout != one.layout and all(a <= b for a, b in pairs) and by.figures != one.figures


def _repeats(timings: Mapping[str, Timing]) -> int:
    return min((one.repeats for one in timings.values()), default=0)


# --- remedies --------------------------------------------------------------------------------


def _remedies(target: Target, best: Layout) -> tuple[Remedy, ...]:
    """Store a dataset so: both chunks and filters at once."""
    now = Present(target.filters, target.chunks, target.shape, target.itemsize)
    copies = in_layout(target.file, target.dataset, best, now, target.file_filters)
    return (*copies, *(Create(one, by_xarray=True) for one in copies))


def _reads(case: Case) -> Reads:
    """What is read of the dataset as it is."""
    target = case.target
    filtered = target.filters != "none"
    return Reads(
        target.file,
        target.dataset,
        Stored.of(target.shape, target.chunks, target.itemsize, filtered=filtered),
        target.filters,
        tuple(one.pattern for one in case.requested if not one.pattern.writes),
        (case.problem.reader,),
    )


def _cache(case: Case, reads: Reads) -> CacheAdvice | None:
    """Say which cache helps a reader of the file as it is, or why none does."""
    problem, patterns = case.problem, reads.patterns
    if case.goal.reader_name == CHUNKWISE or not patterns:
        return None
    if not reads.stored.chunked:
        return CacheAdvice("The dataset has no chunks, so that no chunk cache concerns it.")
    cache = reads.cache
    if cache is None:
        return CacheAdvice(_no_cache(reads))
    who = replace(problem.reader, cache_nbytes=cache.nbytes, nslots=cache.nslots)
    other = replace(problem, reader=who, known={}, timed={})
    before, after = (
        sum(p.weight * one.pattern_s(case.present, p) for p in patterns)
        for one in (problem, other)
    )
    if before < worth.PROGRAM * after:
        return CacheAdvice(_no_cache(reads))
    return CacheAdvice(
        f"A chunk cache of {format_size(cache.nbytes)} holds the chunks that these reads come "
        f"back to: about {format_ratio(before / after)} as fast, by the model.",
        cache.nbytes,
        cache.nslots,
        DEFAULT_W0,
        before,
        after,
    )


def _no_cache(reads: Reads) -> str:
    """Say why no cache helps."""
    causes = reads.causes(worth.ONCE)
    if Cause.PIECES in causes:
        return "No chunk cache helps: the chunks are not compressed, and read piece by piece."
    if causes == {Cause.HELD}:
        return (
            "No larger chunk cache helps: with the default one, these reads decode each chunk "
            "about once already."
        )
    return (
        "No chunk cache helps: what these reads need again does not fit one of "
        f"{format_size(worth.LARGEST_CACHE_NBYTES)}, or they do not come back to it."
    )


def _open_remedies(case: Case, reads: Reads, cache: CacheAdvice | None) -> tuple[Remedy, ...]:
    helps = cache is not None and cache.nbytes is not None
    ours = () if case.goal.reader_name == CHUNKWISE else reads.natively
    return (*(reads.with_cache(reads.cache) if helps else ()), *ours)


# --- words -----------------------------------------------------------------------------------


def _reason(case: Case, advice: Advice) -> str:
    parts = []
    mix = joined([f"'{printable(one.name)}'" for one in advice.patterns])
    if advice.leave:
        compared = f"{advice.measured} that were measured" if advice.verified else (
            f"{advice.looked_at:,} that the model compared"
        )  # fmt: skip
        parts.append(
            f"Leave it: for {advice.reader} and {mix}, {case.present} is as good, within the "
            f"noise, as the best of the {compared}."
        )
    else:
        what = [*_gains(advice, writes=False), *_gains(advice, writes=True)]
        if advice.present_nbytes:
            share = advice.best_nbytes / advice.present_nbytes
            if not 1 / worth.SMALLER < share < worth.SMALLER:
                more = "more" if share > 1 else "less"
                what.append(f"takes {abs(share - 1):.0%} {more} space")
        parts.append(f"For {advice.reader}, {advice.best} {joined(what) or 'suits better'}.")
        parts.append(_why(case, advice))
    if not advice.verified:
        parts.append(
            "This is the model's word, by this machine's figures, without Python's time. It is "
            "not proved: there was no time to measure it (--budget)."
        )
    elif not case.proof.part.whole:
        parts.append(f"Measured on {advice.part}; seconds are scaled to all of it.")
    return " ".join(filter(None, parts))


def _gains(advice: Advice, *, writes: bool) -> list[str]:
    """Say how much faster all patterns are that read, or that write; nothing of none."""
    mine = [one for one in advice.patterns if one.writes is writes]
    before = sum(one.weight * (one.present_s or 0.0) for one in mine)
    after = sum(one.weight * one.best_s for one in mine)
    if not before or not after:
        return []
    gain = before / after
    mix = joined([f"'{printable(one.name)}'" for one in mine])
    verb, how = "writes" if writes else "reads", "as fast" if gain >= 1 else "as long"
    return [f"{verb} {mix} {format_ratio(max(gain, 1 / gain))} {how}"]


def _why(case: Case, advice: Advice) -> str:
    """Say in one sentence what makes the difference to the pattern that gains most."""
    problem, itemsize = case.problem, case.target.itemsize
    places = [i for i, one in enumerate(advice.patterns) if not one.writes]
    if not places:
        return ""
    saved = [p.weight * ((p.present_s or 0.0) - p.best_s) for p in advice.patterns]
    pattern = case.requested[max(places, key=saved.__getitem__)].pattern
    before, after = (problem.parts(one, pattern) for one in (case.present, advice.best))
    part = max(before, key=lambda name: before[name] - after[name])
    then, now = (problem.traffic(one, pattern) for one in (case.present, advice.best))
    each = f"one read of '{printable(pattern.name)}' ({format_shape(pattern.block)})"
    if part == "filters" and case.present.chunks and advice.best.chunks:
        sides = (case.present.chunks, advice.best.chunks)
        loads = (then.loads, now.loads)
        reads = pattern.operations or 1
        nbytes = [n * math.prod(c) * itemsize / reads for n, c in zip(loads, sides, strict=True)]
        if nbytes[0] > worth.DECODED * nbytes[1] and advice.best.filters != "none":
            whom = "One read" if pattern.operations else "All reads"
            return (
                f"{whom} of '{printable(pattern.name)}' then decode{'s' * (whom == 'One read')} "
                f"{format_size(round(nbytes[1]))} instead of {format_size(round(nbytes[0]))}."
            )
        return f"What counts is the filter: {advice.best.filters} for {case.present.filters}."
    if part == "chunks":
        counts = [found.touches / max(1.0, found.operations) for found in (then, now)]
        return (
            f"{each[0].upper()}{each[1:]} then goes through {_number(counts[1])} instead of "
            f"{_number(counts[0])}."
        )
    if part == "copying":
        return f"{each[0].upper()}{each[1:]} then gathers fewer and longer pieces."
    return ""


def _number(chunks: float) -> str:
    text = f"{chunks:,.0f}" if chunks >= 10 else f"{chunks:.2g}"
    return f"{text} chunk{'s' * (text != '1')}"


def _filters(layout: Layout) -> frozenset[str]:
    return frozenset(one.name for one in Pipeline.parse(layout.filters).filters)


def _with_smaller_cache(case: Case, best: Layout) -> str | None:
    """Say that the layout needs a cache that older libraries do not have by default."""
    problem = case.problem
    if problem.reader_name == CHUNKWISE or problem.reader.cache_nbytes <= LIBHDF5_1.cache_nbytes:
        return None
    older = replace(problem, reader=LIBHDF5_1, known={}, timed={})
    here, there = (one.outcome(best).read_s for one in (problem, older))
    if not here or there < worth.NOTICED * here:
        return None
    return (
        f"This layout counts on a chunk cache of {format_size(problem.reader.cache_nbytes)}: with "
        f"the {format_size(LIBHDF5_1.cache_nbytes)} of {LIBHDF5_1.title}, reading takes "
        f"{format_ratio(there / max(1e-12, here))} as long, by the model. If such readers matter: "
        f"--for {LIBHDF5_1.name}."
    )


def _beside_the_rule(case: Case, best: Layout) -> str | None:
    """Say where this machine's figures prefer other chunks than are chosen without them."""
    problem, usual = case.problem, case.problem.usual
    if usual is None:
        return None
    said = f"chunks of {format_shape(usual)}, which repack --chunk auto, inspect and fix choose"
    theirs = [one for one in case.found.ranked if one.layout.chunks == usual]
    if theirs and best != case.present and not any(map(problem.fits, theirs)):
        nbytes, growth = min(one.nbytes for one in theirs), goals.growth(stated=case.stated)
        return (
            f"Left out are {said}: they take about {format_size(nbytes)}, and compressed data may "
            f"grow by at most {growth:.0%} (with --objective read by any amount)."
        )
    if case.timings:
        measured = [one for one in case.timings if one.chunks == usual]
        if best.chunks == usual or best == case.present or not measured:
            return None
        other = min(measured, key=lambda one: problem.score(case.figures(one)))
        times = case.figures(other)[0] / max(1e-12, case.figures(best)[0])
        if times < worth.STATED or not _is_faster(case, best, other):
            return None
        kept = "inspect and fix take what was measured from now on"
        if not case.stated or not case.goal.is_usual:
            kept = "chunkwise fix --advise takes what is measured"
        return (
            f"As measured, this reads {format_ratio(times)} as fast as {said} by the model; "
            f"{kept}."
        )
    first = next((one for one in case.found.ranked if problem.fits(one)), None)
    if first is None or best.chunks != usual or first.layout.chunks in (usual, None):
        return None
    times = case.outcome(best).read_s / max(1e-12, first.read_s)
    if times < worth.NOTICED:
        return None
    return (
        f"By this machine's figures, {first.layout} would read {format_ratio(times)} as fast as "
        f"{said}: with more time (--budget) that is measured."
    )


def _notes(case: Case, best: Layout) -> list[str]:
    notes = []
    beside = _beside_the_rule(case, best)
    if beside is not None:
        notes.append(beside)
    smaller = _with_smaller_cache(case, best)
    if smaller is not None:
        notes.append(smaller)
    if case.stated:
        shape, itemsize = case.target.shape, case.target.itemsize
        notes += [taken_for(one.access, one.pattern, shape, itemsize) for one in case.requested]
    else:
        notes.append(
            "No pattern was stated (--access): these are the usual ones, a line along each "
            "dimension and a step."
        )
    if best.filters != case.present.filters:
        before, after = (Needs(_filters(one)) for one in (case.present, best))
        notes += [f"Who can read it: {said}." for said in sentences(losses(before, after))]
    if case.samples.unlike >= sampling.UNLIKE:
        notes.append(
            "Places of the dataset differ: the same filters leave up to "
            f"{format_ratio(case.samples.unlike)} as many bytes in one as in another."
        )
    if case.samples.left_out:
        names = joined([printable(name) for name in case.samples.left_out])
        notes.append(f"Not tried, as HDF5 refuses them for this data: {names}.")
    if case.proof.failed:
        notes.append(
            f"{counted(len(case.proof.failed), 'layout')} could not be measured within the budget."
        )
    known = case.proof.samples.get(case.present, {}), case.proof.ours_samples
    theirs, ours = (sums(one, case.requested) for one in known)
    if theirs and ours and case.timings:
        found = verdict(theirs, ours, worth.PROGRAM)
        if found.word == "faster":
            notes.append(
                "Without any change to the file, chunkwise.open reads these patterns "
                f"{format_ratio(1 / found.ratio)} as fast (measured)."
            )
    if case.problem.storage is not None:
        notes.append(
            "The dataset is larger than half of the memory: it is taken to be read from storage."
        )
    return notes
