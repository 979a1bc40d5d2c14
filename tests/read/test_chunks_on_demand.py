"""Are chunks that are looked up those that libhdf5 finds, in every kind of chunk index?"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise

SHAPE, CHUNK = (96, 700), (2, 2)
GRID = (48, 350)
# What makes libhdf5 choose an index: the format, and which dimensions may grow.
KINDS: dict[str, tuple[Literal["earliest", "latest"], tuple[int | None, ...]]] = {
    "v1 B-tree": ("earliest", (None, None)),
    "fixed array": ("latest", SHAPE),
    "fixed array of more": ("latest", (200, 1500)),
    "extensible array": ("latest", (None, 700)),
    "extensible array, second": ("latest", (96, None)),
    "extensible array of more": ("latest", (None, 900)),
    "v2 B-tree": ("latest", (None, None)),
}


def make(path: Path, kind: str, written: float, filtered: bool) -> None:
    """Write a part of all chunks, at random, in no order; each has other values."""
    version, maxshape = KINDS[kind]
    rng = np.random.default_rng(len(kind))
    chosen = rng.permutation(GRID[0] * GRID[1])[: round(written * GRID[0] * GRID[1])]
    with h5py.File(path, "w", libver=version) as file:
        dataset = file.create_dataset(
            "x",
            SHAPE,
            "i4",
            chunks=CHUNK,
            maxshape=maxshape,
            compression=1 if filtered else None,
            fillvalue=-7,
        )
        for number in chosen.tolist():
            at = (number // GRID[1] * CHUNK[0], number % GRID[1] * CHUNK[1])
            stored = np.arange(number, number + 4, dtype="i4").tobytes()
            dataset.id.write_direct_chunk(at, zlib.compress(stored, 1) if filtered else stored)


def steps(extent: int) -> st.SearchStrategy[slice]:
    """A few elements along a dimension, or one at each so many."""
    return st.builds(
        lambda start, count, step: slice(start, min(extent, start + count * step), step),
        st.integers(0, extent - 1),
        st.integers(1, 12),
        st.integers(1, 60),
    )


def reads() -> st.SearchStrategy[list[tuple[slice, slice]]]:
    return st.lists(st.tuples(steps(SHAPE[0]), steps(SHAPE[1])), min_size=1, max_size=8)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("filtered", [True, False], ids=["filtered", "plain"])
@pytest.mark.parametrize("written", [1.0, 0.3, 0.0005], ids=["all", "some", "few"])
def test_reads_are_those_of_h5py(
    kind: str, written: float, filtered: bool, tmp_path: Path
) -> None:
    path = tmp_path / "x.h5"
    make(path, kind, written, filtered)
    with h5py.File(path) as file:
        everything = file["x"][()]

    @settings(max_examples=15)
    @given(reads())
    def check(selections: list[tuple[slice, slice]]) -> None:
        # Opened anew, so that nothing is known; some reads then lead to the list.
        with chunkwise.open(path) as file:
            dataset = file["x"]
            for selection in selections:
                np.testing.assert_array_equal(dataset[selection], everything[selection])
            plan = dataset.explain(selections[0])
            assert plan["reason"] is None
            dataset.prepare()
            # Looked up or listed, it is the same.
            assert dataset.explain(selections[0]) == plan
            np.testing.assert_array_equal(dataset[()], everything)

    check()


def damaged(path: Path, kind: str, at: float) -> Path:
    """Change a byte of the index, at a place between its beginning (0) and its end (1)."""
    content = bytearray(path.read_bytes())
    # A leaf of a B-tree of chunks, or a block of an array's elements.
    leaf = {"v1": b"TREE\x01\x00", "fi": b"FADB", "ex": b"EADB", "v2": b"BTLF"}[kind[:2]]
    places = [found.start() for found in re.finditer(re.escape(leaf), bytes(content))]
    place = places[round(at * (len(places) - 1))]
    content[place + 2] ^= 0x40
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_damage_is_met_where_it_is_and_never_as_values(
    kind: str, at: float, tmp_path: Path
) -> None:
    path = tmp_path / "x.h5"
    make(path, kind, 1.0, filtered=True)
    with h5py.File(path) as file:
        everything = file["x"][()]
    damaged(path, kind, at)
    met = 0
    for row in range(0, SHAPE[0], 5):
        for column in (0, 333, 698):
            # Each by a reader that knows nothing yet.
            with chunkwise.open(path) as ours:
                selection: Any = np.s_[row, column : column + 2]
                try:
                    found = ours["x"][selection]
                except chunkwise.errors.CorruptDataError:
                    met += 1
                else:
                    np.testing.assert_array_equal(found, everything[selection])
    with chunkwise.open(path) as ours, pytest.raises(chunkwise.errors.ChunkwiseError):
        ours["x"][()]
    if kind.startswith("v"):
        # Most leaves of a tree lie elsewhere than the damage, and are not looked at.
        assert met < 10
