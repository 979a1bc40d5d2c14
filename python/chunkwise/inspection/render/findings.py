"""How are findings shown: what is wrong, where, and what to paste?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from chunkwise.inspection.finding import SEVERITIES, Finding, grouped
from chunkwise.inspection.render.words import STYLES, enumerated, print_wrapped, wrapped
from chunkwise.names import printable
from chunkwise.remedy.fix import Fix, OfCopy
from chunkwise.words import counted

# Besides the worst, which is shown in full.
_NAMES_SHOWN = 2
_WHOLE_FILE = "(file)"
# Instead of a tool: the lines that fix the file, or read it as it is.
PRESENT = "present"


def print_findings(
    findings: Sequence[Finding],
    console: Console,
    *,
    tool: str | None = None,
    everything: bool = False,
    nothing: str = "No findings.",
    combined: bool = False,
) -> None:
    """Print findings, grouped by code."""
    if not findings:
        print_wrapped(nothing, console, indent="")
        return
    console.print(_summary(findings), highlight=False)
    for group in grouped(findings).values():
        console.print()
        limit = None if everything else _NAMES_SHOWN
        _print_group(group, console, tool, limit, refer=combined and tool is None)


def count_words(findings: Iterable[Finding]) -> str:
    """Count findings by severity: ``1 error, 2 warnings``."""
    severities = [finding.severity for finding in findings]
    counts = [(severities.count(severity), severity) for severity in reversed(SEVERITIES)]
    return ", ".join(counted(count, severity) for count, severity in counts if count)


def lint_line(path: str, finding: Finding) -> str:
    """Write a finding on one line: ``path: dataset: severity: code: summary``."""
    where = _WHOLE_FILE if finding.path is None else printable(finding.path)
    summary = printable(" ".join(finding.summary.split()))
    return f"{printable(path)}: {where}: {finding.severity}: {finding.code}: {summary}"


def _summary(findings: Sequence[Finding]) -> Text:
    total = counted(len(findings), "finding")
    if len(findings) > 1:
        total += f" of {counted(len({finding.code for finding in findings}), 'kind')}"
    return Text(f"{total}: {count_words(findings)}", style="bold")


def _print_group(
    group: list[Finding], console: Console, tool: str | None, limit: int | None, *, refer: bool
) -> None:
    worst = group[0]
    names = list(dict.fromkeys(_where(finding) for finding in group))
    head = f"{worst.severity:<7}  {worst.code}  "
    head += names[0] if len(names) == 1 else counted(len(names), "object")
    text = Text("\n".join(wrapped(head, console.width, "  ")))
    text.stylize(STYLES[worst.severity], 0, len(worst.severity))
    text.stylize("bold", len("warning") + 2, len("warning") + 2 + len(worst.code))
    console.print(text, highlight=False)
    summary = printable(" ".join(worst.summary.split()))
    if len(names) > 1:
        summary = f"{names[0]}: {summary}"
    print_wrapped(f"  {summary}", console)
    if len(names) > 1:
        print_wrapped(f"  The same: {enumerated(names[1:], limit)}", console)
    print_wrapped(f"  See {printable(worst.source)}", console, "dim")
    fixes = _chosen(worst.fixes, tool)
    if tool is None and worst.is_offer:
        # Other chunks would cost other reads; a larger cache costs none.
        fixes = tuple(fix for fix in worst.fixes if _reads(fix))[:1] or fixes
    if refer and worst.layout is not None:
        print_wrapped("  Fix: the command at the end", console)
        fixes = ()
    for fix in fixes:
        other = tool not in (None, "all", PRESENT, fix.tool)
        _print_fix(fix, console, f" (no {tool} line)" if other else "")
    if tool is None and worst.layout is not None:
        reading = next((fix for fix in worst.fixes if _reads(fix)), None)
        if reading is not None:
            _print_fix(reading, console, " (without a copy)")
    if tool == PRESENT and len(fixes) < len(worst.fixes):
        print_wrapped("  Lines for the program that writes it: add --tool all", console, "dim")


def _reads(fix: Fix) -> bool:
    """Whether it reads the file as it is."""
    return not (fix.writing or isinstance(fix, OfCopy)) and fix.tool in ("h5py", "netCDF4")


def _print_fix(fix: Fix, console: Console, note: str) -> None:
    label = "When writing" if fix.writing else "Fix"
    console.print(Text(f"  {label} ({fix.tool}):{note}"), highlight=False)
    lines = "\n".join(printable(line) for line in fix.text.splitlines())
    # Never broken: each line is there to be copied.
    console.print(Text(textwrap.indent(lines, "    "), style="green"), soft_wrap=True)


def _chosen(fixes: tuple[Fix, ...], tool: str | None) -> tuple[Fix, ...]:
    if tool == "all":
        return fixes
    present = tuple(fix for fix in fixes if not fix.writing) or fixes
    if tool == PRESENT:
        return present
    return tuple(fix for fix in fixes if fix.tool == tool) or present[:1]


def _where(finding: Finding) -> str:
    return "the file as a whole" if finding.path is None else printable(finding.path)
