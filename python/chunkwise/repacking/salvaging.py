"""How is the readable part of a damaged file copied to another?

By a repack that changes nothing: chunks that decode are copied unchanged, and the others are left
out, so that they read as the fill value.  This happens in a separate process, because libhdf5
crashes on some damaged files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from chunkwise.files.workers import by_workers, check_ended
from chunkwise.names import printable
from chunkwise.repacking.options import Options
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.records import Summary
from chunkwise.repacking.run import Job, run
from chunkwise.repacking.target import choose
from chunkwise.words import counted


def salvage(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    check: Callable[[], object] = lambda: None,
    *,
    force: bool = False,
) -> Summary:
    """Write what can be read of a file to another, with fill values for the rest.

    Parameters
    ----------
    source
        The damaged file; it is only read.
    target
        The new file, which appears complete or not at all.
    check
        Called several times a second; may raise to end it.
    force
        Replace a target that exists.

    Returns
    -------
    Summary
        Of each dataset, `lost_chunks` says what could not be read.

    Raises
    ------
    ChunkwiseError
        What of the file is damaged besides chunks, so that no target can be made.
    """
    work = partial(_salvage, os.fspath(source), os.fspath(target), force)
    for _, outcome in by_workers([(0, printable(os.fspath(source)), work)], 1, check=check):
        return outcome.get()
    raise AssertionError("a worker gives one outcome")


def _salvage(source: str, target: str, force: bool) -> Summary:
    place = choose(source, target, in_place=False, force=force)
    return run(Job(options=Options(salvage=True)), place, _watch)


def _watch(_: Moment) -> None:
    """End between two steps if that was asked for."""
    check_ended()


def salvage_lines(summary: Summary) -> Iterator[str]:
    """Say what was written, and what is lost."""
    lost = {one.path: len(one.lost_chunks) for one in summary.datasets if one.lost_chunks}
    whole = len(summary.datasets) - len(lost)
    said = f"{printable(summary.target)}: {counted(whole, 'dataset')} whole"
    if lost:
        said += f", {counted(len(lost), 'dataset')} with fill values for what is lost"
    yield said
    for path, count in lost.items():
        yield f"  {printable(path)}: {counted(count, 'chunk')} lost"
    for warning in summary.warnings:
        yield f"  {printable(warning)}"
