"""What did a program read or write, of which dataset, and which access patterns is that?"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from chunkwise import system
from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape
from chunkwise.names import printable
from chunkwise.patterns import StatedPattern
from chunkwise.patterns.unbound import Block, Order, Word
from chunkwise.words import joined

FORMAT: Final = "chunkwise-trace"
VERSION: Final = 1
# Any two boxes of one shape make a run; so do two of random ones, now and then, in order.
_BY_CHANCE: Final = 2


@dataclass(frozen=True)
class Run:
    """A box, and how it was moved from read to read."""

    # Of each dimension start, stride, count and block, as ``H5Sselect_hyperslab`` has them.
    first: tuple[tuple[int, int, int, int], ...]
    last: tuple[int, ...]  # Where the last one starts
    times: int  # How often it was read
    # Elements from each to the next, a dimension each; None if that varies.
    by: tuple[int, ...] | None
    in_order: bool  # Each was the next in row-major order
    # Seconds from the first read of the program to the first of these, and to the end of the last.
    began: float
    ended: float
    seconds: float  # Within the calls
    process: int  # Which read it

    @property
    def block(self) -> tuple[int, ...] | None:
        """The shape of a box without gaps; None for one with gaps."""
        if any(count > 1 and stride != block for _, stride, count, block in self.first):
            return None
        return tuple(count * block for _, _, count, block in self.first)


@dataclass(frozen=True)
class Decoded:
    """What one filter did for HDF5."""

    name: str  # As HDF5 has it
    decodes: int  # Chunks that it decoded, and how long that took
    seconds: float


@dataclass(frozen=True)
class TracedDataset:
    """What was read of one dataset, or written to it, by all processes together."""

    operation: str  # ``read`` or ``write``
    file: str  # Its names
    dataset: str
    shape: tuple[int, ...]  # Elements in each dimension, and bytes of one
    item_nbytes: int
    # Calls of ``H5Dread`` or ``H5Dwrite``, their bytes, and the time within them.
    calls: int
    nbytes: int
    seconds: float
    by_chunkwise: int  # Those of the calls that chunkwise carried out
    reason: str  # Why it did not carry out the others; empty if there are none
    runs: tuple[Run, ...]  # The selections, in the order of each process
    unlisted: int  # Calls for points and unions, and those beyond what is kept
    processes: int = 1  # In how many processes
    chunk: tuple[int, ...] = ()  # The shape of its chunks; empty without chunks
    # The program's chunk cache for it; 0 without chunks.
    cache_nslots: int = 0
    cache_nbytes: int = 0
    hdf5: str = ""  # The version of the program's HDF5
    chunks: int = 0  # Chunks of the dataset; 0 without chunks, and where HDF5 has done nothing
    # Of calls that HDF5 carried out: chunks that they touched, counted for each call, and chunks
    # that HDF5 fetched and decoded for them, also to write a part of them.  The others were in its
    # cache, never written before, or written as a whole.
    touched: int = 0
    loaded: int = 0
    filters: tuple[Decoded, ...] = ()  # What its filters decoded for these calls


@dataclass
class Trace:
    """All that a program and what it started have read and written."""

    # The one that took the most time first.
    datasets: list[TracedDataset] = field(default_factory=list)
    # Process numbers, with the program of each.
    processes: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Trace:
        """Read one that was saved; the first ones state no version."""
        if record.get("version", VERSION) != VERSION:
            raise UsageError("the trace is of another version of chunkwise; trace again")
        programs = {one["process"]: one["program"] for one in record["processes"]}
        return cls([_dataset(one) for one in record["datasets"]], programs)

    def record(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "processes": [{"process": n, "program": p} for n, p in self.processes.items()],
            "datasets": [
                asdict(one) | {"access": [str(each) for each in patterns(one)]}
                for one in self.datasets
            ],
        }


def collected(folder: Path) -> Trace:
    """Read what the processes have written into `folder`."""
    trace = Trace()
    found: dict[tuple[str, str, str], TracedDataset] = {}
    records = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    began = min((record["began"] for record in records), default=0.0)
    for record in records:
        process, later = record["process"], record["began"] - began
        trace.processes[process] = record["program"]
        for one in record["datasets"]:
            runs = [
                run
                | {"began": run["began"] + later, "ended": run["ended"] + later}
                | {"process": process}
                for run in one["runs"]
            ]
            new = _dataset(one | {"runs": runs, "hdf5": record.get("hdf5", "")})
            key = new.operation, new.file, new.dataset
            found[key] = _together(found[key], new) if key in found else new
    trace.datasets = sorted(found.values(), key=lambda one: -one.seconds)
    return trace


def _dataset(record: Mapping[str, Any]) -> TracedDataset:
    known = {one.name: record[one.name] for one in fields(TracedDataset) if one.name in record}
    runs = tuple(
        Run(
            **run
            | {
                "first": tuple((a, b, c, d) for a, b, c, d in run["first"]),
                "last": tuple(run["last"]),
                "by": None if run["by"] is None else tuple(run["by"]),
            }
        )
        for run in record["runs"]
    )
    filters = tuple(Decoded(**one) for one in record["filters"])
    shape, chunk = tuple(record["shape"]), tuple(record["chunk"])
    return TracedDataset(
        **known | {"shape": shape, "chunk": chunk, "runs": runs, "filters": filters}
    )


def _together(one: TracedDataset, other: TracedDataset) -> TracedDataset:
    return replace(
        one,
        calls=one.calls + other.calls,
        nbytes=one.nbytes + other.nbytes,
        seconds=one.seconds + other.seconds,
        by_chunkwise=one.by_chunkwise + other.by_chunkwise,
        reason=one.reason or other.reason,
        runs=(*one.runs, *other.runs),
        unlisted=one.unlisted + other.unlisted,
        processes=one.processes + other.processes,
        chunk=one.chunk or other.chunk,
        cache_nslots=min(one.cache_nslots, other.cache_nslots) or other.cache_nslots,
        cache_nbytes=min(one.cache_nbytes, other.cache_nbytes) or other.cache_nbytes,
        chunks=max(one.chunks, other.chunks),
        touched=one.touched + other.touched,
        loaded=one.loaded + other.loaded,
        filters=_summed(one.filters, other.filters),
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
    """Estimate the seconds of reads where `chunkwise run` decodes each chunk once."""
    decoding = sum(decoded.seconds for decoded in one.filters)
    ours = one.by_chunkwise or one.reason or one.operation != "read"
    if ours or not one.loaded or decoding <= 0:
        return None
    once = decoding * min(one.chunks, one.loaded) / one.loaded
    return max(one.seconds - decoding, 0.0) + once / max(threads, 1)


@dataclass(frozen=True)
class _Walk:
    """A walk over all of a dataset."""

    block: tuple[int, ...]
    in_order: bool

    def stated(self, of: TracedDataset, weight: float) -> StatedPattern:
        if self.block == of.shape:
            return StatedPattern("all", "all", Word("all"), weight=weight)
        text, block = format_shape(self.block), Block(self.block)
        if not self.in_order:
            text = f"{text}@random"
            return StatedPattern(text, text, block, seed=0, weight=weight)
        # What is written covers the array in any case.
        order: Order | None = None if of.operation == "write" else "walk"
        text = text if order is None else f"{text}@{order}"
        return StatedPattern(text, text, block, order, weight=weight)


def patterns(one: TracedDataset) -> Iterator[StatedPattern]:
    """Give its calls as access patterns: walks by their block, nothing for other selections."""
    # Boxes of one shape: in order ``@walk``, else ``@random``, by how much of the dataset.
    counts: dict[_Walk, float] = {}
    for run in one.runs:
        block = run.block
        if block is None or not block:
            continue
        from_the_start = run.in_order and not any(start for start, *_ in run.first)
        walk = _Walk(block, block == one.shape or from_the_start or run.times > _BY_CHANCE)
        whole = math.prod(-(-n // b) for n, b in zip(one.shape, block, strict=True))
        counts[walk] = counts.get(walk, 0) + run.times / max(whole, 1)
    # A lone box belongs to the walk of the same shape, and an ordered few to a random many.
    for scattered in [walk for walk in counts if not walk.in_order]:
        walk = replace(scattered, in_order=True)
        if walk in counts:
            both = counts.pop(scattered), counts.pop(walk)
            counts[scattered if both[0] > both[1] else walk] = sum(both)
    least = min(counts.values(), default=1)
    for walk, share in sorted(counts.items(), key=lambda item: -item[1]):
        times = share / least
        yield walk.stated(one, float(f"{times:.3g}") if times < 1000 else round(times))


def in_words(one: TracedDataset) -> str:
    """Say its calls in a few words: ``400 of 1x300 in order, then all``."""
    walks = list(_together_in_words(one))
    parts = [text for text, _ in walks[:3]]
    left = sum(times for _, times in walks[3:])
    if left:
        parts.append(f"{left:,} more")
    if one.unlisted:
        parts.append(f"{one.unlisted:,} of points, unions or other selections")
    return ", then ".join(parts)


def _together_in_words(one: TracedDataset) -> Iterator[tuple[str, int]]:
    """Say each walk, and boxes of one shape in no order together; with how many boxes it has."""

    def kind(run: Run) -> Any:
        return run.block if run.times <= _BY_CHANCE and run.block != one.shape else id(run)

    for _, group in itertools.groupby(one.runs, kind):
        runs = list(group)
        times = sum(run.times for run in runs)
        block = runs[0].block
        if len(runs) > _BY_CHANCE and block is not None:
            yield f"{times:,} of {format_shape(block)} in no order", times
        else:
            yield from ((of_run(run, one.shape), run.times) for run in runs)


def of_run(run: Run, shape: tuple[int, ...]) -> str:
    """Say one walk over a dataset of this shape: ``400 of 1x300 in order``."""
    block = run.block
    size = "with gaps" if block is None else f"of {format_shape(block)}"
    if block == shape and block:
        return "all" if run.times == 1 else f"all, {run.times:,} times"
    if run.times == 1:
        return f"one {size}"
    if run.in_order:
        return f"{run.times:,} {size} in order"
    if run.by is not None:
        return f"{run.times:,} {size}, each ({', '.join(map(str, run.by))}) further"
    return f"{run.times:,} {size}"


def totals(datasets: Sequence[TracedDataset]) -> tuple[int, int, float]:
    """Count calls, bytes and seconds of all of them."""
    return (
        sum(one.calls for one in datasets),
        sum(one.nbytes for one in datasets),
        sum(one.seconds for one in datasets),
    )


def recorded(path: str, file: str, dataset: str | None) -> tuple[str, tuple[str, ...]]:
    """Find what a program has read of a dataset."""
    found = _datasets(path)
    wanted = None if dataset is None else "/" + dataset.strip("/")
    same = [one for one in found if system.same_file(one["file"], file)]
    if dataset is None and not same:
        raise UsageError(f"{printable(path)} has no read of {printable(file)}: name a dataset")
    for one in [*same, *(found if dataset is not None else [])]:
        if wanted in (None, one["dataset"]) and one["access"]:
            return one["dataset"], tuple(one["access"])
    names = sorted({one["dataset"] for one in found if one["access"]})
    what = f"of {printable(wanted)}" if wanted else f"of {printable(file)}"
    others = f"; it has walks over {joined([printable(name) for name in names])}" if names else ""
    raise UsageError(f"{printable(path)} has no walk {what} in it{others}")


def read_trace(path: str) -> list[TracedDataset]:
    """Read the whole of a saved trace."""
    with _reading(path):
        return Trace.of(_record(path)).datasets


def _datasets(path: str) -> list[dict[str, Any]]:
    with _reading(path):
        record = _record(path)
        datasets: list[dict[str, Any]] = record["datasets"]
        for one in datasets:
            if not {"file", "dataset", "access"} <= set(one):
                raise KeyError("access")
        datasets = [one for one in datasets if one.get("operation", "read") == "read"]
    if record.get("version", VERSION) != VERSION:
        raise UsageError(f"{printable(path)} is of another version of chunkwise; trace again")
    return datasets


def _record(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        found: dict[str, Any] = json.load(file)
        return found


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{printable(path)}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{printable(path)} is no trace: write one by 'chunkwise trace -o FILE -- PROGRAM'"
        ) from None
