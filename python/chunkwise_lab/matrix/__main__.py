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
from functools import partial
from pathlib import Path
from typing import Any

from chunkwise.files.durable import write_whole
from chunkwise.measure.verdict import spread
from chunkwise.words import counted
from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.matrix.cases import Case, cases
from chunkwise_lab.matrix.explained import reason
from chunkwise_lab.matrix.judge import compare, judge
from chunkwise_lab.matrix.work import READERS, Work


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
