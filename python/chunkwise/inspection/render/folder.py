"""How are many files shown: one line each, the worst first?"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_size
from chunkwise.inspection.finding import SEVERITIES, Severity
from chunkwise.inspection.folder import FileSummary, Tally
from chunkwise.inspection.render.words import IN_VAIN, STYLES, vain_words, wrapped
from chunkwise.names import printable
from chunkwise.words import counted

# Severity, findings, size and what is wasted, with two columns after.
_INDENT = 7 + 10 + 11 + 11 + 2

_WITH: dict[Severity, str] = {
    "error": "with errors",
    "warning": "with warnings",
    "note": "with notes only",
}

_NOT_SAMPLED = "Not sampled: --sample also tells how fast data decodes and which filters pay."


def print_folder(
    summaries: Sequence[FileSummary],  # In the order in which they are shown
    passed_over: int,
    console: Console,
    *,
    sampled: bool,
    tallies: Sequence[Tally] = (),
) -> None:
    """Print one line a file, then the totals by code, and what was left out."""
    if summaries:
        head = f"{'worst':<7}{'findings':>10}{'size':>11}{'wasted':>11}  file"
        console.print(Text(head, style="dim"), soft_wrap=True)
    for summary in summaries:
        console.print(_line(summary, console), highlight=False, soft_wrap=True)
    if summaries:
        console.print()
    if tallies:
        _print_tallies(tallies, console)
        console.print()
    below = [_totals(summaries, passed_over)]
    if any(summary.waste_nbytes for summary in summaries):
        below.append(IN_VAIN.format(what="file"))
    if not sampled and any(summary.reason is None for summary in summaries):
        below.append(_NOT_SAMPLED)
    for words in below:
        lines = wrapped(words, console.width, "  ")
        console.print(Text("\n".join(lines)), highlight=False, soft_wrap=True)


def _line(summary: FileSummary, console: Console) -> Text:
    severity = summary.severity
    columns = (
        f"{severity or ('-' if summary.reason is not None else 'ok'):<7}",
        f"{summary.findings or '-':>10}",
        f"{'-' if summary.nbytes is None else format_size(summary.nbytes):>11}",
        f"{vain_words(summary.waste_nbytes, summary.nbytes):>11}",
    )
    words = printable(summary.path)
    if summary.reason is not None:
        words += f"  cannot be opened: {printable(summary.reason)}"
    elif summary.worst is not None:
        words += f"  {summary.worst.code}"
    if console.is_terminal:
        words = ("\n" + " " * _INDENT).join(wrapped(words, console.width - _INDENT))
    text = Text("".join(columns) + "  " + words)
    text.stylize(STYLES[severity] if severity else "green", 0, len(columns[0].rstrip()))
    return text


def _print_tallies(tallies: Sequence[Tally], console: Console) -> None:
    """Print a line for each code: how often, in how many files, and where most is wasted."""
    head = f"{'':<7} {'code':<21}{'findings':>9}{'files':>7}{'wasted':>11}  at most, in"
    console.print(Text(head, style="dim"), soft_wrap=True)
    for one in tallies:
        waste = format_size(one.waste_nbytes) if one.waste_nbytes else "-"
        text = Text(
            f"{one.severity:<7} {one.code:<21}{one.findings:>9,}{one.files:>7,}{waste:>11}  "
            f"{printable(one.largest)}"
        )
        text.stylize(STYLES[one.severity], 0, len(one.severity))
        console.print(text, highlight=False, soft_wrap=True)


def _totals(summaries: Sequence[FileSummary], passed_over: int) -> str:
    readable = [summary for summary in summaries if summary.reason is None]
    words = []
    refused = len(summaries) - len(readable)
    if refused:
        words.append(f"{refused:,} cannot be opened")
    for severity in reversed(SEVERITIES):
        count = sum(summary.severity == severity for summary in readable)
        if count:
            words.append(f"{count:,} {_WITH[severity]}")
    clean = sum(summary.severity is None for summary in readable)
    if clean:
        words.append(f"{clean:,} without a finding")
    size = format_size(sum(summary.nbytes or 0 for summary in summaries))
    total = f"{counted(len(summaries), 'HDF5 file')}"
    if words:
        total += f" of {size}: {', '.join(words)}"
    if passed_over:
        total += f"; {counted(passed_over, 'file')} of other formats passed over"
    return total
