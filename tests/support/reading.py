"""How tests compare what chunkwise reads with what h5py reads."""

from collections.abc import Callable
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5s, h5t

import chunkwise

Index = tuple[Any, ...]
# ZFP, a filter that the engine leaves to libhdf5, and which here loses nothing.
LEFT_TO_LIBHDF5: dict[str, Any] = dict(hdf5plugin.Zfp(reversible=True))


def same(ours: Any, theirs: Any) -> bool:
    """Whether two results are identical: type, dtype, shape and every byte.

    Python objects (variable-length elements) are compared by value.
    """
    if type(ours) is not type(theirs):
        return False
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return repr(a.tolist()) == repr(b.tolist())
    return a.tobytes() == b.tobytes()


def outcome(read: Any) -> Any:
    """What is read, or the error."""
    try:
        return read()
    except Exception as error:
        return error


def by_libhdf5(dataset: h5py.Dataset, select: Callable[[Any], object], *shape: int) -> Any:
    """What H5Dread gives of the elements that `select` selects of a dataspace."""
    space = dataset.id.get_space()
    select(space)
    shape = shape or (space.get_select_npoints(),)
    out = np.zeros(shape, dataset.dtype)
    if out.size:
        memory = h5s.create_simple(shape)
        dataset.id.read(memory, space, out, h5t.py_create(dataset.dtype))
    return out


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Index:
    """An index as a user may write it: integers, slices with steps, an Ellipsis."""
    items: list[Any] = []
    for size in shape:
        kind = rng.integers(0, 6)
        if kind == 0 and size:
            items.append(int(rng.integers(-size, size)))
        elif kind == 1:
            items.append(slice(None))
        else:
            start, stop = sorted(int(v) for v in rng.integers(0, size + 1, 2))
            step = int(rng.choice([1, 1, 2, 3, 7, 50]))
            if rng.integers(0, 4) == 0 and stop < size:
                start, stop = start - size, stop - size
            items.append(slice(start, stop, step))
    cut = int(rng.integers(0, len(items) + 1))
    if rng.integers(0, 3) == 0:
        return (*items[:cut], ...)
    return tuple(items)


def assert_reads_like_h5py(dataset: h5py.Dataset, slices: int, seed: int = 0) -> None:
    """Compare a whole read and many random ones, and `read()` beside indexing."""
    ours = chunkwise.wrap(dataset)
    rng = np.random.default_rng(seed)
    where = f"{dataset.file.filename}:{dataset.name}"
    if dataset.shape is None:
        assert isinstance(ours[()], h5py.Empty)
        return
    if dataset.shape == ():
        assert same(ours[()], dataset[()]), where
        assert same(ours[...], dataset[...]), where
        return
    whole = dataset[...]
    assert same(ours[...], whole), f"{where} whole; {ours.explain()}"
    assert same(ours.read(), whole), f"{where} read(); {ours.explain()}"
    for _ in range(slices):
        index = random_index(rng, dataset.shape)
        assert same(ours[index], dataset[index]), f"{where}[{index}]; {ours.explain(index)}"
