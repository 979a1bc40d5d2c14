"""Are two ranks found that write the same elements, and is it done in time for many ranks?"""

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.grammar.boxes import Box
from chunkwise.mpi import boxes as checked
from chunkwise.mpi.boxes import overlapping


def pairwise(boxes: list[Box | None]) -> tuple[int, int] | None:
    """Compare each with each."""
    for (one, a), (other, b) in itertools.combinations(enumerate(boxes), 2):
        if a is not None and b is not None:
            common = a.common(b)
            if all(n > 0 for n in common.shape):
                return one, other
    return None


@st.composite
def scattered(draw: st.DrawFn) -> list[Box | None]:
    """Boxes anywhere, so that some overlap, in a space in which they may also keep apart."""
    rank, most = draw(st.integers(0, 3)), draw(st.sampled_from([6, 40]))
    corner = st.tuples(*[st.tuples(st.integers(0, most), st.integers(1, 4)) for _ in range(rank)])
    drawn = draw(st.lists(st.none() | corner, max_size=24))
    return [
        None if one is None else Box(tuple(a for a, _ in one), tuple(n for _, n in one))
        for one in drawn
    ]


@st.composite
def partitions(draw: st.DrawFn) -> list[Box | None]:
    """A space that was cut and cut again, in any order, and one of its parts made larger."""
    rank = draw(st.integers(1, 3))
    parts = [Box((0,) * rank, tuple(draw(st.integers(2, 20)) for _ in range(rank)))]
    for _ in range(draw(st.integers(0, 30))):
        part = parts.pop(draw(st.integers(0, len(parts) - 1)))
        axis = draw(st.integers(0, rank - 1))
        if part.shape[axis] < 2:
            parts.append(part)
            continue
        cut = draw(st.integers(part.start[axis] + 1, part.end[axis] - 1))
        low, high = list(part.end), list(part.start)
        low[axis] = high[axis] = cut
        parts += [Box.between(part.start, tuple(low)), Box.between(tuple(high), part.end)]
    if draw(st.booleans()):
        number, axis = draw(st.integers(0, len(parts) - 1)), draw(st.integers(0, rank - 1))
        end = list(parts[number].end)
        end[axis] += 1
        parts[number] = Box.between(parts[number].start, tuple(end))
    return list(draw(st.permutations(parts)))


@given(boxes=scattered() | partitions(), few=st.sampled_from([1, 16]))
def test_it_finds_what_comparing_all_pairs_finds(boxes: list[Box | None], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked, "_FEW", few)
        assert overlapping(boxes) == pairwise(boxes)


def grid(sides: tuple[int, ...]) -> list[Box | None]:
    """Tiles of a grid of ranks, which touch each other."""
    return [
        Box(tuple(5 * n for n in place), (5,) * len(sides))
        for place in itertools.product(*map(range, sides))
    ]


def pinwheels(count: int) -> list[Box | None]:
    """Five boxes that no cut divides, again and again, and one box below all of them."""
    found: list[Box | None] = []
    for number in range(count):
        x = 3 * number
        found += [
            Box((0, x), (2, 1)), Box((0, x + 1), (1, 2)), Box((1, x + 2), (2, 1)),
            Box((2, x), (1, 2)), Box((1, x + 1), (1, 1)),
        ]  # fmt: skip
    return [*found, Box((3, 0), (1, 3 * count))]


@pytest.mark.parametrize(
    ("make", "sides"),
    [(grid, (100_000,)), (grid, (316, 316)), (grid, (46, 46, 46)), (pinwheels, 200)],
    ids=["rows", "tiles", "cubes", "pinwheels"],
)
def test_many_ranks_take_no_minutes(make: Any, sides: Any) -> None:
    boxes = make(sides)
    # Comparing all pairs takes 5,000 million comparisons a dimension: minutes.
    begin = time.process_time()
    assert overlapping(boxes) is None
    assert time.process_time() - begin < 60
