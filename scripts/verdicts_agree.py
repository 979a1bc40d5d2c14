"""Do two runs of the studies say the same?

Compares the verdicts of all studies in two folders, as `chunkwise study --all -o FOLDER` makes
them.  Ends with code 1 if more than 3 percent differ.

    python scripts/verdicts_agree.py target/studies-1 target/studies-2
"""

from __future__ import annotations

import sys
from pathlib import Path

from chunkwise_lab.studies.items import verdicts
from chunkwise_lab.studies.results import StudyResults

MOST = 0.03


def main(first: str, second: str) -> int:
    """Print what differs, and how much."""
    one, other = (
        verdicts(map(StudyResults.read, sorted(Path(folder).glob("*/results.json.gz"))))
        for folder in (first, second)
    )
    both = one.keys() & other.keys()
    differ = sorted(name for name in both if one[name] != other[name])
    for name in differ:
        print(f"{name}: {one[name]}, then {other[name]}")
    alone = len(one.keys() ^ other.keys())
    print(f"{len(differ)} of {len(both)} verdicts differ; {alone} are of one run only")
    return int(not both or len(differ) > MOST * len(both))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
