"""What do the paper's warnings about chunks cost on this machine?

Each is measured separately, on one dataset: what the library refuses, and what it does again
and again.  All but the first need one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np
from h5py import h5d, h5f, h5s, h5t

from chunkwise.errors import WrongValueError
from chunkwise.grammar import Pipeline
from chunkwise.names import hdf5_reason
from chunkwise_lab.studies.iotest.leftover import removed
from chunkwise_lab.studies.iotest.lists import access, chunked, transfer
from chunkwise_lab.studies.iotest.walk import Combination
from chunkwise_lab.studies.iotest.world import World


class Parts(NamedTuple):
    """Which parts of which chunks are written, in which order."""

    chunks: int
    # Of each chunk, and their elements.
    parts: int
    elements: int
    # Chunk and part of each write.
    places: tuple[tuple[int, int], ...]


Record = tuple[dict[str, str], dict[str, Any]]
# Points, each with what writes a file and gives its record.
Ways = Iterator[tuple[dict[str, str], Callable[[str], dict[str, Any]]]]
_GIB: Final = 1 << 30


def measure(world: World, settings: Mapping[str, Any], folder: Path) -> Iterator[Record]:
    """Measure one pitfall, which ``pitfall`` names, once in each way."""
    file = str(folder / "pitfall.h5")
    for point, one in PITFALLS[settings["pitfall"]](world, settings):
        with removed([file] if world.rank == 0 else []):
            world.barrier()
            record = one(file)
            world.barrier()
        yield point, record


def _independent(world: World, settings: Mapping[str, Any]) -> Ways:
    """Write a chunk of each rank, collectively or not, with filters or without."""

    def write(file: str, io: str, filters: Pipeline) -> dict[str, Any]:
        chunk = (1, settings["columns"])
        space = h5s.create_simple((world.size, settings["columns"]))
        opened = h5f.create(
            file.encode(), h5f.ACC_TRUNC, fapl=access(Combination(io=io), world.comm)
        )
        dataset: Any = h5d.create(
            opened, b"d", h5t.NATIVE_DOUBLE, space, dcpl=chunked(chunk, filters)
        )
        space.select_hyperslab((world.rank, 0), (1, 1), block=chunk)
        data = np.arange(settings["columns"], dtype="f8").reshape(chunk)
        memory = h5s.create_simple(chunk)
        how = transfer(Combination(io=io), filters)
        record = _refused_or(
            lambda: dataset.write(memory, space, data, h5t.NATIVE_DOUBLE, how), "writing"
        )
        dataset = None
        opened.close()
        return record

    for text in settings["filters"]:
        for io in ("independent", "collective"):
            point = {"io": io, "filter": str(text)}
            yield point, partial(write, io=io, filters=Pipeline.parse(text))


def _refused_or(call: Callable[[], object], what: str) -> dict[str, Any]:
    """Time a call; if the library refuses it, its reason is the record."""
    begun = perf_counter()
    try:
        call()
    except (OSError, RuntimeError, ValueError) as wrong:
        return {"status": "refused", "error": f"{what}: {hdf5_reason(wrong)}"}
    return {"status": "ok", "total_s": perf_counter() - begun}


def _four_gib(world: World, settings: Mapping[str, Any]) -> Ways:
    """Make a dataset of chunks of 4 GiB, and of an element less; nothing is written."""
    del world, settings

    def make(file: str, elements: int) -> dict[str, Any]:
        def call() -> None:
            made = chunked((elements,), Pipeline(), h5d.FILL_TIME_NEVER)
            opened = h5f.create(file.encode(), h5f.ACC_TRUNC, fapl=access(_POSIX, None))
            space = h5s.create_simple((elements,))
            h5d.create(opened, b"d", h5t.NATIVE_DOUBLE, space, dcpl=made)
            opened.close()

        return _refused_or(call, "making the dataset")

    for words, elements in (("4 GiB", _GIB // 2), ("8 bytes less", _GIB // 2 - 1)):
        yield {"size": words}, partial(make, elements=elements)


def _parts(world: World, settings: Mapping[str, Any]) -> Ways:
    """Write chunks in parts, by a cache that holds one and one that does not, in two orders."""
    del world
    count, parts, part = settings["chunks"], settings["parts"], settings["part"]
    nbytes = 8 * parts * part
    caches = {"half a chunk": nbytes // 2, "two chunks": 2 * nbytes}
    orders = {
        "chunk by chunk": [(c, p) for c in range(count) for p in range(parts)],
        "part by part": [(c, p) for p in range(parts) for c in range(count)],
    }
    for text in settings["filters"]:
        for cache, cache_nbytes in caches.items():
            for order, places in orders.items():
                point = {"filter": str(text), "chunk-cache": cache, "order": order}
                pattern = Parts(count, parts, part, tuple(places))
                told = (Pipeline.parse(text), cache_nbytes, pattern)
                yield point, partial(_in_parts, told=told)


def _in_parts(file: str, told: tuple[Pipeline, int, Parts]) -> dict[str, Any]:
    filters, cache_nbytes, (count, parts, part, places) = told
    chunk = (1, parts * part)
    dataset, opened = _posix(file, (count, parts * part), chunk, filters, cache_nbytes)
    values = np.random.default_rng(1).integers(0, 2**16, (count, parts, part)) / 2**16
    memory, space = h5s.create_simple((1, part)), dataset.get_space()
    before, begun = _written(), perf_counter()
    for c, p in places:
        space.select_hyperslab((c, p * part), (1, 1), block=(1, part))
        dataset.write(memory, space, values[c, p], h5t.NATIVE_DOUBLE)
    del dataset
    opened.close()
    took, written = perf_counter() - begun, _written() - before
    return _done(file, took, written, values.reshape(count, -1))


def _first_writes(world: World, settings: Mapping[str, Any]) -> Ways:
    """Write a few elements of each uncompressed chunk, which is new, or in the file already."""
    del world
    count, elements = settings["chunks"], settings["elements"]

    def write(file: str, there: bool) -> dict[str, Any]:
        # No cache holds a chunk: what is written goes to the file.
        dataset, opened = _posix(file, (count, elements), (1, elements), Pipeline(), elements)
        values = np.zeros((count, elements))
        if there:
            dataset.write(h5s.ALL, h5s.ALL, values, h5t.NATIVE_DOUBLE)
        h5f.flush(opened)
        part = np.full((1, 8), 1.5)
        memory, space = h5s.create_simple(part.shape), dataset.get_space()
        before, begun = _written(), perf_counter()
        for c in range(count):
            space.select_hyperslab((c, 0), (1, 1), block=part.shape)
            dataset.write(memory, space, part, h5t.NATIVE_DOUBLE)
        h5f.flush(opened)
        took, written = perf_counter() - begun, _written() - before
        del dataset
        opened.close()
        values[:, :8] = 1.5
        return _done(file, took, written, values)

    for words, there in (("new", False), ("in the file", True)):
        yield {"chunks": words}, partial(write, there=there)


def _posix(
    file: str, shape: tuple[int, ...], chunk: tuple[int, ...], filters: Pipeline, cache: int
) -> tuple[Any, Any]:
    """Make a dataset in a file of one process, with a chunk cache of so many bytes."""
    how = access(_POSIX, None)
    how.set_cache(0, 521, cache, 0.75)
    opened = h5f.create(file.encode(), h5f.ACC_TRUNC, fapl=how)
    space = h5s.create_simple(shape)
    made = h5d.create(opened, b"d", h5t.NATIVE_DOUBLE, space, dcpl=chunked(chunk, filters))
    return made, opened


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
    "parts-of-chunks": _parts,
}
