"""Does a paper's statement still hold, by today's figures?

A claim names one of `RULES` with its settings.  Every rule takes ``where``, which rows count;
``over`` with ``total``, a label over which rows are first summed up (``mean`` or ``sum``);
``statistic``, where it is not the study's; ``words``, names of two sides in the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chunkwise_lab.studies.comparing import samples
from chunkwise_lab.studies.results import Row, StudyResults
from chunkwise_lab.studies.rules import RULES, ClaimVerdict, Evidence
from chunkwise_lab.studies.study import Claim, Experiment, Statistic, Study, matches

# Looking after each repeat, and stopping at the first verdict, is wrong more often than looking
# once.  So a verdict by an interval that may be narrow by chance is measured again, too.
_WIDER: Final = 1.5


def judge(
    claim: Claim, rows: Sequence[Row], statistic: Statistic, wider: float = 1.0
) -> ClaimVerdict:
    """Apply a claim's rule to the rows of its experiment, with intervals `wider` times as wide."""
    settings = claim.settings
    wanted = [row for row in rows if matches(row.point, settings.get("where", {}))]
    statistic = settings.get("statistic", statistic)
    found = samples(
        wanted, claim.figure, statistic, settings.get("over"), settings.get("total", "mean")
    )
    usable = [sample for sample in found if min(sample.values) >= 0]
    return RULES[claim.rule].judge(Evidence(claim, wanted, usable, wider))


@dataclass(frozen=True)
class Judged:
    """A claim and its verdict."""

    experiment: Experiment
    claim: Claim
    verdict: ClaimVerdict

    def to_json(self) -> dict[str, Any]:
        """Return what a program wants to know, as JSON values."""
        return {
            "experiment": self.experiment.id,
            "claim": self.claim.id,
            "says": self.claim.says,
            "verdict": self.verdict.word,
            "sentence": self.verdict.sentence,
            "published": self.claim.published,
            "limit": self.claim.limit,
            "advice": self.claim.advice,
        }


def judge_all(study: Study, results: StudyResults, wider: float = 1.0) -> list[Judged]:
    """Judge all claims of the experiments that were measured, in the study's order."""
    found = []
    for experiment in study.experiments:
        outcome = results.outcomes.get(experiment.id)
        if outcome is not None:
            rows = outcome.rows()
            found += [
                Judged(experiment, claim, judge(claim, rows, study.statistic, wider))
                for claim in experiment.claims
            ]
    return found


Point = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Undecided:
    """A claim that more repeats would decide."""

    experiment: Experiment
    claim: Claim
    points: frozenset[Point]  # Of the rows that decide it
    repeat: int  # How often these have to be measured, about

    def concerns(self, point: Mapping[str, str]) -> bool:
        """Whether a row with these labels and values is one of those."""
        return frozenset(point.items()) in self.points

    def touches(self, known: Mapping[str, str]) -> bool:
        """Whether some of those have these labels and values."""
        return any(known.items() <= point for point in self.points)


def undecided(
    study: Study,
    results: StudyResults,
    most: int,
    experiments: Sequence[str],
    more: int | None = None,
) -> Iterator[Undecided]:
    """Find the claims that are undecided, or nearly, while they were measured less than `most`.

    `more` bounds how many repeats are added at once.
    """
    for judged in judge_all(study, results, _WIDER):
        verdict, experiment = judged.verdict, judged.experiment
        if experiment.id not in experiments or verdict.word != "cannot tell":
            continue
        settings = judged.claim.settings
        over, where = settings.get("over"), settings.get("where", {})
        decisive = {_without(point, over) for point in verdict.decisive}
        rows = [
            row
            for row in results.outcomes[experiment.id].rows(where)
            if _without(row.point, over) in decisive
        ]
        often = min(verdict.repeats or most, most)
        fewest = min((len(row.records) for row in rows), default=often)
        if fewest < often:
            often = min(often, fewest + more) if more else often
            points = frozenset(frozenset(row.point.items()) for row in rows)
            yield Undecided(experiment, judged.claim, points, often)


def _without(point: Mapping[str, str], axis: str | None) -> Point:
    """Leave out what rows were summed up over."""
    return frozenset((name, text) for name, text in point.items() if name != axis)
