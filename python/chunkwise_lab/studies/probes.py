"""What does a study measure that no access pattern can express?

A probe takes a `Context` and gives points, each with its records (docs/studies.md).
"""

from __future__ import annotations

import json
import math
import operator
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np

from chunkwise import patterns
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.grammar import format_size, parse_shape, parse_size
from chunkwise.measure.axes import AXES, DEFAULT
from chunkwise.measure.process import finished, python
from chunkwise.measure.results import Cell
from chunkwise.measure.schedule import Step
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SAMPLE_NBYTES
from chunkwise.model import chunk_cache
from chunkwise.repacking import repack
from chunkwise.trials.unions import index_of
from chunkwise_lab import sample
from chunkwise_lab.sample.spec import Region
from chunkwise_lab.studies import memory_places
from chunkwise_lab.studies.context import Probe
from chunkwise_lab.studies.iotest import launching

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context, Work

# What a filter is compared with.
_NONE: Final = "none"
# For a filter that takes no time and saves bytes: no storage is faster.
_MOST_MB_PER_S: Final = 1e6


def other_storage(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give each combination of the space on each kind of storage, and where a filter pays."""
    places = [_place(one) for one in context.settings.get("places", ())]
    for path, dataset, labels in context.data.values():
        measured = [(cell, [_known(one.to_record(), cell) for one in cell.measurements])
                    for cell in context.measured(path, dataset, touch=True)]  # fmt: skip
        for cell, records in measured:
            for name, mb_per_s, latency_s in (("measured", math.inf, 0.0), *places):
                text = f"{mb_per_s:g}" if mb_per_s < math.inf else "-"
                point = {**labels, **cell.point, "place": name, "bandwidth": text}
                yield point, [_moved(one, mb_per_s, latency_s) for one in records]
        yield from _paying(labels, measured)


def _place(values: Mapping[str, Any]) -> tuple[str, float, float]:
    try:
        name, mb_per_s = str(values["name"]), float(values["mb_per_s"])
        latency_s = float(values.get("latency_ms", 0)) / 1e3
    except (KeyError, TypeError, ValueError) as wrong:
        raise UsageError(f"places: a place has a name and mb_per_s: {wrong}") from None
    if not (mb_per_s > 0 and latency_s >= 0):
        raise UsageError(f"places, {name}: give mb_per_s above 0, and latency_ms from 0")
    return name, mb_per_s, latency_s


def _known(record: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """Return what a trial took, and what it moves."""
    kept = ("status", "error", "repeat", "hdf5", "extrapolated")
    found = {name: record[name] for name in kept if record.get(name) is not None}
    if record["status"] != "ok":
        return found
    chunk = record.get("chunks")
    if record["operation"] != "read":
        requests = record.get("time_chunk_loads") or record["operations"]
        moved = record.get("file_nbytes") or 0
    else:
        requests = record.get("time_chunk_loads") or _touches(cell, record["shape"], chunk)
        moved = record["selected_nbytes"]
    if chunk and record["operation"] == "read":
        # As much of each chunk as is stored of all.
        raw_nbytes = math.prod(record["shape"]) * record["itemsize"]
        share = (record.get("stored_nbytes") or raw_nbytes) / raw_nbytes
        moved = requests * (math.prod(chunk) * record["itemsize"] * share)
    return {**found, "memory_s": record["total_s"], "requests": requests, "moved": moved}


def _touches(cell: Cell, shape: Sequence[int], chunks: Sequence[int] | None) -> int:
    """Count the chunks that each operation goes through, one after the other."""
    walk = cell.access.walk(shape)
    if chunks is None:
        return int(walk.operations)
    count = 0
    for number in range(walk.operations):
        start, _, _, block = walk[number]
        count += math.prod(
            (first + length - 1) // chunk - first // chunk + 1
            for first, length, chunk in zip(start, block, chunks, strict=True)
        )
    return count


def _moved(known: Mapping[str, Any], mb_per_s: float, latency_s: float) -> dict[str, Any]:
    """Add what storage takes."""
    kept = {name: value for name, value in known.items() if name not in ("memory_s", "moved")}
    if "memory_s" not in known:
        return kept
    storage_s = known["moved"] / (mb_per_s * 1e6) + known["requests"] * latency_s
    return {
        **kept,
        "total_s": known["memory_s"] + storage_s,
        "storage_s": storage_s,
        "moved_nbytes": known["moved"],
    }


def _paying(
    labels: Mapping[str, str], measured: Sequence[tuple[Cell, list[dict[str, Any]]]]
) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give each filter the bandwidth below which it pays, repeat by repeat."""
    plain = {
        _others(cell): records for cell, records in measured if cell.point.get("filter") == _NONE
    }
    for cell, records in measured:
        beside = plain.get(_others(cell), ())
        if cell.point.get("filter") == _NONE:
            continue
        pairs = [
            (one, other)
            for one, other in zip(records, beside, strict=False)
            if "memory_s" in one and "memory_s" in other
        ]
        if pairs:
            point = {**labels, **cell.point, "place": "pays below", "bandwidth": "-"}
            yield point, [{"status": "ok", "pays_below": _pays_below(*pair)} for pair in pairs]


def _others(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in cell.point.items() if name != "filter")


def _pays_below(one: Mapping[str, Any], plain: Mapping[str, Any]) -> float:
    """Return MB/s: the bytes that a filter saves by the seconds that it costs."""
    saved, cost_s = plain["moved"] - one["moved"], one["memory_s"] - plain["memory_s"]
    if saved <= 0:
        return 0.0
    return min(_MOST_MB_PER_S, saved / 1e6 / cost_s) if cost_s > 0 else _MOST_MB_PER_S


# A slot for each chunk of a grid, in C order, by the number of slots.
Hash = Callable[[Sequence[int], int], list[int]]


def predicted_loads(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Predict the loads of a walk by columns over the one dataset of a run, of two dimensions."""
    file, dataset, _ = next(iter(context.data.values()))
    target = look(file, dataset)
    grid = [-(-n // c) for n, c in zip(target.shape, target.chunks or target.shape, strict=True)]
    columns = [i // (target.chunks or target.shape)[1] for i in range(target.shape[1])]
    for nslots in context.settings["nslots"]:
        for by, slots in HASHES.items():
            count = loads(slots(grid, int(nslots)), grid, columns)
            yield (
                {"by": by, "nslots": str(nslots)},
                [{"status": "ok", "time_chunk_loads": count}],
            )


def loads(slots: Sequence[int], grid: Sequence[int], columns: Sequence[int]) -> int:
    """Count the chunks loaded if each slot holds one chunk, and there is room for all."""
    holder: dict[int, int] = {}
    count = 0
    for column in columns:
        for chunk in range(column, prod(grid), grid[1]):
            count += holder.get(slots[chunk]) != chunk
            holder[slots[chunk]] = chunk
    return count


def _of_the_paper(grid: Sequence[int], nslots: int) -> list[int]:
    return [chunk % nslots for chunk in range(prod(grid))]


def _of_the_library(grid: Sequence[int], nslots: int) -> list[int]:
    return [int(slot) for slot in chunk_cache.slots(grid, [0] * len(grid), grid, nslots)]


HASHES: Final[dict[str, Hash]] = {
    "paper's formula": _of_the_paper,
    "libhdf5's source": _of_the_library,
}


_LEAST_SHARE: Final = 1.0
# Some hundred samples of what has a percent of a second.
_HERTZ: Final = "9999"
_SYSTEM: Final = "the system"
_WRITING: Final = """
import json, sys
import h5py, numpy as np
from chunkwise_lab.sample import find
from chunkwise_lab.sample.spec import Region
source, name, out, level, chunk, lines = json.loads(sys.argv[1])
with h5py.File(source) as file:
    made, seed, shape = find(file.attrs["sample"]), int(file.attrs["seed"]), file[name].shape
with h5py.File(out, "w", rdcc_nbytes=8910 * 1024, rdcc_w0=1.0) as file:
    dataset = file.create_dataset("a", shape, made.dtype, chunks=tuple(chunk), compression=level)
    for y in range(0, shape[1], lines):
        part = (shape[0], min(lines, shape[1] - y), shape[2])
        values = made.values(Region((0, y, 0), part, shape, seed))
        dataset[:, y : y + lines] = np.broadcast_to(values, part).astype(made.dtype, order="C")
"""


def profiled_functions(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Take samples of each dataset's program; small functions are one for each library."""
    perf, recorded = shutil.which("perf"), context.folder / "perf.data"
    if perf is None:
        raise UsageError("a profile by function needs perf, which is not here (linux-perf)")
    out = context.folder / "profiled.h5"
    works: list[tuple[dict[str, str], Work]] = []
    for path, dataset, labels in context.data.values():
        for level in context.settings["levels"]:
            if not context.wants({**labels, "level": str(level)}):
                continue
            arguments = json.dumps([path, dataset, str(out), level or None, (11, 8, 360), 8])
            command = [*python(_WRITING), arguments]

            def sampled(level: int = level, command: Sequence[str] = command) -> dict[str, Any]:
                context.say(Step(f"taking samples, deflate {level}"))
                done = finished(
                    [perf, "record", "-q", "-F", _HERTZ, "-o", str(recorded), *command]
                )
                out.unlink(missing_ok=True)
                if done.returncode:
                    raise UsageError(f"perf took no samples: {done.how}")
                fields = ["--percent-limit=0", "--fields=overhead,dso,symbol"]
                how = ["-q", "--stdio", "--field-separator=|", *fields]
                said = finished([perf, "report", "-i", str(recorded), *how])
                return {"status": "ok", "report": said.out.decode("utf-8", "replace")}

            works.append(({**labels, "level": str(level)}, sampled))
    for point, records in context.repeated(works):
        reports = [_shares(record["report"]) for record in records]
        for (of, name), shares in _summed(reports).items():
            named = {**point, "of": of, "name": name}
            yield named, [{"status": "ok", "share": one} for one in shares]


def _shares(report: str) -> dict[tuple[str, str], float]:
    """Add up what a report of perf says of each function of each library, in percent."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for line in report.splitlines():
        if line.count("|") == 2 and "%" in line:
            share, file, symbol = (text.strip() for text in line.split("|"))
            found[_library(file), symbol.partition("] ")[2]] += float(share.rstrip("%"))
    return found


def _summed(
    reports: Sequence[Mapping[tuple[str, str], float]],
) -> dict[tuple[str, str], list[float]]:
    """Sum up functions and libraries, in each report by the same names."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(reports))
    for library, name in sorted({key for report in reports for key in report}):
        shares = [report.get((library, name), 0.0) for report in reports]
        # By the first report: those that come later have the same rows.
        is_small = shares[0] < _LEAST_SHARE
        if is_small or name.startswith("0x") or library == _SYSTEM:
            name = f"others of {library}"
        for key in (("function", name), ("library", library)):
            found[key] = list(map(operator.add, found[key], shares))
    return found


def _library(file: str) -> str:
    """Name a shared object without its version, and everything of the generator by one name."""
    name = re.split(r"[-.]", file.removeprefix("lib"))[0]
    known = {"hdf5": "HDF5", "z": "zlib", "[kernel": _SYSTEM, "c": "libc"}
    return known.get(name, "NumPy and Python")


_CHUNK_NBYTES: Final = 1 << 18
# `h5py` by itself: nothing of ours must be counted.  Peak memory is reset by a new process only.
_READING: Final = """
import json, sys
import h5py
path, names, nbytes, keep = json.loads(sys.argv[1])
kept = []
with h5py.File(path, rdcc_nbytes=nbytes, rdcc_nslots=10007) as file:
    for name in names:
        dataset = file[name]
        for row in range(0, len(dataset), dataset.chunks[0] // 4):
            dataset[row]
        if keep:
            kept.append(dataset)
        dataset = None
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def many_open(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Measure peak memory by the number of datasets."""
    numbers = [str(number) for number in context.settings["datasets"]]
    cache = parse_size(str(context.settings["cache"]))
    path = context.folder / "datasets.h5"
    context.say(Step("generating many datasets"))
    _many_datasets(path, max(map(int, numbers)), cache)
    try:
        works = []
        for number, (then, keep) in product(numbers, (("kept open", True), ("closed", False))):
            names = [str(i) for i in range(int(number))]
            one = {"datasets": number, "then": then}
            works.append((one, partial(_peak, path, names, cache, keep)))
        context.say(Step("opening many datasets"))
        yield from context.repeated(works)
    finally:
        path.unlink(missing_ok=True)


def _many_datasets(path: Path, datasets: int, nbytes: int) -> None:
    """Write datasets that fill their caches; zeros, as memory does not depend on values."""
    shape = (nbytes // _CHUNK_NBYTES * 16, _CHUNK_NBYTES // 16)
    with h5py.File(path, "w") as file:
        for i in range(datasets):
            file.create_dataset(
                str(i), data=np.zeros(shape, "u1"), chunks=(16, shape[1]), compression=1
            )


def _peak(path: Path, names: list[str], cache: int, keep: bool) -> dict[str, Any]:
    arguments = json.dumps([str(path), names, cache, keep])
    done = finished([*python(_READING), arguments])
    if done.returncode:
        return {"status": "failed", "error": f"the program {done.how}"}
    return {"status": "ok", "peak_rss_nbytes": int(done.out) * 1024}


# In the order in which data passes through them.
PHASES: Final = ("generate", "compress", "store", "rest")


def timed_phases(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give each phase of each combination; `store` is an estimate, `rest` is left over."""
    for path, dataset, labels in context.data.values():
        for cell in context.measured(path, dataset):
            rounds = [
                _phases(measured.to_record(), _generating_s(path, dataset, cell.access))
                for measured in cell.measurements
            ]
            for phase in PHASES:
                yield {**labels, **cell.point, "phase": phase}, [one[phase] for one in rounds]


def _generating_s(path: str, dataset: str, pattern: patterns.Access) -> float:
    """Return the seconds that a sample's generator takes for the blocks of a pattern."""
    with h5py.File(path) as file:
        made, seed = sample.find(file.attrs["sample"]), int(file.attrs["seed"])
        shape = file[dataset].shape
    walk = pattern.walk(shape)
    begun = time.perf_counter()
    for number in range(walk.operations):
        start, _, _, block = walk[number]
        values = made.values(Region(tuple(start), tuple(block), shape, seed))
        np.broadcast_to(values, block).astype(made.dtype, order="C")
    return time.perf_counter() - begun


def _phases(record: Mapping[str, Any], generate_s: float) -> dict[str, dict[str, Any]]:
    """Split one trial's time; if it failed, or nothing is known, no phase has figures."""
    common = {
        name: record[name]
        for name in ("status", "error", "repeat", "extrapolated", "hdf5", "time_method")
        if record.get(name) is not None
    }
    filters = record.get("time_filters_s")
    if record["status"] != "ok" or filters is None:
        return {phase: dict(common) for phase in PHASES}
    compress_s = sum(seconds for seconds in filters.values() if seconds is not None)
    store_s = record.get("time_storage_s") or 0.0
    rest_s = max(0.0, record["total_s"] - compress_s - store_s)
    seconds = dict(zip(PHASES, (generate_s, compress_s, store_s, rest_s), strict=True))
    whole_s = sum(seconds.values())
    return {
        phase: {**common, "total_s": spent, "share": 100 * spent / whole_s}
        for phase, spent in seconds.items()
    }


_COUNTS = Path("/proc/thread-self/io")


def counted_reads(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Count the reads of h5py for each access pattern and chunk cache of the run's axes."""
    if not _COUNTS.exists():
        raise UsageError(f"reads are not counted here: there is no {_COUNTS}")
    points = context.space.points((DEFAULT,)) if context.space else ()
    for path, dataset, labels in context.data.values():
        for point in points:
            access, cache = point["access"], point["cache"]
            for by in context.settings.get("set-by", ("H5Pset_cache",)):
                context.say(Step(f"counting the reads of {access}"))
                record = _counted(path, dataset, access, cache, by)
                yield {**labels, "access": access, "cache": cache, "set-by": by}, [record]


def _counted(path: str, name: str, access: str, cache: str, by: str) -> dict[str, Any]:
    nbytes = None if cache == DEFAULT else parse_size(cache)
    with h5py.File(path, rdcc_nbytes=nbytes if by == "H5Pset_cache" else None) as file:
        dapl = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
        if nbytes is not None and by == "H5Pset_chunk_cache":
            dapl.set_chunk_cache(521, nbytes, 0.75)
        dataset = h5py.Dataset(h5py.h5d.open(file.id, name.encode(), dapl))
        pattern = patterns.parse(access, dataset.shape, dataset.dtype.itemsize, name)
        walk = pattern.walk(dataset.shape)
        idle, before = _counts(), _counts()
        for number in range(walk.operations):
            dataset[index_of(walk[number])]
        after = _counts()
    # Looking at the counts reads, too.
    calls, read = (c - 2 * b + a for a, b, c in zip(idle, before, after, strict=True))
    hdf5 = h5py.version.hdf5_version
    return {"status": "ok", "hdf5": hdf5, "read_calls": calls, "read_nbytes": read}


def _counts() -> tuple[int, int]:
    """Return the calls that read and the bytes read, of this thread until now."""
    lines = dict(line.split(": ") for line in _COUNTS.read_text().splitlines())
    return int(lines["syscr"]), int(lines["rchar"])


# The programs, by the reader that stands for each.
_TOOLS: Final = {"libhdf5": "h5repack", "chunkwise": "chunkwise"}
_SOURCES: Final = ("stored", "none")


def timed_repacking(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Time each program on the one dataset of a run, as it is and without filters."""
    (file, dataset, _), chunk = next(iter(context.data.values())), str(context.settings["chunk"])
    defaults = {**{name: axis.default for name, axis in AXES.items()}, "operation": "repack"}
    points = [
        {**defaults, "reader": reader, "filter": filters, "chunk": chunk}
        for filters in _SOURCES
        for reader in _TOOLS
        if not context.readers or reader in context.readers
    ]
    points = [point for point in points if context.wants(point)]
    if not points:
        return
    nbytes = Path(file).stat().st_size
    if nbytes > SAMPLE_NBYTES:
        text = f"the file has {format_size(nbytes)}: only up to {format_size(SAMPLE_NBYTES)}"
        yield from ((point, [_failed(f"not repacked: {text}")]) for point in points)
        return
    with tempfile.TemporaryDirectory(prefix="repack-", dir=context.folder) as name:
        sources = {"stored": Path(file), "none": Path(name) / "plain.h5"}
        repack(file, sources["none"], filters={dataset: "none"})

        def repacked(point: dict[str, str]) -> dict[str, Any]:
            tool, source = _TOOLS[point["reader"]], sources[point["filter"]]
            context.say(Step(f"repacking by {tool}"))
            return _timed(tool, source, dataset, chunk, Path(name))

        yield from context.repeated([(point, partial(repacked, point)) for point in points])


def _timed(tool: str, source: Path, dataset: str, chunk: str, folder: Path) -> dict[str, Any]:
    """Run one program once; the record holds its result, even a failure."""
    made = folder / "made.h5"
    made.unlink(missing_ok=True)
    program = shutil.which("h5repack")
    if tool == "chunkwise":
        start = [*python("from chunkwise.cli import main; main()")]
        command = [*start, "repack", str(source), str(made), "--chunk", f"{dataset}:{chunk}"]
    elif program is not None:
        start = [program]
        command = [*start, "-l", f"{dataset}:CHUNK={chunk}", str(source), str(made)]
    else:
        return _failed("h5repack is not installed (Debian: hdf5-tools)")
    try:
        done = finished(command)
        if done.returncode:
            return _failed(f"{tool} {done.how}")
        target = look(made, dataset)
        said = finished([*start, "--version"]).out.decode()
    except (ChunkwiseError, OSError) as wrong:
        return _failed(f"{tool}: {wrong}")
    if not _is_as_requested(target, look(source, dataset), chunk):
        return _failed(f"{tool} reported success, and left something out")
    return {
        "status": "ok",
        "total_s": done.elapsed_s,
        "shape": target.shape,
        "itemsize": target.itemsize,
        "stored_nbytes": target.stored_nbytes,
        "file_nbytes": made.stat().st_size,
        "tool_version": said.split()[-1],
    }


def _is_as_requested(made: Target, source: Target, chunk: str) -> bool:
    expected = parse_shape(chunk), source.filters, source.shape
    return (made.chunks, made.filters, made.shape) == expected and made.stored_nbytes > 0


def _failed(why: str) -> dict[str, Any]:
    return {"status": "failed", "error": why}


PROBES: Final[dict[str, Probe]] = {
    "chunk-slots": predicted_loads,
    "elsewhere": other_storage,
    "functions": profiled_functions,
    "iotest": launching.measure,
    "memory-places": memory_places.measured,
    "open-datasets": many_open,
    "phases": timed_phases,
    "reads": counted_reads,
    "repack": timed_repacking,
}
