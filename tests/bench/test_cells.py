"""Unions of cells between random planes: what is drawn, how it is written, who reads it alike."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import given
from hypothesis import strategies as st

from chunkwise import _native, patterns
from chunkwise.measure.planning import trial_of
from chunkwise.measure.tables import spelled
from chunkwise.measure.target import look
from chunkwise.trials.trial import Trial
from chunkwise.trials.worker import measure
from chunkwise_lab.hstest import READERS
from tests.support.golden import assert_golden, refused

SHAPES = st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple)


@given(SHAPES, st.integers(2, 6), st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_cells_are_boxes_apart_from_each_other(
    shape: tuple[int, ...], planes: int, seed: int, number: int
) -> None:
    walk = _native.Walk.cells(shape, planes, 10, seed)
    assert walk.operations == 10
    times = np.zeros(shape, int)
    cells = walk[number]
    for start, _, count, block in cells:
        assert set(count) == {1}
        assert all(s >= 0 and s + b <= n for s, b, n in zip(start, block, shape, strict=True))
        times[tuple(slice(s, s + b) for s, b in zip(start, block, strict=True))] += 1
    assert times.max() == 1
    # Cells lie on a grid: each dimension has as many places as there are cells between planes.
    for starts in zip(*(start for start, _, _, _ in cells), strict=True):
        assert len(set(starts)) < planes
    assert walk[number] == _native.Walk.cells(shape, planes, 10, seed)[number]


def test_every_place_is_cut_as_often_as_any_other() -> None:
    walk = _native.Walk.cells((10,), 2, 5000, 11)
    edges = np.zeros(11, int)
    for number in range(walk.operations):
        ((start, _, _, block),) = walk[number]
        edges[[start[0], start[0] + block[0]]] += 1
    # Two of eleven, each time; five standard deviations.
    assert np.abs(edges - 5000 * 2 / 11).max() < 5 * (5000 * 2 / 11 * 9 / 11) ** 0.5


def test_a_pattern_of_cells_is_three_numbers() -> None:
    def parsed(text: str) -> patterns.Access:
        return patterns.parse(text, (30, 40), 4, "d in f")

    pattern = parsed("complex=cells:20:7:3")
    assert (pattern.name, pattern.cells, pattern.limit, pattern.seed) == ("complex", 20, 7, 3)
    assert (parsed("cells:5").limit, parsed("cells:5").seed) == (100, 0)
    assert pattern.has_unions
    assert not pattern.in_c_order
    assert spelled(pattern) == "unions of cells"
    first = pattern.walk((30, 40))[0]
    assert pattern.elements == sum(np.prod(block) for _, _, _, block in first)
    trial = Trial("f", "d", "x", (30, 40), "h5py", limit=7, seed=3, cells=20)
    told = json.dumps(trial.to_json())
    assert len(told) < 2000
    assert Trial.from_json(json.loads(told)).pattern.walk((30, 40))[6] == pattern.walk((30, 40))[6]


def test_what_makes_no_cells_is_refused() -> None:
    asked = "cells:1 cells:2000 cells:3:0 cells:3:2:99999999999999999999 cells:3:2:1:0 cells:3@f"
    said = refused(lambda text: patterns.parse(text, (2000, 3000), 4, "d in f"), asked.split())
    assert_golden("cells-refused", said)


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("shape", [(500,), (40, 50), (9, 12, 20), (5, 6, 7, 8)])
def test_all_readers_read_the_same_unions(
    tmp_path: Path, shape: tuple[int, ...], reopen: bool
) -> None:
    path, known = tmp_path / "x.h5", tmp_path / "known"
    data = np.arange(np.prod(shape), dtype=">i4").reshape(shape)
    data.tofile(known)
    with h5py.File(path, "w") as file:
        chunks = tuple(-(-n // 3) for n in shape)
        file.create_dataset("d", data=data, chunks=chunks, compression=5)
    target = look(path)
    pattern = patterns.parse("cells:6:4:9", shape, 4, target.where)
    found: dict[str, Any] = {
        reader: measure(
            trial_of(target, pattern, reader, reopen=reopen, check=True, data=str(known))
        )
        for reader in READERS
    }
    union_elements = sum(
        int(np.prod(block))
        for number in range(4)
        for _, _, _, block in pattern.walk(shape)[number]
    )
    assert {one["checked_elements"] for one in found.values()} == {union_elements}
    assert len({tuple(one["checksums"].items()) for one in found.values()}) == 1
    for one in found.values():
        parts = one["select_s"] + one["read_s"] + (one["open_s"] if reopen else 0)
        assert parts == pytest.approx(one["elapsed_s"])
        assert min(one["open_s"], one["select_s"], one["read_s"]) > 0
        assert one["total_s"] == one["elapsed_s"]


def test_what_has_no_unions_is_not_split(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.arange(20).reshape(4, 5)
    target = look(path, "d")
    pattern = patterns.parse("1x5", (4, 5), 8, target.where)
    for reader in READERS:
        one = measure(trial_of(target, pattern, reader))
        assert one["select_s"] is None
        assert one["read_s"] == one["elapsed_s"]
        assert one["open_s"] > 0


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("reader", ["chunkwise", "chunkwise-py"])
def test_what_libhdf5_reads_in_the_engines_place_is_said(
    tmp_path: Path, reader: str, reopen: bool
) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_layout(h5d.COMPACT)
        space = h5s.create_simple((100,))
        made = h5d.create(file.id, b"x", h5t.IEEE_F64LE, space, dcpl)
        made.write(h5s.ALL, h5s.ALL, np.arange(100.0))
    target = look(tmp_path / "v.h5", "x")
    pattern = patterns.parse("cells:3:4", target.shape, target.itemsize, target.where)
    one = measure(trial_of(target, pattern, reader, reopen=reopen))
    assert one["fallback"]
    assert one["breakdown"] is None
