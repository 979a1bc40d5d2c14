"""How many verdicts of two runs would differ, if claims were repeated more often or less?

Draws the repeats of two runs from those of several that were made, half of the folders each, and
repeats what cannot be told as `chunkwise study` does.  Prints for each number of repeats how many
verdicts differ, how many are open, and how many repeats of claims were added.

    python scripts/verdicts_drawn.py target/studies-1 target/studies-2 target/studies-3
    python scripts/verdicts_drawn.py --most 12,20,30 --wider 1,1.5 target/studies-*
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from chunkwise_lab.studies.claims import judge
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import Row, StudyResults
from chunkwise_lab.studies.study import Claim, Statistic

FIRST, MORE = 3, 3
Claims = Mapping[tuple[str, str, str], tuple[Claim, Statistic, Sequence[Row]]]


def drawn(folders: Sequence[str], chance: random.Random) -> Claims:
    """Put the repeats of some runs together, in any order, for each claim of all studies."""
    runs: dict[str, list[StudyResults]] = {}
    for path in (path for folder in folders for path in sorted(Path(folder).glob("*/results*"))):
        results = StudyResults.read(path)
        runs.setdefault(results.study, []).append(results)
    found = {}
    for name, several in runs.items():
        study = load(name)
        for experiment in study.experiments:
            outcomes = [one.outcomes[experiment.id] for one in several
                        if experiment.id in one.outcomes]  # fmt: skip
            repeats: dict[tuple[tuple[str, str], ...], list[dict[str, object]]] = {}
            for row in itertools.chain(*(one.rows() for one in outcomes)):
                repeats.setdefault(tuple(row.point.items()), []).extend(row.records)
            rows = [Row(dict(point), tuple(chance.sample(records, len(records))))
                    for point, records in repeats.items()]  # fmt: skip
            for claim in experiment.claims:
                found[name, experiment.id, claim.id] = claim, study.statistic, rows
    return found


def repeated(
    claim: Claim, statistic: Statistic, rows: Sequence[Row], most: int, wider: float
) -> tuple[str, int]:
    """Judge a claim as a run does, and say how often it was measured for that."""
    often = FIRST
    while True:
        measured = [Row(row.point, row.records[:often]) for row in rows]
        if often >= most or judge(claim, measured, statistic, wider).word != "cannot tell":
            return judge(claim, measured, statistic).word, often
        often = min(often + MORE, most)


def main() -> None:
    """Print a line for each number of repeats, and each width."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", help="as `chunkwise study --all -o FOLDER` makes")
    parser.add_argument("--most", default="12,30", help="repeats of a claim at the most")
    parser.add_argument("--wider", default="1,1.5", help="how wide intervals are that go on")
    parser.add_argument("--times", type=int, default=4, help="how many pairs of runs are drawn")
    given = parser.parse_args()
    if len(given.folders) < 2:
        parser.error("name two folders at least: the runs of a pair share no repeats")
    for most, wider in itertools.product(given.most.split(","), given.wider.split(",")):
        differ, is_open, added = [], [], []
        for number in range(given.times):
            chance = random.Random(number)
            one, other = (drawn(given.folders[half::2], chance) for half in (0, 1))
            words = {
                name: [repeated(*run[name], int(most), float(wider)) for run in (one, other)]
                for name in one.keys() & other.keys()
            }
            differ.append(sum(first[0] != second[0] for first, second in words.values()))
            is_open.append(sum(first[0] == "cannot tell" for first, _ in words.values()))
            added.append(sum(first[1] - FIRST for first, _ in words.values()))
        print(
            f"at most {most}, {wider} times as wide: {statistics.fmean(differ):.1f} of "
            f"{len(words)} differ ({', '.join(map(str, differ))}), "
            f"{statistics.fmean(is_open):.0f} cannot tell, "
            f"{statistics.fmean(added):.0f} repeats of claims more",
            flush=True,
        )


if __name__ == "__main__":
    main()
