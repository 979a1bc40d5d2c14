"""Is exactly the read timed, and does a walk stop where it should?"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise._native import Walk
from chunkwise.trials import in_python
from chunkwise.trials.unions import Laps

MS = 1_000_000


class Clock:
    """Time that passes only while something is done."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Array:
    """An array whose reads cost what they are said to, in milliseconds."""

    def __init__(self, data: npt.NDArray[Any], clock: Clock, costs_ms: list[float]) -> None:
        self.data, self.clock, self.costs_ms = data, clock, costs_ms
        self.reads = 0

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        cost = self.costs_ms[min(self.reads, len(self.costs_ms) - 1)]
        self.reads += 1
        self.clock.now_ns += int(cost * MS)
        found: npt.NDArray[Any] = self.data[selection]
        return found


def walk(costs_ms: list[float], max_seconds: float, n: int = 100) -> Any:
    clock = Clock()
    array = Array(np.arange(n, dtype=">i4"), clock, costs_ms)
    walk = Walk((n,), (1,))
    return in_python.walk_in_python(lambda index, _: array[index], walk, max_seconds, clock)


def test_a_walk_within_its_time_is_whole() -> None:
    result = walk([1.0], 1.0)
    assert result["operations"] == result["total_operations"] == 100
    assert result["elapsed_s"] == pytest.approx(0.1)
    assert result["latencies_s"] == pytest.approx([0.001] * 100)
    assert result["selected_nbytes"] == 400


def test_a_walk_is_bounded() -> None:
    result = walk([1.0], 0.01)
    assert result["operations"] == 10
    assert result["total_operations"] == 100
    assert sorted(result["checksums"]) == [1, 2, 4, 8, 10]


def test_a_dear_first_read_is_not_the_only_one() -> None:
    assert walk([30.0, 1.0], 0.01)["operations"] == in_python.FEWEST_OPERATIONS


def test_unless_it_takes_far_too_long() -> None:
    assert walk([41.0, 1.0], 0.01)["operations"] == 1


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3).flatmap(
        lambda e: st.tuples(st.just(tuple(e)), st.tuples(*[st.integers(1, n) for n in e]))
    ),
    st.sampled_from([">f4", "<i2", "S3", "?", "i1,f8"]),
)
def test_checksums_are_those_of_the_bytes_read(
    case: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> None:
    shape, block = case
    data = np.zeros(shape, dtype)
    data.reshape(-1).view("u1")[:] = np.arange(data.nbytes) % 2
    read = []

    def reader(selection: Any, _: Laps) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = data[selection]
        read.append(found.tobytes())
        return found

    result = in_python.walk_in_python(reader, Walk(shape, block), 60.0)
    expected = {
        k: zlib.crc32(b"".join(read[:k]))
        for k in range(1, len(read) + 1)
        if k & (k - 1) == 0 or k == len(read)
    }
    assert result["checksums"] == expected
    assert result["operations"] == len(read)
    assert result["selected_nbytes"] == data.nbytes
