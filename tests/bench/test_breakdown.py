"""Is the time of a walk taken apart rightly, and are chunk loads counted to the chunk?"""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import numpy.typing as npt
import pytest

import chunkwise
from chunkwise import _lib, _native
from chunkwise.measure.tables import sentence
from chunkwise.model.chunk_cache import collisions, reloads
from chunkwise.trials import readers
from chunkwise.trials.breakdown import Breakdown, Watch
from tests.model.test_chunk_cache import libraries, random_case
from tests.support.golden import assert_golden

SHAPE, CHUNK = (12, 20, 6), (4, 7, 6)
CHUNK_NBYTES = 4 * 7 * 6 * 4
PIPELINES: dict[str, dict[str, Any]] = {
    "deflate": {"compression": "gzip"},
    "shuffle+deflate+fletcher32": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "szip": {"compression": "szip", "compression_opts": ("nn", 8)},
    "scaleoffset": {"scaleoffset": 0},
    "lzf": {"compression": "lzf"},
    "zstd": dict(hdf5plugin.Zstd()),
    "bitshuffle": dict(hdf5plugin.Bitshuffle()),
}


def data() -> npt.NDArray[np.int32]:
    return np.random.default_rng(7).integers(0, 9, SHAPE).astype(np.int32)


def write(path: Path, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data(), chunks=CHUNK, **options)
    return path


def filter_ids(dataset: h5py.Dataset) -> list[int]:
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]


def watched(path: Path, walk: _native.Walk, cache_nbytes: int) -> Breakdown:
    """Walk with H5Dread and a cache of so many bytes, and take the time apart."""
    library = _lib.library()
    with h5py.File(path) as file:
        ids = filter_ids(file["x"])
    cache = {"cache_nslots": 521, "cache_nbytes": cache_nbytes, "cache_w0": 0.75}
    dataset = _native.OpenDataset(library, str(path), "x", cache)
    watch = Watch(library, ids)
    result = dataset.walk(walk, walk.operations, 1e9)
    table = library.chunk_table(dataset.id)
    return watch.finish(table, walk, result["operations"], result["elapsed_s"])


def check_sums(found: Breakdown) -> None:
    """Everything is told, and together it is the time that passed."""
    filters = [seconds for seconds in found["filters_s"].values() if seconds is not None]
    storage_s, other_s = found["storage_s"], found["other_s"]
    assert len(filters) == len(found["filters_s"])
    assert storage_s is not None
    assert other_s is not None
    assert min(*filters, storage_s, other_s) >= 0
    assert sum(filters) + storage_s + other_s == pytest.approx(found["elapsed_s"])


