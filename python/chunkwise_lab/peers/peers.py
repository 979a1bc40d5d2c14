"""Who reads data, besides chunkwise, and how is each asked?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any, Final

import numpy as np

import chunkwise
from chunkwise_lab.peers.picks import Pick, by_slices, pick
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, imported, timed

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
    """Read single elements, one call each: from chunks never met, or `again` from the same."""

    def measure() -> Sample:
        with OPENERS[reader](file, dataset) as (shape, read):
            rng = np.random.default_rng(seed)
            places = [Pick.of_point(tuple(map(int, rng.integers(shape)))) for _ in range(count)]
            # h5py's chunk cache holds none of them: there is nothing to prepare.
            if again and reader == "chunkwise":
                for place in places:
                    read(place)
            sample = timed(lambda: [read(place) for place in places])
            return Sample(sample.value / count, np.array(sample.data))

    yield measure


def regions(reader: str, file: str, dataset: str, size: int = 50, seed: int = 0) -> Task:
    """Read a square of each frame, one call each, of frames that were not met before."""
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
