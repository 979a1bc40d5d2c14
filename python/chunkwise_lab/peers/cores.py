"""What would 16, 64 or 128 real processors reach?

python -m chunkwise_lab.peers.cores 16,64,128        # `make bench ONLY=cores` builds first
python -m chunkwise_lab.peers.cores 64 --bandwidth 300 --line 0.125

The simulation (`cores.rs`) lets threads sleep instead of decoding.  So it knows what the engine
loses, but neither how long a chunk takes nor what memory allows.  Both are measured here: real
reads by one and two threads on as many processors, and the memory's bandwidth, as STREAM does.
For one and two threads the simulation is compared with the real reads.  For more, a read takes

    opening and index + the longest of
        decoding, and what the simulation loses (waiting for the last chunk, handing over)
        the bytes that are moved / the bandwidth of such a machine
        the latency of an answer + the bytes that are received / the line's bandwidth
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import h5py

import chunkwise
from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise.trials import environment
from chunkwise.words import format_seconds, format_speed
from chunkwise_lab.checkout import FOLDER, ROOT
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.remotes import served
from chunkwise_lab.peers.schedule import Samples, measure
from chunkwise_lab.peers.spec import Comparison, Reader
from chunkwise_lab.peers.task import Sample, Task, imported, succeeded, timed
from chunkwise_lab.turns import busy_text

SIMULATION = ROOT / "target/simulated/release/examples/cores"
HERE: Final = (1, 2)  # Threads by which files are really read
# A socket has this many processors, and half of what STREAM's triad reaches on two of them: 330 to
# 350 GB/s on Azure's HBv3 (EPYC 7V73X, DDR4-3200), says learn.microsoft.com/azure,
# high-performance-computing/performance-benchmarking/stream-benchmark.
SOCKET: Final = 64
SOCKET_GB_PER_S: Final = 165.0
STREAM_NBYTES: Final = 768 << 20
LATENCY_S: Final = 0.05
# Of one request, as the package asks for them.
PIECE_NBYTES: Final = 8 << 20
# Shorter sleeps are inexact, and two processors cannot wake more threads in time.
LEAST_S, LEAST_A_THREAD_S = 250e-6, 32e-6
# More chunks for each thread show nothing more.
CHUNKS_A_THREAD: Final = 64
LEFT_OUT: Final = """\
The model leaves out the caches that processors share, the clock that falls as more of them work,
the memory of the other socket (NUMA), and the system, which holds threads up that fill new memory
at the same time. Chunks that sleep longer than they take (small ones, many threads) also meet at
locks less often. So a real machine of that size takes longer. Only handing over is overstated:
here two processors wake all threads."""


@dataclass(frozen=True)
class Work:
    """Datasets of one file that are read whole, one after the other."""

    title: str
    file: str
    datasets: tuple[str, ...]
    chunks: int  # Of each of them
    elements: int  # Of all of them, as what follows
    stored_nbytes: int
    decoded_nbytes: int
    latency_s: float = 0.0  # Of a server on loopback; 0: the file is in memory

    @property
    def moved_nbytes(self) -> int:
        """Bytes read or written in memory: results are cleared by the system, and then filled."""
        return self.stored_nbytes + 2 * self.decoded_nbytes


@dataclass(frozen=True)
class Simulated:
    """What the simulation says of a work."""

    rounds: float  # Chunks that follow each other
    own_s: float  # Seconds besides, however long a chunk takes
    busy: float  # The share of this machine's processors that was used meanwhile


@dataclass(frozen=True)
class Machine:
    """What bounds a read besides its threads, in bytes a second."""

    memory: float
    line: float  # Of the network


@dataclass(frozen=True)
class Estimate:
    """The time of a read, and what it is made of."""

    seconds: float
    bound: str  # The part that makes up most of it
    parts: Mapping[str, float]  # Seconds that each would take alone


def estimate(
    work: Work, opening_s: float, chunk_s: float, simulated: Simulated, on: Machine
) -> Estimate:
    """Say how long a read takes if one thread decodes a chunk in `chunk_s`."""
    shared = {"decoding": simulated.rounds * chunk_s, "handing over": simulated.own_s}
    network_s = work.latency_s + work.stored_nbytes / on.line if work.latency_s else 0.0
    others = {"memory": work.moved_nbytes / on.memory, "network": network_s}
    # The first answer is waited for before anything is decoded.
    threads_s = work.latency_s + sum(shared.values())
    slowest = max(others, key=others.__getitem__)
    longest = shared if threads_s >= others[slowest] else {slowest: others[slowest]}
    counted = {"opening": opening_s, **longest}
    return Estimate(
        opening_s + max(threads_s, others[slowest]),
        max(counted, key=counted.__getitem__),
        {"opening": opening_s, **shared, **others},
    )


def memory_of(threads: int, one: float, socket: float) -> float:
    """Return the bandwidth of this many processors: what one has, up to what a socket has."""
    return min(threads * one, math.ceil(threads / SOCKET) * socket)


def simulate(work: Work, threads: int, chunk_s: float) -> Simulated:
    """Let the engine read chunks that sleep, as short ones as this machine can time."""
    chunks = min(work.chunks, CHUNKS_A_THREAD * threads)
    slept_s = max(chunk_s, LEAST_S, LEAST_A_THREAD_S * threads)
    numbers = chunks, len(work.datasets), work.latency_s
    once, twice = (slept(threads, times * slept_s, *numbers) for times in (1, 2))
    # A straight line through both: what grows with a chunk's time, and what does not.
    rounds = (twice["engine_s"] - once["engine_s"]) / slept_s * work.chunks / chunks
    engine_s, bare_s = (2 * once[name] - twice[name] for name in ("engine_s", "bare_s"))
    least = len(work.datasets) * work.chunks / threads
    own_s = max(engine_s - bare_s - work.latency_s, 0.0)
    return Simulated(max(rounds, least), own_s, once["busy"])


def slept(
    threads: int, chunk_s: float, chunks: int, datasets: int, latency_s: float
) -> dict[str, float]:
    """Run the simulation once; see `cores.rs`."""
    numbers = map(str, (threads, f"{chunk_s:.9f}", chunks, datasets, latency_s))
    details: dict[str, float] = json.loads(succeeded([str(SIMULATION), "case", *numbers]).out)
    return details


def whole(file: str, datasets: Sequence[str], threads: int, latency_s: float) -> Task:
    """Open a file and read datasets whole, by this many threads on as many processors."""
    with served(file, latency_s, 0) if latency_s else nullcontext(file) as place:
        # The server has begun, and keeps all of them.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        _native.set_threads(threads)
        _native.set_profiling(True)

        def measure() -> Sample:
            chunkwise.cache_clear()
            index_s, begun = _native.profile()["index"][0], time.perf_counter()
            with chunkwise.open(place) as opened:
                found = [opened[name] for name in datasets]
                opening_s = time.perf_counter() - begun
                for dataset in found:
                    dataset[()]
                elapsed = time.perf_counter() - begun
            index_s = _native.profile()["index"][0] - index_s
            return Sample(elapsed, details={"opening_s": opening_s + index_s})

        yield measure


def received(file: str, latency_s: float) -> Task:
    """Receive all of a file as the package does, and decode nothing."""
    fsspec = imported("fsspec", "aiohttp")
    size = Path(file).stat().st_size
    begins = list(range(0, size, PIECE_NBYTES))
    with served(file, latency_s, 0) as url:
        web = fsspec.filesystem("http")
        where = [url] * len(begins), begins, [*begins[1:], size]

        def measure() -> Sample:
            before = time.process_time()
            sample = timed(lambda: web.cat_ranges(*where))
            return Sample(sample.value, details={"processor_s": time.process_time() - before})

        yield measure


def works(store: Store) -> Iterator[Work]:
    """Give what is read: large chunks and small ones, many datasets, and from far away."""
    shape, filters = (365, 600, 600), "shuffle+deflate:4"
    cube = store.sampled("cube", shape, (1, 600, 600), filters)
    small = store.sampled("cube", shape, (1, 60, 60), filters)
    parts = store.once(f"{cube.path.stem}-in-16.h5", lambda partial: _parted(cube, partial))
    yield _work("`cube`, a map a chunk", cube.path, cube.name)
    yield _work("the same in chunks of 60x60", small.path, small.name)
    names = [f"{number:02}" for number in range(16)]
    yield _work("the same as 16 datasets, one after the other", parts, *names)
    yield _work("`cube` behind HTTP, 50 ms a request", cube.path, cube.name, latency_s=LATENCY_S)


def _parted(data: Data, path: Path) -> None:
    """Write each sixteenth of a dataset's maps as a dataset, in chunks of a quarter of a map."""
    count = data.shape[0] // 16
    chunk = (1, *(size // 2 for size in data.shape[1:]))
    with h5py.File(data.path) as file, chunkwise.open(path, "w") as made:
        for number in range(16):
            values = file[data.name][number * count : (number + 1) * count]
            made.create_dataset(
                f"{number:02}", data=values, chunks=chunk, filters="shuffle+deflate:4"
            )


def _work(title: str, path: Path, *names: str, latency_s: float = 0.0) -> Work:
    with h5py.File(path) as file:
        found = [file[name] for name in names]
        sizes = zip(found[0].shape, found[0].chunks, strict=True)  # All are alike
        chunks = math.prod(-(-size // chunk) for size, chunk in sizes)
        stored_nbytes = sum(one.id.get_storage_size() for one in found)
        elements, nbytes = (
            sum(getattr(one, what) for one in found) for what in ("size", "nbytes")
        )
    return Work(title, str(path), names, chunks, elements, stored_nbytes, nbytes, latency_s)


def _measured(name: str, readers: Sequence[Reader], repeat: int) -> list[Samples]:
    """Let readers measure in turns, all of which have to succeed."""
    if not sys.stderr.isatty():
        print(name, file=sys.stderr, flush=True)
    samples = measure(Comparison(name, "cores", name, tuple(readers)), repeat)
    for one in samples:
        if why := one.failed or one.skipped:
            raise RuntimeError(f"{name}, {one.reader.name}: {why}")
    return samples


def run(
    store: Store, processors: Sequence[int], socket: float, line: float | None, repeat: int
) -> dict[str, Any]:
    """Measure, simulate and conclude; gives all of it as plain JSON values."""
    readers = [
        Reader(str(threads), "limits", {"argv": ["stream", STREAM_NBYTES, threads]})
        for threads in HERE
    ]
    streams = _measured("memory", readers, repeat)
    memory = {one.reader.name: STREAM_NBYTES / min(one.values) for one in streams}
    shares = [one.busy.of_others for one in streams]
    details: list[dict[str, Any]] = []
    loopback = math.inf
    for work in works(store):
        arguments = {"file": work.file, "datasets": work.datasets, "latency_s": work.latency_s}
        readers = [Reader(str(n), "cores:whole", {**arguments, "threads": n}) for n in HERE]
        samples = _measured(work.title, readers, repeat)
        real = {one.reader.name: min(one.values) for one in samples}
        opening_s = min(one["opening_s"] for one in samples[0].details)
        if work.latency_s:
            # A server would count as another program.
            arguments = {"file": work.file, "latency_s": work.latency_s}
            (come,) = _measured("receiving", [Reader("", "cores:received", arguments)], repeat)
            loopback = Path(work.file).stat().st_size / (min(come.values) - work.latency_s)
            # Chunks are decoded as those of the same file are, and received by a processor.
            chunk_s = next(one["chunk_s"] for one in details if one["file"] == work.file)
            chunk_s += min(one["processor_s"] for one in come.details) / work.chunks
        else:
            shares += [one.busy.of_others for one in samples]
            chunk_s = (real["1"] - opening_s) / (work.chunks * len(work.datasets))
        estimates = {}
        for threads in (*HERE, *processors):
            bandwidth = memory.get(str(threads)) or memory_of(threads, memory["1"], socket)
            on = Machine(bandwidth, loopback if threads in HERE else line or loopback)
            simulated = simulate(work, threads, chunk_s)
            found = estimate(work, opening_s, chunk_s, simulated, on)
            conditions = {"memory": on.memory, "busy": simulated.busy}
            estimates[str(threads)] = {**asdict(found), **conditions}
        details.append(
            {**asdict(work), "moved_nbytes": work.moved_nbytes, "chunk_s": chunk_s}
            | {"opening_s": opening_s, "measured": real, "estimates": estimates}
        )
    return {
        "environment": environment.describe(),
        "memory": memory,
        "socket": socket,
        "line": line or loopback,
        "load": os.getloadavg()[0],
        "disturbed": busy_text(shares),
        "works": details,
    }


def lines(found: dict[str, Any], processors: Sequence[int]) -> Iterator[str]:
    """Show it in Markdown: is the simulation right, and what does it come to?"""
    about, memory, works = found["environment"], found["memory"], found["works"]
    yield f"{about['cpu']}, {about['cpu_count']} processors, a load of {found['load']:.1f}."
    yield (
        f"Memory (STREAM's triad): {memory['1'] / 1e9:.1f} GB/s by one thread, "
        f"{memory['2'] / 1e9:.1f} GB/s by two."
    )
    yield from filter(None, [found["disturbed"]])
    yield from ("", "Is the simulation right? Real reads by 1 and 2 threads beside it:", "")
    heads = [f"{n} {word}" for n in HERE for word in ("measured", "model", "off by")]
    yield from _table(
        ["work", "bytes an element", "a chunk", "opening", *heads], (_check(one) for one in works)
    )
    yield from ("", "What more processors would reach:", "")
    heads = [head for n in processors for head in (f"{n} processors", "times one", "bound by")]
    outlooks = (_outlook(one, processors) for one in works)
    yield from _table(["work", "1 processor", *heads], outlooks)
    bandwidths = ", ".join(
        f"{works[0]['estimates'][str(n)]['memory'] / 1e9:,.0f} GB/s for {n}" for n in processors
    )
    yield ""
    yield (
        f"Assumed: {bandwidths} ({found['socket'] / 1e9:g} GB/s for each socket of {SOCKET}, and "
        "no more for each processor than one has here); "
        f"a line of {found['line'] / 1e9:.2f} GB/s."
    )
    yield LEFT_OUT


def _check(work: dict[str, Any]) -> list[str]:
    cells = [work["title"], f"{work['moved_nbytes'] / work['elements']:.1f}"]
    cells += map(format_seconds, (work["chunk_s"], work["opening_s"]))
    for threads, real in work["measured"].items():
        seconds = work["estimates"][threads]["seconds"]
        cells += [format_seconds(real), format_seconds(seconds), f"{seconds / real - 1:+.0%}"]
    return cells


def _outlook(work: dict[str, Any], processors: Sequence[int]) -> list[str]:
    one = work["measured"]["1"]
    cells = [work["title"], format_seconds(one)]
    for threads in processors:
        found = work["estimates"][str(threads)]
        cells += [format_seconds(found["seconds"]), format_speed(one / found["seconds"])]
        cells.append(found["bound"])
    return cells


def _table(heads: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * (len(heads) - 1)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, simulate, and print what that comes to."""
    options = _parser().parse_args(arguments)
    try:
        if not hasattr(os, "sched_setaffinity") or environment.usable_cpus() < max(HERE):
            raise RuntimeError(f"this needs Linux, and {max(HERE)} processors")
        if not SIMULATION.exists():
            raise RuntimeError(f"there is no {SIMULATION}: `make bench ONLY=cores` builds it")
        line = options.line and options.line * 1e9
        store = Store(options.folder, options.small)
        found = run(store, options.threads, options.bandwidth * 1e9, line, options.repeat)
    except KeyboardInterrupt:
        return 130
    except (ChunkwiseError, OSError, RuntimeError) as wrong:
        print(f"cores: {wrong}", file=sys.stderr)
        return 1
    print(
        json.dumps(found, indent=1) if options.json else "\n".join(lines(found, options.threads))
    )
    return 0


def _threads(text: str) -> list[int]:
    threads = [int(number) for number in text.split(",")]
    if min(threads) < 1:
        raise argparse.ArgumentTypeError("one processor is the fewest")
    return threads


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "threads", nargs="?", type=_threads, default=[16, 64, 128], metavar="PROCESSORS,...",
        help="of machines that are not here (default 16,64,128)",
    )  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="for generated files (default target/benches)"
    )
    parser.add_argument(
        "--bandwidth", type=float, default=SOCKET_GB_PER_S, metavar="GB/S",
        help=f"of the memory of a socket of {SOCKET} processors (default {SOCKET_GB_PER_S:g}: "
        "half of what STREAM's triad reaches on two EPYC 7V73X with DDR4-3200)",
    )  # fmt: skip
    parser.add_argument(
        "--line", type=float, metavar="GB/S",
        help="of the network (default: as fast as bytes are received here over loopback)",
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=5, help="samples of each (default 5)")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--small", action="store_true", help="tiny arrays: does it run at all?")
    return parser


if __name__ == "__main__":
    sys.exit(main())
