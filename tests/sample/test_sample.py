"""Samples: the papers' figures, and the same bytes every time."""

import zlib
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  (registers filters, to read what was written)
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise_lab.sample import SAMPLES, write, writing
from chunkwise_lab.sample.spec import Region
from chunkwise_lab.sample.writing import Layout

SMALL = {
    "cris": (5, 3, 9, 70),
    "occam": (13, 20, 30),
    "occam-archive": (13, 20, 30),
    "occam-smooth": (13, 20, 30),
    "radar": (200, 210),
    "cube": (5, 40, 60),
    "counting": (120, 130),
    "counts": (60, 80),
}
# The lowest and the highest ratio of raw to stored bytes with all defaults: of the papers, and
# of the project's own baselines.
RATIOS = {
    "cris": (1.05, 1.11),
    "occam": (1.8, 2.2),
    "occam-archive": (2.9, 3.5),
    "occam-smooth": (50.0, 200.0),
    "radar": (14.0, 23.0),
    "cube": (2.1, 2.3),
    "counting": (2.5, 3.2),
    "counts": (15.0, 35.0),
}


def read(path: Path, dataset: str) -> npt.NDArray[Any]:
    with h5py.File(path) as file:
        values: npt.NDArray[Any] = file[dataset][...]
        return values


def whole(name: str, seed: int = 0, variable: int = 0) -> npt.NDArray[Any]:
    """A small sample's array, generated in one piece, without a file."""
    sample, shape = SAMPLES[name], SMALL[name]
    values = sample.values(Region((0,) * len(shape), shape, shape, seed, variable))
    return np.broadcast_to(values, shape).astype(sample.dtype)


# What the papers, and the project's own baselines, ask of each.


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "cube"])
@pytest.mark.slow
def test_the_default_has_the_ratio_it_promises(tmp_path: Path, name: str) -> None:
    written = write(name, tmp_path / "x.h5")
    low, high = RATIOS[name]
    assert low <= written.ratio <= high
    with h5py.File(tmp_path / "x.h5") as file:
        stored = sum(file[d].id.get_storage_size() for d in SAMPLES[name].datasets)
    assert stored == written.stored_nbytes


