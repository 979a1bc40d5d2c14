"""Does data that has no file yet stand in for what was described?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.measure import Space, run_new
from chunkwise.measure.described import (
    alike,
    compressed,
    described,
    fill,
    noisy,
    repeated,
    smaller,
    times_smaller,
)
from chunkwise.measure.layouts import remedies
from chunkwise.measure.rows import read_rows
from chunkwise.measure.target import look
from chunkwise.measure.variants import Variant
from tests.support.golden import assert_golden, refused

FILTERS = "shuffle+deflate:1"


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["f4", "f8", ">f4", "i2", ">i4", "u1", "i8", "c8"]),
    times=st.floats(1.7, 6.0),
    chunks=st.sampled_from([(40, 30, 20), (1, 100, 100), (20_000,), (500, 40)]),
    filters=st.sampled_from([FILTERS, "deflate:4"]),
)
def test_it_gets_as_much_smaller_as_was_said(
    kind: str, times: float, chunks: tuple[int, ...], filters: str
) -> None:
    try:
        elements = compressed(times, filters, chunks, np.dtype(kind))
    except UsageError as refused:
        # Deflate alone makes little of noise in few bits of long elements.
        assert "times smaller by" in str(refused)  # noqa: PT017
        return
    # Also of another chunk, deeper in the array.
    first = 3 * chunks[0]
    piece = elements(first, first + chunks[0], (10 * chunks[0], *chunks[1:]))
    assert piece.dtype == np.dtype(kind)
    assert piece.shape == chunks
    assert smaller(piece, filters) == pytest.approx(times, rel=0.25)
    if piece.dtype.kind in "fc":
        assert np.isfinite(piece).all()


@pytest.mark.parametrize("kind", ["f4", "i2", "u1", "f8"])
def test_what_no_filter_makes_so_small_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"gets from .* to .* times smaller by shuffle"):
        compressed(1e6, FILTERS, (50, 50), np.dtype(kind))


def test_equal_descriptions_give_equal_data() -> None:
    one, other = (noisy(np.dtype("f4"), 7.5)(4, 9, (20, 30)) for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, noisy(np.dtype("f4"), 7.5)(9, 14, (20, 30)))


@settings(max_examples=40, deadline=None)
@given(
    known=st.tuples(st.integers(2, 7), st.integers(2, 5), st.integers(2, 5)),
    wanted=st.tuples(st.integers(1, 20), st.integers(1, 9), st.integers(1, 9)),
    data=st.data(),
)
def test_data_like_a_file_s_begins_again_where_that_ends(
    tmp_path_factory: pytest.TempPathFactory,
    known: tuple[int, int, int],
    wanted: tuple[int, int, int],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("like") / "like.h5"
    values = np.arange(math.prod(known), dtype="i4").reshape(known)
    with h5py.File(path, "w") as file:
        file["t"] = values
    first = data.draw(st.integers(0, wanted[0] - 1))
    last = data.draw(st.integers(first + 1, wanted[0]))
    with alike(f"{path}:t", np.dtype("i4")) as elements:
        found = elements(first, last, wanted)
    rows = np.arange(first, last) % known[0]
    across = [np.arange(n) % m for n, m in zip(wanted[1:], known[1:], strict=True)]
    assert np.array_equal(found, values[np.ix_(rows, *across)])


def test_data_of_another_rank_gives_its_elements_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "like.h5"
    with h5py.File(path, "w") as file:
        file["t"] = np.arange(100, dtype="i4").reshape(10, 10)
    with alike(f"{path}:t", np.dtype("i4")) as elements:
        assert elements(0, 5, (50,)).tolist() == list(range(5))
        assert elements(0, 2, (50, 3, 4)).ravel().tolist() == list(range(24))


@pytest.mark.parametrize("rows", [1, 3, 5, 7])
def test_the_whole_is_its_part_again_and_again(tmp_path: Path, rows: int) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        part = file.create_dataset("part", (rows, 6), "i4", chunks=(2, 3), maxshape=(None, 6))
        fill(part, noisy(np.dtype("i4"), 9.0), rows)
        tile = part[...]
        repeated(file, "data", "part", (7, 6))
        assert np.array_equal(file["data"][...], np.resize(tile, (7, 6)))
        assert len(np.unique(tile)) > rows


# --- measured as a file is ---------------------------------------------------------------


def test_it_is_measured_and_its_lines_write_what_was_measured(tmp_path: Path) -> None:
    results = run_new(
        "24x30x20", "f4",
        Space.of(access=["1x30x20"], reader=["h5py"], chunk=["stored", "1x30x20"]),
        compress="2x", repeat=1, seconds=4, scratch=str(tmp_path),
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    assert results.sampled is None
    assert results.file.file == "new.nc"
    assert "2x smaller" in results.file.made
    assert results.file.filters == FILTERS
    assert [row["total_s"] > 0 for row in results.summary()] == [True, True]
    assert not results.mismatches
    assert results.compared == 2
    variant = Variant((1, 30, 20), FILTERS)
    lines = {fix.tool: fix.text for fix in remedies(results, variant)}
    assert {"h5py", "netCDF4", "C"} <= lines.keys()
    with h5py.File(tmp_path / "new.nc", "w") as file:
        exec(lines["h5py"], {"file": file, "data": np.zeros((24, 30, 20), "f4")})
        made = file["data"]
        assert made.chunks == variant.chunks
        assert str(Pipeline.from_dcpl(made.id.get_create_plist())) == variant.filters


def test_of_what_is_too_large_a_part_is_made(tmp_path: Path) -> None:
    results = run_new(
        "4000x100x100", "i2", Space.of(access=["1x100x100"], reader=["h5py"], filter=["none"]),
        repeat=1, seconds=4, sample_nbytes=8_000_000, scratch=str(tmp_path),
    )  # fmt: skip
    assert results.file.shape == (4000, 100, 100)
    assert results.sampled is not None
    assert 0 < results.sampled * 100 * 100 * 2 <= 8_000_000
    assert results.file.filters == "none"
    (row,) = results.summary()
    assert row["total_operations"] == results.sampled


def test_rows_at_several_places_of_many_parts_are_read(tmp_path: Path) -> None:
    """libhdf5 2.0 refuses an empty selection of a virtual dataset with many sources."""
    path = tmp_path / "made.h5"
    with h5py.File(path, "w") as file:
        file["part"] = np.arange(2)
        repeated(file, "data", "part", (1000,))
    target = look(path, "data")
    with h5py.File(path) as file:
        found = read_rows(target, file["data"], [0, 1, 500, 501, 998], 0, 5)
    assert found.tolist() == [0, 1, 0, 1, 0]


def test_data_like_a_file_s_compresses_as_that_does(tmp_path: Path) -> None:
    values = np.arange(60 * 50 * 40).reshape(60, 50, 40) // 7 % 97
    with h5py.File(tmp_path / "like.h5", "w") as file:
        file.create_dataset("t", data=values.astype("i4"), chunks=(10, 50, 40))
    results = run_new(
        "60x50x40", "i4", Space.of(access=["all"], reader=["h5py"], chunk=["stored", "contiguous"],
                                   filter=["none"]),
        like=tmp_path / "like.h5", repeat=1, seconds=4,
    )  # fmt: skip
    assert [row["status"] for row in results.summary()] == ["ok", "ok"]
    assert "like.h5" in results.file.made


# --- what makes no sense --------------------------------------------------------------------


def test_ratios_are_understood_with_and_without_an_x() -> None:
    assert times_smaller("3x") == times_smaller("3") == times_smaller(3) == 3.0


def test_what_makes_no_sense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with h5py.File("like.h5", "w") as file:
        file.create_dataset("t", data=np.zeros((20, 20), "i4"), chunks=(5, 5))
    ratios = ("0.5x", "x", "", "nan", "inf", "-2")
    shapes = (("0x3", "f4"), ("auto", "f4"), ("3x3", "f5"), ("3x3", "S4"))
    stand_ins: list[dict[str, Any]] = [
        {"shape": "20x20", "dtype": "f8", "like": "like.h5"},
        {"shape": "20x20", "dtype": "i4", "like": "like.h5"},
        {"shape": "20x20", "dtype": "i4", "like": "like.h5", "compress": "3x"},
        {"shape": "20x20", "dtype": "i4", "save": "like.h5"},
        {"shape": "1000000000000", "dtype": "i4", "sample_nbytes": 1 << 20},
    ]
    benches: list[dict[str, Any]] = [
        {"path": "like.h5", "shape": "20x20", "dtype": "i4"}, {"compress": "3x"}, {},
    ]  # fmt: skip
    assert_golden(
        "described-refused",
        refused(times_smaller, ratios),
        refused(lambda words: described(*words), shapes),
        refused(lambda more: run_new(**more), stand_ins),
        refused(lambda more: measure.bench(**more), benches),
    )
