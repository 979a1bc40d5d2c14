"""Which words does `chunkwise inspect` take, and what does it print?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.terminal import for_messages, for_results
from chunkwise.errors import UsageError

if TYPE_CHECKING:
    from chunkwise.advise.readers import Reader
    from chunkwise.inspect.facts import FileFacts
    from chunkwise.inspect.finding import Finding, Severity
    from chunkwise.inspect.folder import FileSummary, Found
    from chunkwise.inspect.render import Order

_INTERRUPTED = 130
# One damaged file among many must not hold up the others for ever.
_LIMIT_S = 300.0
_TOOLS = ("h5py", "netCDF4", "C", "h5repack", "nccopy", "chunkwise", "all")
# As chunkwise.advise.readers.NAMES, which would load h5py for `--help`.
_READERS = ("libhdf5-1.10", "libhdf5-2", "netcdf-c", "chunkwise")

EXAMPLES = """\b
Examples:
  chunkwise inspect model.nc                    what is wrong, then a tree
  chunkwise inspect model.nc temperature        one dataset, a fact a line
  chunkwise inspect model.nc --fixes nccopy     how to repair it with nccopy
  chunkwise inspect model.nc --sort waste       its datasets, the worst first
  chunkwise inspect archive/                    one line a file, worst first
  chunkwise inspect 'runs/*.nc' --fail-on warning    a linter, for CI
  chunkwise inspect model.nc --json | jq -r '.findings[].code'

\b
Exit code:
  0    nothing found that --fail-on asks for, or no --fail-on
  1    --fail-on LEVEL: a finding of at least that severity; among several
       files also one that cannot be opened
  2    wrong usage, no such file, or the one file cannot be opened
  130  interrupted
