"""Which rows have to be measured more often, so that claims can be told?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.study import Claim, Experiment, Study

Point = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Undecided:
    """A claim that more repeats would tell."""

    experiment: Experiment
    claim: Claim
    points: frozenset[Point]  # Of the rows that decide it
    repeat: int  # How often these have to be measured, about

    def concerns(self, point: Mapping[str, str]) -> bool:
        """Whether a row with these labels and values is one of those."""
        return frozenset(point.items()) in self.points


def undecided(
    study: Study, results: StudyResults, most: int, experiments: Sequence[str]
) -> Iterator[Undecided]:
    """Find the claims that cannot be told, and would be if their rows were measured more often."""
    for judged in judge_all(study, results):
        verdict, experiment = judged.verdict, judged.experiment
        often = verdict.repeats
        if experiment.id not in experiments or often is None or often > most:
            continue
        settings = judged.claim.settings
        over, where = settings.get("over"), settings.get("where", {})
        decisive = {_without(point, over) for point in verdict.decisive}
        points = frozenset(
            frozenset(row.point.items())
            for row in results.outcomes[experiment.id].rows(where)
            if _without(row.point, over) in decisive
        )
        yield Undecided(experiment, judged.claim, points, often)


def _without(point: Mapping[str, str], axis: str | None) -> Point:
    """Leave out what rows were summed up over."""
    return frozenset((name, text) for name, text in point.items() if name != axis)
