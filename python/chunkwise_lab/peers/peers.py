"""Who reads data, besides chunkwise, and by which calls?

Each reads in its own best way (see `picks`), from a dataset that it has not yet read from.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

import chunkwise
from chunkwise.trials import pagecache
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, imported, timed

POINTS, ROWS, SHARE = 10_000, 100, 0.01


@dataclass(frozen=True)
class Pick:
    """A selection, in the form in which a program has it."""

    index: Any  # What stands between the brackets; of points, one list of positions a dimension
    points: bool = False  # Whether these are the elements at paired positions, in their order

    def by_h5py(self, dataset: Any) -> Any:
        """Read through h5py; points by its low-level interface, as its index has none."""
        if not self.points:
            return dataset[self.index]
        from h5py import h5s

        coordinates = np.stack(self.index, axis=1)
        out = np.empty(len(coordinates), dataset.dtype)
        space = dataset.id.get_space()
        space.select_elements(coordinates)
        dataset.id.read(h5s.create_simple(out.shape), space, out)
        return out

    def by_chunkwise(self, dataset: Any) -> Any:
        """Read through chunkwise."""
        if not self.points:
            return dataset[self.index]
        return dataset.vindex[self.index]


def pick(kind: str, shape: tuple[int, ...]) -> Pick:
    """Return a selection of an array of this shape by its name; always the same."""
    rng = np.random.default_rng(5)
    if kind == "all":
        return Pick(tuple(slice(0, size, 1) for size in shape))
    if kind == "points":
        return Pick(tuple(rng.integers(0, size, POINTS) for size in shape), points=True)
    if kind == "rows":
        rows = rng.choice(shape[1], min(ROWS, shape[1] // 2), replace=False)
        return Pick((slice(None), sorted(map(int, rows)), slice(None)))
    if kind == "mask":
        return Pick(rng.random(shape, dtype=np.float32) < SHARE)
    if kind == "series":
        return Pick((slice(None), *(size // 3 for size in shape[1:])))
    if kind == "strided":
        return Pick((slice(None, None, 10), slice(None, None, 7), slice(None, None, 3)))
    if kind == "box":
        return Pick((slice(None), *(slice(size // 3, size // 3 + 10) for size in shape[1:])))
    raise ValueError(f"no selection is called {kind}")


def by_slices(reader: str, selection: Pick) -> Any:
    """Return the index for a reader that knows integers and slices alone."""
    index = selection.index
    if selection.points or not isinstance(index, tuple):
        raise CannotReadError(f"{reader} has no such index")
    if not all(isinstance(one, slice | int) for one in index):
        raise CannotReadError(f"{reader} has no such index")
    return index


CALLS = 5_000


def by_index(reader: str, file: str, dataset: str) -> Task:
    """``d[i]``, row after row; what can be cached is, before the clock runs."""
    import h5py

    # A cache in which libhdf5 keeps the chunk decoded, as chunkwise does.
    with h5py.File(file, rdcc_nbytes=256 << 20) as opened:
        found: Any = opened[dataset]
        dataset_read = chunkwise.wrap(found) if reader == "chunkwise" else found
        count = found.shape[0]
        expected = [dataset_read[i] for i in range(count)]

        def measure() -> Sample:
            numbers = [i % count for i in range(CALLS)]
            begun = time.perf_counter()
            for i in numbers:
                row = dataset_read[i]
            elapsed = time.perf_counter() - begun
            return Sample(elapsed / CALLS, np.array([*expected[:100], row]))

        yield measure


def by_preadv(file: str, dataset: str) -> Task:
    """A new array, and the system's copy of as many bytes: nothing in Python is cheaper."""
    import h5py

    with h5py.File(file) as opened:
        nbytes = opened[dataset].shape[-1] * opened[dataset].dtype.itemsize
    descriptor = os.open(file, os.O_RDONLY)
    count = max(1, os.fstat(descriptor).st_size // nbytes - 1)

    def measure() -> Sample:
        numbers = [i % count * nbytes for i in range(CALLS)]
        begun = time.perf_counter()
        for at in numbers:
            row: Any = np.empty(nbytes, np.uint8)
            os.preadv(descriptor, [row], at)
        return Sample((time.perf_counter() - begun) / CALLS)

    yield measure
    os.close(descriptor)


# What is compared with, by the name of its package.
PEERS: Final = (
    *("h5py", "netCDF4", "hidefix", "pyfive", "b2h5py", "hdf5plugin"),
    *("kerchunk", "virtualizarr"),
)

# Reads a selection, from an opened file.
Reading = Callable[[Pick], Any]


def versions() -> dict[str, str | None]:
    """Return the version of each that is installed; None for those that are not."""
    found: dict[str, str | None] = dict.fromkeys(PEERS)
    for name in PEERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def whole(reader: str, file: str, dataset: str, plugins: bool = False) -> Task:
    """Read everything."""
    return picked(reader, file, dataset, "all", plugins)


def cold(reader: str, file: str, dataset: str) -> Task:
    """Read everything from the disk: before each sample the system forgets the file's bytes."""
    opened, everything = OPENERS[reader], None

    def measure() -> Sample:
        nonlocal everything
        with opened(file, dataset) as (shape, read):
            everything = chosen = everything or pick("all", shape)
            pagecache.drop(file)
            before = pagecache.storage_nbytes()
            sample = timed(lambda: read(chosen))
            after = pagecache.storage_nbytes()
        came = None if before is None or after is None else after - before
        if pagecache.verdict(Path(file).stat().st_size, came) != "cold":
            raise CannotReadError("the system keeps the file in memory")
        return sample

    yield measure


def picked(reader: str, file: str, dataset: str, kind: str, plugins: bool = False) -> Task:
    """Read what `picks.pick` names."""
    if plugins:
        imported("hdf5plugin")
    opened, selection = OPENERS[reader], None

    def measure() -> Sample:
        nonlocal selection
        with opened(file, dataset) as (shape, read):
            selection = chosen = selection or pick(kind, shape)
            return timed(lambda: read(chosen))

    yield measure


Opened = Iterator[tuple[tuple[int, ...], Reading]]


@contextmanager
def _h5py(file: str, dataset: str) -> Opened:
    import h5py

    with h5py.File(file) as opened:
        yield opened[dataset].shape, lambda selection: selection.by_h5py(opened[dataset])


@contextmanager
def _patched(file: str, dataset: str) -> Opened:
    with chunkwise.patch_h5py(), _h5py(file, dataset) as opened:
        yield opened


@contextmanager
def _chunkwise(file: str, dataset: str) -> Opened:
    with chunkwise.open(file) as opened:
        shape = opened.h5py[dataset].shape
        yield shape, lambda selection: selection.by_chunkwise(opened[dataset])


@contextmanager
def _one_thread(file: str, dataset: str) -> Opened:
    with chunkwise.settings(threads=1), _chunkwise(file, dataset) as opened:
        yield opened


@contextmanager
def _netcdf4(file: str, dataset: str) -> Opened:
    with imported("netCDF4").Dataset(file) as opened:
        variable = opened[dataset.strip("/")]
        # Values as they are stored; what is missing is not looked for.
        variable.set_auto_maskandscale(False)
        yield variable.shape, lambda selection: variable[by_slices("netCDF4", selection)]


@contextmanager
def _hidefix(file: str, dataset: str) -> Opened:
    # It indexes the whole file when it opens it.
    index = imported("hidefix").Index(file)
    group, _, name = dataset.strip("/").rpartition("/")
    found = index.dataset(name, group or None)
    if found is None:
        raise CannotReadError(f"does not list {dataset}")
    yield tuple(found.shape()), lambda selection: found[by_slices("hidefix", selection)]


@contextmanager
def _pyfive(file: str, dataset: str) -> Opened:
    with imported("pyfive").File(file) as opened:
        shape = opened[dataset].shape
        yield shape, lambda selection: opened[dataset][by_slices("pyfive", selection)]


@contextmanager
def _b2h5py(file: str, dataset: str) -> Opened:
    import h5py

    of = imported("b2h5py").B2Dataset
    with h5py.File(file) as opened:
        blosc2 = 32026
        dcpl = opened[dataset].id.get_create_plist()
        if [dcpl.get_filter(n)[0] for n in range(dcpl.get_nfilters())] != [blosc2]:
            raise CannotReadError("reads Blosc2 alone faster than h5py; the rest is h5py's")
        shape = opened[dataset].shape
        yield shape, lambda selection: of(opened[dataset])[by_slices("b2h5py", selection)]


OPENERS: Final[dict[str, Callable[[str, str], Any]]] = {
    "h5py": _h5py,
    "chunkwise": _chunkwise,
    "one thread": _one_thread,
    "patched": _patched,
    "netCDF4": _netcdf4,
    "hidefix": _hidefix,
    "pyfive": _pyfive,
    "b2h5py": _b2h5py,
}


def single_points(
    reader: str, file: str, dataset: str, again: bool, count: int = 200, seed: int = 0
) -> Task:
    """Read single elements, one call each: from chunks never read, or `again` from the same."""

    def measure() -> Sample:
        with OPENERS[reader](file, dataset) as (shape, read):
            rng = np.random.default_rng(seed)
            places = [Pick(tuple(map(int, rng.integers(shape)))) for _ in range(count)]
            # h5py's chunk cache holds none of them: there is nothing to prepare.
            if again and reader == "chunkwise":
                for place in places:
                    read(place)
            sample = timed(lambda: [read(place) for place in places], count)
            return replace(sample, data=np.array(sample.data))

    yield measure


def regions(reader: str, file: str, dataset: str, size: int = 50, seed: int = 0) -> Task:
    """Read a square of each frame, one call each, of frames that were not read before."""
    imported("hdf5plugin")

    def measure() -> Sample:
        with OPENERS[reader](file, dataset) as (shape, read):
            rng = np.random.default_rng(seed)
            places = rng.integers(
                0, [max(length - size, 1) for length in shape[1:]], (shape[0], 2)
            )
            picks = [
                Pick((frame, slice(y, y + size), slice(x, x + size)))
                for frame, (y, x) in enumerate(places.tolist())
            ]
            sample = timed(lambda: [read(one) for one in picks])
            return replace(sample, data=np.array(sample.data))

    yield measure
