"""What does a rank do that a study has started?

``mpiexec -n N python -m chunkwise_lab.studies.iotest.worker PLAN OUT``: all measure, and rank 0
writes each point and its record as a line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Final, NamedTuple

import numpy as np
from h5py import h5d, h5f, h5s, h5t

from chunkwise.errors import ChunkwiseError, WrongValueError
from chunkwise.grammar import Pipeline
from chunkwise.mpi.ranks import OtherRankFailedError, abandoned, as_one_program
from chunkwise.names import hdf5_reason
from chunkwise_lab.studies.iotest.lists import access, chunked, is_linked, linked, transfer
from chunkwise_lab.studies.iotest.pattern import Values
from chunkwise_lab.studies.iotest.run import once, removed
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import Combination, chosen
from chunkwise_lab.studies.iotest.watching import Watch
from chunkwise_lab.studies.iotest.world import World, world

_FILL: Final = {"written": h5d.FILL_TIME_ALLOC, "never": h5d.FILL_TIME_NEVER}
_ALLOCATIONS: Final = {"early": h5d.ALLOC_TIME_EARLY, "incremental": h5d.ALLOC_TIME_INCR}
# Who makes the dataset, and the driver that this one opens the file with.
CREATORS: Final = {
    "all ranks": "collective", "rank 0, MPI-IO": "collective", "rank 0, POSIX": "posix",
}  # fmt: skip


# Points, each with what measures it once; the record is rank 0's.
Ways = Iterator[tuple[dict[str, str], Callable[[], dict[str, Any]]]]


def creation(world: World, settings: Mapping[str, Any], folder: Path) -> Ways:
    """Make, write and close a dataset in each way.

    ``chunks`` is the number of chunks that each rank writes, ``rows`` and ``columns`` the shape
    of one, ``filters`` the chains, ``allocations`` when chunks get their space (where that is
    said, points have ``allocation``).  Where ``cells`` is given, z, y and x of the part of a grid
    that each rank computes, each chunk holds as many of ``steps`` as ``buffered`` says: a rank
    keeps this many, and writes them at once.

    Records have ``total_s``; of it ``made_s``, until all ranks can write; ``elapsed_s``, in
    the writes, of ``selected_nbytes``; and the file's bytes, ``empty_nbytes`` when rank 0
    alone has made the dataset, ``file_nbytes`` at the end.
    """
    file = str(folder / "creation.h5")
    layout = _layout(world, settings)
    allocations = settings.get("allocations", [""])
    for text, allocation, creator, fill in product(
        settings["filters"], allocations, settings.get("creators", CREATORS), _FILL
    ):
        point = {"filter": str(text), "creator": creator, "fill": fill}
        point |= {"allocation": allocation} if allocation else {}
        yield point, partial(_in_new_file, world, file, partial(_created, world, layout, point))


class _Layout(NamedTuple):
    """A dataset of chunks, each written by one rank at once."""

    dtype: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]  # Of this rank's chunks


def _layout(world: World, settings: Mapping[str, Any]) -> _Layout:
    if "cells" not in settings:
        rows, columns, count = settings["rows"], settings["columns"], settings["chunks"]
        places = tuple((number, world.rank * rows, 0) for number in range(count))
        return _Layout("f8", (count, world.size * rows, columns), (1, rows, columns), places)
    steps, kept, (z, y, x) = settings["steps"], settings["buffered"], settings["cells"]
    starts = tuple((step, 0, world.rank * y, 0) for step in range(0, steps, kept))
    return _Layout("f4", (steps, z, world.size * y, x), (kept, z, y, x), starts)


def _in_new_file(world: World, file: str, one: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    with removed([file] if world.rank == 0 else []):
        world.barrier()
        record = one(file)
        world.barrier()
    return record


def _created(world: World, layout: _Layout, way: Mapping[str, str], file: str) -> dict[str, Any]:
    filters, creator = Pipeline.parse(way["filter"]), way["creator"]
    dtype, shape, chunk, starts = layout
    space_time = _ALLOCATIONS.get(way.get("allocation", ""))
    made = chunked(chunk, filters, _FILL[way["fill"]], space_time)
    one = Combination(io="collective")
    how, all_ranks = transfer(one, filters), access(one, world.comm)
    data = (np.random.default_rng(world.rank).integers(0, 2**16, chunk) / 2**16).astype(dtype)
    once, kind = (1,) * len(chunk), h5t.py_create(data.dtype)
    memory, space = h5s.create_simple(chunk), h5s.create_simple(shape)
    name = file.encode()
    empty_nbytes: int | None = None
    begun = perf_counter()
    if creator == "all ranks":
        opened = h5f.create(name, h5f.ACC_TRUNC, fapl=all_ranks)
        dataset = h5d.create(opened, b"d", kind, space, dcpl=made)
    else:
        if world.rank == 0:
            alone = _alone(CREATORS[creator])
            first = h5f.create(name, h5f.ACC_TRUNC, fapl=alone)
            h5d.create(first, b"d", kind, space, dcpl=made)
            first.close()
            empty_nbytes = Path(file).stat().st_size
        world.barrier()
        opened = h5f.open(name, h5f.ACC_RDWR, fapl=all_ranks)
        dataset = h5d.open(opened, b"d")
    made_s = perf_counter() - begun
    calls_s = 0.0
    for start in starts:
        space.select_hyperslab(start, once, block=chunk)
        now = perf_counter()
        dataset.write(memory, space, data, kind, how)
        calls_s += perf_counter() - now
    del dataset
    opened.close()
    world.barrier()
    total_s = perf_counter() - begun
    # Read all that was written, and compare it.
    opened = h5f.open(name, h5f.ACC_RDONLY, fapl=all_ranks)
    dataset = h5d.open(opened, b"d")
    found = np.empty_like(data)
    for start in starts:
        found.fill(np.nan)
        space.select_hyperslab(start, once, block=chunk)
        dataset.read(memory, space, found, kind, how)
        if not np.array_equal(found, data):
            raise WrongValueError(
                f"{file}: the chunk at {start} of rank {world.rank} has other values"
            )
    del dataset
    opened.close()
    slowest = world.gather((made_s, calls_s))
    if world.rank:
        return {}
    return {
        "status": "ok",
        "total_s": total_s,
        "made_s": max(made for made, _ in slowest),
        "elapsed_s": max(calls for _, calls in slowest),
        "selected_nbytes": data.itemsize * math.prod(shape),
        "empty_nbytes": empty_nbytes,
        "file_nbytes": Path(file).stat().st_size,
        "shape": list(shape),
        "itemsize": data.itemsize,
    }


def _alone(io: str) -> Any:
    """Return how rank 0 opens the file for itself."""
    if io == "posix":
        return access(Combination(io="posix"), None)
    from mpi4py import MPI

    return access(Combination(io=io), MPI.COMM_SELF)


# Points, each with what writes a file and gives its record.
Writers = Iterator[tuple[dict[str, str], Callable[[str], dict[str, Any]]]]
_GIB: Final = 1 << 30


def pitfalls(world: World, settings: Mapping[str, Any], folder: Path) -> Ways:
    """Measure one pitfall, which ``pitfall`` names, in each way."""
    file = str(folder / "pitfall.h5")
    for point, one in PITFALLS[settings["pitfall"]](world, settings):
        yield point, partial(_in_new_file, world, file, one)


def _independent(world: World, settings: Mapping[str, Any]) -> Writers:
    """Write a chunk of each rank, collectively or not, with filters or without."""

    def write(file: str, io: str, filters: Pipeline) -> dict[str, Any]:
        one, chunk = Combination(io=io), (1, settings["columns"])
        shape = (world.size, settings["columns"])
        data = np.arange(settings["columns"], dtype="f8").reshape(chunk)
        how = transfer(one, filters)
        with _made(file, access(one, world.comm), shape, chunked(chunk, filters)) as (dataset, _):
            put = _boxes(dataset.write, dataset, chunk)
            return _refused_or(lambda: put((world.rank, 0), data, how), "writing")

    for text, io in product(settings["filters"], ("independent", "collective")):
        point = {"io": io, "filter": str(text)}
        yield point, partial(write, io=io, filters=Pipeline.parse(text))


def _linked(world: World, settings: Mapping[str, Any]) -> Writers:
    """Write or read two chunks of each rank at once, as linked chunks where HDF5 does that."""

    def done(file: str, operation: str, filters: Pipeline) -> dict[str, Any]:
        one, chunk = Combination(io="collective"), (1, settings["columns"])
        shape, start = (2 * world.size, settings["columns"]), (2 * world.rank, 0)
        data = np.arange(2 * settings["columns"], dtype="f8").reshape(2, -1)
        with _made(file, access(one, world.comm), shape, chunked(chunk, filters)) as (dataset, _):
            for call in (dataset.write, *((dataset.read,) if operation == "read" else ())):
                how, do = transfer(one, filters), _boxes(call, dataset, data.shape)
                linked(how)
                begun = perf_counter()
                do(start, data, how)
                took = perf_counter() - begun
        if is_linked(how):
            return {"status": "ok", "total_s": took}
        return {"status": "refused", "error": "it was done chunk by chunk, though linked chunks "
                "were asked for (H5Pget_mpio_actual_chunk_opt_mode)"}  # fmt: skip

    for text, operation in product(settings["filters"], ("write", "read")):
        point = {"operation": operation, "filter": str(text)}
        yield point, partial(done, operation=operation, filters=Pipeline.parse(text))


def _refused_or(call: Callable[[], object], what: str) -> dict[str, Any]:
    """Time a call; if the library refuses it, its reason is the record."""
    begun = perf_counter()
    try:
        call()
    except (OSError, RuntimeError, ValueError) as wrong:
        return {"status": "refused", "error": f"{what}: {hdf5_reason(wrong)}"}
    return {"status": "ok", "total_s": perf_counter() - begun}


def _four_gib(world: World, settings: Mapping[str, Any]) -> Writers:
    """Make a dataset of chunks of 4 GiB, and of an element less; nothing is written."""
    del world, settings

    def make(file: str, elements: int) -> dict[str, Any]:
        def call() -> None:
            dcpl = chunked((elements,), Pipeline(), h5d.FILL_TIME_NEVER)
            with _made(file, access(_POSIX, None), (elements,), dcpl):
                pass

        return _refused_or(call, "making the dataset")

    for words, elements in (("4 GiB", _GIB // 2), ("8 bytes less", _GIB // 2 - 1)):
        yield {"size": words}, partial(make, elements=elements)


def _parts(world: World, settings: Mapping[str, Any]) -> Writers:
    """Write chunks in parts, by a cache that holds one and one that does not, in two orders."""
    del world
    count, parts, part = settings["chunks"], settings["parts"], settings["part"]
    nbytes = 8 * parts * part
    caches = {"half a chunk": nbytes // 2, "two chunks": 2 * nbytes}
    orders = {
        "chunk by chunk": [(c, p) for c in range(count) for p in range(parts)],
        "part by part": [(c, p) for p in range(parts) for c in range(count)],
    }

    def write(
        file: str, filters: Pipeline, cache_nbytes: int, places: list[tuple[int, int]]
    ) -> dict[str, Any]:
        values = np.random.default_rng(1).integers(0, 2**16, (count, parts, part)) / 2**16
        shape, chunk = (count, parts * part), chunked((1, parts * part), filters)
        with _made(file, _cached(cache_nbytes), shape, chunk) as (dataset, _):
            put = _boxes(dataset.write, dataset, (1, part))
            before, begun = _written(), perf_counter()
            for c, p in places:
                put((c, p * part), values[c, p])
            del put, dataset
        return _done(file, perf_counter() - begun, _written() - before, values.reshape(shape))

    for text, cache, order in product(settings["filters"], caches, orders):
        point = {"filter": str(text), "chunk-cache": cache, "order": order}
        how = {"filters": Pipeline.parse(text), "cache_nbytes": caches[cache]}
        yield point, partial(write, **how, places=orders[order])


def _first_writes(world: World, settings: Mapping[str, Any]) -> Writers:
    """Write a few elements of each uncompressed chunk, which is new, or in the file already."""
    del world
    count, elements = settings["chunks"], settings["elements"]

    def write(file: str, there: bool) -> dict[str, Any]:
        values = np.zeros((count, elements))
        # No cache holds a chunk: what is written goes to the file.
        how = _cached(elements), values.shape, chunked((1, elements), Pipeline())
        with _made(file, *how) as (dataset, opened):
            if there:
                dataset.write(h5s.ALL, h5s.ALL, values, h5t.NATIVE_DOUBLE)
            h5f.flush(opened)
            part = np.full((1, 8), 1.5)
            put = _boxes(dataset.write, dataset, part.shape)
            before, begun = _written(), perf_counter()
            for c in range(count):
                put((c, 0), part)
            h5f.flush(opened)
            took, written = perf_counter() - begun, _written() - before
        values[:, :8] = 1.5
        return _done(file, took, written, values)

    for words, there in (("new", False), ("in the file", True)):
        yield {"chunks": words}, partial(write, there=there)


@contextlib.contextmanager
def _made(file: str, how: Any, shape: tuple[int, ...], dcpl: Any) -> Iterator[tuple[Any, Any]]:
    """Make a dataset in a new file; both are closed at the end of the block."""
    opened = h5f.create(file.encode(), h5f.ACC_TRUNC, fapl=how)
    space = h5s.create_simple(shape)
    yield h5d.create(opened, b"d", h5t.NATIVE_DOUBLE, space, dcpl=dcpl), opened
    opened.close()


def _boxes(call: Any, dataset: Any, shape: tuple[int, ...]) -> Callable[..., None]:
    """Return what writes, or reads, a box of this shape that begins at an element."""
    memory, space = h5s.create_simple(shape), dataset.get_space()

    def do(start: tuple[int, ...], data: Any, how: Any = None) -> None:
        space.select_hyperslab(start, (1,) * len(shape), block=shape)
        call(memory, space, data, h5t.NATIVE_DOUBLE, how)

    return do


def _cached(nbytes: int) -> Any:
    """Return how one process opens a file with a chunk cache of this many bytes."""
    how = access(_POSIX, None)
    how.set_cache(0, 521, nbytes, 0.75)
    return how


def _done(file: str, took: float, written: int, values: Any) -> dict[str, Any]:
    """Compare what is in the file, and return the record."""
    opened = h5f.open(file.encode(), h5f.ACC_RDONLY, fapl=access(_POSIX, None))
    dataset = h5d.open(opened, b"d")
    found = np.full(values.shape, np.nan)
    dataset.read(h5s.ALL, h5s.ALL, found, h5t.NATIVE_DOUBLE)
    del dataset
    opened.close()
    if not np.array_equal(found, values):
        raise WrongValueError(f"{file}: other values were read than were written")
    return {
        "status": "ok",
        "total_s": took,
        "written_nbytes": written,
        "file_nbytes": Path(file).stat().st_size,
        "shape": list(values.shape),
        "itemsize": 8,
    }


def _written() -> int:
    """Return the bytes that this process has given to write calls."""
    for line in Path("/proc/self/io").read_text("ascii").splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    return 0


_POSIX: Final = Combination(io="posix")
PITFALLS: Final = {
    "chunk-of-4-gib": _four_gib,
    "first-write": _first_writes,
    "independent-with-filters": _independent,
    "linked-chunks": _linked,
    "parts-of-chunks": _parts,
}


# What a plan says of the pattern, by attributes of `Settings`.
_PATTERN: Final = (
    "steps", "arrays", "rows", "columns", "scaling", "alignment_increment", "alignment_threshold",
)  # fmt: skip


def walks(world: World, settings: Mapping[str, Any], folder: Path) -> Ways:
    """Measure each combination.

    ``filters`` names the chains, ``where`` what combinations must have, and the rest is of
    `chunkwise_lab.studies.iotest.settings.Settings`.  Records have ``total_s``, the wall time;
    ``made_s`` and ``elapsed_s`` of it, to make datasets and to write, of the slowest rank;
    ``selected_nbytes`` and ``file_nbytes``.
    """
    pattern = {name: settings[name] for name in _PATTERN if name in settings}
    whole = replace(Settings(single_process="mpi-io-uni", **pattern)).on(world.size)
    file = str(folder / "walk.h5")
    values = Values(whole, world.rank)

    def walked(one_of: Settings, one: Combination) -> dict[str, Any]:
        row = once(world, one_of, one, values, file)
        if row is None:
            return {}
        figures = row.figures()
        return {
            "status": "ok",
            "total_s": row.wall_s,
            "made_s": figures["creat-max"],
            # Of the writes, for their rate.
            "elapsed_s": figures["write-max"],
            "selected_nbytes": whole.nbytes,
            "file_nbytes": row.file_nbytes,
            "shape": [whole.steps, whole.arrays, *whole.plane],
            "itemsize": 8,
            "weak": whole.scaling == "weak",
        }

    for text in settings.get("filters", ("none",)):
        one_of = replace(whole, filters=Pipeline.parse(text))
        for one in chosen(one_of, world.size, _present(settings.get("where", ()), world.size)):
            # Of the dataset, where other labels say how many ranks there are.
            point = {"dataset-rank" if k == "rank" else k: v for k, v in one.point().items()}
            point["filter"] = str(text)
            # A single process by MPI-IO does what several do collectively.
            if one.io == "mpi-io-uni":
                point["io"] = "collective"
            yield point, partial(walked, one_of, one)


def _present(where: tuple[str, ...], size: int) -> list[str]:
    """Leave out of single processes what is said of several."""
    return [text for text in where if size > 1 or text.partition("=")[0] != "io"]


# Each gives what is measured; every rank takes part.
Kind = Callable[[World, Mapping[str, Any], Path], Ways]
KINDS: Final[Mapping[str, Kind]] = {"creation": creation, "pitfalls": pitfalls, "walk": walks}


def work(plan: str, out: str) -> None:
    """Carry out a plan: each point in turns, until it has as many records as it says."""
    ranks = world(mpi_alone=True)
    said = json.loads(Path(plan).read_text("utf-8"))
    kind, often = KINDS[said["settings"]["kind"]], said["repeat"]
    ways = [
        (point, often - kept, one)
        for point, one in kind(ranks, said["settings"], Path(said["folder"]))
        if (kept := _kept(said["kept"], point)) < often and _is_wanted(said["points"], point)
    ]
    try:
        if often > 1 and ways:
            # The first is slower for being the first, and is kept by nobody.
            ways[0][2]()
        with Path(out).open("a", encoding="utf-8") as file:
            records = _Records(ranks, file)
            for left in range(often, 0, -1):
                for point, lacking, one in ways:
                    if lacking >= left:
                        records.add(point, one())
            records.write(None)
    except BaseException as wrong:
        # It holds the files that are open: closing them, one rank would wait for the others.
        if ranks.size > 1:
            abandoned.append(wrong)
        raise


def _kept(counts: list[tuple[dict[str, str], int]], point: dict[str, str]) -> int:
    return next((count for known, count in counts if known == point), 0)


def _is_wanted(points: list[dict[str, str]] | None, point: dict[str, str]) -> bool:
    return points is None or any(point.items() <= one.items() for one in points)


class _Records:
    """Records that are written as soon as it is known what others did meanwhile."""

    def __init__(self, ranks: World, file: IO[str]) -> None:
        self._file, self._rank, self._watch = file, ranks.rank, Watch(ranks)
        self._waiting: list[tuple[dict[str, str], dict[str, Any]]] = []

    def add(self, point: dict[str, str], record: dict[str, Any]) -> None:
        """Take a record (collective)."""
        self._waiting.append((point, record))
        share = self._watch.others_share()
        if share is not None or not self._watch.notices:
            self.write(share)

    def write(self, share: float | None) -> None:
        """Write what waits, with the share of others."""
        if self._rank == 0:
            for point, record in self._waiting:
                load = {} if share is None else {"others_share": share}
                self._file.write(json.dumps([point, {**record, **load}]) + "\n")
            self._file.flush()
        self._waiting.clear()


def _exit_message(error: BaseException) -> tuple[str, int] | None:
    """Note the first error where the study looks: the launcher prints words of its own."""
    if not isinstance(error, ChunkwiseError):
        return None
    if not isinstance(error, OtherRankFailedError):
        with (
            contextlib.suppress(OSError),
            Path(sys.argv[1]).with_name("error").open("x", encoding="utf-8") as file,
        ):
            file.write(str(error))
    return f"chunkwise: {error}\n", 2


if __name__ == "__main__":
    as_one_program(lambda: work(*sys.argv[1:]), _exit_message)
