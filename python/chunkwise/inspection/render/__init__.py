"""How are facts about a file shown to a person: what is wrong, what to do, and its contents?"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from chunkwise.inspection.facts import DatasetFacts, FileFacts
from chunkwise.inspection.render.dataset import (
    print_dataset,
    print_format,
    print_heading,
    print_tree,
)
from chunkwise.inspection.render.findings import PRESENT, count_words, lint_line, print_findings
from chunkwise.inspection.render.folder import print_folder
from chunkwise.inspection.render.patterns import print_patterns
from chunkwise.inspection.render.words import enumerated, print_wrapped
from chunkwise.names import printable, shell_word
from chunkwise.remedy.tools import shell_file
from chunkwise.words import counted

__all__ = ["count_words", "lint_line", "print_file", "print_folder", "print_one_dataset"]


def print_file(
    facts: FileFacts, console: Console, *, tool: str | None = None, everything: bool = False
) -> None:
    """Print a file: its name, its findings, its format, and its objects."""
    print_heading(facts, console)
    console.print()
    print_findings(
        facts.findings,
        console,
        tool=tool,
        everything=everything,
        nothing=_nothing(facts),
        # Whether findings of more than one kind are mended by one command.
        combined=len({one.code for one in facts.findings if one.layout is not None}) > 1,
    )
    console.print()
    for said in facts.taken_for:
        print_wrapped(said, console, "dim")
    print_format(facts, console)
    console.print()
    print_tree(facts.objects, console, everything=everything)
    _print_pointer(facts, console)
    _print_commands(facts, console, tool)


def print_one_dataset(facts: FileFacts, console: Console, *, tool: str | None = None) -> None:
    """Print one dataset: its findings, its facts, and what reading it costs."""
    (entry,) = facts.objects
    print_heading(facts, console)
    console.print()
    print_findings(facts.findings, console, tool=tool or PRESENT, everything=True)
    console.print()
    print_format(facts, console)
    console.print()
    print_dataset(entry, console)
    if entry.dataset is not None and entry.dataset.patterns:
        console.print()
        print_patterns(entry.dataset, console)
    _print_commands(facts, console, tool or PRESENT)


def _nothing(facts: FileFacts) -> str:
    """Say that there are no findings, and where there cannot be any."""
    kinds = {entry.kind for entry in facts.objects}
    if kinds & {"dataset", "unreadable"}:
        return "No findings."
    return "No findings: the file holds no dataset."


def _print_pointer(facts: FileFacts, console: Console) -> None:
    """Say how to see more of the dataset that the worst finding is about."""
    datasets = {each.path: each.dataset for each in facts.objects if each.dataset is not None}
    worst = next((found.path for found in facts.findings if found.path in datasets), None)
    if worst is None:
        return
    console.print()
    words = f"{count_words(facts.findings)} (see the top). What reading one dataset costs:"
    print_wrapped(words, console, indent="")
    names = f"{shell_file(facts.path)} {shell_word(worst)}"
    console.print(Text(f"    chunkwise inspect {names}", style="green"), soft_wrap=True)
    if facts.copy is None and _can_be_timed(datasets[worst]):
        console.print("Measured times:", highlight=False)
        console.print(Text(f"    chunkwise bench {names}", style="green"), soft_wrap=True)


def _print_commands(facts: FileFacts, console: Console, tool: str | None) -> None:
    """Give the one command that mends all that another layout mends."""
    found = facts.commands
    if not found:
        return
    mended = [one for one in facts.findings if one.layout is not None]
    left = [one for one in facts.findings if one.layout is None]
    offers, others = (
        list(dict.fromkeys(one.code for one in left if one.is_offer == which))
        for which in (True, False)
    )
    total = len(facts.findings)
    if not left:
        what = counted(total, "finding")
        said = f"One command mends {f'all {what}' if total > 1 else 'it'}:"
    else:
        said = f"One command mends {len(mended):,} of {total:,} findings"
        said += f"; no layout mends {enumerated(others, None)}" if others else ""
        said += f"; you decide about {enumerated(offers, None)}:" if offers else ":"
    shown = [fix for fix in found if tool in ("all", PRESENT, fix.tool)] or found[:1]
    console.print()
    if facts.copy is not None:
        said = f"Download the file as {printable(facts.copy)}. {said}"
    print_wrapped(said, console, indent="")
    for fix in shown:
        console.print(Text(f"    {fix.text}", style="green"), soft_wrap=True)


def _can_be_timed(dataset: DatasetFacts) -> bool:
    """Return whether there is an array that HDF5 can read here."""
    unreadable = dataset.unavailable_filters or dataset.variable_length or dataset.unlisted
    return bool(dataset.shape) and 0 not in (dataset.shape or ()) and not unreadable