@pytest.mark.parametrize("shape", [(20, 600, 600), (60, 200, 200)])
@pytest.mark.slow
def test_a_part_of_the_cube_compresses_like_the_cube(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    assert write("cube", tmp_path / "x.h5", shape=shape).ratio == pytest.approx(2.2, abs=0.1)


@pytest.mark.parametrize("name", ["cris", "occam", "radar"])
@pytest.mark.slow
def test_another_seed_compresses_alike(tmp_path: Path, name: str) -> None:
    low, high = RATIOS[name]
    assert low <= write(name, tmp_path / "x.h5", seed=2**64 - 1).ratio <= high


@pytest.mark.slow
def test_cris_is_the_array_of_paper_004(tmp_path: Path) -> None:
    write("cris", tmp_path / "x.h5", filters="deflate:6")
    with h5py.File(tmp_path / "x.h5") as file:
        dataset = file["/All_Data/CrIS-SDR_All/ES_ImaginaryLW"]
        assert dataset.dtype == ">f4"
        assert dataset.id.get_type().equal(h5py.h5t.IEEE_F32BE)
        assert dataset.shape == (60, 30, 9, 717)
        assert dataset.maxshape == (None,) * 4
        assert dataset.chunks == (4, 30, 9, 717)
        assert dataset.fillvalue == np.float32(-999.3)
        assert dataset.id.get_num_chunks() == 15
        assert str(Pipeline.from_dcpl(dataset.id.get_create_plist())) == "deflate:6"
        assert np.all(np.abs(dataset[...]) < 2)


@pytest.mark.slow
def test_radar_is_a_tile_of_paper_001(tmp_path: Path) -> None:
    write("radar", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert len(file) == 12
        for dataset in file.values():
            assert (dataset.shape, dataset.chunks) == ((1501, 2001), (1501, 2001))
            assert dataset.dtype == "<i2"
        assert not np.array_equal(file["SHI"], file["POSH"])


def test_occam_has_the_resolutions_of_paper_000(tmp_path: Path) -> None:
    sample = SAMPLES["occam"]
    assert sample.resolutions == {
        "1": (66, 144, 360),
        "1/4": (66, 576, 1440),
        "1/12": (66, 1728, 4320),
    }
    assert sample.chunk == (11, 8, 360)
    written = write("occam-smooth", tmp_path / "x.h5", resolution="1/4")
    assert written.layout.shape == (66, 576, 1440)


def test_cube_is_rounded_to_hundredths(tmp_path: Path) -> None:
    write("cube", tmp_path / "x.h5", shape=SMALL["cube"])
    values = read(tmp_path / "x.h5", "t2m")
    np.testing.assert_array_equal(values, np.round(values.astype("f8"), 2).astype("f4"))
    assert 200 < values.min() < values.max() < 330


def test_counting_counts(tmp_path: Path) -> None:
    write("counting", tmp_path / "x.h5", shape=(120, 130))
    expected = np.arange(120 * 130, dtype="i4").reshape(120, 130)
    np.testing.assert_array_equal(read(tmp_path / "x.h5", "counting"), expected)


def test_counting_starts_again_where_i4_ends() -> None:
    region = Region((2**20 - 1, 2**11 - 2), (1, 2), (2**21, 2**11), 0)
    assert SAMPLES["counting"].values(region).tolist() == [[2**31 - 2, 2**31 - 1]]
    region = Region((2**20, 0), (1, 2), (2**21, 2**11), 0)
    assert SAMPLES["counting"].values(region).tolist() == [[0, 1]]


def test_counts_are_sparse_and_follow_their_rates() -> None:
    shape = (2000, 500)
    counts = SAMPLES["counts"].values(Region((0, 0), shape, shape, 0))
    assert 0.05 < np.count_nonzero(counts) / counts.size < 0.2
    assert counts.max() < 40
    # Poisson: within a column (its rate varies by row only fivefold) mean and variance go along.
    busiest = counts[:, counts.mean(axis=0).argmax()]
    assert 0.8 < busiest.var() / busiest.mean() < 3


# The same seed, the same bytes.


@pytest.mark.parametrize(
    ("name", "crc"),
    [
        ("cris", 0xF7B9136A),
        ("occam", 0x63494CDB),
        ("occam-archive", 0x4078D845),
        ("occam-smooth", 0xC9073F6C),
        ("radar", 0x84A164D3),
        ("cube", 0xDEDA200D),
        ("counting", 0x9685B67A),
        ("counts", 0xACC06026),
    ],
)
def test_values_are_the_same_on_every_machine(name: str, crc: int) -> None:
    assert zlib.crc32(whole(name, seed=7).tobytes()) == crc


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_seed_makes_the_same_file(tmp_path: Path, name: str) -> None:
    for out in ("a.h5", "b.h5"):
        write(name, tmp_path / out, shape=SMALL[name], seed=3)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_the_number_of_threads_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in (1, 5):
        monkeypatch.setattr(writing, "_thread_count", lambda threads=threads: threads)
        write("cube", tmp_path / f"{threads}.h5", shape=(20, 300, 300))
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "5.h5").read_bytes()


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"counting", "occam-smooth"}))
def test_another_seed_makes_other_values(name: str) -> None:
    assert not np.array_equal(whole(name, seed=0), whole(name, seed=1))


@settings(deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(SMALL)), seed=st.integers(0, 2**64 - 1))
def test_any_box_is_a_part_of_the_whole(data: st.DataObject, name: str, seed: int) -> None:
    shape, sample = SMALL[name], SAMPLES[name]
    start = data.draw(st.tuples(*(st.integers(0, length - 1) for length in shape)))
    limits = (st.integers(1, length - at) for length, at in zip(shape, start, strict=True))
    count = data.draw(st.tuples(*limits))
    box = sample.values(Region(start, count, shape, seed, 1))
    part = tuple(slice(at, at + n) for at, n in zip(start, count, strict=True))
    np.testing.assert_array_equal(
        np.broadcast_to(box, count).astype(sample.dtype), whole(name, seed, 1)[part]
    )


