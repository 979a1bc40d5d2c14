"""Rechunking gives what h5py reads, whatever the shapes, filters, memory, damage and stops."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import CannotJudgeError, CannotWriteError, CorruptDataError, UsageError
from tests.support.damage import damage_chunk
from tests.support.native import leave_partial_chunks_unfiltered
from tests.support.reading import LEFT_TO_LIBHDF5
from tests.support.rechunking import bits, content, copied, datasets, written
from tests.support.repacking import require_equal
from tests.support.threads import run_in_threads

FILTERS: list[dict[str, Any]] = [
    {},
    {"compression": 4},
    {"compression": 1, "shuffle": True},
    {"shuffle": True, "compression": 6, "fletcher32": True},
    {"compression": "lzf"},
    {"fletcher32": True},
]
DTYPES = ["i1", "<u2", ">i4", "<f4", ">f8", "<c16", "S3", "V5", "?", "<f2"]
COMPOUND = np.dtype([("a", "<i2"), ("b", ">f8", (2,))])


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rank = draw(st.integers(1, 3))
    # Chunks may be larger than what may grow.
    grows = draw(st.booleans())
    shape = [draw(st.integers(1, 20)) for _ in range(rank)]

    def chunks() -> tuple[int, ...] | None:
        found = tuple(draw(st.integers(1, n + 3 * grows)) for n in shape)
        return found if draw(st.integers(0, 5)) else None

    source, target = chunks(), chunks()
    maxshape = (None,) * rank if grows else None
    return {
        "shape": tuple(shape),
        "dtype": np.dtype(draw(st.sampled_from([*DTYPES, COMPOUND]))),
        "source": source,
        "target": target,
        "source_filters": draw(st.sampled_from(FILTERS)) if source else {},
        "target_filters": draw(st.sampled_from(FILTERS)) if target else {},
        "source_max": maxshape if source else None,
        "target_max": maxshape if target else None,
        "written": draw(st.sampled_from(["all", "some", "none"])),
        "budget": draw(st.sampled_from([1 << 14, 1 << 16, 1 << 24])),
        "seed": draw(st.integers(0, 99)),
    }


def make_case(path: Path, case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    shape, dtype = case["shape"], case["dtype"]
    raw = rng.integers(0, 4, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    data = (raw % 2 if dtype.kind == "b" else raw).view(dtype).reshape(shape)
    fill = data.flat[0] if dtype.kind in "iuf" else None
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        d = file.create_dataset(
            "d",
            shape,
            dtype,
            chunks=case["source"],
            maxshape=case["source_max"],
            fillvalue=fill,
            **case["source_filters"],
        )
        if case["written"] == "all":
            d[...] = data
        elif case["written"] == "some":
            at = tuple(slice(n // 2, n // 2 + 2) for n in shape)
            d[at] = data[at]


@settings(max_examples=60, deadline=None)
@given(case=cases())
@pytest.mark.slow
def test_the_target_is_the_source(
    tmp_path_factory: pytest.TempPathFactory, case: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("rechunk")
    source, target = folder / "s.h5", folder / "t.h5"
    make_case(source, case)
    before = _native.cache_stats()["decoded"]
    created = {"chunks": case["target"], "maxshape": case["target_max"]}
    created |= case["target_filters"]
    with h5py.File(source) as file:
        itemsize = file["d"].id.get_type().get_size()
    try:
        plan = _native.RechunkPlan(
            case["shape"], case["source"], case["target"], itemsize, case["budget"]
        )
    except UsageError:
        with pytest.raises(UsageError, match="too few to make one chunk"):
            copied(source, target, created, memory_nbytes=case["budget"], proved=False)
        return
    result = copied(source, target, created, memory_nbytes=case["budget"], proved=False)
    decoded = _native.cache_stats()["decoded"] - before
    assert bits(content(target)) == bits(content(source))
    assert decoded == result.decodes <= plan.decodes
    # A filter that makes nothing smaller is left out, this one never.
    if case["written"] == "all" and "fletcher32" in case["source_filters"]:
        assert result.decodes == plan.decodes
    assert result.lost_chunks == []
    if case["source"] and case["target"] and case["written"] == "none":
        assert written(target) == 0
    # What is proved as it is written is the same.
    copied(source, folder / "proved.h5", created)
    assert bits(content(folder / "proved.h5")) == bits(content(source))


def copied_into(
    folder: Path, prepare: Callable[[h5py.h5p.PropDCID], object], libver: str | None = None
) -> _native.CopyResult:
    """Copy 28x25 numbers into chunks of 8x6 of a list of properties; give what came of it."""
    data = np.arange(700, dtype="i4").reshape(28, 25)
    source, target = make(folder, data, chunks=(9, 9), compression=4), folder / "t.h5"
    with h5py.File(source) as old, h5py.File(target, "w", libver=libver) as new:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((8, 6))
        prepare(dcpl)
        space = h5py.h5s.create_simple(data.shape)
        made = h5py.h5d.create(new.id, b"d", h5py.h5t.STD_I32LE, space, dcpl)
        dataset = old["d"]
        result = _native.copy_data(
            library(), dataset.id.id, made.id, label="d", memory_nbytes=1 << 24
        )
    assert bits(content(target)) == bits(data)
    return result


@pytest.mark.parametrize("target", [(3, 4), (5, 2), None])
@pytest.mark.parametrize("layout", ["compact", "external", "virtual", "scalar", "null", "empty"])
def test_other_layouts_are_read_by_libhdf5(
    tmp_path: Path, layout: str, target: tuple[int, int] | None
) -> None:
    source = tmp_path / "s.h5"
    data = np.arange(56, dtype="i4").reshape(7, 8)
    with h5py.File(source, "w") as file:
        if layout == "compact":
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_layout(h5py.h5d.COMPACT)
            space = h5py.h5s.create_simple((7, 8))
            made = h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, space, dcpl)
            h5py.Dataset(made)[...] = data
        elif layout == "external":
            outside = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("d", data=data, external=outside)
        elif layout == "virtual":
            file["other"] = data
            virtual = h5py.VirtualLayout((7, 8), "i4")
            virtual[...] = h5py.VirtualSource(file["other"])
            file.create_virtual_dataset("d", virtual)
        elif layout == "scalar":
            file["d"] = np.float32(2.5)
        elif layout == "null":
            file["d"] = h5py.Empty("f4")
        else:
            file.create_dataset("d", (0, 8), "f4", chunks=(2, 3), maxshape=(None, 8))
    created: dict[str, Any] = {"chunks": target, "compression": 1 if target else None}
    if layout in {"scalar", "null"}:
        created = {"fillvalue": None}
    elif layout == "empty":
        created |= {"chunks": (3, 4), "maxshape": (None, 8)}
    result = copied(source, tmp_path / "t.h5", created)
    found, expected = content(tmp_path / "t.h5"), content(source)
    if layout != "null":
        assert bits(found) == bits(expected)
        assert found.shape == expected.shape
    if layout in {"compact", "external", "virtual", "scalar"}:
        assert result.through_libhdf5 is not None


def test_filters_without_a_decoder_or_encoder_go_through_libhdf5(tmp_path: Path) -> None:
    data = np.arange(900, dtype="f4").reshape(30, 30)
    source = make(tmp_path, data, chunks=(7, 7), **LEFT_TO_LIBHDF5)
    result = copied(source, tmp_path / "t.h5", {"chunks": (10, 4), **LEFT_TO_LIBHDF5})
    assert result.through_libhdf5 is not None
    assert "read: filter" in result.through_libhdf5
    assert "written: filter" in result.through_libhdf5
    assert bits(content(tmp_path / "t.h5")) == bits(data)
    assert result.chunks_written == 24


@pytest.mark.parametrize("compression", [None, 4])
def test_edge_chunks_may_be_stored_without_filters(
    tmp_path: Path, compression: int | None
) -> None:
    def plain_edges(dcpl: h5py.h5p.PropDCID) -> None:
        if compression:
            dcpl.set_deflate(compression)
        leave_partial_chunks_unfiltered(dcpl)

    copied_into(tmp_path, plain_edges, "latest")


def test_a_grid_of_a_billion_chunks_is_planned_at_once() -> None:
    plan = _native.RechunkPlan((1 << 20, 1 << 20), (1, 1 << 10), (1 << 10, 1), 4, 1 << 30)
    assert plan.source_chunks == 1 << 30
    assert plan.decodes == plan.source_chunks
    assert plan.memory_nbytes <= 1 << 30


def test_chunks_that_are_there_are_overwritten_by_libhdf5(tmp_path: Path) -> None:
    def early(dcpl: h5py.h5p.PropDCID) -> None:
        dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        dcpl.set_deflate(1)

    result = copied_into(tmp_path, early)
    assert result.through_libhdf5 == "written: it holds chunks already"


# --- raw copies, damage, journals, and who watches ---------------------------------------


FILTERED: dict[str, Any] = {"shuffle": True, "compression": 4, "fletcher32": True}


def numbers(*shape: int) -> npt.NDArray[np.int32]:
    rng = np.random.default_rng(7)
    return rng.integers(0, 99, shape).astype("i4")


def make(folder: Path, data: npt.NDArray[Any], **created: Any) -> Path:
    path = folder / "s.h5"
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        file.create_dataset("d", data=data, **created)
    return path


def test_stored_chunks_are_copied_with_their_masks(tmp_path: Path) -> None:
    data = numbers(31, 29)
    source, target = make(tmp_path, data, chunks=(8, 10), **FILTERED), tmp_path / "t.h5"
    with h5py.File(source, "r+") as file:
        raw = data[:8, :10].tobytes()
        file["d"].id.write_direct_chunk((0, 0), raw, 0b111)
    result = copied(source, target, {"chunks": (8, 10), **FILTERED}, raw=True)
    assert bits(content(target)) == bits(data)
    assert result.decodes == 0
    with h5py.File(source) as old, h5py.File(target) as new:
        for position in range(old["d"].id.get_num_chunks()):
            origin = old["d"].id.get_chunk_info(position).chunk_offset
            chunks = [file["d"].id.read_direct_chunk(origin) for file in (old, new)]
            assert chunks[0] == chunks[1]


@pytest.mark.parametrize(
    ("created", "why"),
    [
        ({"chunks": (8, 9), **FILTERED}, "same shape"),
        ({"chunks": (8, 10), "compression": 4}, "filters"),
        ({"chunks": (8, 10), **FILTERED, "compression": 5}, "filters"),
        ({"chunks": None}, "same shape"),
        ({"chunks": (8, 10), **FILTERED, "dtype": ">i4"}, "same type"),
        ({"chunks": (8, 10), **FILTERED, "shape": (31, 28)}, "same shape"),
    ],
)
def test_raw_copies_that_would_be_wrong_are_refused(
    tmp_path: Path, created: dict[str, Any], why: str
) -> None:
    source = make(tmp_path, numbers(31, 29), chunks=(8, 10), **FILTERED)
    with pytest.raises(UsageError, match=why):
        copied(source, tmp_path / "t.h5", created, raw=True)


def test_variable_length_elements_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "s.h5"
    with h5py.File(source, "w") as file:
        file["d"] = ["one", "two"]
    with pytest.raises(UsageError, match="cannot be copied as bytes"):
        copied(source, tmp_path / "t.h5", {"fillvalue": None})


@pytest.mark.parametrize("chunks", [(5, 7), (8, 10), (16, 10)])
def test_a_damaged_chunk_is_named_or_filled(tmp_path: Path, chunks: tuple[int, int]) -> None:
    data = numbers(31, 29)
    source = make(tmp_path, data, chunks=(8, 10), fillvalue=-5, **FILTERED)
    origin = damage_chunk(source, "d", 5)
    created = {"chunks": chunks, **FILTERED}
    with pytest.raises(CorruptDataError, match=rf"d: the chunk at element \[{origin[0]}, "):
        copied(source, tmp_path / "t.h5", created)
    result = copied(source, tmp_path / "t.h5", created, salvage=True)
    assert [lost for lost, _ in result.lost_chunks] == [origin]
    assert "checksum" in result.lost_chunks[0][1] or "decoded" in result.lost_chunks[0][1]
    data[origin[0] : origin[0] + 8, origin[1] : origin[1] + 10] = -5
    assert bits(content(tmp_path / "t.h5")) == bits(data)


def test_a_damaged_chunk_of_a_filter_that_libhdf5_decodes(tmp_path: Path) -> None:
    data = numbers(31, 29)
    filters = dict(LEFT_TO_LIBHDF5)
    source = make(
        tmp_path, data.astype("f4"), chunks=(8, 10), fillvalue=-5, fletcher32=True, **filters
    )
    origin = damage_chunk(source, "d", 5)
    created = {"chunks": (16, 7), "compression": 1}
    # libhdf5 does not say whether the filter or the checksum before it has failed.
    with pytest.raises(CannotJudgeError, match="d: the elements from"):
        copied(source, tmp_path / "t.h5", created)
    result = copied(source, tmp_path / "t.h5", created, salvage=True)
    assert [lost for lost, _ in result.lost_chunks] == [origin]
    data[origin[0] : origin[0] + 8, origin[1] : origin[1] + 10] = -5
    assert bits(content(tmp_path / "t.h5")) == bits(data.astype("f4"))


def test_elements_never_written_stay_so_or_take_the_old_fill_value(tmp_path: Path) -> None:
    source = tmp_path / "s.h5"
    with h5py.File(source, "w") as file:
        d = file.create_dataset("d", (40, 40), "i4", chunks=(4, 4), fillvalue=7, compression=1)
        d[8:12, 20:24] = 1
    target = tmp_path / "t.h5"
    result = copied(source, target, {"chunks": (10, 5), "compression": 4})
    assert (result.chunks_written, written(target)) == (2, 2)
    assert bits(content(target)) == bits(content(source))
    result = copied(source, target, {"chunks": (10, 5), "compression": 4, "fillvalue": 0})
    assert written(target) == 32
    assert bits(content(target)) == bits(content(source))


def test_what_was_undefined_is_not_what_memory_held(tmp_path: Path) -> None:
    source, target = tmp_path / "s.h5", tmp_path / "t.h5"
    with h5py.File(source, "w") as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((4, 4))
        dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((40, 40))
        h5py.Dataset(h5py.h5d.create(file.id, b"d", h5py.h5t.STD_I32LE, space, dcpl))[:4, :4] = 3
    copied(source, target, {"chunks": (10, 10), "fillvalue": None})
    expected = np.zeros((40, 40), "i4")
    expected[:4, :4] = 3
    assert written(target) == 1
    assert bits(content(target)) == bits(expected)


def test_too_little_memory_says_how_much_is_needed(tmp_path: Path) -> None:
    source = make(tmp_path, numbers(100, 100), chunks=(10, 10))
    created = {"chunks": (100, 100), "compression": 1}
    with pytest.raises(UsageError, match="too few to make one chunk") as caught:
        copied(source, tmp_path / "t.h5", created, memory_nbytes=1000)
    needed = int(str(caught.value).split("which takes ")[1].split(";")[0])
    copied(source, tmp_path / "t.h5", created, memory_nbytes=needed)
    assert bits(content(tmp_path / "t.h5")) == bits(content(source))


@pytest.mark.slow
def test_progress_is_told_on_the_calling_thread_and_may_stop_it(tmp_path: Path) -> None:
    data = numbers(64, 256, 256)
    source = make(tmp_path, data, chunks=(1, 256, 256), compression=1)
    created = {"chunks": (64, 8, 8), "compression": 9}
    told: list[tuple[int, int, int, int]] = []
    target = tmp_path / "t.h5"
    copied(source, target, created, progress=lambda *n: told.append((threading.get_ident(), *n)))
    assert {at for at, *_ in told} == {threading.get_ident()}
    assert told[-1][1] == data.nbytes
    assert [n[1:] for n in told] == sorted(n[1:] for n in told)

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copied(source, target, created, progress=stop)


class StopError(Exception):
    """What ends a run in the middle."""


def journal(folder: Path, name: str, resume: str | None = None) -> _native.Journal:
    return journal_of(folder, name, b"of this work", resume)


def journal_of(
    folder: Path, name: str, identity: bytes, resume: str | None = None
) -> _native.Journal:
    with contextlib.ExitStack() as opened:
        made = opened.enter_context((folder / name).open("wb"))
        before = None
        if resume is not None:
            paths = (folder / resume, folder / "half.h5")
            files = [opened.enter_context(path.open("rb")) for path in paths]
            before = (files[0].fileno(), files[1].fileno())
        return _native.Journal(made.fileno(), identity, before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Slow enough to be stopped in the middle."""
    _native.set_threads(1)
    yield
    _native.set_threads(None)