@pytest.mark.parametrize("library", libraries(), ids=lambda path: path.name)
def test_loads_are_counted_and_are_those_of_the_model(library: Path) -> None:
    rng = random.Random(20261122)
    cases = [random_case(rng) for _ in range(300)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.observe_loads", library],
        input=json.dumps([case for case, _, _ in cases]),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    predicted = [(read.chunks, reloads(reader, read)) for _, reader, read in cases]
    # Of every kind there is one: all kept, some lost, all lost, and collisions.
    assert {0 < again < chunks for chunks, again in predicted} == {True, False}
    assert any(collisions(reader, read) for _, reader, read in cases)
    assert any(not again for _, again in predicted)
    found = json.loads(ran.stdout)
    for (case, _, read), expected, loads in zip(cases, predicted, found, strict=True):
        assert loads == [*expected], case
        # Touches are what the model calls chunks.
        ones = [1] * len(read.shape)
        slab = (read.start, ones, ones, read.block)
        selection = _native.select_hyperslabs(read.shape, slab, "x")
        assert _native.count_chunks(read.shape, read.chunk, selection, "x")[0] == read.chunks


@pytest.fixture(scope="module")
def apart() -> Iterator[ProcessPoolExecutor]:
    """A process in which no other test has loaded a second plugin for a filter.

    Where two plugins offer one filter, nobody can tell which of them libhdf5 has taken, and
    the filter's calls are not counted.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        yield process


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_each_filter_is_counted_and_changes_nothing(
    pipeline: str, tmp_path: Path, apart: ProcessPoolExecutor
) -> None:
    apart.submit(check_each_filter, pipeline, tmp_path).result()


def check_each_filter(pipeline: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", **PIPELINES[pipeline])
    walk = _native.Walk(SHAPE, (1, *SHAPE[1:]))
    everything = watched(path, walk, 1 << 20)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][()], data())
        ids = filter_ids(file["x"])
    assert (everything["chunk_touches"], everything["chunk_loads"]) == (36, 9)
    assert (everything["chunk_hits"], everything["chunks_touched"]) == (27, 9)
    check_sums(everything)
    nothing = watched(path, walk, CHUNK_NBYTES - 1)
    assert (nothing["chunk_loads"], nothing["chunk_hits"]) == (36, 0)
    check_sums(nothing)
    # What is written while calls are counted reads as what was written.
    before = _lib.library().tally(ids)
    again = write(tmp_path / "again.h5", **PIPELINES[pipeline])
    after = _lib.library().tally(ids)
    assert all(after[i]["encode"][0] - before[i]["encode"][0] == 9 for i in ids)
    with h5py.File(path) as one, h5py.File(again) as other:
        for number in range(9):
            at = one["x"].id.get_chunk_info(number).chunk_offset
            chunks = [file["x"].id.read_direct_chunk(at) for file in (one, other)]
            assert chunks[0] == chunks[1]


def test_only_chunks_that_were_written_are_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        sparse = file.create_dataset("x", SHAPE, "i4", chunks=CHUNK, compression="gzip")
        sparse[0:4, 0:14] = data()[0:4, 0:14]
    walk = _native.Walk(SHAPE, (1, 1, 6))
    few = watched(path, walk, 1 << 20)
    assert (few["chunk_touches"], few["chunk_loads"], few["chunks_touched"]) == (56, 2, 2)
    none = watched(path, walk, 0)
    assert (none["chunk_touches"], none["chunk_loads"], none["chunk_hits"]) == (56, 56, 0)


def test_a_chunk_that_skips_a_filter_is_counted_by_another(tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", shuffle=True, compression="gzip")
    with h5py.File(path, "r+") as file:
        # The second filter, deflate, was not applied.
        shuffled = bytes(CHUNK_NBYTES)
        file["x"].id.write_direct_chunk((0, 0, 0), shuffled, filter_mask=2)
    walk = _native.Walk(SHAPE, SHAPE)
    found = watched(path, walk, 0)
    assert (found["chunk_loads"], found["chunk_touches"]) == (9, 9)
    with h5py.File(path, "r+") as file:
        # Another chunk without the first filter: each filter is skipped somewhere.
        stored = zlib.compress(shuffled)
        file["x"].id.write_direct_chunk((4, 0, 0), stored, filter_mask=1)
    found = watched(path, walk, 0)
    assert (found["chunk_loads"], found["chunk_hits"], found["storage_s"]) == (None, None, None)


def test_what_cannot_be_known_is_not_told(tmp_path: Path) -> None:
    walk = _native.Walk(SHAPE, SHAPE)
    plain = watched(write(tmp_path / "plain.h5"), walk, 0)
    assert plain["filters_s"] == {}
    assert plain["chunk_touches"] == 9
    assert plain["chunk_loads"] is plain["chunk_hits"] is plain["storage_s"] is None
    assert "not filtered" in sentence(plain, "read")
    # 257 is a number that no filter has.
    unknown = Watch(_lib.library(), [257]).finish(None, walk, 1, 1.0)
    assert unknown["filters_s"] == {"filter-257": None}
    assert unknown["chunk_touches"] is unknown["other_s"] is None
    assert "not known" in sentence(unknown, "read")


def test_threads_of_h5py_are_counted_together(tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", shuffle=True, compression="gzip")
    with h5py.File(path, rdcc_nbytes=0) as file:
        dataset = file["x"]
        ids = filter_ids(dataset)
        before = _lib.library().tally(ids)

        def read(step: int) -> bool:
            return bool(np.array_equal(dataset[step], data()[step]))

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(read, [n % SHAPE[0] for n in range(240)]))
        after = _lib.library().tally(ids)
    # Each step touches 3 chunks; shuffle gives back as many bytes as it gets.
    for number in ids:
        now, then = after[number]["decode"], before[number]["decode"]
        assert (now[0] - then[0], now[3] - then[3]) == (720, 720 * CHUNK_NBYTES)


def netcdf_libraries() -> list[str]:
    """netCDF-C of the wheel, and the system's."""
    system = sorted(Path("/usr/lib").glob("*-linux-gnu/libnetcdf.so.*"))
    return [readers.netcdf_library(), *map(str, system[:1])]


@pytest.mark.parametrize("netcdf_c", netcdf_libraries(), ids=lambda path: Path(path).name)
def test_netcdf_c(netcdf_c: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.nc", shuffle=True, compression="gzip")
    netcdf = _native.NetCdf(netcdf_c)
    library = _native.Library.from_path(netcdf.path)
    walk = _native.Walk(SHAPE, (1, *SHAPE[1:]))
    for cache_nbytes, loads in ((CHUNK_NBYTES - 1, 36), (1 << 20, 9)):
        watch = Watch(library, [2, 1])
        variable = netcdf.open(str(path), "x", (521, cache_nbytes, 0.75))
        result = variable.walk(walk, 99, 1e9)
        table = library.chunk_table_of(str(path), "/x")
        found = watch.finish(table, walk, result["operations"], result["elapsed_s"])
        assert (found["chunk_loads"], found["chunk_touches"]) == (loads, 36)
        check_sums(found)
        # While it is open, whoever opens it again shares its cache.
        del variable


def test_a_file_that_was_not_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", compression="gzip")
    walk = _native.Walk(SHAPE, SHAPE)
    watch = Watch(_lib.library(), [1])
    table = _lib.library().chunk_table_of(str(path), "x")
    with h5py.File(path, rdcc_nbytes=0) as file:
        np.testing.assert_array_equal(file["x"][()], data())
    found = watch.finish(table, walk, 1, 1e6, cold_file=str(path))
    assert found["chunk_loads"] == 9
    check_sums(found)


@pytest.mark.parametrize(
    ("block", "touches"), [((1, *SHAPE[1:]), 36), (SHAPE, 9), ((1, 1, 3), 480)]
)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_engine_measures_itself(
    pipeline: str, block: tuple[int, ...], touches: int, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.h5", **PIPELINES[pipeline])
    walk = _native.Walk(SHAPE, block)
    with h5py.File(path) as file:
        ids = filter_ids(file["x"])
    library = _lib.library()
    dataset = _native.OpenDataset(library, str(path), "x", {})
    watch = Watch(None, ids)
    result = dataset.engine_walk(walk, walk.operations, 1e9)
    assert "fallback" not in result
    elapsed_s = result["elapsed_s"]
    table = library.chunk_table(dataset.id)
    found = watch.finish(table, walk, result["operations"], elapsed_s)
    assert found["method"] == "measured"
    assert sorted(found["filters_s"]) == sorted(pipeline.split("+"))
    assert (found["chunk_touches"], found["chunk_loads"]) == (touches, 9)
    assert (found["chunk_hits"], found["chunks_touched"]) == (touches - 9, 9)
    phases = [found["index_s"], found["storage_s"], *found["filters_s"].values()]
    assert all(seconds is not None and seconds > 0 for seconds in phases)
    # What the reading thread did itself, waited for, and the rest.
    parts = [*phases, found["scatter_s"], found["waiting_s"], found["other_s"]]
    others_s = found["other_threads_s"]
    assert others_s is not None
    assert sum(s for s in parts if s is not None) - others_s == pytest.approx(elapsed_s)
    assert sentence(found, "read").endswith("are the rest.")


def test_sentences() -> None:
    found = Breakdown(
        method="filters measured, storage from bare reading",
        elapsed_s=20.0,
        index_s=0.25,
        storage_s=1.0,
        filters_s={"shuffle": 4.0, "deflate": 12.0},
        scatter_s=0.5,
        other_s=3.0,
        waiting_s=6.0,
        other_threads_s=9.0,
        chunk_touches=1000,
        chunk_loads=100,
        chunk_hits=900,
        chunks_touched=50,
        chunks_encoded=200,
    )
    told = [sentence(found, "read"), sentence(found, "write")]
    found["index_s"] = found["scatter_s"] = found["waiting_s"] = found["other_threads_s"] = None
    told += [sentence(found, "read"), sentence(found, "write")]
    found["chunk_loads"] = found["chunks_encoded"] = 50
    told += [sentence(found, "read"), sentence(found, "write")]
    found["chunk_touches"] = found["chunk_loads"] = found["storage_s"] = None
    found["chunks_encoded"] = None
    told += [sentence(found, "read"), sentence(found, "write")]
    found["filters_s"], found["other_s"] = {"deflate": None}, None
    assert_golden("bench-breakdown", *told, sentence(found, "read"), sentence(found, "write"))


def test_nothing_is_measured_unless_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", compression="gzip")
    before = _native.profile()
    with h5py.File(path) as file:
        np.testing.assert_array_equal(chunkwise.wrap(file["x"])[:], data())
    assert _native.profile() == before
