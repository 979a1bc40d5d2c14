"""What happens in one run, from a space of parameters to results?"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from chunkwise.errors import UsageError
from chunkwise.measure.explain import explain
from chunkwise.measure.libraries import LibHDF5, check_zlib
from chunkwise.measure.libraries import find as find_library
from chunkwise.measure.planning import Plan, spell_out
from chunkwise.measure.planning import check as check_plan
from chunkwise.measure.results import Results
from chunkwise.measure.schedule import Schedule, Step
from chunkwise.measure.space import Space
from chunkwise.measure.store import Store
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SAMPLE_NBYTES, Prepared, Variant, prepared
from chunkwise.names import printable
from chunkwise.trials.pagecache import warm
from chunkwise.words import counted, format_seconds

DEFAULT_SECONDS = 30.0
DEFAULT_REPEAT = 3
# Eleven days: what systems let a process wait for another is bounded.
MOST_SECONDS = 1e6
# What a plain `chunkwise bench` compares.
DEFAULT_READERS = ("h5py", "chunkwise-py")


def run(
    file: str | os.PathLike[str] | Target,  # Also a dataset that was looked at already
    dataset: str | None = None,
    # By default: one step, one line, everything; by h5py, compared with chunkwise.
    space: Space | None = None,
    *,
    repeat: int = DEFAULT_REPEAT,
    seconds: float = DEFAULT_SECONDS,
    progress: Callable[[Step], None] | None = None,
    # The command that measures one trial, whatever the library; None for the usual.
    worker: Sequence[str] | None = None,
    save: str | os.PathLike[str] | None = None,
    sample_nbytes: int = SAMPLE_NBYTES,
    scratch: str | None = None,
    # Whether each element that is read is compared, outside the timed region, with what a plain
    # read of everything through libhdf5 gives; or a file that holds all elements in C order, as
    # they are stored.  A trial that reads another value has failed (`Results.wrong`).
    check: bool | str | os.PathLike[str] = False,
    # Seconds of reads or writes of a trial, about; more is estimated; None for its share.
    trial_seconds: float | None = None,
    # Whether a short trial comes first and is dropped, so that none is slower for being first.
    touch: bool = False,
    # Variants that are encoded as by `chunkwise repack`; all others are written by libhdf5.
    repacked: Collection[Variant] = (),
) -> Results:
    """Time access patterns on a dataset, each trial in a process of its own."""
    begun = time.monotonic()
    if repeat < 1:
        raise UsageError(f"repeat is {repeat}: measure at least once")
    if not seconds > 0:
        raise UsageError(f"a budget of {seconds:g} seconds measures nothing: give more than 0")
    seconds = min(seconds, MOST_SECONDS)
    space = with_readers(space or Space())
    original = file if isinstance(file, Target) else look(file, dataset)

    step = progress or (lambda _: None)

    def say(text: str, *, warning: bool = False) -> None:
        step(Step(text, warning=warning))

    with contextlib.ExitStack() as stack:
        # Whatever is refused is refused before anything is written.
        plan = spell_out(original, space)
        check_plan(original, plan)
        if plan.least_s > seconds:
            say(
                f"{counted(len(plan.planned), 'combination')}, each measured once, take about "
                f"{format_seconds(plan.least_s)} at the least: longer than the budget of "
                f"{format_seconds(seconds)}",
                warning=True,
            )
        making = prepared(
            original,
            plan.variants("read"),
            plan.variants("write"),
            sample_nbytes,
            scratch,
            say,
            elements=check is True,
            repacked=repacked,
        )
        libraries = _libraries(plan, worker, stack)
        made = stack.enter_context(making)
        known = _known(check, made, original)
        store = None
        if save is not None:
            store = stack.enter_context(contextlib.closing(Store(save, original)))
        deadline = begun + seconds
        cells = Schedule(
            plan.cells(made, repeat, seconds, known, trial_seconds),
            repeat,
            deadline,
            libraries,
            _warmed(made, say),
            step,
            store,
            shares=trial_seconds is None,
            touch=touch,
        ).execute()
        # The file that the user knows, also if a sample of it was read.
        first = next(iter(made.reading.values()), original)
        whole = replace(
            first,
            file=original.file,
            dataset=original.dataset,
            storage=original.storage,
            file_filters=original.file_filters,
        )
        elapsed_s = time.monotonic() - begun
        results = Results(whole, cells, seconds, elapsed_s, made.sampled, space.design, original)
        return replace(results, advice=explain(results))


def with_readers(space: Space) -> Space:
    """Complete a space that names no readers."""
    if "reader" in space.axes or space.design == "list":
        return space
    return replace(space, axes={**space.axes, "reader": DEFAULT_READERS})


def _libraries(
    plan: Plan, worker: Sequence[str] | None, stack: contextlib.ExitStack
) -> dict[str | None, LibHDF5]:
    """Find every requested libhdf5, and see that it calls the requested zlib."""
    if worker is not None:
        return {path: LibHDF5(path, "", tuple(worker), {}) for path in plan.libraries}
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="chunkwise-"))
    found = {path: find_library(path, folder) for path in plan.libraries}
    for zlib, reader, path in plan.zlibs:
        check_zlib(zlib, reader, found[path])
    return found


def _known(check: bool | str | os.PathLike[str], made: Prepared, target: Target) -> str | None:
    """Return the file with which reads are compared."""
    if isinstance(check, bool):
        return made.data if check else None
    path = os.fspath(check)
    if made.sampled is not None or Path(path).stat().st_size != target.nbytes:
        raise UsageError(
            f"{printable(path)}: does not hold all elements that are read of {target.where}; "
            "check=True reads them from the file"
        )
    return path


def _warmed(made: Prepared, say: Callable[[str], None]) -> dict[str, str]:
    """Read each file once, and say from where its trials will read."""
    say("warming the page cache")
    pages = {}
    for target in made.reading.values():
        # Data that lies in other files is not warmed with this one.
        elsewhere = target.layout in ("external", "virtual")
        pages[target.file] = "uncontrolled" if elsewhere else warm(target.storage)
    return pages
