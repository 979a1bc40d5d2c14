"""Compare saved runs of bench, from the command line."""

from __future__ import annotations

from typing import cast

import click

from chunkwise.cli.echo import echo_json
from chunkwise.cli.terminal import for_results
from chunkwise.measure import compare_render
from chunkwise.measure.compare import FailOn, judge
from chunkwise.measure.saved import load
from chunkwise.measure.verdict import THRESHOLD, check_threshold

EXAMPLES = """\b
Examples:
  chunkwise bench data.nc --repeat 5 --json > before.json
  chunkwise bench data.nc --repeat 5 --json > after.json
  chunkwise compare before.json after.json
  chunkwise compare before.json after.json --threshold 1.1
  chunkwise compare monday.jsonl tuesday.jsonl --fail-on different
  chunkwise compare before.json after.json --json | jq -r .verdict

\b
Exit code:
  0    nothing that --fail-on asks for
  1    a trial is slower, or fails that did not (--fail-on different: or is
       faster)
  2    the request makes no sense: a file that cannot be read or is something
       else, arrays of different shapes, nothing in common
"""


@click.command(epilog=EXAMPLES)
@click.argument("base", metavar="BASELINE", type=click.Path())
@click.argument("other", metavar="FILE", type=click.Path())
@click.option(
    "--threshold",
    type=float,
    default=THRESHOLD,
    show_default=True,
    help="Times within this ratio count as the same.",
)
@click.option(
    "--fail-on",
    "on",
    type=click.Choice(["slower", "different", "none"]),
    default="slower",
    show_default=True,
    help="End with code 1 if a trial is slower; slower or faster; never.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(base: str, other: str, threshold: float, on: str, as_json: bool) -> int:
    """Compare a run that `chunkwise bench` saved (--json or --save) with a BASELINE.

    For two machines, versions or days. A verdict respects the spread of the
    repeats: what noise could explain is neither slower nor faster.
    """
    check_threshold(threshold)
    comparison = judge(load(base), load(other), threshold)
    if as_json:
        echo_json(compare_render.as_json(comparison), indent=1)
    else:
        compare_render.show(comparison, for_results())
    return int(comparison.fails(cast("FailOn", on)))
