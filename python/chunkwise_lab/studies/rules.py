"""Which rules judge a paper's claim?

``ratio``: one side is this many times the other.  ``same``: they differ by less than the limit.
``flat``: no value of an axis differs much from the standard one.  ``trend``: along an axis,
figures rise or fall.  ``best``: a named value of an axis is the best, or nearly.
``first``: one row is the best of all, or nearly.  ``often``: one side is larger in N pairs.
``refused``: the library does not do it.  The interval of a `Ratio` decides: if it allows either
answer, the verdict is ``cannot tell``.  An effect below the limit is ``weaker``.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure.verdict import THRESHOLD
from chunkwise.words import counted, joined
from chunkwise_lab.studies.comparing import Pair, Ratio, Sample, pairs, ratio, series
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.study import Claim, Where, matches
from chunkwise_lab.studies.wording import (
    axis_title,
    differing,
    factor,
    named,
    plain,
    setting,
    setting_of,
    shown,
    side,
    times,
    versions,
)

# As a standard value: the least along the axis.
FIRST: Final = "@first"
Word = Literal["holds", "weaker", "no longer holds", "reversed", "cannot tell", "not measured"]


def tally(words: Iterable[str]) -> str:
    """Count verdicts, as in ``holds 3, weaker 1``; of one kind alone, name it."""
    counts = Counter(words)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{word} {counts[word]}" for word in get_args(Word) if counts[word])


@dataclass(frozen=True)
class ClaimVerdict:
    """What became of a claim."""

    word: Word
    sentence: str  # With today's numbers; ends with a full stop
    # Repeats that would decide, about; None for other words, or if repeats hardly help.
    repeats: int | None = None
    # Labels and values of what decides, without the axis that is summed over.
    decisive: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Doubt:
    """What is added to a sentence, and how many repeats decide (as the judge of repeats says)."""

    text: str = ""
    repeats: int | None = None


@dataclass(frozen=True)
class Evidence:
    """What a claim is judged by."""

    claim: Claim
    rows: Sequence[Row]  # Of its experiment, those without figures as well
    samples: Sequence[Sample]  # Their figures, summed up as the claim says
    wider: float = 1.0  # It is judged by intervals this many times as wide

    def get(self, name: str, default: float) -> float:
        """Return a number of the claim's settings."""
        return float(self.claim.settings.get(name, default))

    def ratio(self, pairs: Sequence[Pair]) -> Ratio:
        """Compare the sides of pairs."""
        return ratio(pairs).scaled(self.wider)


@dataclass(frozen=True)
class Rule:
    """One way of judging."""

    judge: Callable[[Evidence], ClaimVerdict]
    sides: tuple[str, ...] = ()  # Settings that are a Where each, and must be there
    axis: bool = False  # Whether it needs an axis
    numbers: tuple[str, ...] = ()  # Settings that are numbers above 1
    others: tuple[str, ...] = ()  # Further settings
    optional: tuple[str, ...] = ()  # Settings that it may be without


def _ratio(evidence: Evidence) -> ClaimVerdict:
    return _sided(evidence, "slow", "fast", lambda found: _reaching(evidence, found, 2.0))


def _same(evidence: Evidence) -> ClaimVerdict:
    return _sided(evidence, "one", "other", lambda found: _staying(evidence, found))


def _sided(
    evidence: Evidence, first: str, second: str, decide: Callable[[Ratio], tuple[Word, Doubt]]
) -> ClaimVerdict:
    """Compare two sides, in pairs of rows that differ in nothing else."""
    settings = evidence.claim.settings
    one, other = settings[first], settings[second]
    sides = [[s for s in evidence.samples if matches(s.point, where)] for where in (one, other)]
    words = settings.get("words") or (side(one, other, sides[0]), side(other, one, sides[1]))
    for where, side_of, name in zip((one, other), sides, words, strict=True):
        if not side_of:
            return _missing(evidence, where, f"with {name}")
    paired = pairs(evidence.samples, one, other)
    if not paired:
        return _missing(evidence, None, f"with {words[0]} and otherwise as with {words[1]}")
    found = evidence.ratio(paired)
    word, doubt = decide(found)
    text = _compared(evidence.claim, found, *words)
    return _verdict(evidence, word, text, doubt, found)