"""


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, required=True, metavar="FILE|FOLDER|GLOB... [DATASET]")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; for several files, a line each."
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(["waste", "bytes", "name"]),
    help="List the datasets (or files) in this order.  [default: a tree; worst file first]",
)
@click.option(
    "--fail-on",
    "level",
    type=click.Choice(["note", "warning", "error"]),
    help="Print findings of at least this severity, one a line, and exit with code 1 if there "
    "are any.",
)
@click.option(
    "--for",
    "readers",
    type=click.Choice(_READERS),
    multiple=True,
    help="Who will read the file; may be repeated.  [default: the three libraries, and this "
    "process]",
)
@click.option(
    "--fixes",
    "tool",
    type=click.Choice(_TOOLS, case_sensitive=False),
    help="Whose lines to show as remedy.  [default: each finding's first; with DATASET, all but "
    "those for writing]",
)
@click.option(
    "--sample/--no-sample",
    default=None,
    help="Read a few chunks, to tell what filters and reads would gain and take.  "
    "[default: for one file only]",
)
@click.option("--all", "everything", is_flag=True, help="Print long trees and lists in full.")
def command(
    arguments: tuple[str, ...],
    as_json: bool,
    order: str | None,
    level: str | None,
    readers: tuple[str, ...],
    tool: str | None,
    sample: bool | None,
    everything: bool,
) -> int:
    """Show what decides a file's speed, what is wrong with it, and the remedy.

    FILE is an HDF5 or netCDF-4 file; DATASET a path in it, such as
    /group/temperature, and can be named after one file only. Where it is also
    the name of a file, it is the dataset if FILE has it.

    Of several files, a FOLDER (searched through all levels for HDF5 files,
    whatever their names) or a GLOB, each gets one line, the worst first.
    """
    # Imported here, so that `--help` need not wait for h5py.
    from chunkwise.advise.readers import reader
    from chunkwise.inspect.folder import find_files, one_file

    known = tuple(reader(name) for name in readers) or None
    one = one_file(arguments)
    if one is None:
        if tool is not None or everything:
            raise UsageError("--fixes and --all are for one file; name it alone")
        collect = partial(_contained, readers=known, sample=bool(sample), limit_s=_LIMIT_S)
        found = find_files(arguments)
        return _many(found, collect, as_json, cast("Order | None", order), level, bool(sample))
    if one[1] is not None and order is not None:
        raise UsageError("--sort orders datasets; leave it out where one is named")
    facts = _one(one, known, sample is not False)
    if as_json:
        _print_json(facts)
    elif level is not None:
        _print_lint([(facts.path, finding) for finding in facts.findings], level)
    else:
        _print_file(facts, one[1] is not None, cast("Order | None", order), tool, everything)
    return _code([finding.severity for finding in facts.findings], level)


def _one(
    one: tuple[str, str | None], readers: tuple[Reader, ...] | None, sample: bool
) -> FileFacts:
    """Collect the facts about one file, saying so on a terminal: it may take a while."""
    with for_messages().status(f"reading {'and sampling ' if sample else ''}the file"):
        return _contained(*one, readers=readers, sample=sample)


def _contained(
    file: str,
    dataset: str | None = None,
    *,
    readers: tuple[Reader, ...] | None,
    sample: bool,
    limit_s: float | None = None,
) -> FileFacts:
    """Inspect a file in a process of its own: libhdf5 crashes on some damaged ones."""
    from chunkwise.contained import contained
    from chunkwise.inspect import inspect
    from chunkwise.objects import printable

    work = partial(inspect, file, dataset, readers=readers, sample=sample)
    return contained(work, printable(file), limit_s)


def _print_json(facts: FileFacts) -> None:
    from chunkwise.inspect.records import json_lines

    for line in json_lines(facts.as_dict()):
        echo(line)


def _print_file(
    facts: FileFacts, single: bool, order: Order | None, tool: str | None, everything: bool
) -> None:
    from chunkwise.inspect.render import print_file, print_one_dataset

    if single:
        print_one_dataset(facts, for_results(), tool=tool)
    else:
        print_file(facts, for_results(), order=order, tool=tool, everything=everything)


def _print_lint(findings: Sequence[tuple[str, Finding]], level: str) -> None:
    from chunkwise.inspect.folder import reaches
    from chunkwise.inspect.render import lint_line

    for path, finding in findings:
        if reaches(finding.severity, cast("Severity", level)):
            echo(lint_line(path, finding))


def _code(severities: Sequence[Severity | None], level: str | None) -> int:
    from chunkwise.inspect.folder import reaches

    if level is None:
        return 0
    return int(any(reaches(severity, cast("Severity", level)) for severity in severities))


def _many(
    found: Found,
    collect: Callable[[str], FileFacts],
    as_json: bool,
    order: Order | None,
    level: str | None,
    sampled: bool,
) -> int:
    """Inspect many files; Ctrl-C shows those that were done."""
    from chunkwise.inspect.folder import in_order, refusal, refusal_record, survey
    from chunkwise.inspect.render import print_folder

    total = len(found.files) + len(found.unreadable)
    summaries: list[FileSummary] = []
    findings: list[tuple[str, Finding]] = []
    interrupted = False
    try:
        with _progress(as_json) as progress:
            task = progress.add_task("inspecting", total=total)
            for summary, facts in survey(found, collect):
                summaries.append(summary)
                if as_json:
                    record: dict[str, Any] = (
                        refusal_record(summary) if facts is None else facts.as_dict()
                    )
                    echo_json(record)
                elif level is not None:
                    wrong = (refusal(summary),) if facts is None else facts.findings
                    findings += [(summary.path, finding) for finding in wrong]
                progress.advance(task)
    except KeyboardInterrupt:
        interrupted = True
    if level is not None and not as_json:
        _print_lint(findings, level)
    elif not as_json:
        print_folder(in_order(summaries, order), found.passed_over, for_results(), sampled=sampled)
    if interrupted:
        echo(f"chunkwise: interrupted after {len(summaries):,} of {total:,} files", err=True)
        return _INTERRUPTED
    return _code([summary.severity for summary in summaries], level)


def _progress(as_json: bool) -> Progress:
    console = for_messages()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        # Lines of JSON on the same terminal would tear the bar apart.
        disable=not console.is_terminal or (as_json and sys.stdout.isatty()),
    )