def half_done(folder: Path, source: Path, created: dict[str, Any]) -> None:
    """Leave a journal, and a target that nobody has closed."""
    begun = journal(folder, "first")

    def stop(done: int, _read: int, _written: int) -> None:
        if done > 1 << 20:
            raise StopError

    with datasets(source, folder / "t.h5", **created) as (old, new):
        asked: dict[str, Any] = {"label": "d", "memory_nbytes": 1 << 25, "journal": begun}
        with pytest.raises(StopError):
            _native.copy_data(library(), old.id.id, new.id.id, progress=stop, **asked)
        # As it is now, before libhdf5 has closed it.
        (folder / "half.h5").write_bytes((folder / "t.h5").read_bytes())


@pytest.mark.usefixtures("one_thread")
@pytest.mark.slow
def test_a_later_run_takes_chunks_from_the_half_written_file(tmp_path: Path) -> None:
    source = make(tmp_path, numbers(64, 256, 256), chunks=(1, 256, 256), compression=1)
    created = {"chunks": (64, 8, 8), "compression": 9}
    half_done(tmp_path, source, created)
    again = journal(tmp_path, "second", "first")
    assert again.noted_chunks > 0
    result = copied(source, tmp_path / "t.h5", created, journal=again)
    assert result.chunks_replayed == again.noted_chunks
    assert bits(content(tmp_path / "t.h5")) == bits(content(source))
    # The second journal holds everything: nothing is read.
    (tmp_path / "half.h5").write_bytes((tmp_path / "t.h5").read_bytes())
    third = journal(tmp_path, "third", "second")
    result = copied(source, tmp_path / "t.h5", created, journal=third)
    assert (result.chunks_replayed, result.decodes) == (1024, 0)
    assert bits(content(tmp_path / "t.h5")) == bits(content(source))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.slow