def _often(evidence: Evidence) -> ClaimVerdict:
    """Count the pairs in which the first side is larger; those that noise may turn are open."""

    def decide(found: Ratio) -> tuple[Word, Doubt]:
        each = [evidence.ratio([pair]) for pair in found.pairs]
        more, less = (sum(one.reaches(1) is is_more for one in each) for is_more in (True, False))
        least, most = evidence.get("least", 2), len(each) - less
        text = f" It is more in {more} of {counted(len(each), 'pair')}, and less in {less}."
        if len(each) < least:
            return "cannot tell", Doubt(f"{text} It takes {plain(least)} pairs to hold.")
        if more >= least:
            return "holds", Doubt(text)
        if most >= least:
            needed = [n for one in each if one.reaches(1) is None and (n := one.deciding(1))]
            return "cannot tell", Doubt(text, min(needed, default=None))
        return ("reversed" if less >= least else "no longer holds"), Doubt(text)

    return _sided(evidence, "slow", "fast", decide)


def _flat(evidence: Evidence) -> ClaimVerdict:
    """Compare each value of an axis with the standard one; report the farthest."""
    settings = evidence.claim.settings
    axis, standard = settings["axis"], settings["standard"]
    if standard == FIRST:
        known = {sample.point[axis]: None for sample in evidence.samples if axis in sample.point}
        standard = next(iter(_in_order(known)), standard)
    groups = [group for group in series(evidence.samples, axis) if standard in group]
    if not groups:
        return _missing(evidence, {axis: standard}, f"with {setting(axis, standard)} and another")
    others = [value for value in groups[0] if value != standard]
    found = [
        evidence.ratio([(group[value], group[standard]) for group in groups]) for value in others
    ]
    judged = [_staying(evidence, one, len(found)) for one in found]
    words: tuple[Word, ...] = ("no longer holds", "weaker", "cannot tell", "holds")
    word = next(word for word in words if any(one[0] == word for one in judged))
    # The deciding value that differs most.
    farthest = max(
        (n for n, one in enumerate(judged) if one[0] == word), key=lambda n: found[n].distance
    )
    note = f", the farthest of {len(found)} from the standard" if len(found) > 1 else ""
    text = _along(evidence, found[farthest], note)
    return _verdict(evidence, word, text, judged[farthest][1], found[farthest])


def _trend(evidence: Evidence) -> ClaimVerdict:
    settings = evidence.claim.settings
    groups = series(evidence.samples, settings["axis"])
    if not groups:
        return _unvaried(evidence)
    levels = _levels(groups)
    values = _in_order(levels)
    high, low = (values[-1], values[0]) if settings["rises"] else (values[0], values[-1])
    found = evidence.ratio([(group[high], group[low]) for group in groups])
    word, doubt = _reaching(evidence, found, 1.1)
    text = _along(evidence, found, f", the ends of {len(values)} values")
    return _verdict(evidence, word, text + _bend(evidence, groups, levels, values), doubt, found)


def _bend(
    evidence: Evidence,
    groups: Sequence[Mapping[str, Sample]],
    levels: Mapping[str, float],
    values: Sequence[str],
) -> str:
    """Say where figures in between lie beyond both ends."""
    ends = (levels[values[0]], levels[values[-1]])
    for pick, beyond in ((max, max(ends)), (min, min(ends))):
        value = pick(levels, key=levels.__getitem__)
        if not beyond / THRESHOLD <= levels[value] <= beyond * THRESHOLD:
            what = setting(evidence.claim.settings["axis"], value)
            if len(groups) == 1:
                return f"; in between, {shown(groups[0][value], evidence.claim)} with {what}"
            return f"; in between lies the {'highest' if pick is max else 'lowest'}, with {what}"
    return ""


