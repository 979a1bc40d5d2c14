"""Does libhdf5 write what it writes as fast, and is that what h5py writes?"""

import errno
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import NameTakenError
from chunkwise.writing import alike, direct

FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "deflate": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
}


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the other tests': as it is in use, with few bytes."""
    monkeypatch.setattr(direct, "SMALL_NBYTES", 400)
    monkeypatch.setattr(direct, "ONE_CHUNK_NBYTES", 400)
    monkeypatch.setattr(alike, "MOST_NBYTES", 400)


@st.composite
def writes(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Rows added, and boxes written, of a dataset of 12 columns."""
    rows = draw(st.integers(1, 20))
    steps: list[tuple[str, Any]] = [("rows", rows)]
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 3)) == 0:
            rows += draw(st.integers(1, 15))
            steps.append(("rows", rows))
            continue
        index = []
        for n in (rows, 12):
            begin = draw(st.integers(0, n - 1))
            end, step = draw(st.integers(begin + 1, n)), draw(st.sampled_from([1, 1, 1, 2, 5]))
            index.append(draw(st.sampled_from([slice(begin, end, step), begin, slice(None)])))
        steps.append(("box", tuple(index)))
    return steps


@settings(max_examples=25)
@given(
    steps=writes(),
    chunk=st.sampled_from([None, (3, 5), (1, 12), (40, 12)]),
    filters=st.sampled_from(sorted(FILTERS)),
    cache_nbytes=st.sampled_from([0, 150, 1 << 20]),
    dtype=st.sampled_from(["<i4", ">f8"]),
)
def test_the_file_holds_what_h5py_would_write(
    tmp_path: Path,
    steps: list[tuple[str, Any]],
    chunk: tuple[int, int] | None,
    filters: str,
    cache_nbytes: int,
    dtype: str,
) -> None:
    growing = chunk is not None
    found = []
    for number, opened in enumerate((h5py.File, chunkwise.open)):
        path = tmp_path / f"{number}.h5"
        options: dict[str, Any] = {"maxshape": (None, 12)} if growing else {}
        options |= FILTERS[filters] if growing else {}
        with opened(path, "w") as file:
            shape = (max(size for how, size in steps if how == "rows"), 12)
            dataset = file.create_dataset(
                "x",
                (1, 12) if growing else shape,
                dtype,
                chunks=chunk,
                rdcc_nbytes=cache_nbytes,
                **options,
            )
            for turn, (how, what) in enumerate(steps):
                if how == "rows":
                    if growing:
                        dataset.resize(what, 0)
                    continue
                wanted = np.empty(dataset.shape, "?")[what].shape
                count = int(np.prod(wanted))
                value = np.arange(turn * 1000, turn * 1000 + count).reshape(wanted)
                dataset[what] = value.astype(dtype) if turn % 4 else value
        with h5py.File(path) as file:
            found.append(file["x"][...])
    np.testing.assert_array_equal(found[0], found[1])


def test_who_writes_what(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        small = file.create_dataset("small", (10, 10), "i4", chunks=(5, 5), compression="gzip")
        small[2:4, 3] = np.array([1, 2], "i4")
        assert small.explain_write()["by_libhdf5"] == direct.SMALL
        assert small.explain_write()["dirty_chunks"] == 0
        large = file.create_dataset("large", (50, 50), "i4", chunks=(5, 5), compression="gzip")
        large[2:4, 3] = np.array([1, 2], "i4")
        assert large.explain_write()["by_libhdf5"] is None
        assert large.explain_write()["dirty_chunks"] == 1
        plain = file.create_dataset("plain", (50, 50), "i4", chunks=(5, 5), rdcc_nbytes=200)
        assert plain.explain_write()["by_libhdf5"] == direct.UNFILTERED
        plain[2:4] = np.ones((2, 50), "i4")  # Parts of more chunks than the cache holds.
        assert plain.explain_write()["dirty_chunks"] == 10
        # What waits and what does not come to one chunk, in their order.
        plain[0:5] = np.full((5, 50), 7, "i4")
        assert plain[0, 0] == plain[3, 49] == 7
        assert plain.explain_write()["dirty_chunks"] == 0
        plain[0:5] = np.full((5, 50), 8, "i4")
        assert plain.explain_write()["dirty_chunks"] == 0
        assert (plain[4, 49], large[3, 3], small[3, 3]) == (8, 2, 2)


def test_what_is_refused_is_said_as_ever(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (10, 10), "i4")
        with pytest.raises(chunkwise.errors.SelectionError):
            dataset[2:4] = np.ones((3, 10), "i4")
        with pytest.raises(chunkwise.errors.SelectionError):
            dataset[20] = np.ones(10, "i4")
        with pytest.raises(chunkwise.errors.UsageError):
            dataset.resize((20, 10))
    with pytest.raises(chunkwise.errors.UsageError, match="closed"):
        dataset[0] = np.ones(10, "i4")


ALIKE: list[dict[str, Any]] = [
    {},
    {"chunks": (4, 5)},
    {"chunks": True},
    {"chunks": (4, 5), "compression": True},
    {"chunks": (4, 5), "compression": 1},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
    {"compression": "lzf"},
    {"filters": "shuffle+deflate:3", "chunks": (8, 5)},
    {"track_order": True, "track_times": True},
    {"chunks": (4, 5), **hdf5plugin.Bitshuffle(cname="lz4")},
    {"chunks": (4, 5), **hdf5plugin.Blosc(cname="zstd")},
]


def properties(dataset: h5py.h5d.DatasetID) -> list[Any]:
    plist = dataset.get_create_plist()
    filters = [plist.get_filter(number) for number in range(plist.get_nfilters())]
    chunk = plist.get_chunk() if plist.get_layout() == h5py.h5d.CHUNKED else None
    # Whether times are kept, the list of an object that was opened again does not say.
    times = plist.get_fill_time(), plist.get_alloc_time(), h5py.h5o.get_info(dataset).ctime > 0
    return [dataset.get_type(), filters, chunk, times, plist.get_attr_creation_order()]


@pytest.mark.parametrize("options", ALIKE, ids=str)
def test_datasets_made_alike_are_alike(tmp_path: Path, options: dict[str, Any]) -> None:
    values = np.arange(80, dtype="<i4").reshape(8, 10)
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        # Neither another type nor another value that is equal, nor another shape, is alike.
        file.create_dataset("other", data=values.astype("<u4"), **options)
        file.create_dataset("turned", data=np.ascontiguousarray(values.T), compression=1)
        for number in range(3):
            made = file.create_dataset(f"d{number}", data=values + number, **options)
            assert made.name == f"/d{number}"
            np.testing.assert_array_equal(made[...], values + number)
        group = file.create_group("g")
        group.create_dataset("é", data=values, **options)
        group.create_dataset("new/d", data=values[:, ::1], **options)
        with pytest.raises(NameTakenError):
            file.create_dataset("d1", data=values, **options)
        first, *others = (file[name].id for name in ("d0", "d1", "d2", "g/é", "g/new/d"))
        for other in others:
            assert properties(other) == properties(first)
            assert other.get_storage_size() or not file["d0"].chunks
    with h5py.File(tmp_path / "x.h5") as file:
        for number in range(3):
            np.testing.assert_array_equal(file[f"d{number}"][...], values + number)
        assert sorted(file) == ["d0", "d1", "d2", "g", "other", "turned"]


def test_records_are_made_alike_but_for_what_h5py_sees_in_them(tmp_path: Path) -> None:
    plain = np.dtype([("a", "<i2"), ("b", [("c", ">f4"), ("d", "u1", (3,))])])
    coloured = np.dtype([("a", h5py.enum_dtype({"red": 1}, "<i2")), *plain.descr[1:]])
    # As keys they are one.
    assert coloured == plain
    assert hash(coloured) == hash(plain)
    values = np.zeros(6, plain)
    values["a"] = range(6)
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        for name, dtype in (("a", plain), ("b", plain), ("c", coloured), ("d", plain)):
            file.create_dataset(name, data=values.astype(dtype), compression=1)
        assert plain in {key[0] for key in alike._recipes}
    with h5py.File(tmp_path / "x.h5") as file:
        for name in "abd":
            assert file[name].dtype == plain
            assert file[name].id.get_type() == file["a"].id.get_type()
            np.testing.assert_array_equal(file[name][...], values)
        assert h5py.check_enum_dtype(file["c"].dtype["a"]) == {"red": 1}
        assert h5py.check_enum_dtype(file["d"].dtype["a"]) is None


def test_a_dataset_that_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(20, dtype="<i4")
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a", data=values)

        # A dataset is made, and the disk is full.
        def refuse(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "no space left")

        def made(*arguments: Any) -> Any:
            return h5py.h5d.create(*arguments) and SimpleNamespace(write=refuse)

        monkeypatch.setattr(alike, "h5d", SimpleNamespace(create=made))
        key = next(reversed(alike._recipes))
        assert alike.make(file.id, "b", key, values) is None
        assert list(file) == ["a"]
        file.create_dataset("b", data=values)
        np.testing.assert_array_equal(file["b"][...], values)


@settings(max_examples=40)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["number", "array", "h5py", "read"]), st.integers(0, 5)),
        min_size=4,
        max_size=10,
    )
)
def test_an_only_chunk_is_written_by_turns(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    """Of lzf libhdf5 leaves out what does not shrink, and remembers that for too long."""
    numbers = np.random.default_rng(len(steps)).integers(0, 200, (len(steps), 6), "i4")
    model = np.zeros(6, "i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        theirs = file.create_dataset("x", (6,), "i4", chunks=(6,), compression="lzf")
        ours = chunkwise.wrap(theirs)
        for (what, first), values in zip(steps, numbers, strict=True):
            if what == "number":
                ours[first:] = model[first:] = values[0]
            elif what == "array":
                ours[first // 4 :] = model[first // 4 :] = values[first // 4 :]
            elif what == "h5py":
                ours.flush()
                theirs[first:] = model[first:] = values[first:]
            else:
                np.testing.assert_array_equal(ours[...], model)
        np.testing.assert_array_equal(ours[...], model)
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(file["x"][...], model)


WAYS: dict[str, Any] = {
    "as it is": lambda d, at, values: d.__setitem__(at, values),
    "converted": lambda d, at, values: d.__setitem__(at, values.astype("f8")),
    "a list": lambda d, at, values: d.__setitem__(at, values.tolist()),
    "a selection": lambda d, at, values: d.write(
        chunkwise.hyperslab((at.start, 0), count=values.shape), values
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opened", ["w", "r+"])
def test_what_was_flushed_outlives_a_writer_that_grows_the_dataset_and_is_killed(
    tmp_path: Path, way: str, opened: str
) -> None:
    """Who writes next leaves libhdf5's newer chunks in memory until the next flush."""
    path = tmp_path / "x.h5"
    before = np.arange(60, dtype="i4").reshape(10, 6)
    child = os.fork()
    if child == 0:
        file = chunkwise.open(path, "w", sync=False)
        d: Any = file.create_dataset(
            "x", data=before, chunks=(5, 6), maxshape=(None, 6), filters="deflate:1"
        )
        file.flush()
        if opened == "r+":
            file.close()
            file = chunkwise.open(path, "r+", sync=False)
            d = file["x"]
        rng = np.random.default_rng(0)
        d[0:10] = rng.integers(0, 10**9, (10, 6)).astype("i4")
        d.append(rng.integers(0, 10**9, (100, 6)).astype("i4"))
        assert d.nbytes > direct.SMALL_NBYTES
        for first in range(0, 100, 7):
            WAYS[way](d, slice(first, first + 8), rng.integers(0, 10**9, (8, 6)).astype("i4"))
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with h5py.File(path) as stored:
        np.testing.assert_array_equal(stored["x"][:10], before)
    # After a flush it is written in parallel again.
    with chunkwise.open(path, "r+") as file:
        d = file["x"]
        d[0:10] = before + 1
        d.append(np.zeros((100, 6), "i4"))
        assert direct.is_held(d)
        file.flush()
        assert not direct.is_held(d)
        d[3:7] = before[3:7]
        assert d.explain_write()["dirty_chunks"] == 2
    with h5py.File(path) as stored:
        np.testing.assert_array_equal(stored["x"][3:7], before[3:7])
        np.testing.assert_array_equal(stored["x"][:3], before[:3] + 1)


@pytest.mark.parametrize("way", ["index", "write_direct", "a part by write_direct"])
def test_a_dataset_keeps_chunks_of_which_libhdf5_would_leave_a_filter_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """As long as the chunk before it, libhdf5 would keep that one's mask: it left szip out."""
    monkeypatch.setattr(direct, "SMALL_NBYTES", 64 << 10)
    monkeypatch.setattr(direct, "_known", {})
    rng = np.random.default_rng(0)
    noise = np.frombuffer(rng.bytes(20), "u1")
    options: dict[str, Any] = {"chunks": (20,), "compression": "szip", "dtype": "u1"}
    with h5py.File(tmp_path / "probe.h5", "w") as file:
        # A stream of exactly as many bytes as there are elements.
        for number in range(2000):
            values = (noise >> rng.integers(0, 8, 20)).astype("u1")
            one = file.create_dataset(str(number), data=values, **options)
            file.flush()
            mask, stored = one.id.read_direct_chunk((0,))
            if not mask and len(stored) == 20:
                break
        else:
            raise AssertionError("no such values were found")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (40,), **options)
    with chunkwise.open(path, "r+") as file:
        d: Any = file["x"]
        d[:20] = values
        file.flush()
        both = np.concatenate([noise, np.zeros(20, "u1")])
        if way == "index":
            d[:20] = noise
        elif way == "write_direct":
            d.write_direct(both)
        else:
            d.write_direct(both, np.s_[:20], np.s_[:20])
    with h5py.File(path) as file:
        assert np.array_equal(file["x"][:20], noise)


