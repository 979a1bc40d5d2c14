"""How is a trace shown in 80 columns?"""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator

from chunkwise.grammar.sizes import format_size
from chunkwise.names import printable
from chunkwise.running.finding import Found
from chunkwise.running.trace import Trace, TracedDataset, in_words, patterns, totals, under_run
from chunkwise.words import counted, format_seconds

_WIDTH = 79
# This many datasets are named; the others are counted.
_MOST_TOLD = 5


def lines(trace: Trace, found: Found | None = None) -> Iterator[str]:
    """Say which datasets took the time, what was read of them, and what to do next.

    Parameters
    ----------
    trace
        What was seen.
    found
        What is wrong with the first dataset.
    """
    if not trace.datasets:
        yield (
            "chunkwise: no read of an HDF5 dataset was seen. The program does not use HDF5, is "
            "linked statically with it, looks its functions up by itself, or was ended before it "
            "could tell."
        )
        return
    reads, nbytes, seconds = totals(trace.datasets)
    files = len({one.file for one in trace.datasets})
    yield (
        f"chunkwise: {counted(reads, 'read')} of {counted(len(trace.datasets), 'dataset')} in "
        f"{counted(files, 'file')}, by {counted(len(trace.processes), 'process', 'processes')}: "
        f"{format_size(nbytes)} in {format_seconds(seconds)}"
    )
    for one in trace.datasets[:_MOST_TOLD]:
        yield ""
        yield f"{printable(one.file)}: {printable(one.dataset)}"
        share = f", {one.seconds / seconds:.0%} of the time" if seconds > 0 else ""
        yield from _filled(
            f"{format_size(one.nbytes)} in {format_seconds(one.seconds)}{share}; {_by_whom(one)}"
        )
        yield from _filled(f"Read: {in_words(one)}.")
        yield from _decoding(one)
        if one is trace.datasets[0] and found is not None:
            yield from _filled(f"Found: {found.summary}")
            yield from (f"  {line}" for line in found.line.splitlines())
        command = advice(one)
        if command:
            yield from (f"  {line}" for line in _folded(command))
    left = trace.datasets[_MOST_TOLD:]
    if left:
        _, more, took = totals(left)
        yield ""
        yield (
            f"and {counted(len(left), 'more dataset')}: {format_size(more)} in "
            f"{format_seconds(took)} (all of them: -o FILE)"
        )


def advice(one: TracedDataset) -> str | None:
    """Give the command that says how the dataset should be stored for these reads."""
    found = list(patterns(one))
    if not found or not one.shape:
        return None
    words = ["chunkwise", "advise", one.file, one.dataset]
    for pattern in found[:4]:
        words += ["--access", pattern]
    return shlex.join(words)


def _decoding(one: TracedDataset) -> Iterator[str]:
    """Say how much HDF5 decoded, and how much would remain."""
    if not one.loaded:
        return
    hits = one.touched - one.loaded
    times = f", which has {one.chunks:,}" if one.loaded > one.chunks else ""
    filters = ", ".join(f"{one.name} {format_seconds(one.seconds)}" for one in one.filters)
    yield from _filled(
        f"HDF5 decoded {counted(one.loaded, 'chunk')} of the dataset{times}, and had "
        f"{hits:,} in its cache when they were wanted. Its filters took: {filters}."
    )
    seconds = under_run(one, len(os.sched_getaffinity(0)))
    if seconds is not None and seconds < one.seconds * 0.9:
        yield from _filled(
            f"Under 'chunkwise run', each chunk is decoded once, on all processors: about "
            f"{format_seconds(seconds)} in place of {format_seconds(one.seconds)}."
        )


def _folded(command: str) -> list[str]:
    """Break a long command before its options, as a shell takes it."""
    if len(command) <= _WIDTH - 2:
        return [command]
    first, *options = command.split(" --access ")
    lines = [first, *(f"    --access {option}" for option in options)]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _by_whom(one: TracedDataset) -> str:
    if one.by_chunkwise == one.reads:
        return "by chunkwise"
    if not one.by_chunkwise:
        return f"by HDF5: {one.reason}" if one.reason else "by HDF5"
    rest = one.reads - one.by_chunkwise
    return f"{one.by_chunkwise:,} by chunkwise, {rest:,} by HDF5 ({one.reason})"


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