def _best(evidence: Evidence) -> ClaimVerdict:
    settings, figure = evidence.claim.settings, FIGURES[evidence.claim.figure]
    groups = series(evidence.samples, settings["axis"])
    if not groups:
        return _unvaried(evidence)
    levels = _levels(groups)
    # As costs: the lowest is the best.
    costs = {v: -c if figure.better == "higher" else c for v, c in levels.items()}
    wanted = settings["value"] if isinstance(settings["value"], tuple) else (settings["value"],)
    chosen = min((v for v in wanted if v in costs), key=costs.__getitem__, default=None)
    if chosen is None:
        name = settings["axis"]
        what = joined([setting(name, text) for text in wanted], "or")
        return _missing(evidence, {name: wanted}, f"with {what}")
    rival = min((v for v in costs if v not in wanted), key=costs.__getitem__, default=None)
    if rival is None:
        return _unvaried(evidence)
    first, second = (rival, chosen) if figure.better == "higher" else (chosen, rival)
    found = evidence.ratio([(group[first], group[second]) for group in groups])
    word, doubt = _nearly(evidence, found)
    worst = max(costs, key=costs.__getitem__) == chosen and found.low >= THRESHOLD
    if word == "no longer holds" and worst:
        word = "reversed"
    best = chosen if found.value <= 1 else rival
    still = " still" if best == chosen else ""
    text = f"the best of {len(costs)} is{still} {setting(settings['axis'], best)}: "
    along = _along(evidence, found)
    text += along
    also: Sequence[Pair] = ()
    if word == "holds" and "against" in settings:
        word, gained, doubt, also = _gained(evidence, groups, chosen)
        # Where the runner-up is the standard, that is said already.
        text += "" if gained == along else f"; {gained}"
    return _verdict(evidence, word, text, doubt, found, also)


def _first(evidence: Evidence) -> ClaimVerdict:
    """Rank one row among all, by the study's statistic, and compare it with the best other."""
    where, figure = evidence.claim.settings["one"], FIGURES[evidence.claim.figure]
    sign = -1 if figure.better == "higher" else 1
    ordered = sorted(evidence.samples, key=lambda one: sign * one.middle)
    chosen = next((one for one in ordered if matches(one.point, where)), None)
    rival = next((one for one in ordered if one is not chosen), None)
    if chosen is None or rival is None:
        return _missing(evidence, where, "of it and of another")
    pair = (chosen, rival) if sign > 0 else (rival, chosen)
    # The best of many is so by noise, too.
    found = evidence.ratio([pair]).widened(len(ordered) - 1)
    word, doubt = _nearly(evidence, found)
    apart = [name for name, text in chosen.point.items() if rival.point.get(name) != text]
    best, its = (joined([setting_of(one, name) for name in apart]) for one in (rival, chosen))
    text = f"number {ordered.index(chosen) + 1} of {len(ordered)}: "
    text += _compared(evidence.claim, found, *((its, best) if sign > 0 else (best, its)))
    return _verdict(evidence, word, text, doubt, found)


def _nearly(evidence: Evidence, found: Ratio) -> tuple[Word, Doubt]:
    """Decide whether what is chosen is the best, or nearly, by its ratio to the best other."""
    within = evidence.get("within", 1.1)
    if found.reaches(within):
        return "no longer holds", Doubt()
    if found.value <= within and found.high < max(within, THRESHOLD):
        return "holds", Doubt()
    return "cannot tell", _doubt(found, within if found.value > 1 else max(within, THRESHOLD))


def _gained(
    evidence: Evidence, groups: Sequence[Mapping[str, Sample]], chosen: str
) -> tuple[Word, str, Doubt, Sequence[Pair]]:
    """Whether the best of an axis is better than its standard value: of equals none is best."""
    axis, against = (evidence.claim.settings[name] for name in ("axis", "against"))
    both = [(group[against], group[chosen]) for group in groups if against in group]
    if not both:
        return "not measured", f"nothing was measured with {setting(axis, against)}", Doubt(), ()
    if FIGURES[evidence.claim.figure].better == "higher":
        both = [(second, first) for first, second in both]
    gain = evidence.ratio(both)
    word, doubt = _reaching(evidence, gain, THRESHOLD)
    return word, _along(evidence, gain), doubt, gain.pairs


def _refused(evidence: Evidence) -> ClaimVerdict:
    """Whether the library did not do what the rows requested, with its own words."""
    if not evidence.rows:
        return ClaimVerdict("not measured", "It was not tried.")
    refusals = [str(row.problem) for row in evidence.rows if row.refused]
    if len(refusals) == len(evidence.rows):
        return ClaimVerdict("holds", f"Refused: {refusals[0].rstrip('.')}.")
    failed = next((row.problem for row in evidence.rows if row.problem), None)
    if failed is not None:
        return ClaimVerdict("cannot tell", f"It failed otherwise: {failed.rstrip('.')}.")
    return ClaimVerdict("no longer holds", "It was done.")


