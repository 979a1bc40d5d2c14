"""Are chunks that no cache keeps found, and those that it just keeps not?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.inspection import Finding, dataset_facts, inspect
from chunkwise.inspection.findings.cache import (
    chunk_exceeds_cache,
    reads_exceed_cache,
    slot_collision,
)
from chunkwise.inspection.findings.subject import DatasetCheck, Subject
from chunkwise.model.chunk_shape import default_chunk, shrunk
from chunkwise.model.layout import DatasetLayout, FileLayout
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2, LIBRARIES, NETCDF_C, Reader, this_process
from tests.support.versions import needs_cache_of_hdf5_2

SHAPE = (8, 30, 9, 717)


def findings(
    check: DatasetCheck,
    path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    readers: tuple[Reader, ...] = LIBRARIES,
    **options: Any,
) -> list[Finding]:
    """What a check says of a dataset of zeros."""
    with h5py.File(path, "w") as file:
        data = np.zeros(shape, options.pop("dtype", ">f4"))
        dataset = file.create_dataset("x", data=data, chunks=chunks, **options)
        subject = Subject(str(path), "/x", dataset_facts(dataset.id), readers)
    return list(check(subject))


def test_chunk_larger_than_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    (found,) = findings(
        chunk_exceeds_cache, path, SHAPE, (4, 30, 9, 717), compression="gzip", compression_opts=1
    )
    assert (found.code, found.severity, found.path) == ("chunk-exceeds-cache", "warning", "/x")
    assert found.evidence["decodes_per_chunk"] == 1080
    # What the cache has to hold is one chunk; the paper's own chunk fits 1 MB.
    texts = {fix.tool: fix.text for fix in found.fixes}
    held = max(3 << 20, this_process().cache_nbytes)
    assert f"rdcc_nbytes={held}" in next(f.text for f in found.fixes if f.tool == "h5py")
    natively = f"chunkwise.open({str(path)!r})['/x']"
    assert natively in [fix.text for fix in found.fixes if fix.tool == "chunkwise"]
    assert "--chunk /x:1x30x9x717" in found.fixes[0].text
    assert "CHUNK=1x30x9x717" in texts["h5repack"]


GZIP: dict[str, Any] = {"compression": "gzip"}
MAPS = ((120, 150, 150), (1, 150, 150))
LONG = (1 << 20) + 1
# What has no finding: the dataset's shape and chunks, who reads it, its type and filters.
NOTHING: list[tuple[DatasetCheck, Any, Any, tuple[Reader, ...], dict[str, Any]]] = [
    # 774,360 bytes fit 1 MiB.
    (chunk_exceeds_cache, SHAPE, (1, 30, 9, 717), LIBRARIES, GZIP),
    # Later libraries and netCDF-C hold a chunk of 3 MiB.
    (chunk_exceeds_cache, SHAPE, (4, 30, 9, 717), (LIBHDF5_2, NETCDF_C), GZIP),
    # Without filters nothing is decoded: only what is selected is read.
    (chunk_exceeds_cache, SHAPE, (4, 30, 9, 717), LIBRARIES, {}),
    # Exactly the cache.
    (chunk_exceeds_cache, (2048, 1024), (1024, 1024), LIBRARIES, {"dtype": "u1"} | GZIP),
    # A chunk that is a row is decoded once, whatever the cache.
    (chunk_exceeds_cache, (9, LONG), (1, LONG), LIBRARIES, {"dtype": "u1"} | GZIP),
    # Each chunk is decoded 8 times, which is 24 MiB in all: no second.
    (chunk_exceeds_cache, (16, 1 << 18), (8, 1 << 18), LIBRARIES, {"dtype": "u1"} | GZIP),
    # A cache that holds all maps.
    (reads_exceed_cache, *MAPS, (NETCDF_C,), GZIP),
    # Four chunks of a row that fit 8 MiB.
    (reads_exceed_cache, (1600, 3900), (800, 1300), (LIBHDF5_2,), {"dtype": "u2"} | GZIP),
    # 2,000 chunks of 10 KiB are too many bytes: the slots are not the cause.
    (slot_collision, (2000, 50, 50), (1, 50, 50), (LIBHDF5_1,), {"dtype": "f4"} | GZIP),
    # 512 chunks of 1 KiB in a line: packed one after the other, each has its slot.
    (slot_collision, (512, 1024), (1, 1024), LIBRARIES, {"dtype": "u1"} | GZIP),
    (slot_collision, (1024, 1024), (1, 1024), (LIBHDF5_2,), {"dtype": "u1"}),
    # 1,024 chunks of 2 KiB are too many for the bytes as well: no slot would help.
    (slot_collision, (1024, 2048), (1, 2048), (LIBHDF5_1,), {"dtype": "u1"}),
]


@pytest.mark.parametrize("number", range(len(NOTHING)))
def test_chunks_that_a_cache_keeps(tmp_path: Path, number: int) -> None:
    check, shape, chunks, readers, options = NOTHING[number]
    assert not findings(check, tmp_path / "a.h5", shape, chunks, readers, **options)


def test_one_byte_more_than_the_cache(tmp_path: Path) -> None:
    options: dict[str, Any] = {"dtype": "u1"} | GZIP
    assert findings(chunk_exceeds_cache, tmp_path / "a.h5", (2050, 1024), (1025, 1024), **options)


def test_series_through_maps(tmp_path: Path) -> None:
    """120 maps in a chunk each: series come back to a chunk after all the others."""
    (found,) = findings(reads_exceed_cache, tmp_path / "a.h5", *MAPS, **GZIP)
    # Chunks are maps: nothing says that anybody reads series.
    assert (found.code, found.severity) == ("reads-exceed-cache", "note")
    assert found.is_offer
    assert found.layout is None
    assert found.evidence["pattern"] == "line along 0"
    assert found.evidence["chunks_to_cache"] == 120
    assert found.evidence["decodes_per_chunk"] == 22_500


def test_the_chunks_that_are_offered_for_stated_series_need_no_larger_cache(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.h5"
    assert findings(reads_exceed_cache, path, *MAPS, **GZIP)
    stated = inspect(str(path), access=["line:0@walk"]).findings
    found = next(one for one in stated if one.code == "reads-exceed-cache")
    repack = next(fix.text for fix in found.fixes if fix.tool == "h5repack")
    spelled = repack.partition("CHUNK=")[2].split()[0]
    other = tuple(map(int, spelled.split("x")))
    findings(reads_exceed_cache, path, MAPS[0], other, **GZIP)
    left = inspect(str(path), access=["line:0"], readers=["libhdf5-2"]).findings
    assert "reads-exceed-cache" not in [one.code for one in left]


def test_rows_of_chunks_that_do_not_fit_together(tmp_path: Path) -> None:
    """Each chunk fits 8 MiB, and the four of a row do not."""
    path, shape, chunks = tmp_path / "a.h5", (1600, 6400), (800, 1600)
    (found,) = findings(
        reads_exceed_cache, path, shape, chunks, (LIBHDF5_2,), dtype="u2", compression="gzip"
    )
    # How programs read by default, and the reader asked for: more than a note.
    assert found.severity == "warning"
    assert found.evidence["decodes_per_chunk"] == 800


def test_chunks_that_do_not_fit_by_their_bytes_exceed_the_cache(tmp_path: Path) -> None:
    path, shape, chunks, readers = tmp_path / "a.h5", (2000, 50, 50), (1, 50, 50), (LIBHDF5_1,)
    assert findings(reads_exceed_cache, path, shape, chunks, readers, dtype="f4", **GZIP)


@needs_cache_of_hdf5_2
def test_sensible_files_get_no_warning(tmp_path: Path) -> None:
    """What reads well one way reads badly another: a note, until that takes minutes."""
    sensible: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
        ((128, 128, 128), (64, 64, 64), "f4"),
        ((500, 24, 24, 3), (1, 24, 24, 3), "u1"),
        ((4000, 4000), (500, 500), "u1"),
        ((1000, 1500), (300, 400), "f4"),
    ]
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for i, (shape, chunks, dtype) in enumerate(sensible):
            data = np.zeros(shape, dtype)
            file.create_dataset(f"d{i}", data=data, chunks=chunks, compression="gzip")
    found = inspect(path, sample=False).findings
    assert [f for f in found if f.severity != "note" and f.code.endswith("-cache")] == []


def test_one_shape_is_offered_to_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.zeros((3162, 3162), "i4")
        file.create_dataset("x", data=data, chunks=(790, 790), compression="gzip")
    found = {finding.code: finding for finding in inspect(path, sample=False).findings}
    assert {"floor-chunk", "chunk-exceeds-cache"} <= set(found)
    offered = {code: f.layout for code, f in found.items() if f.layout is not None}
    assert {"floor-chunk", "chunk-exceeds-cache"} <= set(offered)
    # None of them offers its own; 791x791 would still be more than a cache of 1 MiB holds.
    one = DatasetLayout("/x", default_chunk((3162, 3162), 4))
    assert set(offered.values()) == {FileLayout((one,))}


def test_series_through_chunks_of_one_step_are_one_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.zeros((150, 150, 150), "f4")
        file.create_dataset(
            "x", data=data, chunks=(1, 150, 150), maxshape=(None, 150, 150), compression="gzip"
        )
    codes = [finding.code for finding in inspect(path, sample=False).findings]
    assert codes == ["unlimited-chunk-1"]
    (found,) = inspect(path, sample=False).findings
    assert (found.severity, found.is_offer) == ("note", True)


def test_the_line_for_the_reader_concerned_comes_first(tmp_path: Path) -> None:
    path, shape, chunks = tmp_path / "a.h5", (2048, 1024), (1, 1024)
    (found,) = findings(
        slot_collision, path, shape, chunks, (NETCDF_C,), dtype="u1", compression="gzip"
    )
    assert found.evidence["reader"] == "netcdf-c"
    assert found.fixes[0].tool == "netCDF4"


def test_more_chunks_in_a_line_than_slots(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    (found,) = findings(
        slot_collision, path, (1024, 1024), (1, 1024), dtype="u1", compression="gzip"
    )
    assert (found.code, found.severity, found.is_offer) == ("slot-collision", "note", True)
    assert found.evidence["reader"] == "libhdf5-1.10"
    assert found.evidence["collisions"] == 2 * (1024 - 521)
    assert "rdcc_nslots=102407" in found.fixes[0].text


def test_chunks_are_halved_from_the_slowest_dimension() -> None:
    assert shrunk((4, 30, 9, 717), 4, 1 << 20) == (1, 30, 9, 717)
    assert shrunk((1, 2167, 2070), 4, 1 << 20) == (1, 68, 2070)
    assert shrunk((905633,), 4, 1 << 20) == (226409,)
    assert shrunk((2, 2), 1 << 30, 1) == (1, 1)


def test_it_is_the_first_thing_said_of_the_papers_file(tmp_path: Path) -> None:
    path = tmp_path / "cris.h5"
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        # Noise like the paper's: compression saves 7%.
        data = rng.normal(size=SHAPE).astype(">f4")
        file.create_dataset(
            "ES_ImaginaryLW", data=data, chunks=(4, 30, 9, 717), compression="gzip"
        )
    found = inspect(path).findings
    assert found[0].code == "chunk-exceeds-cache"
    assert found[0].evidence["predicted_s"] == pytest.approx(
        1080 * float(found[0].evidence["decoded_once_s"])
    )
