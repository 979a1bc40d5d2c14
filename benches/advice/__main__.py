"""Run one of the benches of the advice.

python -m advice model [STUDY.json.gz ...]     # in benches/; `make bench ONLY=model`
python -m advice advise [--cases N] [--file FILE:DATASET ...]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from advice import model

FOLDER = model.ROOT / "target" / "benches"


def main() -> None:
    """Run it, print it, and keep what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    of_model = kinds.add_parser("model")
    of_model.add_argument("studies", nargs="*", type=Path)
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    paths = arguments.studies or sorted(model.STUDIES.glob("*.json.gz"))
    found = model.errors(model.rows(paths))
    for line in model.lines(found):
        print(line)
    (FOLDER / "model.json").write_text(json.dumps([vars(one) for one in found], indent=1))


if __name__ == "__main__":
    main()