def _reaching(evidence: Evidence, found: Ratio, least: float) -> tuple[Word, Doubt]:
    """Decide whether a ratio is as large as a claim says."""
    least = evidence.get("least", least)
    if found.opposed:
        return "no longer holds", Doubt(" The pairs contradict each other.")
    reached = found.reaches(least)
    # What must be left of the effect: by the logarithm, half of it.
    left = min(THRESHOLD, math.sqrt(least))
    some = found.reaches(left)
    if reached is None:
        sure = " That there is an effect is certain." if some else ""
        doubt = _doubt(found, least)
        return "cannot tell", replace(doubt, text=doubt.text + sure)
    if reached:
        return "holds", Doubt()
    turned = 1 / evidence.get("least_reversed", THRESHOLD)
    if found.high <= turned:
        return "reversed", Doubt()
    if found.value <= turned:
        return "cannot tell", _doubt(found, turned)
    if some:
        return "weaker", Doubt(f" The limit is {plain(least)}.")
    return ("cannot tell", _doubt(found, left)) if some is None else ("no longer holds", Doubt())


def _staying(evidence: Evidence, found: Ratio, comparisons: int = 1) -> tuple[Word, Doubt]:
    """Decide whether a ratio is as near to 1 as a claim says; the interval allows for several."""
    most = evidence.get("most", THRESHOLD)
    if found.opposed:
        return "no longer holds", Doubt(" The pairs contradict each other.")
    over, under = found.reaches(most), found.reaches(1 / most)
    if over is False and under is True:
        return "holds", Doubt()
    wide = found.widened(comparisons)
    if wide.reaches(most) is True or wide.reaches(1 / most) is False:
        # Nearly: by the logarithm, not twice as far as the limit.
        near = min(THRESHOLD, most**2)
        over, under = found.reaches(near), found.reaches(1 / near)
        if over is False and under is True:
            return "weaker", Doubt(f" The limit is {plain(most)}.")
        if over is True or under is False:
            return "no longer holds", Doubt()
        return "cannot tell", _doubt(found, near if over is None else 1 / near)
    return "cannot tell", _doubt(wide, most if over is not False else 1 / most)


def _doubt(found: Ratio, border: float) -> Doubt:
    """Say what the noise leaves open, and what would settle it."""
    needed = found.deciding(border)
    if found.value < 1:
        # As the sentence has it: the larger by the smaller.
        found, border = _turned(found), 1 / border
    often = counted(found.repeats, "repeat")
    remedy = (
        "more repeats would hardly tell"
        if needed is None
        else f"about {counted(needed, 'repeat')} would tell"
    )
    return Doubt(
        f" By {often} this ratio may be anything from {factor(found.low).removesuffix(' times')} "
        f"to {factor(found.high)}, and the verdict turns at {plain(border)}: {remedy}.",
        needed,
    )


def _turned(found: Ratio) -> Ratio:
    turned = tuple((second, first) for first, second in found.pairs)
    value = 1 / found.value if found.value else float("inf")
    low, high = 1 / found.high, 1 / found.low if found.low else float("inf")
    return Ratio(turned, value, low, high, found.repeats, found.opposed)


def _along(evidence: Evidence, found: Ratio, note: str = "") -> str:
    """Compare two values of an axis."""
    axis = evidence.claim.settings["axis"]
    words = [setting_of(one, axis) for one in found.pairs[0]]
    return _compared(evidence.claim, found, words[0], words[1], note)


