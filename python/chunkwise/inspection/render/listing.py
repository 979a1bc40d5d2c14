"""How are the datasets of a file listed in the order of their waste, bytes or names?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from chunkwise.files.objects import printable
from chunkwise.grammar import format_size
from chunkwise.inspection.facts import FileFacts, ObjectFacts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.render.tree import LINES_SHOWN
from chunkwise.inspection.render.words import (
    CUT,
    IN_VAIN,
    print_wrapped,
    ratio_words,
    vain_words,
    wrapped,
)
from chunkwise.words import counted

Order = Literal["waste", "bytes", "name"]
_TITLES = ("wasted", "data", "stored", "ratio")
# Right-justified, with a space between and two after them.
_WIDTHS = (8, 10, 10, 7)
_INDENT = sum(_WIDTHS) + len(_WIDTHS) + 1


def print_listing(
    facts: FileFacts, console: Console, order: Order, *, everything: bool = False
) -> None:
    """Print one dataset a line."""
    findings: dict[str, list[Finding]] = defaultdict(list)
    for finding in facts.findings:
        if finding.path is not None:
            findings[finding.path].append(finding)
    waste = {path: max(each.waste_nbytes for each in found) for path, found in findings.items()}
    datasets = [entry for entry in facts.objects if entry.dataset is not None]

    def key(entry: ObjectFacts) -> tuple[int, str]:
        assert entry.dataset is not None
        first = {
            "waste": -waste.get(entry.path, 0),
            "bytes": -(entry.dataset.stored_nbytes or 0),
            "name": 0,
        }[order]
        return first, entry.path

    datasets.sort(key=key)
    console.print(Text(f"{_row(_TITLES)}  dataset", style="dim"), soft_wrap=True)
    shown = len(datasets) if everything else LINES_SHOWN
    for entry in datasets[:shown]:
        _print_row(entry, findings[entry.path], waste.get(entry.path, 0), console)
    if len(datasets) > shown:
        rest = CUT.format(count=counted(len(datasets) - shown, "more dataset"))
        console.print(Text("\n".join(wrapped(rest, console.width)), style="bold"))
    if any(waste.get(entry.path) for entry in datasets[:shown]):
        console.print()
        words = IN_VAIN.format(what="dataset")
        if order == "waste":
            words += "; the most bytes come first"
        print_wrapped(words, console)


def _row(columns: Sequence[str]) -> str:
    return " ".join(f"{v:>{w}}" for v, w in zip(columns, _WIDTHS, strict=True))


def _print_row(entry: ObjectFacts, found: list[Finding], waste: int, console: Console) -> None:
    dataset = entry.dataset
    assert dataset is not None
    columns = (
        vain_words(waste, dataset.stored_nbytes or dataset.logical_nbytes),
        "-" if dataset.logical_nbytes is None else format_size(dataset.logical_nbytes),
        "-" if dataset.stored_nbytes is None else format_size(dataset.stored_nbytes),
        "-" if dataset.ratio is None else ratio_words(dataset.ratio),
    )
    name = printable(entry.path)
    codes = ", ".join(dict.fromkeys(finding.code for finding in found))
    lines = wrapped(f"{name}  {codes}".rstrip(), console.width - _INDENT)
    # If the path leaves no room on its line, the codes stand on the next.
    text = Text(_row(columns) + "  " + ("\n" + " " * _INDENT).join(lines))
    text.stylize("bold", _INDENT, _INDENT + len(name))
    console.print(text, highlight=False, soft_wrap=True)
