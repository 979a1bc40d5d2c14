"""How is a trace shown in 80 columns?"""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from chunkwise.grammar.sizes import format_size
from chunkwise.names import printable
from chunkwise.running.finding import MOST_PATTERNS, RunFinding
from chunkwise.running.trace import Trace, TracedDataset, in_words, patterns, totals, under_run
from chunkwise.words import counted, format_seconds, joined

_WIDTH = 79
DONE: Final = {"read": "Read", "write": "Written"}
# Datasets with an entry of their own; the others are counted.
_MOST_SHOWN = 5


def lines(trace: Trace, found: RunFinding | None = None) -> Iterator[str]:
    """Say which datasets took the time, what was read of them, and what to do next."""
    if not trace.datasets:
        yield (
            "chunkwise: no read or write of an HDF5 dataset was seen. The program does not use "
            "HDF5, is linked statically with it, looks its functions up by itself, or was ended "
            "before it could report."
        )
        return
    _, nbytes, seconds = totals(trace.datasets)
    names = {(one.file, one.dataset) for one in trace.datasets}
    files = len({file for file, _ in names})
    yield (
        f"chunkwise: {calls(trace.datasets)} of {counted(len(names), 'dataset')} in "
        f"{counted(files, 'file')}, by {counted(len(trace.processes), 'process', 'processes')}: "
        f"{format_size(nbytes)} in {format_seconds(seconds)}"
    )
    for one in trace.datasets[:_MOST_SHOWN]:
        yield ""
        yield f"{printable(one.file)}: {printable(one.dataset)}"
        what = f"{DONE[one.operation]}: {in_words(one)}."
        for text in (amount(one, seconds), what, *decoding(one)):
            yield from _filled(text)
        if found is not None and found.is_of(one):
            yield from _filled(f"Finding: {found.summary}")
            yield from (f"  {line}" for line in found.line.splitlines())
            for language, text in found.in_program:
                yield f"  In {language}:"
                yield from (f"    {line}" for line in text.splitlines())
            if found.gain:
                yield from _filled(found.gain)
        yield from (f"  {line}" for line in _folded(_advice(one)))
    left = trace.datasets[_MOST_SHOWN:]
    if left:
        _, more, took = totals(left)
        yield ""
        yield (
            f"and {counted(len(left), 'more dataset')}: {format_size(more)} in "
            f"{format_seconds(took)} (all of them: -o FILE)"
        )


def calls(datasets: Sequence[TracedDataset]) -> str:
    """Count them: ``3 reads and 1 write``."""
    kinds = [
        counted(number, operation)
        for operation in DONE
        if (number := sum(one.calls for one in datasets if one.operation == operation))
    ]
    return joined(kinds)


def _advice(one: TracedDataset) -> list[list[str]]:
    """Give the words of that command, and then those of each option; nothing if there is none."""
    found = list(patterns(one))[:MOST_PATTERNS]
    if not found or not one.shape:
        return []
    written = "" if one.operation == "read" else " write"
    options = [["--access", f"{pattern}{written}"] for pattern in found]
    return [["chunkwise", "advise", one.file, one.dataset], *options]


def amount(one: TracedDataset, seconds: float) -> str:
    """Say how much was read of a dataset, in which part of all `seconds`, and by whom."""
    share = f", {one.seconds / seconds:.0%} of the time" if seconds > 0 else ""
    return f"{format_size(one.nbytes)} in {format_seconds(one.seconds)}{share}; {_by_whom(one)}"


def decoding(one: TracedDataset) -> Iterator[str]:
    """Say what HDF5 decoded, and what would be left of it."""
    if not one.loaded:
        return
    hits = one.touched - one.loaded
    times = f" of the dataset, which has {one.chunks:,}" if one.loaded > one.chunks else ""
    filters = ", ".join(f"{one.name} {format_seconds(one.seconds)}" for one in one.filters)
    if one.operation == "write":
        yield (
            f"To write parts of chunks, HDF5 fetched and decoded {counted(one.loaded, 'chunk')}"
            f"{times}, and encoded and wrote them again. Decoding took: {filters}."
        )
        return
    yield (
        f"HDF5 decoded {counted(one.loaded, 'chunk')}{times}, and had "
        f"{hits:,} in its cache when they were wanted. Its filters took: {filters}."
    )
    seconds = under_run(one, len(os.sched_getaffinity(0)))
    if seconds is not None and seconds < one.seconds * 0.9:
        yield (
            f"Under 'chunkwise run', each chunk is decoded once, on all processors: at most "
            f"about {format_seconds(seconds)} in place of {format_seconds(one.seconds)}."
        )


def _folded(words: Sequence[Sequence[str]]) -> list[str]:
    """Break a long command before its options, as a shell takes it."""
    parts = [shlex.join(part) for part in words]
    if len(" ".join(parts)) <= _WIDTH - 2:
        return [" ".join(parts)] if parts else []
    first, *options = parts
    lines = [first, *(f"    {option}" for option in options)]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _by_whom(one: TracedDataset) -> str:
    if one.by_chunkwise == one.calls:
        return "by chunkwise"
    if not one.by_chunkwise:
        return f"by HDF5: {one.reason}" if one.reason else "by HDF5"
    rest = one.calls - one.by_chunkwise
    return f"{one.by_chunkwise:,} by chunkwise, {rest:,} by HDF5 ({one.reason})"


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
