"""`chunkwise hstest`: what it prints, what it draws, and is one wrong element enough?"""

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from chunkwise import _native, measure, patterns
from chunkwise.errors import UsageError, WrongValueError
from chunkwise.measure import Space
from chunkwise.measure.planning import trial_of
from chunkwise.measure.render import show
from chunkwise.measure.run import run as run_bench
from chunkwise.measure.tables import spelled
from chunkwise.measure.target import look
from chunkwise.trials import worker
from chunkwise.trials.trial import Trial
from chunkwise.trials.worker import Checker
from chunkwise_lab import hstest
from chunkwise_lab.hstest import READERS
from tests.support.commands import run
from tests.support.damage import damage_chunk
from tests.support.golden import assert_golden, refused, steady
from tests.support.wrong_reader import WRONG_H5PY, WRONG_NOTHING


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        data = np.arange(6000, dtype=">f4").reshape(60, 100)
        f.create_dataset("g/d", data=data, chunks=(7, 30), compression=1)
        f["flat"] = data
    return path


def test_each_reader_has_a_row(file: Path) -> None:
    done = run("hstest", file, "--count", 5, "-k", 6)
    assert done.code == 0
    printed = done
    lines = printed.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert_golden("hstest", steady(printed.out, numbers=True))
    title = next(i for i, line in enumerate(lines) if line.startswith("reader"))
    rows = [line.split() for line in lines[title + 1 :]]
    assert [row[0] for row in rows] == list(hstest.READERS)
    assert {row[-1] for row in rows} == {"0"}
    # All have checked the same elements.
    assert len({row[-2] for row in rows}) == 1
    assert printed.err == ""


def test_a_file_without_chunks_is_taken(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "flat.h5", "w") as f:
        f["flat"] = np.arange(600, dtype="i2").reshape(20, 30)
    done = run("hstest", tmp_path / "flat.h5", "--count", 2, "-k", 3, "--reader", "h5py,chunkwise")
    assert done.code == 0, done.err
    assert done.out.startswith("/flat in flat.h5: 20x30 <i2, contiguous")


def test_a_damaged_chunk_is_named(file: Path) -> None:
    damage_chunk(file, "g/d", 10, b"\xff" * 20)
    done = run("hstest", file, "--count", 2, "-k", 3)
    assert done.code == 1
    told = done.err
    assert told.startswith(
        f"chunkwise: '/g/d' in {file}: the chunk at element [14, 60] cannot be read: "
    )
    assert told.count("\n") == 1
    assert "scratch" not in told


def test_a_damaged_chunk_is_named_where_bench_writes_variants(file: Path) -> None:
    damage_chunk(file, "g/d", 1, b"\xff" * 20)
    done = run("bench", file, "g/d", "--chunk", "10x10")
    assert done.code == 1
    told = done.err
    assert "the chunk at element [0, 30] cannot be read: " in told


def test_data_without_chunks_that_cannot_be_read_is_said(file: Path) -> None:
    with h5py.File(file, "r+") as f:
        f.create_dataset("out", (60, 100), "f4", external=[("none.raw", 0, 24000)])
    done = run("hstest", file, "out", "--count", 2, "-k", 3)
    assert done.code == 1
    told = done.err
    assert told.startswith(f"chunkwise: 'out' in {file}: cannot be read: ")


def test_what_libhdf5_read_in_chunkwises_place_is_said(file: Path) -> None:
    with h5py.File(file, "a") as f:
        layout = h5py.VirtualLayout((60, 100), ">f4")
        layout[:] = h5py.VirtualSource(f["flat"])
        f.create_virtual_dataset("seen", layout)
    given = (file, "seen", "--count", 2, "-k", 3, "--reader", "chunkwise")
    done = run("hstest", *given)
    assert done.code == 0
    printed = " ".join(done.out.split())
    assert "done by libhdf5 in chunkwise's place: 'cells:3:2:0' by chunkwise: " in printed
    results = run_bench(
        file, "seen", measure.Space.of(access=["all"], reader=["chunkwise"]), repeat=1
    )
    out = io.StringIO()
    show(results, Console(file=out, width=80))
    assert "done by libhdf5 in chunkwise's place: 'all' by chunkwise: " in out.getvalue()


def test_a_wrong_value_ends_with_1(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (file, "flat", "--reader", "h5py", "--count", 3, "--seed", 8)
    monkeypatch.setattr(hstest, "run_bench", partial(run_bench, worker=WRONG_H5PY))
    done = run("hstest", *arguments)
    assert done.code == 1
    printed = " ".join(done.out.split())
    assert "WRONG: 'flat' in " in printed
    assert all(fact in printed for fact in ("'cells:20:3:8'", "seed 8"))
    done = run("hstest", *arguments, "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert len(told["wrong"]) == 1
    assert told["records"][0]["wrong"] is True
    monkeypatch.setattr(hstest, "run_bench", partial(run_bench, worker=WRONG_NOTHING))
    done = run("hstest", *arguments, "--json")
    assert done.code == 0
    record = json.loads(done.out)["records"][0]
    assert record["checked_elements"] * 4 == record["selected_nbytes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reader", "netcdf4"], "leave the reader netcdf4 out"),
        (["-k", "1"], "x>=2"),
        (["missing"], "missing"),
    ],
)
def test_what_makes_no_sense_is_one_line(file: Path, arguments: list[str], said: str) -> None:
    done = run("hstest", file, *arguments)
    assert done.code == 2
    assert said in done.err


