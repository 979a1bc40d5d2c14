"""Which options does `chunkwise inspect` take, and what does it print?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.terminal import for_messages, for_results
from chunkwise.cli.values import (
    Renamed,
    followed,
    for_option,
    latency_option,
    tool_option,
    trace_option,
)
from chunkwise.errors import UsageError
from chunkwise.model.readers import reader
from chunkwise.names import is_url, printable

if TYPE_CHECKING:
    from chunkwise.inspection.finding import Severity

EXAMPLES = """\b
Examples:
  chunkwise inspect model.nc                    what is wrong, then a tree
  chunkwise inspect model.nc temperature        one dataset, a fact a line
  chunkwise inspect model.nc --tool nccopy      how to repair it with nccopy
  chunkwise inspect model.nc --access line:0    for those reads
  chunkwise inspect model.nc -o model.html      a page with drawings
  chunkwise inspect https://host/a.nc --latency 50ms    far away, with its requests
  chunkwise inspect archive/                    one line a file, worst first
  chunkwise inspect 'runs/*.nc' --fail-on warning    a linter, for CI
  chunkwise inspect archive/ --quiet            names of files with findings
  chunkwise inspect archive/ --fail-on note --ignore edge-waste

\b
For jq:
  chunkwise inspect model.nc --json | jq -r '.findings[].code'

\b
Exit code:
  0    a file is sound, perhaps with loose ends
  1    a file is damaged; --fail-on LEVEL: a finding of at least that severity
  2    wrong usage, no such file, or a file could not be read
  3    something cannot be judged here: a filter or another HDF5 is needed
  4    a file is open for writing: try later
  130  interrupted
"""


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, required=True, metavar="FILE|URL|FOLDER|GLOB... [DATASET]")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; for several files, one line each."
)
@click.option(
    "--fail-on",
    "level",
    type=click.Choice(["note", "warning", "error"]),
    help="Print findings of at least this severity, one a line, and exit with code 1 if there "
    "are any.",
)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print only the names of files with findings (of at least --fail-on's severity).",
)
@click.option(
    "--ignore",
    metavar="CODE",
    multiple=True,
    help="Leave out the findings of a code, as if there were none; may be repeated.",
)
@for_option("The program that will read the file: its chunk cache and filters count")
@click.option(
    "--access",
    multiple=True,
    metavar="PATTERN",
    help="What is read, such as line:0 or '1x600x600 weight 3'; may be repeated: findings and "
    "remedies are for that.  [default: the reads that each dataset is evidently made for]",
)
@trace_option
@tool_option(
    "Print the lines for this tool.  [default: each finding's first; with DATASET, all but those "
    "for writing]",
    multiple=False,
    former="--fixes",
)
@click.option(
    "--sample/--no-sample",
    default=None,
    help="Read a few chunks, to tell what filters and reads would gain and take.  "
    "[default: for one local file only]",
)
@latency_option
@click.option(
    "-o",
    "--output",
    "page",
    cls=Renamed,
    former="--html",
    type=click.Path(dir_okay=False),
    metavar="PAGE.html",
    help="Write all of it into one page that can be mailed: findings, drawings of the chunks, and "
    "what reads cost. It shows DATASET, or the five worst ones.",
)
@click.option("--force", is_flag=True, help="Replace a PAGE.html that exists.")
@click.option("--all", "everything", is_flag=True, help="Print long trees and lists in full.")
def command(
    arguments: tuple[str, ...],
    as_json: bool,
    level: str | None,
    quiet: bool,
    ignore: tuple[str, ...],
    readers: tuple[str, ...],
    access: tuple[str, ...],
    trace: str | None,
    tool: str | None,
    sample: bool | None,
    latency_s: float | None,
    page: str | None,
    force: bool,
    everything: bool,
) -> int:
    """Show what decides a file's speed, what is wrong with it, and the remedy.

    FILE is an HDF5 or netCDF-4 file, or its URL; DATASET a path in it, such as
    /group/temperature, and can be named after one file only. If FILE has a
    dataset of this name, that is meant, even if a file has the same name.

    For several files, a FOLDER (searched through all levels for HDF5 files,
    whatever their names) or a GLOB, each gets one line, the worst first.
    """
    # Imported here, so that `--help` need not wait for h5py.
    from chunkwise.cli.many import Shown, each_contained, show_many
    from chunkwise.files.contained import contained
    from chunkwise.files.opening import refuse_url
    from chunkwise.inspection import inspect
    from chunkwise.inspection.finding import check_codes, without
    from chunkwise.inspection.folder import find_files, one_file
    from chunkwise.inspection.records import json_lines
    from chunkwise.inspection.render import print_file, print_one_dataset

    # URLs may hold secrets, which messages about other words would show.
    for word in (*access, *ignore, trace, page):
        refuse_url(word or "")
    ignored = check_codes(ignore)
    if as_json and quiet:
        raise UsageError("--json prints all there is: leave --quiet out")
    shown = Shown(ignored, cast("Severity | None", level), as_json, quiet, bool(sample))
    known = tuple(reader(name) for name in readers) or None
    one = one_file(arguments)
    if one is None:
        if tool is not None or everything or trace is not None or page is not None:
            raise UsageError("--tool, --all, --trace and -o are for one file; name it alone")
        inspect_one = partial(
            inspect, access=access, readers=known, sample=bool(sample), latency_s=latency_s
        )
        return show_many(
            find_files(arguments), partial(each_contained, inspect=inspect_one), shown
        )
    file, dataset = one
    if page is not None:
        from chunkwise.viewing.saving import check_name

        check_name(page, force=force)
    dataset, access = followed(trace, file, dataset, access)
    sampled = not is_url(file) if sample is None else sample
    # It may take a while.
    with for_messages().status(f"reading {'and sampling ' if sampled else ''}the file"):
        # In a separate process: libhdf5 crashes on some damaged files.
        work = partial(
            inspect, file, dataset,
            access=access, readers=known, sample=sampled, latency_s=latency_s,
        )  # fmt: skip
        facts = contained(work, printable(file))
        facts = replace(facts, findings=without(facts.findings, ignored))
        if page is not None:
            from chunkwise.viewing.saving import save
            from chunkwise.viewing.session import Session

            save(Session.of(file, dataset, access, found=facts), page)
    if as_json:
        for line in json_lines(facts.as_dict()):
            echo(line)
    elif level is None and not quiet:
        if dataset is not None:
            print_one_dataset(facts, for_results(), tool=tool)
        else:
            print_file(facts, for_results(), tool=tool, everything=everything)
    shown.note(facts.path, facts.findings)
    return shown.code([finding.severity for finding in facts.findings], [facts.verdict])
