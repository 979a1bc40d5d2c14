"""Is a sample of the data what libhdf5 stores and reads, and is it never an error?"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.inspection import sampling
from chunkwise.inspection.collect import dataset_facts
from chunkwise.inspection.facts import ObjectFacts, SampleFacts
from chunkwise.inspection.sampling import choose, shuffle, take_sample
from tests.support.versions import needs_chunk_iter

RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 200, (40, 1000)).astype(">u4")


def taken(path: Path, name: str = "x", **options: Any) -> SampleFacts | None:
    with h5py.File(path, "r", rdcc_nbytes=0) as file:
        dataset = file[name].id
        return take_sample(dataset, dataset_facts(dataset), **options)


def sample(path: Path, name: str = "x", **options: Any) -> SampleFacts:
    found = taken(path, name, **options)
    assert found is not None
    return found


def write(path: Path, data: Any = NOISE, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, **options)
    return path


def test_whole_chunks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.h5", chunks=(2, 1000), compression="gzip")
    monkeypatch.setattr(sampling, "SAMPLED_CHUNKS", 5)
    monkeypatch.setattr(sampling, "UNLEARNT_NBYTES", 1)
    found = sample(path)
    assert (found.chunks, found.raw_nbytes) == (5, 5 * 8000)
    assert 0 < found.stored_nbytes < found.raw_nbytes
    assert found.read_s > 0


def test_bytes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.h5", chunks=(2, 1000))
    monkeypatch.setattr(sampling, "SAMPLED_NBYTES", 17_000)
    found = sample(path)
    assert (found.chunks, found.raw_nbytes) == (2, 16_000)
    # One chunk is read however small the limit.
    monkeypatch.setattr(sampling, "SAMPLED_NBYTES", 1)
    found = sample(path)
    assert found.chunks == 1


def test_encodings_are_what_libhdf5_stores(tmp_path: Path) -> None:
    """The sample covers all chunks here, so that its sizes are the file's."""
    for level in (1, 6):
        plain = tmp_path / f"plain{level}.h5"
        write(plain, chunks=(10, 1000), compression="gzip", compression_opts=level)
        shuffled = tmp_path / f"shuffled{level}.h5"
        write(
            shuffled, chunks=(10, 1000), shuffle=True, compression="gzip", compression_opts=level
        )
        found = sample(plain)
        assert [one.filters for one in found.encodings] == [
            f"deflate:{level}",
            f"shuffle+deflate:{level}",
        ]
        assert all(one.raw_nbytes == NOISE.nbytes for one in found.encodings)
        for one, path in zip(found.encodings, (plain, shuffled), strict=True):
            with h5py.File(path) as file:
                # libhdf5 may come with another deflate: sizes differ by little then.
                assert one.nbytes == pytest.approx(file["x"].id.get_storage_size(), rel=0.05)


@pytest.mark.parametrize("dtype", ["<u2", ">f8", "S3", "<c16", [("a", "<i4"), ("b", "S3")]])
def test_shuffle_is_libhdf5s(tmp_path: Path, dtype: Any) -> None:
    data = np.frombuffer(RNG.bytes(120 * np.dtype(dtype).itemsize), dtype).reshape(12, 10)
    path = write(tmp_path / "a.h5", data, chunks=(3, 10), shuffle=True)
    with h5py.File(path) as file:
        dataset = file["x"].id
        for row in range(0, 12, 3):
            _, stored = dataset.read_direct_chunk((row, 0))
            raw = np.ascontiguousarray(data[row : row + 3]).tobytes()
            assert shuffle(raw, np.dtype(dtype).itemsize) == stored


@given(st.binary(max_size=200), st.integers(1, 17))
def test_shuffle_only_moves_bytes(data: bytes, itemsize: int) -> None:
    moved = shuffle(data, itemsize)
    count = len(data) // itemsize
    whole = count * itemsize
    assert moved[whole:] == data[whole:]
    assert all(
        moved[byte * count + i] == data[i * itemsize + byte]
        for i in range(count)
        for byte in range(itemsize)
    )


