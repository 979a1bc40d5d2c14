"""Run the cases, and list those in which chunkwise is slower.

python -m chunkwise_lab.matrix                        # `make bench ONLY=matrix` builds first
python -m chunkwise_lab.matrix --only 'read/*/64K/*'  # work/how/layout/filters/phase/...
python -m chunkwise_lab.matrix --list                 # what is kept, and what is there to do

What is measured is kept after each case (target/benches/matrix.json), and not measured again
unless --again is given.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from chunkwise.files.durable import write_whole
from chunkwise.measure.verdict import Verdict, spread, verdict
from chunkwise.words import counted
from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.matrix.work import READERS, Case, Work, cases
from chunkwise_lab.turns import in_turns

# What differs by less is not slower.
TOLERANCE: Final = 1.03


def judge(first: Sequence[float], second: Sequence[float]) -> Verdict:
    """Say by how much the first is slower than the second; both were sampled in turns."""
    return verdict(second, first, TOLERANCE)


def compare(
    first: Callable[[], float], second: Callable[[], float], seconds: float, most: int
) -> tuple[list[float], list[float]]:
    """Take samples in turns, each beginning every other time, until time or doubt is used up."""
    # The first time files are read from storage, and libraries load what they need.
    spent = first() + second()

    def enough(taken: Mapping[str, list[float]]) -> bool:
        one, other = taken.values()
        count = len(one)
        settled = count >= 10 and count % 5 == 0 and judge(one, other).word != "cannot tell"
        return count >= 5 and (settled or spent + sum(one) + sum(other) > seconds)

    one, other = in_turns({"first": first, "second": second}, most, enough).values()
    return one, other


@dataclass(frozen=True)
class Reason:
    """Why cases are slower."""

    text: str  # The reason
    # What it costs at most; a case that loses more is slower for another reason as well.
    most_s: float
    holds: Callable[[Case], bool]  # Whether it holds for a case


REASONS = (
    Reason(
        "the first read of a process binds libhdf5, and begins threads",
        20e-3,
        lambda case: case.process == "fresh",
    ),
    Reason(
        "a file of its own: what is wrong with it is said, it is known again, and closed by "
        "whoever is last",
        0.6e-3,
        lambda case: case.work == "write" and case.face == "open",
    ),
    Reason(
        "the first read of a file asks libhdf5 where the data lies, and opens the file once more",
        0.25e-3,
        lambda case: case.work == "read" and case.phase in ("open", "first"),
    ),
    Reason(
        "two threads fill new memory; what another processor has in its cache is cleared six "
        "times as slowly",
        3e-3,
        # Up to 32 MB are filled by one.
        lambda case: case.how == "all" and case.layout == "large-contiguous",
    ),
    Reason(
        "a walk of few steps, of which the first asks libhdf5 where the data lies",
        0.25e-3,
        lambda case: case.phase == "walk" and case.filters == "none",
    ),
)


def reason(case: Case, lost_s: float) -> str | None:
    """Say why a case is slower; None where nothing explains so much."""
    fitting = (one for one in REASONS if one.holds(case) and lost_s <= one.most_s)
    return next((one.text for one in fitting), None)


def main() -> None:
    """Run, and print."""
    parser = argparse.ArgumentParser(
        prog="matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="cases by name, with * and ?")
    parser.add_argument("--again", action="store_true", help="measure what is kept again")
    parser.add_argument("--list", action="store_true", help="measure nothing")
    parser.add_argument("--seconds", type=float, default=1.0, help="for a case (default 1)")
    parser.add_argument("--most", type=int, default=200, help="samples of a case (default 200)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results and files")
    options = parser.parse_args()
    wanted = [case for case in cases() if fnmatch.fnmatch(case.name, options.only)]
    kept_in = options.folder / "matrix.json"
    kept: dict[str, Any] = json.loads(kept_in.read_text()) if kept_in.exists() else {}
    files = options.folder / "matrix"
    files.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(wanted, 1):
        if options.list or (case.name in kept and not options.again):
            continue
        print(f"{number} of {len(wanted)}: {case.name}", file=sys.stderr)
        kept[case.name] = measured(case, files, options.seconds, options.most)
        write_whole(kept_in, json.dumps(kept, indent=1).encode())
    print(table(wanted, kept))


def measured(case: Case, folder: Path, seconds: float, most: int) -> dict[str, list[float]]:
    """Seconds of both libraries, sample by sample."""
    work = Work(case, folder)
    if case.work == "read":
        work.check()
    first, second = (partial(work.seconds, reader) for reader in READERS)
    return dict(zip(READERS, compare(first, second, seconds, most), strict=True))


def table(wanted: list[Case], kept: dict[str, Any]) -> str:
    """List the cases that are slower, worst first, with those that are explained at the end."""
    judged = {case: judge(*kept[case.name].values()) for case in wanted if case.name in kept}
    slower = sorted(
        (found.ratio, case) for case, found in judged.items() if found.word == "faster"
    )
    groups: dict[str | None, list[str]] = {None: []}
    for ratio, case in slower:
        times = {reader: spread(samples).median for reader, samples in kept[case.name].items()}
        why = reason(case, times["chunkwise"] - times["h5py"])
        found = judged[case]
        low, high = found.low or ratio, found.high or ratio
        line = f"{ratio:5.2f} ({low:.2f} to {high:.2f})  {1e3 * times['h5py']:9.3f} ms"
        groups.setdefault(why, []).append(f"{line}  {case.name}")
    lines = ["h5py's time divided by chunkwise's, h5py's time, and the case:"] if slower else []
    lines += groups.pop(None)
    for why, explained in groups.items():
        lines += [f"explained: {why}", *explained]
    ratios = [found.ratio for found in judged.values()]
    middle = f"; in the middle {spread(ratios).median:.2f}" if ratios else ""
    count = sum(map(len, groups.values()))
    said = f"{counted(len(slower), 'case')} of {len(judged)} slower than h5py, {count} explained"
    missing = len(wanted) - len(judged)
    return "\n".join([*lines, said + middle, *([f"{missing} not measured"] if missing else [])])


if __name__ == "__main__":
    main()
