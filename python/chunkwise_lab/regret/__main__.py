"""Run one of the benches of the advice.

python -m chunkwise_lab.regret model [STUDY.json.gz ...]     # `make bench ONLY=model`
python -m chunkwise_lab.regret advise [--cases N] [--sides N] [--budget S] [--docs PAGE]
python -m chunkwise_lab.regret rule [--seed N] [--cases N] [--sides N]    # `make bench ONLY=rule`
python -m chunkwise_lab.regret fix [--files N]               # `make bench ONLY=fix`
python -m chunkwise_lab.regret usual [--files N]             # `make bench ONLY=usual`
python -m chunkwise_lab.regret complaints [--docs PAGE]      # `make bench ONLY=complaints`
python -m chunkwise_lab.regret budgets                       # `make bench ONLY=budgets`
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.regret import budgets, cases, complaints, model, regret, trials

RECORD = FOLDER / "advise.json"


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
    of_advice.add_argument("--docs", type=Path, help="the page whose tables are filled in")
    of_advice.add_argument("--sides", type=int, default=3, help="lengths a dimension (default 3)")
    of_advice.add_argument("--budget", type=float, default=30.0, help="seconds for each advice")
    of_advice.add_argument("--again", action="store_true", help="measure what is kept again")
    of_rule = kinds.add_parser("rule")
    of_rule.add_argument("--seed", type=int, default=0, help="draws other cases")
    of_rule.add_argument("--cases", type=int, default=40, help="how many of them")
    of_rule.add_argument("--sides", type=int, default=4, help="lengths a dimension (default 4)")
    of_fix = kinds.add_parser("fix")
    of_fix.add_argument("--files", type=int, default=40, help="how many files are mended")
    of_usual = kinds.add_parser("usual")
    of_usual.add_argument("--files", type=int, default=300, help="how many files are fixed")
    of_usual.add_argument("--from", dest="first", type=int, default=0, help="the first one")
    kinds.add_parser("budgets")
    of_complaints = kinds.add_parser("complaints")
    of_complaints.add_argument("--only", default="", help="those with this in the report's name")
    of_complaints.add_argument("--docs", type=Path, help="the page whose table is filled in")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if arguments.kind == "model":
        known = trials.trials(arguments.studies or sorted(trials.STUDIES.glob("*.json.gz")))
        halves, studies = model.other_half(known), model.other_studies(known)
        for line in model.lines(known, halves, studies):
            print(line)
        records = [
            {**asdict(one.trial), "predicted_s": one.predicted_s, "parts": one.parts}
            for one in halves
        ]
        (FOLDER / "model.json").write_text(json.dumps(records, indent=1))
    elif arguments.kind == "fix":
        # Generated as the tests generate theirs.
        from chunkwise_lab.regret import promises

        for line in promises.lines(promises.run(arguments.files, _say)):
            print(line)
    elif arguments.kind == "usual":
        from chunkwise_lab.regret import usual

        numbers = range(arguments.first, arguments.first + arguments.files)
        for line in usual.lines(usual.run(numbers, say=_say)):
            print(line)
    elif arguments.kind == "budgets":
        for line in budgets.lines():
            print(line, flush=True)
    elif arguments.kind == "complaints":
        wanted = [one for one in complaints.complaints() if arguments.only in one.on]
        found = list(complaints.run(wanted, _say))
        show(list(complaints.lines(found)), "complaints", arguments.docs)
    elif arguments.kind == "rule":
        measured = []
        for case in cases.drawn(arguments.seed, arguments.cases):
            measured.append(regret.of_rule(case, sides=arguments.sides, say=_say))
            print(f"{case.name}: {measured[-1].rule_regret:.0%}", file=sys.stderr, flush=True)
        show(list(regret.lines(measured)), "rule", None)
    else:
        _advise(arguments)


def _known(arguments: argparse.Namespace) -> dict[str, regret.Regret]:
    """Read what an earlier run measured in the same way."""
    try:
        records = [regret.Regret(**one) for one in json.loads(RECORD.read_text())]
    except (OSError, ValueError, TypeError):
        return {}
    same = (arguments.sides, arguments.budget)
    return {one.name: one for one in records if (one.sides, one.budget_s) == same}


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)


def _advise(arguments: argparse.Namespace) -> None:
    all_of_them = list(cases.cases())
    step = max(1, len(all_of_them) // (arguments.cases or len(all_of_them)))
    wanted = all_of_them[::step][: arguments.cases]
    # Minutes, which may be spread over several runs.
    known = {} if arguments.again else _known(arguments)
    left = [case for case in wanted if case.name not in known]
    for one in regret.run(left, sides=arguments.sides, budget_s=arguments.budget, say=_say):
        known[one.name] = one
        said = f"{one.name}: regret {one.regret:.0%}, without measuring {one.rule_regret:.0%}"
        print(said, file=sys.stderr, flush=True)
        RECORD.write_text(json.dumps([asdict(each) for each in known.values()], indent=1))
    found = [known[case.name] for case in wanted]
    show(list(regret.lines(found)), "regret", arguments.docs)


def show(table: Sequence[str], name: str, page: Path | None) -> None:
    """Print a table, and put it in its place on a page."""
    print(*table, sep="\n")
    if page is None:
        return
    text = page.read_text(encoding="utf-8")
    between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    filled, number = between.subn(lambda _: "".join(f"{line}\n" for line in table), text)
    if number != 1:
        raise SystemExit(f"{page}: there is no place for the table: <!-- {name} -->, <!-- end -->")
    page.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
