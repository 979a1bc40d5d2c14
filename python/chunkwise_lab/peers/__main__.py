"""Run the comparisons, show them, and keep what was measured.

python -m chunkwise_lab.peers     # `make bench` builds first
python -m chunkwise_lab.peers --only cube,unions --repeat 3
python -m chunkwise_lab.peers --from benchmarks.json --docs docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from chunkwise.cli.progress import following
from chunkwise.errors import ChunkwiseError
from chunkwise.measure.schedule import Step
from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.peers import table
from chunkwise_lab.peers.comparisons import APART, GROUPS
from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.results import Result, to_json
from chunkwise_lab.peers.schedule import measure

WIDTH = 140
FIGURES = re.compile(
    r"(?P<begin><!-- figures(?:: (?P<groups>[\w, ]+))? -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)


def run(
    store: Store, only: Sequence[str], repeat: int | None, keep: Path, say: Callable[[str], None]
) -> tuple[list[Result], dict[str, Any]]:
    """Run the chosen comparisons; what is done is kept after each."""
    results: list[Result] = []
    saved = to_json(results)
    for group, comparisons in GROUPS.items():
        wanted = {name.partition("/")[2] for name in only if name.partition("/")[0] == group}
        if not wanted and (only or group in APART):
            continue
        for comparison in comparisons(store):
            if only and not wanted & {"", comparison.name}:
                continue
            if not sys.stderr.isatty():
                print(comparison.name, file=sys.stderr, flush=True)
            samples = measure(comparison, repeat, progress=say)
            results.append(Result(comparison, tuple(samples)))
            saved = to_json(results)
            keep.write_text(json.dumps(saved, indent=1), encoding="utf-8")
    return results, saved


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, show, keep."""
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    failed = False
    try:
        if options.drawn is None:
            keep = options.json or options.folder / "benchmarks.json"
            # A signal ends workers, and half-written files are removed.
            with following() as follow:

                def say(text: str) -> None:
                    follow(Step(text))

                store = Store(options.folder, options.small, say)
                results, saved = run(store, _names(options.only), options.repeat, keep, say)
            if not results:
                print(f"bench: nothing is called {options.only}", file=sys.stderr)
                return 2
            failed = any(result.failed for result in results)
        else:
            saved = json.loads(options.drawn.read_text(encoding="utf-8"))
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    except (ChunkwiseError, OSError, RuntimeError) as wrong:
        print(f"bench: {wrong}", file=sys.stderr)
        return 1
    table.show(saved, console)
    if options.docs is not None:
        fill(options.docs, saved)
    return 1 if failed else 0


def fill(path: Path, saved: dict[str, Any]) -> None:
    """Put the figures between the marks of a Markdown file.

    A mark names groups of comparisons; one without gets all groups that no other names.  Figures
    of which nothing was measured stay.
    """
    text = path.read_text(encoding="utf-8")
    named = {group for marks in FIGURES.finditer(text) for group in _names(marks["groups"] or "")}
    filled = 0

    def figures(marks: re.Match[str]) -> str:
        nonlocal filled
        groups = _names(marks["groups"] or "")
        here = [
            comparison
            for comparison in saved["comparisons"]
            if (comparison["group"] in groups if groups else comparison["group"] not in named)
        ]
        if not here:
            return marks[0]
        filled += 1
        return f"{marks['begin']}{table.markdown({**saved, 'comparisons': here})}\n{marks['end']}"

    text = FIGURES.sub(figures, text)
    if not filled:
        raise SystemExit(f"bench: {path} has no place for these figures")
    path.write_text(text, encoding="utf-8")


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[,\s]+", text) if name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench", description="Compare chunkwise with other readers, and with the machine."
    )
    groups = ", ".join(GROUPS)
    parser.add_argument(
        "--only", default="", help=f"groups ({groups}), or comparisons as cube/cube-whole"
    )
    parser.add_argument("--repeat", type=int, help="samples of each reader (default: by work)")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="for generated files (default target/benches)"
    )
    parser.add_argument("--json", type=Path, help="all samples (default FOLDER/benchmarks.json)")
    parser.add_argument("--small", action="store_true", help="tiny arrays: does it run at all?")
    parser.add_argument("--docs", type=Path, help="fill the figures of this Markdown file")
    parser.add_argument(
        "--from", dest="drawn", type=Path, metavar="JSON", help="show this, and measure nothing"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
