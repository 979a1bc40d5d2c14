"""In which order are trials run, for how long, and what if one does not come back?

Trials that are to be compared alternate (A B A B), so that a machine that slows
down slows both.  Each runs in a worker process.  The first round measures every
combination once; further rounds repeat a pattern, with all of its drivers, while
the budget lasts.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from chunkwise.bench import access
from chunkwise.bench.access import Access
from chunkwise.bench.drivers import WITH_LIBRARY_CACHE, check_driver
from chunkwise.bench.pagecache import PAGE_CACHES, PageCache, warm
from chunkwise.bench.results import Cell, Results
from chunkwise.bench.store import Store
from chunkwise.bench.target import Target, look
from chunkwise.bench.trial import Measurement, Trial, from_worker
from chunkwise.bench.variants import SAMPLE_NBYTES, Variant, combine, written
from chunkwise.errors import UsageError

# Without the folder that `-c` and `-m` put first on the path: a `statistics.py` beside the
# user's data is not the one that is meant.
WORKER = (
    sys.executable,
    "-c",
    "import sys; sys.path[:] = filter(None, sys.path)\n"
    "from chunkwise.bench.worker import main; main()",
)
DEFAULT_SECONDS = 30.0
DEFAULT_REPEAT = 3
# What a worker takes besides its timed reads: the interpreter, imports, the file.
OVERHEAD_S = 0.6
SHORTEST_TIMEOUT_S = 3.0

Progress = Callable[[str], None]


def run(
    file: str | os.PathLike[str],
    dataset: str | None = None,
    patterns: Sequence[Access | str] | None = None,
    drivers: Sequence[str] = ("h5py", "chunkwise-py"),
    caches: Sequence[int | None] = (None,),
    repeat: int = DEFAULT_REPEAT,
    seconds: float = DEFAULT_SECONDS,
    progress: Progress | None = None,
    worker: Sequence[str] = WORKER,
    page_caches: Sequence[PageCache] = ("warm",),
    save: str | os.PathLike[str] | None = None,
    chunks: Sequence[str] = ("stored",),
    filters: Sequence[str] = ("stored",),
    sample_nbytes: int = SAMPLE_NBYTES,
    scratch: str | None = None,
) -> Results:
    """Time access patterns on a dataset, each trial in a process of its own.

    Parameters
    ----------
    file : str or path
        An HDF5 or netCDF-4 file.
    dataset : str, optional
        The dataset's path; None takes the largest chunked dataset.
    patterns : sequence of Access or str, optional
        Access patterns (`chunkwise.bench.access.parse` reads strings); None
        takes one step, one line, and everything.
    drivers : sequence of str
        Names of `chunkwise.bench.drivers.DRIVERS`; the first is the one that the
        others are compared with.
    caches : sequence of int or None
        libhdf5's chunk cache in bytes; None for the library's default.  Drivers
        that do not use libhdf5's cache run once for each pattern.
    repeat : int
        How often each combination is measured at most, as far as `seconds` lasts.
    seconds : float
        The budget for the run as a whole.  Every combination is measured at least
        once, so that very many of them may take longer.
    progress : callable, optional
        Called with one line before each trial.
    worker : sequence of str
        The command that measures one trial.
    page_caches : sequence of str
        ``warm``: the file's bytes are in memory before each trial; ``cold``: they are
        dropped from it before each.
    save : str or path, optional
        A file to which each trial is appended as it is done; trials that are in it already
        are not made again (`chunkwise.bench.store`).
    chunks, filters : sequence of str
        Other ways to store the data, each chunk shape with each pipeline
        (`chunkwise.bench.variants.combine`); written to scratch files from the dataset's
        own data.
    sample_nbytes : int
        Of a larger dataset such files hold a sample of at most so many bytes.
    scratch : str, optional
        The folder for them; None for the system's.

    Returns
    -------
    Results
        All measurements.  A trial that failed is one of them, never an exception.

    Raises
    ------
    ChunkwiseError
        If the file, dataset, patterns, drivers or caches make no sense; nothing
        has been measured then.
    """
    begun = time.monotonic()
    original = look(file, dataset)
    variants = combine(original, chunks, filters)
    with contextlib.ExitStack() as stack:
        # Whatever is refused is refused before anything is written.
        _check(original, drivers, caches, repeat, seconds, page_caches)
        making = written(original, variants, sample_nbytes, scratch, progress)
        made = stack.enter_context(making)
        plan = _plan(made.targets, patterns, drivers, caches, repeat, seconds, page_caches)
        store = None
        if save is not None:
            store = stack.enter_context(contextlib.closing(Store(save, original)))
        pages = {}
        for target in made.targets:
            # Data that lies in other files is not warmed with this one.
            elsewhere = target.layout in ("external", "virtual")
            pages[target.file] = "uncontrolled" if elsewhere else warm(target.storage)
        deadline = begun + seconds
        schedule = _Schedule(plan, repeat, deadline, progress, tuple(worker), pages, store)
        cells = schedule.execute()
        # The file that the user knows, also where a sample of it was read.
        first = replace(made.targets[0], file=original.file, storage=original.storage)
        return Results(first, cells, seconds, time.monotonic() - begun, made.sampled)


def _check(
    target: Target,
    names: Sequence[str],
    caches: Sequence[int | None],
    repeat: int,
    seconds: float,
    page_caches: Sequence[PageCache],
) -> None:
    """Raise UsageError for what cannot be measured."""
    if repeat < 1:
        raise UsageError(f"repeat is {repeat}: measure at least once")
    if not seconds > 0:
        raise UsageError(f"a budget of {seconds:g} seconds measures nothing: give more than 0")
    if not names or not caches:
        raise UsageError("name at least one driver and one cache size")
    for name in names:
        check_driver(name)
    for nbytes in caches:
        check_cache(nbytes)
    _check_page_caches(page_caches, target)


def _plan(
    targets: Sequence[Target],
    patterns: Sequence[Access | str] | None,
    names: Sequence[str],
    caches: Sequence[int | None],
    repeat: int,
    seconds: float,
    page_caches: Sequence[PageCache],
) -> list[tuple[Access, Trial]]:
    """Spell out the combinations, pattern by pattern."""
    # Variants hold the same data: what fits one fits all.
    accesses = _accesses(targets[0], patterns)
    combinations = [
        (one, target, name, nbytes, pages)
        for one in accesses
        for target in targets
        for pages in dict.fromkeys(page_caches)
        for name in dict.fromkeys(names)
        for nbytes in (dict.fromkeys(caches) if name in WITH_LIBRARY_CACHE else (None,))
    ]
    share = 0.7 * seconds / (len(combinations) * repeat) - OVERHEAD_S
    return [
        (
            one,
            Trial(
                file=target.file,
                dataset=target.dataset,
                access=one.name,
                block=one.block,
                driver=name,
                cache_nbytes=nbytes,
                comparable=target.comparable,
                page_cache=pages,
                # A cold trial before it has dropped what was warmed for all.
                warm_first=pages == "warm" and "cold" in page_caches,
                max_seconds=max(0.2, share),
                order=one.order,
                seed=one.seed,
                limit=one.limit,
                slabs=one.slabs,
                chunks=target.chunks,
                filters=target.filters,
            ),
        )
        for one, target, name, nbytes, pages in combinations
    ]


def _check_page_caches(page_caches: Sequence[PageCache], target: Target) -> None:
    if not page_caches or not set(page_caches) <= set(PAGE_CACHES):
        raise UsageError(
            f"unknown page cache '{', '.join(page_caches)}': choose from {', '.join(PAGE_CACHES)}"
        )
    if "cold" in page_caches and target.layout in ("external", "virtual"):
        raise UsageError(
            f"{target.where} is {target.layout}: its data lies in other files, which are not "
            "dropped from memory with this one; leave --page-cache cold out"
        )


def _accesses(target: Target, patterns: Sequence[Access | str] | None) -> list[Access]:
    if not patterns:
        return access.defaults(target.shape, target.itemsize)
    parsed = [
        access.parse(p, target.shape, target.itemsize, target.where) if isinstance(p, str) else p
        for p in patterns
    ]
    return list(dict.fromkeys(parsed))


def check_cache(nbytes: int | None) -> None:
    """Raise UsageError for a chunk cache that would be none."""
    if nbytes is not None and nbytes < 1:
        raise UsageError(
            f"a chunk cache of {nbytes} bytes is none: every read would decode its chunks "
            "again; give a size such as 1MiB, or default"
        )


class _Schedule:
    """The rounds of one run, within its deadline."""

    def __init__(
        self,
        plan: list[tuple[Access, Trial]],
        repeat: int,
        deadline: float,
        progress: Progress | None,
        worker: tuple[str, ...],
        pages: Mapping[str, str],
        store: Store | None = None,
    ) -> None:
        self.plan = plan
        self.repeat = repeat
        self.deadline = deadline
        self.progress = progress
        self.worker = worker
        self.pages = pages
        self.store = store
        self.done: list[list[Measurement]] = [
            store.done(trial)[:repeat] if store else [] for _, trial in plan
        ]
        self.took_s = [0.0 for _ in plan]

    def execute(self) -> tuple[Cell, ...]:
        """Run all rounds and return the cells in the order of the plan."""
        new = [index for index, done in enumerate(self.done) if not done]
        for number, index in enumerate(new):
            left = len(new) - number
            spare = self.deadline - time.monotonic() - (left - 1) * (OVERHEAD_S + 0.4)
            # Half of what is left, but for the last: one slow read must not starve
            # the others of their only trial.
            self._measure(index, max(SHORTEST_TIMEOUT_S, spare if left == 1 else spare / 2))
        for repeats in range(1, self.repeat):
            for group in self._groups():
                # What was done before a stop is not done again.
                group = [index for index in group if len(self.done[index]) <= repeats]
                expected = 1.2 * sum(self.took_s[i] for i in group)
                if time.monotonic() + expected < self.deadline:
                    for index in group:
                        self._measure(index, max(SHORTEST_TIMEOUT_S, 3 * self.took_s[index]))
        return tuple(
            Cell(
                one,
                trial.driver,
                trial.cache_nbytes,
                tuple(measurements),
                trial.page_cache,
                Variant(trial.chunks, trial.filters),
            )
            for (one, trial), measurements in zip(self.plan, self.done, strict=True)
        )

    def _groups(self) -> list[list[int]]:
        """Return the positions in the plan that are worth repeating, by pattern."""
        groups: dict[Access, list[int]] = {}
        for index, (one, _) in enumerate(self.plan):
            if self.done[index][-1].status == "ok":
                groups.setdefault(one, []).append(index)
        return list(groups.values())

    def _measure(self, index: int, timeout_s: float) -> None:
        trial = replace(self.plan[index][1], timeout_s=round(timeout_s, 1))
        repeat = len(self.done[index])
        if self.progress:
            cold = ", cold" if trial.page_cache == "cold" else ""
            self.progress(f"{trial.access}: {trial.driver}{cold}, {repeat + 1} of {self.repeat}")
        begun = time.monotonic()
        measurement = measure_in_worker(trial, self.worker)
        self.took_s[index] = time.monotonic() - begun
        if trial.page_cache == "warm":
            measurement = replace(measurement, page_cache=self.pages[trial.file])
        measurement = replace(measurement, repeat=repeat)
        if self.store is not None:
            self.store.add(measurement)
        self.done[index].append(measurement)


def measure_in_worker(trial: Trial, worker: Sequence[str] = WORKER) -> Measurement:
    """Measure one trial in a process of its own; whatever happens to it is the result.

    The process is ended when this function is left, also by Ctrl-C.
    """
    process = subprocess.Popen(
        worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = process.communicate(json.dumps(trial.to_json()).encode(), trial.timeout_s)
    except subprocess.TimeoutExpired:
        return Measurement(
            trial, "timeout", f"no figures within {trial.timeout_s:g} s; stopped there"
        )
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode != 0:
        return Measurement(trial, "failed", _last_words(process.returncode, err))
    try:
        return from_worker(trial, json.loads(out))
    except (ValueError, TypeError, AttributeError) as wrong:
        return Measurement(trial, "failed", f"the worker's answer makes no sense: {wrong}")


def _last_words(returncode: int, stderr: bytes) -> str:
    """Say in one line how a worker ended."""
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = f"signal {-returncode}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the worker was ended by {name}{hint}"
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return f"the worker ended with code {returncode}: {lines[-1] if lines else 'no message'}"