def _compared(claim: Claim, found: Ratio, first: str, second: str, note: str = "") -> str:
    """Write two sides with their figures, the larger first, and by how much it is larger."""
    if found.value < 1:
        found, first, second = _turned(found), second, first
    often = times(found.value, claim.figure, found.estimated)
    one, other = found.pairs[0]
    quotients = {_quotient(*pair) for pair in found.pairs}
    if len(quotients) == 1:
        # One pair, or several that say the very same, as counts do.
        note += f", in each of {len(found.pairs)} pairs" if len(found.pairs) > 1 else ""
        if one.middle == other.middle:
            return f"{named(one, claim)} with {first} and with {second} alike{note}"
        return (
            f"{named(one, claim)} with {first} against {shown(other, claim)} with {second}"
            f"{note}: {often}"
        )
    ordered = sorted(found.pairs, key=lambda pair: _quotient(*pair))
    return (
        f"{often} with {first} as with {second}{note}, on average over {len(found.pairs)} pairs: "
        f"from {_end(claim, found, ordered[0])} to {_end(claim, found, ordered[-1])}"
    )


def _end(claim: Claim, found: Ratio, pair: Pair) -> str:
    """Write one of several pairs, with what distinguishes it from the others."""
    one, other = pair
    names = differing([one.point for one, _ in found.pairs])
    sample = one
    if not names:
        names, sample = differing([other.point for _, other in found.pairs]), other
    apart = "".join(f", {setting_of(sample, name)}" for name in names if name in sample.point)
    return (
        f"{factor(_quotient(one, other))} ({shown(one, claim)} against "
        f"{shown(other, claim)}{apart})"
    )


def _quotient(one: Sample, other: Sample) -> float:
    return one.middle / other.middle if other.middle else float("inf")


def _verdict(
    evidence: Evidence,
    word: Word,
    text: str,
    doubt: Doubt,
    found: Ratio,
    also: Sequence[Pair] = (),
) -> ClaimVerdict:
    """Finish a sentence: versions, doubt, and the paper's figures; `also` decides, too."""
    used = versions(sample for pair in found.pairs for sample in pair)
    text += f" ({joined(used)})" if used and not all(name in text for name in used) else ""
    text = f"{text[0].upper()}{text[1:]}.{doubt.text}"
    if evidence.claim.published:
        text = f"{text[:-1]} [paper: {evidence.claim.published.rstrip('.')}]."
    decisive = tuple(sample.point for pair in (*found.pairs, *also) for sample in pair)
    return ClaimVerdict(word, text, doubt.repeats, decisive)


def _missing(evidence: Evidence, where: Where | None, what: str) -> ClaimVerdict:
    rows = (
        evidence.rows if where is None else [r for r in evidence.rows if matches(r.point, where)]
    )
    problem = next((row.problem for row in rows if row.problem), None)
    reason = f": {problem.rstrip('.')}" if problem else ""
    return ClaimVerdict("not measured", f"There are no figures {what}{reason}.")


def _unvaried(evidence: Evidence) -> ClaimVerdict:
    name = evidence.claim.settings["axis"]
    return _missing(evidence, None, f"with two values of the {axis_title(name)} at least")


def _levels(groups: Sequence[Mapping[str, Sample]]) -> dict[str, float]:
    """Return the mean level at each value of an axis, over sets that may differ in height."""
    levels = {}
    for value in groups[0]:
        relative = [
            group[value].middle / (statistics.fmean(s.middle for s in group.values()) or 1.0)
            for group in groups
        ]
        levels[value] = statistics.geometric_mean(relative) if all(relative) else 0.0
    return levels


def _in_order(values: Mapping[str, Any]) -> list[str]:
    """Put numbers and sizes in their order; leave others in the one in which they came."""
    try:
        return sorted(values, key=lambda text: _number(text))
    except (UsageError, ValueError):
        return list(values)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(parse_size(text))


RULES: Final[dict[str, Rule]] = {
    "ratio": Rule(_ratio, sides=("slow", "fast"), numbers=("least", "least_reversed")),
    "same": Rule(_same, sides=("one", "other"), numbers=("most",)),
    "flat": Rule(_flat, axis=True, numbers=("most",), others=("standard",)),
    "trend": Rule(_trend, axis=True, numbers=("least", "least_reversed"), others=("rises",)),
    "best": Rule(
        _best, axis=True, numbers=("within", "least"), others=("value",), optional=("against",)
    ),
    "first": Rule(_first, sides=("one",), numbers=("within",)),
    "often": Rule(_often, sides=("slow", "fast"), numbers=("least",)),
    "refused": Rule(_refused),
}
