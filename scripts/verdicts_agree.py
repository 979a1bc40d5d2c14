"""Do two runs of the studies say the same, and does a third one contradict them?

Compares the verdicts of all studies in folders, as `chunkwise study --all -o FOLDER` makes them.
Ends with code 1 if more than 3 percent of the verdicts of the first two differ, or if one of them
says that a claim holds or is reversed, and the third, of more repeats, that it is otherwise.

    python scripts/verdicts_agree.py target/studies-1 target/studies-2
    python scripts/verdicts_agree.py target/studies-1 target/studies-2 target/studies-of-ten
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from chunkwise_lab.studies.items import verdicts
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.rules import Word

MOST = 0.03
FIRM = ("holds", "reversed")
OPEN = ("cannot tell", "not measured")


def of(folder: str) -> dict[str, Word]:
    """Judge what is in a folder."""
    found = sorted(Path(folder).glob("*/results.json.gz"))
    return verdicts(map(StudyResults.read, found))


def contradicted(
    one: Mapping[str, Word], judge: Mapping[str, Word]
) -> dict[str, tuple[Word, Word]]:
    """Find what is said firmly, and otherwise by the judge."""
    return {
        name: (word, judge[name])
        for name, word in one.items()
        if word in FIRM and judge.get(name, word) not in (word, *OPEN)
    }


def main(first: str, second: str, third: str | None = None) -> int:
    """Print what differs, and how much."""
    one, other = of(first), of(second)
    both = one.keys() & other.keys()
    differ = sorted(name for name in both if one[name] != other[name])
    for name in differ:
        print(f"{name}: {one[name]}, then {other[name]}")
    alone = len(one.keys() ^ other.keys())
    print(f"{len(differ)} of {len(both)} verdicts differ; {alone} are of one run only")
    wrong = not both or len(differ) > MOST * len(both)
    if third is not None:
        judge = of(third)
        for run, found in ((first, one), (second, other)):
            turned = contradicted(found, judge)
            for name, words in sorted(turned.items()):
                print(f"{name}: {words[0]} in {run}, {words[1]} in {third}")
            firm = sum(word in FIRM for word in found.values())
            print(f"{run}: {len(turned)} of {firm} firm verdicts are contradicted")
            wrong = wrong or bool(turned)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