@pytest.mark.parametrize(
    ("changed", "is_direct"),
    [
        ({}, True),
        ({"filters": "deflate:4"}, True),
        ({"filters": "shuffle+deflate:fast"}, False),
        ({"filters": "shuffle+lzf"}, False),
        ({"chunks": (100, 100)}, False),
        ({"maxshape": (None, 100)}, False),
        ({"shape": (3000, 100), "chunks": (3000, 100)}, False),
    ],
    ids=["one", "no shuffle", "fast", "another filter", "chunks", "grows", "large"],
)
def test_one_deflated_chunk_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], is_direct: bool
) -> None:
    monkeypatch.setattr(direct, "ONE_CHUNK_NBYTES", 1 << 20)
    shape = (200, 100)
    options: dict[str, Any] = {"shape": shape, "chunks": shape, "filters": "shuffle+deflate:4"}
    options |= changed
    values = np.arange(np.prod(options["shape"]), dtype="i4").reshape(options["shape"]) // 7
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        d = file.create_dataset("x", dtype="i4", **options)
        assert (d.explain_write()["by_libhdf5"] == direct.SMALL) is is_direct
        d[...] = values
        # Parts of it, too, by another object of the same dataset.
        again: Any = file["x"]
        again[3:9, ::5] = np.full((6, 20), 7, "i4")
        assert bool(d.explain_write()["dirty_chunks"]) is not is_direct
        values[3:9, ::5] = 7
        np.testing.assert_array_equal(d[...], values)
    with h5py.File(tmp_path / "x.h5") as stored:
        np.testing.assert_array_equal(stored["x"], values)
