"""Do writes put the very bytes into a file, as the properties say, and leave nothing?"""

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chunkwise import measure
from chunkwise.measure import process, schedule
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.trials.worker import put_off_scale
from chunkwise.writing import direct
from tests.support.writing import SHAPE, counted, make, write, writing

THROUGH_HDF5 = ("libhdf5", "h5py")
WRITERS = (*THROUGH_HDF5, "chunkwise", "chunkwise-py")
COMPOUND = np.dtype([("a", ">i4"), ("b", "<f8"), ("c", "S3")])
ARRAYS = np.dtype(("<f4", (3,)))
VALUES = {
    "big endian": counted(">f4"),
    "bool": counted() % 3 == 0,
    "complex": counted("<c16"),
    "half": counted("<f2"),
    "strings": counted("S5"),
    "compound": np.array([(i, -i, str(i)) for i in range(60)], COMPOUND).reshape(5, 4, 3),
}


def stored_bytes(path: Path, name: str = "g/x") -> bytes:
    """Read with the type as stored, so that conversions hide nothing."""
    with h5py.File(path) as file:
        dataset = file[name]
        kind = dataset.id.get_type()
        out = np.empty(dataset.size * kind.get_size(), "u1")
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, mtype=kind)
        return out.tobytes()


@pytest.mark.parametrize("reader", WRITERS)
@pytest.mark.parametrize("kind", VALUES)
def test_every_type_is_written_as_it_was(tmp_path: Path, kind: str, reader: str) -> None:
    source = make(tmp_path / "a.h5", VALUES[kind], chunks=True, compression=1)
    with writing(source, "all", reader) as trial:
        write(trial, tmp_path / "b.h5")
    assert stored_bytes(tmp_path / "b.h5") == stored_bytes(source)
    with h5py.File(source) as one, h5py.File(tmp_path / "b.h5") as other:
        assert other["g/x"].id.get_type().equal(one["g/x"].id.get_type())


