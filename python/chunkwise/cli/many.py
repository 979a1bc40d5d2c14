"""How does `chunkwise inspect` go through many files, and what does it print about them?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import bar
from chunkwise.cli.terminal import for_results
from chunkwise.names import printable
from chunkwise.verdicts import Exit, FileVerdict, worst
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise.files.contained import Outcome
    from chunkwise.inspection.facts import FileFacts
    from chunkwise.inspection.finding import Finding, Severity
    from chunkwise.inspection.folder import FileSummary, FolderFiles

# One damaged file among many must not hold up the others for ever.
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What is printed of files."""

    ignored: frozenset[str]  # Codes of findings that do not count
    # The lowest severity; None for all, and then none of them is a failure.
    level: Severity | None
    # Facts as JSON; only the names of files with such findings.
    as_json: bool
    quiet: bool
    sampled: bool  # Whether data was sampled

    def note(self, path: str, findings: Sequence[Finding]) -> None:
        """Print a file's findings, if that is done one by one."""
        from chunkwise.inspection.folder import reaches
        from chunkwise.inspection.render import lint_line

        wanted = [one for one in findings if reaches(one.severity, self.level or "note")]
        if self.as_json or not wanted:
            return
        if self.quiet:
            echo(printable(path))
        elif self.level is not None:
            for found in wanted:
                echo(lint_line(path, found))

    def code(self, severities: Sequence[Severity | None], verdicts: Sequence[FileVerdict]) -> int:
        """Return the exit code: that of the worst file, or 1 if anything is severe enough."""
        from chunkwise.inspection.folder import reaches

        level = self.level
        severe = level is not None and any(reaches(one, level) for one in severities)
        return worst([Exit.WRONG if severe else Exit.DONE, *(one.exit for one in verdicts)])


def each_contained(
    paths: Sequence[str], inspect: Callable[[str], FileFacts]
) -> Iterator[Outcome[FileFacts]]:
    """Inspect files on all processors, in other processes."""
    from chunkwise.files.contained import contained_files
    from chunkwise.trials.environment import usable_cpus

    return contained_files(inspect, paths, usable_cpus(), LIMIT_S)


def show_many(
    found: FolderFiles,
    collect: Callable[[Sequence[str]], Iterator[Outcome[FileFacts]]],
    shown: Shown,
) -> int:
    """Inspect many files, in their order; Ctrl-C shows those that were done."""
    from chunkwise.inspection.folder import refusal_record, survey, totals, worst_first
    from chunkwise.inspection.render import print_folder

    total = len(found.files) + len(found.unreadable)
    summaries: list[FileSummary] = []
    interrupted = False
    # Lines of results on the same terminal would tear the bar apart.
    streams = shown.as_json or shown.quiet or shown.level is not None
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        with bar(*columns, hidden=streams and sys.stdout.isatty()) as progress:
            task = progress.add_task("inspecting", total=total)
            for summary, facts in survey(found, collect, shown.ignored):
                summaries.append(summary)
                if shown.as_json:
                    echo_json(refusal_record(summary) if facts is None else facts.as_dict())
                # A file that cannot be opened has that as its only finding.
                alone = () if summary.worst is None else (summary.worst,)
                shown.note(summary.path, alone if facts is None else facts.findings)
                progress.advance(task)
    except KeyboardInterrupt:
        interrupted = True
    if not streams:
        print_folder(
            worst_first(summaries),
            found.passed_over,
            for_results(),
            sampled=shown.sampled,
            tallies=totals(summaries),
        )
    if interrupted:
        echo(
            f"chunkwise: interrupted after {len(summaries):,} of {counted(total, 'file')}",
            err=True,
        )
        return Exit.INTERRUPTED
    return shown.code(
        [summary.severity for summary in summaries], [summary.verdict for summary in summaries]
    )
