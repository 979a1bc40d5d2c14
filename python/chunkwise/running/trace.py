"""What did a program ask of which dataset, and which access patterns is that?

The library under the program writes a file for each process (``crates/chunkwise-preload``).  Here
they become one record, in which a walk is a pattern for ``chunkwise advise`` and ``bench``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """A box, and how it was moved from read to read.

    Attributes
    ----------
    first
        Of each dimension start, stride, count and block, as ``H5Sselect_hyperslab`` has them.
    times
        How often it was read.
    by
        Elements from each to the next, a dimension each; None if that varies.
    in_order
        Each was the next in row-major order.
    """

    first: tuple[tuple[int, int, int, int], ...]
    times: int
    by: tuple[int, ...] | None
    in_order: bool

    @property
    def block(self) -> tuple[int, ...] | None:
        """The shape of a box without gaps; None for one with gaps."""
        if any(count > 1 and stride != block for _, stride, count, block in self.first):
            return None
        return tuple(count * block for _, _, count, block in self.first)


@dataclass(frozen=True)
class Decoded:
    """What one filter did for HDF5.

    Attributes
    ----------
    name
        As HDF5 has it.
    decodes, seconds
        Chunks that it decoded, and how long that took.
    """

    name: str
    decodes: int
    seconds: float


@dataclass(frozen=True)
class TracedDataset:
    """What was asked of one dataset, by all processes together.

    Attributes
    ----------
    file, dataset
        Its names.
    shape, item_nbytes
        Elements in each dimension, and bytes of one.
    reads, nbytes, seconds
        Calls of ``H5Dread``, bytes asked for, and the time within the calls.
    by_chunkwise
        Those of the reads that chunkwise carried out.
    reason
        Why it did not carry out the others; empty if there are none.
    runs
        The selections, in the order of each process.
    unlisted
        Reads of points and unions, and those beyond what is kept.
    processes
        In how many processes.
    chunks
        Chunks of the dataset; 0 without chunks, and where HDF5 has read nothing.
    touched, loaded
        Of reads by HDF5: chunks that they touched, counted for each read, and chunks that HDF5
        fetched and decoded for them.  The others were in its cache, or never written.
    filters
        What its filters did for these reads.
    """

    file: str
    dataset: str
    shape: tuple[int, ...]
    item_nbytes: int
    reads: int
    nbytes: int
    seconds: float
    by_chunkwise: int
    reason: str
    runs: tuple[Run, ...]
    unlisted: int
    processes: int = 1
    chunks: int = 0
    touched: int = 0
    loaded: int = 0
    filters: tuple[Decoded, ...] = ()


@dataclass
class Trace:
    """All that a program and what it started have read.

    Attributes
    ----------
    datasets
        The one that took the most time first.
    processes
        Process numbers, with the program of each.
    """

    datasets: list[TracedDataset] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "processes": [{"process": n, "program": p} for n, p in self.processes.items()],
            "datasets": [asdict(one) | {"access": list(patterns(one))} for one in self.datasets],
        }


def collected(folder: Path) -> Trace:
    """Read what the processes have written into `folder`."""
    trace = Trace()
    found: dict[tuple[str, str], TracedDataset] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        trace.processes[record["process"]] = record["program"]
        for one in record["datasets"]:
            new = _dataset(one)
            old = found.get((new.file, new.dataset))
            found[new.file, new.dataset] = new if old is None else _together(old, new)
    trace.datasets = sorted(found.values(), key=lambda one: -one.seconds)
    return trace


def _dataset(record: dict[str, Any]) -> TracedDataset:
    runs = tuple(
        Run(
            tuple((a, b, c, d) for a, b, c, d in run["first"]),
            run["times"],
            None if run["by"] is None else tuple(run["by"]),
            run["in_order"],
        )
        for run in record["runs"]
    )
    filters = tuple(Decoded(**one) for one in record["filters"])
    shape = tuple(record["shape"])
    return TracedDataset(**record | {"shape": shape, "runs": runs, "filters": filters})


def _together(one: TracedDataset, other: TracedDataset) -> TracedDataset:
    return TracedDataset(
        one.file,
        one.dataset,
        one.shape,
        one.item_nbytes,
        one.reads + other.reads,
        one.nbytes + other.nbytes,
        one.seconds + other.seconds,
        one.by_chunkwise + other.by_chunkwise,
        one.reason or other.reason,
        (*one.runs, *other.runs),
        one.unlisted + other.unlisted,
        one.processes + other.processes,
        max(one.chunks, other.chunks),
        one.touched + other.touched,
        one.loaded + other.loaded,
        _summed(one.filters, other.filters),
    )


def _summed(some: tuple[Decoded, ...], others: tuple[Decoded, ...]) -> tuple[Decoded, ...]:
    found = {one.name: one for one in some}
    for one in others:
        known = found.get(one.name, Decoded(one.name, 0, 0.0))
        found[one.name] = Decoded(
            one.name, known.decodes + one.decodes, known.seconds + one.seconds
        )
    return tuple(found.values())


def under_run(one: TracedDataset, threads: int) -> float | None:
    """Estimate the seconds of these reads if `chunkwise run` decodes each chunk once.

    Parameters
    ----------
    one
        As HDF5 read it.
    threads
        That decode.

    Returns
    -------
    float or None
        About the most; None if nothing was decoded, or not by HDF5.
    """
    decoding = sum(decoded.seconds for decoded in one.filters)
    if one.by_chunkwise or one.reason or not one.loaded or decoding <= 0:
        return None
    once = decoding * min(one.chunks, one.loaded) / one.loaded
    return max(one.seconds - decoding, 0.0) + once / max(threads, 1)


def patterns(one: TracedDataset) -> Iterator[str]:
    """Give its reads as access patterns: walks by their block, nothing for other selections.

    Reads of one shape in no order are ``BLOCK@random``.  A pattern is a walk over the whole
    dataset, and weighs as much as was read of that walk.
    """
    counts: dict[str, float] = {}
    for run in one.runs:
        block = run.block
        if block is None or not block:
            continue
        size = "x".join(map(str, block))
        starts = [start for start, *_ in run.first]
        if block == one.shape:
            spec = "all"
        elif (run.in_order and not any(starts)) or run.times > 1:
            spec = size
        else:
            spec = f"{size}@random"
        whole = math.prod(-(-n // b) for n, b in zip(one.shape, block, strict=True))
        counts[spec] = counts.get(spec, 0) + run.times / max(whole, 1)
    # A box that was read alone now and then belongs to the walk of the same shape.
    for spec in [spec for spec in counts if spec.endswith("@random")]:
        walk = spec.removesuffix("@random")
        if walk in counts:
            counts[walk] += counts.pop(spec)
    least = min(counts.values(), default=1)
    for spec, share in sorted(counts.items(), key=lambda item: -item[1]):
        weight = f"{share / least:.3g}" if share / least < 1000 else f"{share / least:.0f}"
        yield spec if weight == "1" else f"{spec} weight {weight}"


def in_words(one: TracedDataset) -> str:
    """Say its reads in a few words: ``400 of 1x300 in order, then all``."""
    parts = []
    for run in one.runs[:3]:
        block = run.block
        size = "with gaps" if block is None else "of " + "x".join(map(str, block))
        if block == one.shape and block:
            part = "all" if run.times == 1 else f"all, {run.times:,} times"
        elif run.times == 1:
            part = f"one {size}"
        elif run.in_order:
            part = f"{run.times:,} {size} in order"
        elif run.by is not None:
            moved = _row(run.by)
            part = f"{run.times:,} {size}, each ({moved}) further"
        else:
            part = f"{run.times:,} {size}"
        parts.append(part)
    left = sum(run.times for run in one.runs[3:])
    if left:
        parts.append(f"{left:,} more")
    if one.unlisted:
        parts.append(f"{one.unlisted:,} of points, unions or other selections")
    return ", then ".join(parts)


def _row(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def totals(datasets: Sequence[TracedDataset]) -> tuple[int, int, float]:
    """Count reads, bytes and seconds of all of them."""
    return (
        sum(one.reads for one in datasets),
        sum(one.nbytes for one in datasets),
        sum(one.seconds for one in datasets),
    )