@pytest.mark.parametrize("reader", WRITERS)
def test_elements_that_are_arrays_are_written(tmp_path: Path, reader: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("g/x", (6, 4), ARRAYS, chunks=(2, 4))
        made[...] = np.arange(72, dtype="<f4").reshape(6, 4, 3)
    with writing(tmp_path / "a.h5", "4x3", reader) as trial:
        write(trial, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["g/x"].dtype == ARRAYS
        assert np.array_equal(file["g/x"][...].ravel(), np.arange(72))


@pytest.mark.parametrize("reader", WRITERS)
def test_a_committed_type_is_not_left_behind(tmp_path: Path, reader: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["named"] = np.dtype(">i2")
        file.create_dataset("g/x", data=np.arange(50), dtype=file["named"], chunks=(7,))
    with writing(tmp_path / "a.h5", "all", reader) as trial:
        write(trial, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert not file["g/x"].id.get_type().committed()
        assert list(file["g/x"]) == list(range(50))


@pytest.mark.parametrize("reader", WRITERS)
@pytest.mark.parametrize(
    ("chunk", "filters"),
    [
        ("contiguous", "none"),
        ("7x12x3", "none"),
        ("20x12x10", "shuffle+deflate:1"),
        ("1x1x10", "fletcher32"),
    ],
)
@pytest.mark.parametrize("pattern", ["3x5x10", "line:0@random", "plane:2@f", "4x4x4@1,2,0"])
def test_every_layout_in_every_order(
    tmp_path: Path, pattern: str, chunk: str, filters: str, reader: str
) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    with writing(source, pattern, reader, chunk, filters) as trial:
        result, _ = write(trial, tmp_path / "b.h5")
    assert result["operations"] == result["total_operations"]
    assert stored_bytes(tmp_path / "b.h5") == counted().tobytes()


@pytest.mark.parametrize("reader", WRITERS)
def test_only_what_is_selected_is_written(tmp_path: Path, reader: str) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10), fillvalue=-7)
    with writing(source, "[0:6, ::2] | [4:9, :, 3]", reader) as trial:
        write(trial, tmp_path / "b.h5")
    chosen = np.zeros(SHAPE, bool)
    chosen[0:6, ::2] = chosen[4:9, :, 3] = True
    with h5py.File(tmp_path / "b.h5") as file:
        # What was never written is the fill value, which the original's dataset had.
        assert np.array_equal(file["g/x"][...], np.where(chosen, counted(), -7))


@pytest.mark.parametrize("reader", WRITERS)
def test_what_may_grow_may_grow_again(tmp_path: Path, reader: str) -> None:
    """A chunk may be larger than a dimension that is still to grow."""
    how: dict[str, Any] = {"chunks": (100,), "maxshape": (None,), "compression": 1}
    source = make(tmp_path / "a.h5", np.arange(10), **how)
    with writing(source, "all", reader) as trial:
        assert trial.chunks == (100,)
        write(trial, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["g/x"].maxshape, file["g/x"].chunks) == ((None,), (100,))
        assert list(file["g/x"]) == list(range(10))


@pytest.mark.parametrize("reader", WRITERS)
@pytest.mark.parametrize("name", ["g/odd [1] = é", "/g/odd [1] = é/", "a/b/c"])
def test_groups_are_made_for_any_name(tmp_path: Path, name: str, reader: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(name.strip("/"), data=counted(), chunks=(4, 12, 10))
    space = Space.of(operation=["write"], access=["all"], reader=[reader])
    results = measure.run(tmp_path / "a.h5", name, space, repeat=1)
    assert [cell.problem for cell in results.cells] == [None]


# --- properties ------------------------------------------------------------------------


@pytest.mark.parametrize("reader", WRITERS)
@pytest.mark.parametrize(("word", "number"), [("early", 1), ("late", 2), ("incremental", 3)])
def test_the_allocation_time_is_the_one_asked_for(
    tmp_path: Path, word: str, number: int, reader: str
) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    with writing(source, "[0]", reader, alloc_time=word) as trial:
        write(trial, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["g/x"].id.get_create_plist().get_alloc_time() == number
        allocated = file["g/x"].id.get_num_chunks()
    # One chunk of five was written to.
    assert allocated == (1 if word == "incremental" else 5)


@pytest.mark.parametrize("reader", THROUGH_HDF5)
def test_properties_of_zero_are_in_force(tmp_path: Path, reader: str) -> None:
    """Zero is a value, and not the default."""
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    zeros: dict[str, Any] = {"cache_w0": 0.0, "sieve_nbytes": 0, "metadata_block_nbytes": 0}
    with writing(source, "all", reader, cache_nbytes=12345, cache_nslots=77, **zeros) as trial:
        assert {name: trial.properties[name] for name in zeros} == zeros
        _, cache = write(trial, tmp_path / "b.h5")
    assert cache == (77, 12345, 0.0)


# --- phases, bounds and failures ---------------------------------------------------------


def test_phases_are_timed_apart_and_files_removed(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10), compression=1)
    for reader in WRITERS:
        with writing(source, "1x12x10", reader) as trial:
            found = measure_in_worker(trial)
            folder = Path(str(trial.scratch))
            assert not list(folder.glob("written-*"))
        assert found.status == "ok", found.error
        assert found.operations == found.total_operations == 20
        phases = (found.create_s, found.elapsed_s, found.flush_s, found.close_s, found.sync_s)
        assert all(seconds is not None and seconds > 0 for seconds in phases)
        assert found.total_s == pytest.approx(sum(p or 0.0 for p in phases[:4]))
        assert found.file_nbytes is not None
        assert found.file_nbytes > 500


@pytest.mark.parametrize("reader", WRITERS)
def test_a_full_disk_is_one_failed_row(tmp_path: Path, reader: str) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "from chunkwise.trials.worker import main; main()"
    )
    with writing(source, "all", reader) as trial:
        found = measure_in_worker(trial, (sys.executable, "-c", limited))
        assert found.status == "failed"
        # What has no filters is libhdf5's to write for chunkwise-py, too.
        said = "RLIMIT_FSIZE" if reader == "chunkwise" else "File too large"
        assert said in (found.error or "")
        assert "Traceback" not in (found.error or "")
        assert not list(Path(str(trial.scratch)).glob("written-*"))


@pytest.mark.parametrize("code", ["os.kill(os.getpid(), 9)", "time.sleep(600)"])
def test_a_worker_that_is_ended_leaves_no_file(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Which gives it up when it is told to.
    monkeypatch.setattr(schedule, "finished", process.finished)
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    stand_in = (
        "import json, os, sys, time; trial = json.load(sys.stdin);"
        f"open(trial['scratch'] + '/written-1.h5', 'w').write('half'); {code}"
    )
    with writing(source, "all", "h5py") as trial:
        short = replace(trial, timeout_s=2.0)
        found = measure_in_worker(short, (sys.executable, "-c", stand_in))
        assert found.status in ("failed", "timeout")
        assert not list(Path(str(trial.scratch)).glob("written-*"))


def test_a_flush_is_scaled_by_what_a_cache_puts_off() -> None:
    # All was done: nothing is scaled.
    assert put_off_scale(10, 10, 1000, 1 << 20, 100) == 1.0
    # All of it stays in the cache until the flush.
    assert put_off_scale(10, 100, 1000, 1 << 20, 100) == 10.0
    # The cache was a quarter full, and will be full and no more.
    assert put_off_scale(10, 1000, 250, 1000, 100) == 4.0
    assert put_off_scale(10, 1000, 5000, 1000, 100) == 1.0
    # Chunks larger than the cache are written at once, contiguous data anyway.
    assert put_off_scale(10, 1000, 5000, 1000, 4000) == 1.0
    assert put_off_scale(10, 1000, 10, 1000, 0) == 1.0
    # Nobody knows the cache.
    assert put_off_scale(10, 1000, 5000, None, 100) == 100.0


def test_a_bounded_write_is_an_estimate(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    with writing(source, "1x1x1", "libhdf5", max_seconds=1e-9) as trial:
        found = measure_in_worker(trial)
    assert found.status == "ok", found.error
    assert found.extrapolated
    assert (found.operations or 0) < 20 * 12 * 10 == found.total_operations
    parts = (found.create_s, found.written_s, found.put_off_s)
    assert found.total_s == pytest.approx(sum(part or 0.0 for part in parts))
    assert (found.written_s or 0.0) > (found.elapsed_s or 0.0)


def test_what_was_never_written_is_not_said_to_be_decoded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (40, 40), "i4", chunks=(10, 10), compression=1, fillvalue=3)
    space = Space.of(access=["all"], reader=["libhdf5"])
    advice = measure.explain(measure.run(tmp_path / "a.h5", "x", space, repeat=1))
    assert advice is not None
    assert advice.why.startswith("No chunk was ever written")


# --- by chunkwise ------------------------------------------------------------------------


NATIVE = ("chunkwise", "chunkwise-py")
PATTERNS = ("all", "3x5x10", "line:0@random", "plane:2@f", "1x12x10", "[0:6, ::2] | [4:9, :, 3]")
FILTERS = ("none", "deflate:1", "deflate:fast", "shuffle+deflate:4+fletcher32", "szip:nn:8", "lzf")


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What libhdf5 would write at once, as it is small, is written like what is large."""
    monkeypatch.setattr(direct, "SMALL_NBYTES", 0)
    monkeypatch.setattr(direct, "ONE_CHUNK_NBYTES", 0)


def elements_of(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["g/x"][...]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chunk=st.tuples(*(st.integers(1, length) for length in SHAPE)),
    filters=st.sampled_from(FILTERS),
    pattern=st.sampled_from(PATTERNS),
    reader=st.sampled_from(NATIVE),
    dtype=st.sampled_from(["<i4", ">i2", "<f8", "u1"]),
)
@pytest.mark.slow
def test_what_is_written_is_what_libhdf5_would_have_written(
    tmp_path_factory: pytest.TempPathFactory,
    chunk: tuple[int, ...],
    filters: str,
    pattern: str,
    reader: str,
    dtype: str,
) -> None:
    # szip refuses chunks of fewer elements than its blocks have.
    assume(not filters.startswith("szip") or math.prod(chunk) >= 8)
    folder = tmp_path_factory.mktemp("written")
    source = make(folder / "a.h5", counted(dtype), chunks=(4, 12, 10), fillvalue=7)
    shape = "x".join(map(str, chunk))
    checksums = []
    for by in (reader, "libhdf5"):
        plain = filters if by == reader else filters.replace("fast", "1")
        with writing(source, pattern, by, shape, plain) as trial:
            result, _ = write(trial, folder / f"{by}.h5")
        checksums.append(result["checksums"])
        assert "fallback" not in result
    assert checksums[0] == checksums[1]
    assert np.array_equal(elements_of(folder / f"{reader}.h5"), elements_of(folder / "libhdf5.h5"))
    with h5py.File(folder / f"{reader}.h5") as one, h5py.File(folder / "libhdf5.h5") as other:
        lists = [file["g/x"].id.get_create_plist() for file in (one, other)]
        assert lists[0].equal(lists[1])


@pytest.mark.parametrize(
    ("reader", "chunk", "filters", "reason"),
    [
        ("chunkwise", "contiguous", "none", "contiguous"),
        ("chunkwise-py", "contiguous", "none", "contiguous"),
        ("chunkwise", "4x12x10", "filter-32013:5,0,0,0,0,0", "encoded"),
    ],
)
def test_what_libhdf5_writes_instead_is_said(
    tmp_path: Path, reader: str, chunk: str, filters: str, reason: str
) -> None:
    pytest.importorskip("hdf5plugin")
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    with writing(source, "1x12x10", reader, chunk, filters) as trial:
        result, cache = write(trial, tmp_path / "b.h5")
        found = measure_in_worker(trial)
    assert reason in str(result.get("fallback"))
    assert found.status == "ok", found.error
    assert found.fallback == result.get("fallback")
    # That of libhdf5, which wrote.
    assert cache[1] == found.actual_cache_nbytes
    assert cache[1] is not None
    assert np.array_equal(elements_of(tmp_path / "b.h5"), counted())


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("reader", NATIVE)
def test_chunks_are_encoded_once_in_any_order(tmp_path: Path, reader: str) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10), compression=1)
    with writing(source, "line:0@random", reader) as trial:
        result: Any = write(trial, tmp_path / "b.h5")[0]
    assert (result["encoded_chunks"], result["read_back_chunks"]) == (5, 0)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("reader", NATIVE)
def test_the_effort_decides_how_deflate_is_made(tmp_path: Path, reader: str) -> None:
    """Both files say level 1; what is stored differs."""
    # Of integers that count, the fastest encoder makes far more than zlib.
    values = np.arange(np.prod(SHAPE), dtype="<i8").reshape(SHAPE)
    source = make(tmp_path / "a.h5", values, chunks=(5, 12, 10))
    encoders = {}
    for filters in ("deflate:1", "deflate:fast"):
        with writing(source, "all", reader, "stored", filters) as trial:
            result: Any = write(trial, tmp_path / f"{filters}.h5")[0]
        encoders[filters] = result["encoder"]
        with h5py.File(tmp_path / f"{filters}.h5") as file:
            assert file["g/x"].compression_opts == 1
    assert None not in encoders.values()
    assert encoders["deflate:1"] != encoders["deflate:fast"]


def test_all_writers_are_compared(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    readers, filters = ["libhdf5", *NATIVE], ["deflate:1", "deflate:fast"]
    space = Space.of(operation=["write"], access=["1x12x10"], reader=readers, filter=filters)
    results = measure.run(source, "g/x", space, repeat=1)
    assert [cell.problem for cell in results.cells] == [None] * 5
    assert (results.mismatches, results.compared) == ([], 5)
    # A table for each way of storing the data; fast is one.
    assert [cell.trial.filters for cell in results.cells] == ["deflate:1"] * 3 + [filters[1]] * 2
