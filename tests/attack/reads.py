"""Random files and indexes, through chunkwise and a patched h5py, against h5py and NumPy.

Files are those of `tests.support.matrix` (types, layouts, filters, shapes, also of no elements),
and sparse ones too large for memory.
"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from tests.support.matrix import FLOATS, PLAIN, Combination, combinations, write
from tests.support.reading import random_index, same

SHORT = 4
# Datasets in a file, and indexes of each.
DATASETS, INDEXES = 6, 6


def attempt(seed: int, folder: Path) -> None:
    rng = np.random.default_rng(seed)
    path = folder / "d.h5"
    with h5py.File(path, "w", libver=["earliest", "latest"][int(rng.integers(2))]) as f:
        f["target"] = np.arange(10)
        known = {f"d{number}": one for number, one in enumerate(combinations(DATASETS, seed))}
        for name, combination in known.items():
            try:
                write(f, name, combination)
            except (ValueError, TypeError, OSError, RuntimeError):
                # HDF5 or h5py does not make such a one.
                f.pop(name, None)
        _write_sparse(f, rng)
    with h5py.File(path) as f, chunkwise.open(path) as file:
        for name in f:
            theirs, ours = f[name], file[name]
            assert isinstance(ours, chunkwise.Dataset)
            _compare(theirs, ours, rng)
            if name in known and _is_plain(known[name]) and theirs.shape:
                _compare_with_numpy(theirs, ours, rng)


def _is_plain(c: Combination) -> bool:
    """Whether every byte of it is known, and h5py reads any selection of it."""
    return (
        c.fill not in ("never", "undefined")
        and c.layout in ("chunked", "contiguous")
        and (c.kind in PLAIN or c.kind in FLOATS)
    )


def _write_sparse(f: h5py.File, rng: np.random.Generator) -> None:
    """A dataset of which next to nothing was written."""
    rank = int(rng.integers(1, 4))
    # HDF5 counts the chunks of the largest shape in 32 bits.
    shape = tuple(int(2 ** rng.integers(1, 30 // rank)) for _ in range(rank))
    chunk = tuple(min(n, int(rng.integers(1, 9))) for n in shape)
    unlimited = int(rng.integers(-1, rank))
    largest = tuple(None if d == unlimited else n for d, n in enumerate(shape))
    try:
        d = f.create_dataset("sparse", shape, "<i4", chunks=chunk, maxshape=largest, fillvalue=-3)
        for value in range(4):
            at = tuple(int(rng.integers(0, n)) for n in shape)
            d[tuple(slice(i, i + 2) for i in at)] = value
    except (ValueError, OSError, RuntimeError):
        f.pop("sparse", None)


def _compare(theirs: h5py.Dataset, ours: chunkwise.Dataset, rng: np.random.Generator) -> None:
    shape = theirs.shape
    if not shape:
        _agree(lambda: ours[()], lambda: theirs[()], (theirs.name, ()))
        return
    small = theirs.size < 100_000
    for _ in range(INDEXES):
        index = random_index(rng, shape) if small else _window(rng, theirs)
        _agree(lambda i=index: ours[i], lambda i=index: theirs[i], (theirs.name, index))
    if small:
        _patched(theirs, rng)


def _compare_with_numpy(
    theirs: h5py.Dataset, ours: chunkwise.Dataset, rng: np.random.Generator
) -> None:
    """What h5py does not take, or only in part."""
    try:
        shape, whole = theirs.shape, theirs[()]
    except OSError:
        # libhdf5 has lost a chunk of its own (`tests/upstream/filter_mask_kept.c`).
        _agree(lambda: ours[()], lambda: theirs[()], (theirs.name, ()))
        return
    backward = tuple(
        slice(None, None, -int(rng.integers(1, 4))) if rng.integers(2) else slice(None)
        for _ in shape
    )
    lists: tuple[Any, ...] = tuple(
        rng.integers(0, n, int(rng.integers(0, 6))) if n else slice(None) for n in shape
    )
    mask = rng.integers(0, 2, shape).astype(bool)
    _agree(lambda: ours[backward], lambda: whole[backward], (theirs.name, backward))
    _agree(lambda: ours[mask], lambda: whole[mask], (theirs.name, "a mask"))
    if len(shape) == 32 and int(np.__version__.split(".")[0]) < 2:
        return  # NumPy before 2 takes 31 lists at most
    outer = np.ix_(*[i if isinstance(i, np.ndarray) else np.arange(0) for i in lists])
    _agree(lambda: ours.oindex[lists], lambda: whole[outer], (theirs.name, "oindex", lists))
    if theirs.size:
        count = int(rng.integers(1, 6))
        together = tuple(rng.integers(0, n, count) for n in shape)
        _agree(lambda: ours.vindex[together], lambda: whole[together], (theirs.name, together))
        points = chunkwise.points(np.stack(together, axis=1))
        _agree(lambda: ours.read(points), lambda: whole[together], (theirs.name, "points"))
        first, second = (tuple(int(i) for i in one) for one in np.stack(together, 1)[[0, -1]])
        ones = (1,) * len(shape)
        parts = [chunkwise.hyperslab(at, ones) for at in sorted({first, second})]
        want = np.array([whole[at] for at in sorted({first, second})], whole.dtype)
        _agree(lambda: ours.read(chunkwise.union(parts)), lambda: want, (theirs.name, "a union"))


def _patched(theirs: h5py.Dataset, rng: np.random.Generator) -> None:
    """The same indexes by h5py as it is, and patched."""
    indexes: list[Any] = [random_index(rng, theirs.shape) for _ in range(3)]
    if len(theirs.shape) < 10:
        # With a mask of 32 dimensions h5py itself crashes.
        indexes.append(rng.integers(0, 2, theirs.shape).astype(bool))
    before = [_outcome(lambda i=index: theirs[i]) for index in indexes]
    with chunkwise.patch_h5py():
        after = [_outcome(lambda i=index: theirs[i]) for index in indexes]
    for index, want, got in zip(indexes, before, after, strict=True):
        _check(got, want, (theirs.name, "patched", index))


def _window(rng: np.random.Generator, d: h5py.Dataset) -> tuple[slice, ...]:
    begins = [int(rng.integers(0, n)) for n in d.shape]
    return tuple(slice(b, b + 5, int(rng.integers(1, 3))) for b in begins)


def _outcome(read: Any) -> Any:
    try:
        return read()
    except Exception as error:
        return error


def _agree(ours: Any, theirs: Any, told: Any) -> None:
    _check(_outcome(ours), _outcome(theirs), told)


def _check(got: Any, want: Any, told: Any) -> None:
    if isinstance(want, Exception):
        assert isinstance(got, Exception), (told, got, want)
        return
    assert same(got, want), (told, got, want)