@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"filters": "none"},
        {"filters": "deflate:0"},
        {"filters": "shuffle"},
        {"filters": "shuffle+deflate:9"},
        {"filters": "deflate:1+shuffle"},
        {"filters": "fletcher32+shuffle+deflate:4"},
        {"filters": "szip:nn:8"},
        {"filters": "lzf"},
        {"filters": "shuffle+zstd:3"},
        {"chunk": "contiguous"},
        {"chunk": "auto"},
        {"chunk": "stored"},
        {"chunk": "odd"},
        {"chunk": "odd", "filters": "szip:nn:8"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["cris", "occam", "counts"])
def test_storage_does_not_change_the_values(
    tmp_path: Path, name: str, storage: dict[str, Any]
) -> None:
    shape = SMALL[name]
    if storage.get("chunk") == "odd":
        # Chunks that reach over the array's edge in every dimension.
        storage = {**storage, "chunk": tuple(length // 2 + 1 for length in shape)}
    written = write(name, tmp_path / "x.h5", shape=shape, seed=4, **storage)
    with h5py.File(tmp_path / "x.h5") as file:
        dataset = file[SAMPLES[name].datasets[0]]
        np.testing.assert_array_equal(dataset[...], whole(name, 4))
        assert dataset.chunks == written.layout.chunk
        assert Pipeline.from_dcpl(dataset.id.get_create_plist()) == written.layout.pipeline


def test_unlimited_dimensions_allow_chunks_larger_than_the_array(tmp_path: Path) -> None:
    write("cris", tmp_path / "x.h5", shape=SMALL["cris"], chunk=(8, 4, 16, 100))
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        dataset = file[SAMPLES["cris"].datasets[0]]
        np.testing.assert_array_equal(dataset[...], whole("cris"))
        # What lies beyond the edge is the fill value once the array is extended.
        dataset.resize(8, axis=0)
        assert np.all(dataset[5:] == np.float32(-999.3))


@given(
    axes=st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 100)), min_size=1, max_size=3),
    chunked=st.booleans(),
)
@settings(deadline=None)
def test_slabs_cover_the_array_once_with_whole_chunks(
    axes: list[tuple[int, int]], chunked: bool
) -> None:
    shape = tuple(length for length, _ in axes)
    chunk = tuple(min(pair) for pair in axes)
    covered = 0
    expected = (0,) * len(shape)
    layout = Layout(shape, chunk if chunked else None, Pipeline())
    for number, (start, count) in enumerate(layout.slabs()):
        if number == 0:
            assert start == expected
        covered += int(np.prod(count))
        assert np.prod(count) <= max(2**19, np.prod(chunk) if chunked else 1)
        if chunked:
            assert all(at % size == 0 for at, size in zip(start, chunk, strict=True))
        if number == 200:
            return  # many small slabs: enough seen
    assert covered == np.prod(shape)


def test_slabs_of_an_enormous_array_cost_nothing() -> None:
    layout = Layout((10**12, 10**6), (50, 50), Pipeline())
    start, count = next(layout.slabs())
    assert start == (0, 0)
    assert np.prod(count) <= 2**19


def test_the_integers_have_any_rank(tmp_path: Path) -> None:
    write("counting", tmp_path / "a.h5", shape=(3, 2, 4), chunk="contiguous")
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["counting"][...].ravel(), np.arange(24))
    # The sample's own chunks have two dimensions.
    assert write("counting", tmp_path / "b.h5", shape=(3, 2, 4)).layout.chunk == (3, 2, 4)
    with pytest.raises(UsageError, match="dimensions"):
        write("radar", tmp_path / "c.h5", shape=(3, 2, 4), chunk="contiguous")