def test_what_the_half_written_file_does_not_hold_is_made_again(tmp_path: Path) -> None:
    source = make(tmp_path, numbers(64, 256, 256), chunks=(1, 256, 256), compression=1)
    created = {"chunks": (64, 8, 8), "compression": 9}
    half_done(tmp_path, source, created)
    half = bytearray((tmp_path / "half.h5").read_bytes())
    half[len(half) // 2 :] = bytes(len(half) - len(half) // 2)
    (tmp_path / "half.h5").write_bytes(half)
    again = journal(tmp_path, "second", "first")
    result = copied(source, tmp_path / "t.h5", created, journal=again)
    assert 0 < result.chunks_replayed < again.noted_chunks
    assert bits(content(tmp_path / "t.h5")) == bits(content(source))
    # A torn journal, one of other work, and none at all.
    torn = (tmp_path / "first").read_bytes()[:-5]
    (tmp_path / "first").write_bytes(torn)
    assert journal(tmp_path, "second", "first").noted_chunks == again.noted_chunks - 1
    assert journal_of(tmp_path, "second", b"other", "first").noted_chunks == 0
    (tmp_path / "empty").touch()
    assert journal(tmp_path, "second", "empty").noted_chunks == 0


@pytest.mark.usefixtures("one_thread")
@pytest.mark.slow
def test_chunks_that_lie_elsewhere_now_are_made_again(tmp_path: Path) -> None:
    source = make(tmp_path, numbers(64, 256, 256), chunks=(1, 256, 256), compression=1)
    created = {"chunks": (64, 8, 8), "compression": 9}
    half_done(tmp_path, source, created)
    again = journal(tmp_path, "second", "first")
    assert again.noted_chunks > 0
    make(tmp_path, numbers(64, 256, 256)[::-1], chunks=(1, 256, 256), compression=1)
    result = copied(source, tmp_path / "t.h5", created, journal=again)
    assert result.chunks_replayed == 0
    assert bits(content(tmp_path / "t.h5")) == bits(content(source))


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "journal").touch()
    with (tmp_path / "journal").open("rb") as for_reading:
        with pytest.raises(CannotWriteError, match=r"the journal cannot be written"):
            _native.Journal(for_reading.fileno(), b"")
        with pytest.raises(OSError, match=r"descriptor|handle"):
            _native.Journal(-1, b"")
    with pytest.raises(OSError, match=r"descriptor|handle"):
        _native.Journal(10_000, b"")


