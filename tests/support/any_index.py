"""What may stand between brackets: indexes that fit, that hardly fit, and nonsense."""

from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

Shape = tuple[int, ...]

_EDGES = [2**31, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70)]
_TYPES = ["i1", "i2", "u1", "u4", "i8", "u8", ">i4"]


class Index:
    """An integer to whoever asks for ``__index__``."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"Index({self._value})"


class List(list[Any]):
    """A list, and yet of another type."""


class Array(np.ndarray[Any, Any]):
    """An array, and yet of another type."""


NONSENSE: list[Any] = [
    *(None, True, False, np.True_, np.False_, 1.5, float("nan"), 1j, "x", "", b"x", "y", "ü\n"),
    *(np.str_("x"), np.float64(1), np.array(1), np.array(1.5), np.array(True), np.array("x")),
    *(np.datetime64(1, "s"), np.void(b"a"), Index(1), object, {}, set(), {0: 1}, bytearray(b"x")),
    *(range(2), range(3, 1, -1), (), (0, 1), [()], [[]], [[1, 2], [0, 1]], [[1, 2], [0]], [1.5]),
    *(["x"], ["x", "y"], [None], [slice(None)], [...], [True, 1], [1, True], [0, None], [2**70]),
    *([np.array(0), np.array(1)], [np.array([0])], [Index(0), Index(1)], [0, 2**63], ["x", 1]),
    *(np.array([[0, 1]]), np.array([2**63], "u8"), np.array([0.0, 1.0])),
    *(np.array([0, 1], "O"), np.array(["x"]), np.ma.arange(2)),
    *(np.zeros((0,), int), np.zeros((0, 3), bool), np.ones((1,), bool), np.zeros((), "i4,i4")),
    *(h5py.MultiBlockSlice(0, 1, 1, 1), h5py.MultiBlockSlice(1, 2, 3, 2), h5py.Empty("f4")),
]


@st.composite
def _integers(draw: st.DrawFn, size: int) -> Any:
    value = draw(
        st.integers(-size - 1, size + 1)
        | st.sampled_from([0, -1, size - 1, size, -size, -size - 1, *_EDGES])
    )
    if draw(st.booleans()):
        return value
    dtype = np.dtype(draw(st.sampled_from(_TYPES)))
    limits = np.iinfo(dtype)
    return dtype.type(value) if limits.min <= value <= limits.max else value


def _slices(size: int) -> st.SearchStrategy[slice]:
    odd = st.sampled_from([1.0, True, np.True_, "a", Index(1), np.array(1), np.array([1])])
    bound = st.one_of(st.none(), _integers(size), _integers(size), odd)
    step = st.one_of(st.none(), st.integers(-2, size + 1), _integers(size), odd)
    return st.builds(slice, bound, bound, step) | st.builds(slice, _integers(size))


def _lists(size: int) -> st.SearchStrategy[Any]:
    rising = st.sets(st.integers(0, max(size - 1, 0)), max_size=size).map(sorted)
    some = st.one_of(rising, rising, st.lists(_integers(size), max_size=4))
    return st.one_of(
        some,
        rising.map(tuple),
        rising.map(List),
        st.builds(np.array, rising, st.sampled_from([*_TYPES, "f8", "O", "?"])),
        rising.map(lambda taken: np.array(taken, int).view(Array)),
        st.lists(st.booleans(), min_size=size, max_size=size),
    )


def _masks(shape: Shape, first: int) -> st.SearchStrategy[Any]:
    """Masks of a dimension, of some from this one on, of all, and of other shapes."""
    shapes = st.sampled_from(
        [
            *(shape[first : first + 1], shape[first : first + 1], shape[first:], shape),
            *(shape[:-1], shape[: first + 1], (*shape, 1), (*shape[:first], 3)),
        ]
    )
    return shapes.flatmap(lambda chosen: arrays.arrays("?", chosen))


def _plain(size: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(-size, size)
    step = st.none() | st.integers(1, size + 1)
    return st.builds(slice, bound, bound, step) | st.integers(-size, size - 1)


@st.composite
def _near(draw: st.DrawFn, shape: Shape) -> Any:
    """One list or mask among plain items: what h5py takes, mostly, and what it just refuses."""
    places = list(range(draw(st.integers(1, len(shape)))))
    special = draw(st.sampled_from(places))
    rising = st.sets(st.integers(0, max(shape[special] - 1, 0)), max_size=4).map(sorted)
    masks = _masks(shape, special)
    items = [
        draw(st.one_of(masks, masks, rising) if place == special else _plain(shape[place]))
        for place in places
    ]
    if draw(st.integers(0, 2)) == 0:
        items.insert(draw(st.integers(0, len(items))), ...)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@st.composite
def _any(draw: st.DrawFn, shape: Shape) -> Any:
    rank = len(shape)
    items: list[Any] = []
    for place in range(draw(st.sampled_from([1, 1, 2, rank, rank, rank + 1, 0]))):
        first = max(min(place, rank - 1), 0)
        size = shape[first] if shape else 3
        items.append(
            draw(
                st.one_of(
                    _slices(size),
                    _integers(size),
                    _lists(size),
                    _masks(shape or (2,), first),
                    st.just(...),
                    st.sampled_from(NONSENSE),
                )
            )
        )
    if len(items) == 1 and draw(st.booleans()):
        return items[0]
    return tuple(items)


def indexes(shape: Shape) -> st.SearchStrategy[Any]:
    """Any index of an array of this shape."""
    return _any(shape) | _near(shape) if 0 not in shape and shape else _any(shape)
