"""Are chunks that no cache keeps found, and those that it just keeps not?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.advise.readers import LIBHDF5_1, LIBHDF5_2, LIBRARIES, NETCDF_C, Reader
from chunkwise.inspect import Finding, dataset_facts, inspect
from chunkwise.inspect.findings.cache import chunk_exceeds_cache, shrunk, slot_collision
from chunkwise.inspect.findings.subject import DatasetCheck, Subject

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
    assert "3.0 MiB" in found.summary
    assert "libhdf5 before 2.0 (1.0 MiB)" in found.summary
    assert "1,080 times" in found.summary
    assert found.evidence["decodes_per_chunk"] == 1080
    # What the cache has to hold is one chunk; the paper's own chunk fits 1 MB.
    texts = {fix.tool: fix.text for fix in found.fixes}
    assert f"rdcc_nbytes={3 << 20}" in next(f.text for f in found.fixes if f.tool == "h5py")
    assert "CHUNK=1x30x9x717" in texts["h5repack"]


def test_the_h5py_line_spares_the_decodes(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    (found,) = findings(chunk_exceeds_cache, path, SHAPE, (4, 30, 9, 717), compression="gzip")
    names: dict[str, h5py.Dataset] = {}
    exec(found.fixes[0].text, {"h5py": h5py}, names)
    file = names["file"]
    with file:
        _, nslots, nbytes, _ = file.id.get_access_plist().get_cache()
        assert (nslots, nbytes) == (521, 3 << 20)
        assert names["dataset"].shape == SHAPE


@pytest.mark.parametrize(
    ("chunks", "readers", "options"),
    [
        # 774,360 bytes fit 1 MiB.
        ((1, 30, 9, 717), LIBRARIES, {"compression": "gzip"}),
        # Later libraries and netCDF-C hold a chunk of 3 MiB.
        ((4, 30, 9, 717), (LIBHDF5_2, NETCDF_C), {"compression": "gzip"}),
        # Without filters nothing is decoded: only what is selected is read.
        ((4, 30, 9, 717), LIBRARIES, {}),
    ],
)
def test_chunks_that_fit(
    tmp_path: Path, chunks: tuple[int, ...], readers: tuple[Reader, ...], options: dict[str, str]
) -> None:
    assert not findings(chunk_exceeds_cache, tmp_path / "a.h5", SHAPE, chunks, readers, **options)


def test_exactly_the_cache_fits(tmp_path: Path) -> None:
    def found(extent: int) -> list[Finding]:
        path = tmp_path / "a.h5"
        return findings(
            chunk_exceeds_cache, path, (2, extent), (1, extent), dtype="u1", compression="gzip"
        )

    # A row that is a chunk is decoded once, whatever the cache.
    assert not found((1 << 20) + 1)

    def halves(extent: int) -> list[Finding]:
        path = tmp_path / "a.h5"
        return findings(
            chunk_exceeds_cache, path, (4, extent), (2, extent), dtype="u1", compression="gzip"
        )

    assert not halves(1 << 19)
    assert halves((1 << 19) + 1)


def test_more_chunks_in_a_line_than_slots(tmp_path: Path) -> None:
    (found,) = findings(slot_collision, tmp_path / "a.h5", (1024, 1024), (1, 1024), dtype="u1")
    assert (found.code, found.severity) == ("slot-collision", "warning")
    assert found.evidence["reader"] == "libhdf5-1.10"
    assert found.evidence["collisions"] == 2 * (1024 - 521)
    assert "521 slots" in found.summary
    assert "rdcc_nslots=102407" in found.fixes[0].text


def test_as_many_chunks_as_slots(tmp_path: Path) -> None:
    # 512 chunks of 1 KiB in a line: packed one after the other, each has its slot.
    path = tmp_path / "a.h5"
    assert not findings(slot_collision, path, (512, 1024), (1, 1024), dtype="u1")
    readers = (LIBHDF5_2,)
    assert not findings(slot_collision, path, (1024, 1024), (1, 1024), readers, dtype="u1")
    # 1,024 chunks of 2 KiB are too many for the bytes as well: no slot would help.
    readers = (LIBHDF5_1,)
    assert not findings(slot_collision, path, (1024, 2048), (1, 2048), readers, dtype="u1")


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
    assert "1,080 times" in found[0].summary
    assert "instead of" in found[0].summary
    assert found[0].evidence["predicted_s"] == pytest.approx(
        1080 * float(found[0].evidence["decoded_once_s"])
    )