def test_one_byte_types_have_nothing_to_shuffle(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", NOISE.astype("u1"), chunks=(10, 1000))
    found = sample(path)
    assert [one.filters for one in found.encodings] == ["deflate:4"]


def test_noise_is_stored_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", np.frombuffer(RNG.bytes(40_000), "u1"), chunks=(10_000,))
    found = sample(path)
    assert [(one.raw_nbytes, one.nbytes) for one in found.encodings] == [(40_000, 40_000)]


@needs_chunk_iter
def test_only_stored_chunks_count(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        sparse = file.create_dataset("x", (4000, 100), "f4", chunks=(1, 100))
        sparse[3990:3993] = 1.0
        dense = file.create_dataset("dense", (40, 100), "f4", chunks=(1, 100))
        dense[:25] = 1.0
        file.create_dataset("none", (40, 100), "f4", chunks=(1, 100))
    found = sample(path)
    assert (found.chunks, found.stored_nbytes) == (3, 1200)
    found = sample(path, "dense")
    assert (found.chunks, found.stored_nbytes) == (25, 10_000)
    assert taken(path, "none") is None


def test_typical_chunks_are_preferred(tmp_path: Path) -> None:
    """Half of the chunks hold fill values only, which says nothing about the data."""
    data = RNG.integers(0, 2**31, (64, 1000)).astype("i4")
    data[::3] = 0
    path = write(tmp_path / "a.h5", data, chunks=(1, 1000), compression="gzip")
    found = sample(path)
    assert found.stored_nbytes > found.raw_nbytes / 2


def test_edges_are_clipped(tmp_path: Path) -> None:
    """No chunk of this dataset lies within it."""
    path = write(tmp_path / "a.h5", NOISE[:3, :70], chunks=(4, 100), maxshape=(None, None))
    found = sample(path)
    assert (found.chunks, found.raw_nbytes) == (1, 4 * 100 * 4)
    assert {one.raw_nbytes for one in found.encodings} == {3 * 70 * 4}


@pytest.mark.parametrize(
    ("shape", "pieces", "nbytes"),
    [
        ((5,), 5, 20),
        ((600, 1024, 2), 4, 128 * 8192 * 4),
        ((3, 500, 1000), 8, 8 * 262 * 4000),
        ((), 1, 4),
    ],
)
def test_contiguous_pieces(
    tmp_path: Path, shape: tuple[int, ...], pieces: int, nbytes: int
) -> None:
    path = write(tmp_path / "a.h5", np.full(shape, 7, "i4"))
    found = sample(path)
    assert found.chunks <= pieces
    assert found.raw_nbytes == found.stored_nbytes <= nbytes
    assert found.encodings[0].filters == "deflate:4"


def test_a_cache_is_not_measured(tmp_path: Path) -> None:
    """Where chunks may be cached, each is read once."""
    path = write(tmp_path / "a.h5", chunks=(10, 1000), compression="gzip")
    with h5py.File(path) as file:
        dataset = file["x"].id
        found = take_sample(dataset, dataset_facts(dataset))
    assert found is not None
    assert found.chunks == 4


def test_deadline(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", chunks=(10, 1000))
    # From a slow disk the clock runs out early: one chunk still tells the speed.
    late = sample(path, deadline=time.monotonic())
    assert (late.chunks, late.encodings) == (1, ())
    in_time = sample(path, deadline=time.monotonic() + 60)
    assert in_time.chunks == 4


def test_damaged_chunks_give_no_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", chunks=(10, 1000), compression="gzip")
    with h5py.File(path) as file:
        stored = file["x"].id.get_chunk_info(0), file["x"].id.get_num_chunks()
    with path.open("r+b") as raw:
        raw.seek(stored[0].byte_offset)
        raw.write(b"\xff" * (path.stat().st_size - stored[0].byte_offset - 4096))
    assert stored[1] == 4
    assert taken(path) is None


def unfit(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("text", data=["a", "bb"])
        file.create_dataset("references", data=np.array([file.ref] * 3, h5py.ref_dtype))
        file.create_dataset("empty", (0, 5), "f8", chunks=(4, 5), maxshape=(None, 5))
        file["null"] = h5py.Empty("f4")
        layout = h5py.VirtualLayout((10,), "i4")
        layout[:] = h5py.VirtualSource("gone.h5", "x", (10,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("large", (1 << 27,), "u1", chunks=(1 << 27,), compression="gzip")
        file["large"].id.write_direct_chunk((0,), b"short")


def test_what_is_not_sampled(tmp_path: Path) -> None:
    unfit(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        for name in file:
            assert take_sample(file[name].id, dataset_facts(file[name].id)) is None, name


def test_missing_filter_is_not_sampled(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", (4,), "i4", chunks=(4,), compression=32123, allow_unknown_filter=True
        )
        dataset.id.write_direct_chunk((0,), b"0123456789abcdef")
    assert taken(path) is None


def facts_of(path: Path) -> list[ObjectFacts]:
    with h5py.File(path) as file:
        return [
            ObjectFacts(f"/{n}", 1, "dataset", 0, dataset=dataset_facts(file[n].id)) for n in file
        ]


def test_the_largest_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    unfit(path)
    with h5py.File(path, "r+") as file:
        for size in range(1, 12):
            file[f"d{size}"] = np.zeros(size)
    group = ObjectFacts("/", 0, "group", 0)
    chosen = choose([group, *facts_of(path)])
    # References are told apart only when they are read.
    names = [one.path for one in chosen]
    assert names == [f"/d{size}" for size in range(11, 3, -1)]
    assert [one.path for one in choose(facts_of(path), 2)] == ["/d11", "/d10"]


def test_nothing_to_choose() -> None:
    assert choose([ObjectFacts("/", 0, "group", 0)]) == ()


@needs_chunk_iter
def test_an_enormous_grid(tmp_path: Path) -> None:
    """One chunk is stored of some 10**17."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        options: dict[str, Any] = {"chunks": (1, 10), "maxshape": (None, None)}
        file.create_dataset("x", (2**31, 2**31), "f4", **options)[2**30, :10] = 1.0
    with h5py.File(path) as file:
        facts = dataset_facts(file["x"].id)
        taken = take_sample(file["x"].id, facts)
        assert taken is not None
        assert taken.chunks == 1
        # A damaged header may claim that most of them are stored.
        assert facts.chunks is not None
        claimed = replace(facts, chunks=replace(facts.chunks, allocated=facts.chunks.grid))
        assert take_sample(file["x"].id, claimed) is None
