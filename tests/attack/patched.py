"""Does patched h5py differ from h5py, whatever stands between the brackets?

Values, types, shapes, flags, and of what h5py refuses the exception's class and message.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.routing import eligibility
from tests.support.any_index import indexes
from tests.support.patched import outcome

SHORT = 2

SHAPES: dict[str, tuple[int, ...]] = {
    **{"cube": (6, 5, 4), "row": (20,), "plane": (4, 3), "nothing": (0, 4), "one": (1,)},
    **{"thin": (1, 5), "scalar": (), "arrays": (6, 5), "big_endian": (6, 5), "records": (6, 5)},
    "text": (6, 5),
}
_TYPES: dict[str, Any] = {
    "arrays": np.dtype(("<i2", (3, 2))),
    "big_endian": ">f8",
    "records": [("x", "i4"), ("y", ">f8"), ("z", "f4", (2,))],
    "text": "S4",
}


def _into(dataset: Any, dtype: Any, *selections: Any) -> Any:
    out = np.full(dataset.shape, 7, dtype)
    dataset.read_direct(out, *selections)
    return out


def _into_what_fits(dataset: Any, index: Any) -> Any:
    out = np.full(np.shape(np.empty(dataset.shape)[index]), 7, dataset.dtype)
    dataset.read_direct(out, index)
    return out


READS: dict[str, Callable[[Any, Any], Any]] = {
    "d[index]": lambda d, index: d[index],
    "d.astype('f8')[index]": lambda d, index: d.astype("f8")[index],
    "d.astype('i2')[index]": lambda d, index: d.astype("i2")[index],
    "d.fields('x')[index]": lambda d, index: d.fields("x")[index],
    "d.fields(['z', 'x'])[index]": lambda d, index: d.fields(["z", "x"])[index],
    "d['x', index]": lambda d, index: d[("x", *index) if isinstance(index, tuple) else "x", index],
    "d.asstr()[index]": lambda d, index: d.asstr()[index],
    "read_direct(out, index)": _into_what_fits,
    "read_direct(out, None, index)": lambda d, index: _into(d, d.dtype.base, None, index),
    "read_direct(out, index, index)": lambda d, index: _into(d, d.dtype.base, index, index),
    "read_direct(f8, index, index)": lambda d, index: _into(d, "f8", index, index),
    "asarray, then [index]": lambda d, index: np.asarray(d)[index],
    "list(d)[index]": lambda d, index: [d[i] for i in range(len(d))] and list(d)[index],
}


def make(path: Path) -> None:
    """Write the file that is read."""
    with h5py.File(path, "w") as f:
        for name, shape in SHAPES.items():
            dtype = np.dtype(_TYPES.get(name, "i4"))
            chunks = tuple(max(size // 2, 1) for size in shape) or None
            d = f.create_dataset(
                name, shape, dtype, chunks=chunks, maxshape=(None,) * len(shape) or None
            )
            whole = np.arange(np.prod(shape, dtype=int) * dtype.itemsize, dtype="u1")
            if dtype.subdtype is None:
                d[...] = whole.view(dtype).reshape(shape)
            else:
                d[...] = whole.view(dtype.base).reshape(shape + dtype.shape)


def compare(file: h5py.File, name: str, how: str, index: Any) -> None:
    """Read once as h5py does and once patched."""
    read = READS[how]
    plain = outcome(lambda: read(file[name], index))
    if isinstance(plain, tuple) and plain[0] is ZeroDivisionError:
        return  # h5py before 3.12 divides by the number of elements
    with chunkwise.patch_h5py():
        patched = outcome(lambda: read(file[name], index))
    assert patched == plain, f"{how} of {name}, shape {SHAPES[name]}: {index!r}"


def attempt(number: int, folder: Path) -> None:
    """Some hundred indexes."""
    path = folder / "patched.h5"
    make(path)
    smallest, eligibility.SMALLEST_NBYTES = eligibility.SMALLEST_NBYTES, 0
    try:
        with h5py.File(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")

            @seed(number)
            @settings(
                max_examples=200,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(data=st.data())
            def any_index(data: st.DataObject) -> None:
                name = data.draw(st.sampled_from(list(SHAPES)))
                plain = st.just("d[index]")
                how = data.draw(plain | st.sampled_from(list(READS)))
                compare(file, name, how, data.draw(indexes(SHAPES[name])))

            any_index()
    finally:
        eligibility.SMALLEST_NBYTES = smallest
