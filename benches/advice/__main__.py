"""Run one of the benches of the advice.

python -m advice model [STUDY.json.gz ...]     # in benches/; `make bench ONLY=model`
python -m advice advise [--cases N] [--sides N] [--budget S]
python -m advice advise --file FILE:DATASET --access PATTERN
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from advice import cases, model, regret, trials

FOLDER = trials.ROOT / "target" / "benches"


def main() -> None:
    """Run it, print it, and keep what it found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    of_model = kinds.add_parser("model")
    of_model.add_argument("studies", nargs="*", type=Path)
    of_advice = kinds.add_parser("advise")
    of_advice.add_argument("--cases", type=int, help="how many of them, spread over all")
    of_advice.add_argument(
        "--sides", type=int, default=6, help="lengths of a dimension that are measured"
    )
    of_advice.add_argument("--budget", type=float, default=60.0, help="seconds for each advice")
    of_advice.add_argument("--file", help="FILE:DATASET instead of the cases")
    of_advice.add_argument("--access", action="append", default=[])
    of_advice.add_argument("--for", dest="reader")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if arguments.kind == "model":
        found = trials.trials(arguments.studies or sorted(trials.STUDIES.glob("*.json.gz")))
        halves, studies = model.other_half(found), model.other_studies(found)
        for line in model.lines(found, halves, studies):
            print(line)
        record = model.as_records(halves)
    else:
        record = _advise(arguments)
    (FOLDER / f"{arguments.kind}.json").write_text(json.dumps(record, indent=1))


def _advise(arguments: argparse.Namespace) -> list[dict[str, object]]:
    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)

    if arguments.file:
        path, _, dataset = arguments.file.rpartition(":")
        found = [
            regret.of_file(
                dataset, path, dataset, arguments.access, arguments.reader,
                sides=arguments.sides, budget_s=arguments.budget, say=say,
            )
        ]  # fmt: skip
    else:
        all_of_them = list(cases.cases())
        step = max(1, len(all_of_them) // (arguments.cases or len(all_of_them)))
        found = []
        for one in regret.run(
            all_of_them[::step][: arguments.cases], sides=arguments.sides,
            budget_s=arguments.budget, say=say,
        ):  # fmt: skip
            found.append(one)
            print(f"{one.name}: regret {one.regret:.0%}", file=sys.stderr, flush=True)
            (FOLDER / "advise.json").write_text(json.dumps(regret.as_records(found), indent=1))
    for line in regret.lines(found):
        print(line)
    return regret.as_records(found)


if __name__ == "__main__":
    main()