# --- one wrong element -------------------------------------------------------------------


SHAPE = (7, 9, 5)
DATA = np.arange(np.prod(SHAPE), dtype="<i2").reshape(SHAPE)
# A box, a stride, blocks in a stride; and unions of these, which may overlap.
SLABS: list[Any] = [
    ((0, 0, 0), (1, 1, 1), (1, 1, 1), (7, 9, 5)),
    ((1, 2, 3), (1, 1, 1), (1, 1, 1), (4, 3, 2)),
    ((0, 1, 0), (3, 2, 1), (3, 4, 5), (1, 1, 1)),
    ((1, 0, 0), (3, 4, 2), (2, 2, 2), (2, 3, 1)),
]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("known") / "d"
    DATA.tofile(path)
    return str(path)


def trial(known: str, **values: Any) -> Trial:
    base = Trial("f.h5", "/d", "x", SHAPE, "h5py", shape=SHAPE, itemsize=2, dtype="<i2")
    return replace(base, data=known, check=True, seed=4, **values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.slow
def test_a_wrong_element_is_named(
    known: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pieces of a few rows, as of large arrays.
    monkeypatch.setattr(worker, "_PIECE", data.draw(st.integers(1, 200)))
    chosen = data.draw(st.lists(st.sampled_from(SLABS), min_size=1, unique=True))
    single = len(chosen) == 1 and data.draw(st.booleans())
    walk = _native.Walk.listed(SHAPE, [chosen[0] if single else chosen])
    mask = np.zeros(SHAPE, bool)
    for slab in chosen:
        for place in np.ndindex(*SHAPE):
            mask[place] |= all(
                0 <= i - s < t * (n - 1) + b and (i - s) % t < b
                for i, s, t, n, b in zip(place, *slab, strict=True)
            )
    right = DATA[mask]
    checker = Checker(trial(known), walk)
    checker(0, right.tobytes())
    assert checker.checked == len(right)
    at = data.draw(st.integers(0, len(right) - 1))
    read = right.copy()
    read[at] ^= 1 << data.draw(st.integers(0, 14))
    index = ", ".join(map(str, np.argwhere(mask)[at]))
    words = f"selection 0 of 'x' of seed 4: element [{index}] was read as {read[at]}, and is "
    with pytest.raises(WrongValueError) as wrong:
        checker(0, read.tobytes())
    assert str(wrong.value) == f"'/d' in f.h5: h5py, {words}{right[at]}"
    for other in (right[:-1], np.append(right, right[-1:])):
        with pytest.raises(WrongValueError, match="another number was asked for"):
            checker(0, other.tobytes())


def test_elements_of_any_size_are_compared_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "known"
    for dtype in ("S3", "<f8", "<c16"):
        values = np.array([0, np.nan, -0.0, 1]).astype(dtype)
        values.tofile(path)
        walk = _native.Walk((4,), (4,))
        one = trial(str(path), shape=(4,), itemsize=values.itemsize, dtype=dtype)
        Checker(one, walk)(0, values.tobytes())
        other = values.copy()
        other.view("u1")[2 * values.itemsize] ^= 4
        with pytest.raises(WrongValueError, match=r"element \[2\]"):
            Checker(one, walk)(0, other.tobytes())


def test_padding_is_not_checked(known: str) -> None:
    with pytest.raises(UsageError, match="padding"):
        Checker(trial(known, comparable=False), _native.Walk(SHAPE, SHAPE))


@pytest.fixture
def chunked(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=DATA, chunks=(2, 9, 5))
    return path


def test_what_is_known_must_be_all(chunked: Path, tmp_path: Path) -> None:
    space = Space.of(access=["cells:4:3"], reader=["h5py"])
    path = tmp_path / "known"
    DATA[1:].tofile(path)
    with pytest.raises(UsageError, match="does not hold all elements"):
        measure.run(chunked, "d", space, check=path)
    assert look(chunked, "d").nbytes == DATA.nbytes


# --- unions of cells between random planes -----------------------------------------------


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
        reader: worker.measure(
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
        one = worker.measure(trial_of(target, pattern, reader))
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
    one = worker.measure(trial_of(target, pattern, reader, reopen=reopen))
    assert one["fallback"]
    assert one["breakdown"] is None
