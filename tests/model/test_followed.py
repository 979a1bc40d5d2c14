"""Does a walk that is followed through libhdf5's cache load the chunks that libhdf5 loads?"""

import math
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.inspection import inspect, promise
from chunkwise.model.cost import Stored
from chunkwise.model.followed import loads_of_walk
from chunkwise.model.readers import UNCACHED, Reader, reader
from chunkwise.model.seconds import parts as parts_of
from chunkwise.model.traffic import Pattern

DEFLATE = 1


def decodes(path: Path, walk: _native.Walk, cache: Reader) -> int:
    """Count the chunks that libhdf5 decodes for a walk."""
    before = library().tally([DEFLATE])[DEFLATE]["decode"][0]
    properties = {"cache_nbytes": cache.cache_nbytes, "cache_nslots": cache.nslots}
    _native.OpenDataset(library(), str(path), "t", properties).walk(walk, walk.operations, 60.0)
    return int(library().tally([DEFLATE])[DEFLATE]["decode"][0]) - before


def make(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=np.zeros(shape, "u1"), chunks=chunks, compression=1)


@st.composite
def walks(draw: st.DrawFn) -> tuple[Any, ...]:
    rank = draw(st.integers(1, 3))
    longest = {1: 3000, 2: 80, 3: 24}[rank]
    shape = tuple(draw(st.integers(1, longest)) for _ in range(rank))
    chunks = tuple(draw(st.integers(1, n)) for n in shape)
    block = tuple(draw(st.sampled_from([1, n, max(1, n // 3)]) | st.integers(1, n)) for n in shape)
    order = draw(st.none() | st.permutations(range(rank)).map(tuple))
    cache = Reader(
        "x", "x", draw(st.integers(1, 6000)), draw(st.sampled_from([7, 101, 521])), 0.75
    )
    return shape, chunks, block, order, cache


@settings(max_examples=60, deadline=None)
@given(walks())
def test_it_loads_what_libhdf5_loads(case: tuple[Any, ...]) -> None:
    shape, chunks, block, order, cache = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.h5")
        make(path, shape, chunks)
        counted = decodes(path, _native.Walk(shape, block, order), cache)
    assert loads_of_walk(Stored(shape, chunks, 1), block, cache, order=order) == counted


def test_collisions_in_the_hash_table(tmp_path: Path) -> None:
    """Chunks of neighbouring reads drop each other, which no read by itself shows."""
    make(tmp_path / "a.h5", (236, 531), (11, 1))
    cache = Reader("x", "x", 1 << 20, 101, 0.75)
    counted = decodes(tmp_path / "a.h5", _native.Walk((236, 531), (1, 104)), cache)
    assert counted > 100_000
    assert loads_of_walk(Stored((236, 531), (11, 1), 1), (1, 104), cache) == counted


@pytest.mark.slow
def test_of_a_long_walk_the_beginning_stands_for_the_rest(tmp_path: Path) -> None:
    shape, chunks, block = (64, 96, 2048), (8, 3, 16), (1, 1, 2048)
    make(tmp_path / "a.h5", shape, chunks)
    cache = Reader("x", "x", 1 << 16, 521, 0.75)
    counted = decodes(tmp_path / "a.h5", _native.Walk(shape, block), cache)
    found = loads_of_walk(Stored(shape, chunks, 1), block, cache)
    assert 0.9 * counted <= found <= 1.1 * counted


def test_other_caches() -> None:
    stored = Stored((100, 100), (10, 10), 1)
    assert loads_of_walk(stored, (1, 100), UNCACHED) == 1000
    assert loads_of_walk(stored, (1, 100), reader("chunkwise")) == 100


@pytest.mark.slow
def test_a_promise_counts_what_libhdf5_decodes(tmp_path: Path, monkeypatch: Any) -> None:
    """Before and after, where slots collide and where chunks are tiny."""
    shape, before, after = (512, 1024), (1, 32), (64, 128)
    promised = []
    parts = parts_of

    def seen(found: Any, *arguments: Any, **options: Any) -> dict[str, float]:
        promised.append(found.loads)
        return parts(found, *arguments, **options)

    monkeypatch.setattr(promise, "parts", seen)
    cache = Reader("x", "x", 1 << 20, 521, 0.75)
    rng = np.random.default_rng(0)
    for chunks in (before, after):
        with h5py.File(tmp_path / f"{chunks[0]}.h5", "w") as file:
            data = rng.integers(0, 9, shape).astype("u1")
            file.create_dataset("t", data=data, chunks=chunks, compression=1)
    dataset = inspect(tmp_path / "1.h5", "t").objects[0].dataset
    assert dataset is not None
    for block in ((1, 1024), (512, 1), (3, 700)):
        for chunks in (before, after):
            pattern = Pattern("x", block)
            seconds = promise.promised_s(
                dataset, pattern, chunk=chunks, filters="deflate:1", reader=cache
            )
            assert seconds is not None
            assert seconds > 0
            walk = _native.Walk(shape, block)
            # Of the longest the beginning stands for the rest.
            counted = decodes(tmp_path / f"{chunks[0]}.h5", walk, cache)
            assert promised.pop() == pytest.approx(counted, rel=0.05)


def test_small_chunks_are_sampled_by_the_hundred(tmp_path: Path) -> None:
    """Few bytes that are decoded over and over tell a processor's memory, no file's speed."""
    make(tmp_path / "a.h5", (1 << 20,), (512,))
    dataset = inspect(tmp_path / "a.h5", "t").objects[0].dataset
    assert dataset is not None
    assert dataset.sample is not None
    assert dataset.sample.chunks == 1000
    assert math.isclose(dataset.sample.raw_nbytes, 512_000)


@pytest.mark.slow
def test_axes_longer_than_memory_are_walked_from_their_beginning() -> None:
    shape = (2**45, 2**45)
    stored = Stored(shape, (2**30, 2**10), 1)
    cache = Reader("wide", "wide", 2**45, 521, 0.75)
    assert 0 < loads_of_walk(stored, (1, 1), cache) <= float(2**90)