def test_copies_in_several_threads(tmp_path: Path) -> None:
    data = numbers(20, 64, 64)
    source = make(tmp_path, data, chunks=(1, 64, 64), compression=1)

    def work(number: int) -> None:
        target = tmp_path / f"t{number}.h5"
        copied(source, target, {"chunks": (20, 8, 8), "compression": 1})
        assert bits(content(target)) == bits(data)

    run_in_threads([partial(work, number) for number in range(4)])


def test_chunks_that_lie_in_another_order_are_brought_into_theirs(tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        made = file.create_dataset("d", (40, 30), "i4", chunks=(10, 30), compression=1)
        for begin in (30, 10, 0, 20):
            made[begin : begin + 10] = np.arange(300).reshape(10, 30) * begin
    chunkwise.repack(source, target)
    require_equal(source, target)
    with h5py.File(target) as file:
        made = file["d"].id
        places = [
            made.get_chunk_info_by_coord((begin, 0)).byte_offset for begin in range(0, 40, 10)
        ]
    assert places == sorted(places)


@pytest.mark.parametrize("spelled", ["bitshuffle:lz4", "blosc:lz4:5", "blosc2:lz4:5"])
def test_one_large_chunk_is_encoded_by_all_threads_as_by_one(tmp_path: Path, spelled: str) -> None:
    data = numbers(1200, 900)
    source = make(tmp_path, data, chunks=(100, 900))
    stored = []
    for threads in (1, 3):
        target = tmp_path / f"{threads}.h5"
        with chunkwise.settings(threads=3):
            chunkwise.repack(source, target, chunk="1200x900", filters=spelled, threads=threads)
        with h5py.File(target) as file:
            stored.append(file["d"].id.read_direct_chunk((0, 0)))
        with chunkwise.open(target) as file:
            assert np.array_equal(file["d"][...], data)
    assert stored[0] == stored[1]
