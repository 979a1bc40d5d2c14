"""Are chunks of a costly shape found, and only those?"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chunkwise.inspection.collect import dataset_facts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.chunks import CHECKS
from chunkwise.inspection.findings.subject import Subject
from chunkwise.model.readers import LIBRARIES
from tests.support.versions import HAS_CHUNK_ITER

Shape = tuple[int, ...]
MIB = 1 << 20
DEFLATE, GROWS = {"deflate": 1}, {"maxshape": (None,)}
ONE, NO_EDGE = 4 * MIB - 4, {"offered_edge_nbytes": 0}


def findings(file: h5py.File, name: str = "t") -> list[Finding]:
    subject = Subject(file.filename, f"/{name}", dataset_facts(file[name].id), LIBRARIES)
    return [finding for check in CHECKS for finding in check(subject)]


def codes(file: h5py.File, name: str = "t") -> list[str]:
    return [finding.code for finding in findings(file, name)]


def one(file: h5py.File, code: str) -> Finding:
    (found,) = findings(file)
    assert found.code == code
    assert found.path == "/t"
    return found


def allocate(
    file: h5py.File,
    shape: Shape,
    chunks: Shape,
    datatype: h5t.TypeID = h5t.STD_I32LE,
    maxshape: tuple[int | None, ...] | None = None,
    deflate: int | None = None,
) -> None:
    """Make ``t`` with all its chunks stored and, without a filter, none of them written."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    if deflate is not None:
        dcpl.set_deflate(deflate)
    else:
        dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    limits = None
    if maxshape is not None:
        limits = tuple(h5s.UNLIMITED if n is None else n for n in maxshape)
    h5d.create(file.id, b"t", datatype, h5s.create_simple(shape, limits), dcpl)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "my file.h5", "w") as opened:
        yield opened


# --- floor-chunk -----------------------------------------------------------------------


def test_the_papers_790(file: h5py.File) -> None:
    """Table 6: 22 MB more than the data, and 791 instead."""
    allocate(file, (3162, 3162), (790, 790))
    found = one(file, "floor-chunk")
    waste = (25 * 790 * 790 - 3162 * 3162) * 4
    assert waste == 22_417_024
    # Read once, that is a hundredth of a second.
    assert found.severity == "note"
    assert found.waste_nbytes == found.evidence["edge_nbytes"] == waste
    assert found.evidence["offered_chunks"] == "791x791"
    assert found.evidence["offered_edge_nbytes"] == (16 * 791 * 791 - 3162 * 3162) * 4
    name = file.filename
    assert [fix.text for fix in found.fixes[:2]] == [
        f"chunkwise repack --chunk /t:791x791 '{name}' 'my file_rechunked.h5'",
        f"h5repack -l /t:CHUNK=791x791 '{name}' 'my file_rechunked.h5'",
    ]


# Shape, chunks and more of `allocate`; the finding's code, its severity, and of its evidence.
FOUND: list[tuple[Shape, Shape, dict[str, Any], str, str, dict[str, object]]] = [
    ((3162, 3162), (316, 316), {}, "floor-chunk", "note", {"offered_chunks": "317x317"}),
    ((3162, 3162), (395, 395), {}, "floor-chunk", "note", {"offered_chunks": "396x396"}),
    # Along one dimension only.
    ((1001, 2000), (500, 500), {}, "floor-chunk", "note", {"offered_chunks": "501x500"}),
    # A chunk that nearly holds everything.
    ((1001, 1000), (1000, 1000), {}, "floor-chunk", "note", {"offered_chunks": "1001x1000"}),
    # 1,000 and 125 of 1,000 elements; dimension 1 keeps edge-waste away.
    ((2125, 500), (1000, 500), {}, "floor-chunk", "note", {}),
    ((1002, 4000), (200, 4000), {}, "floor-chunk", "note", {}),
    # With filters it is decoded in vain.
    ((1001, 1001), (500, 500), DEFLATE, "floor-chunk", "note", {"offered_chunks": "501x501"}),
    # A million times as much as it must be, and yet a toy.  It can grow: not 1, which would be
    # one more chunk for each element.
    ((1,), (MIB,), GROWS, "edge-waste", "note", {"edge_nbytes": ONE, "offered_chunks": "1024"}),
    # Compressed it costs time only.
    ((1,), (MIB,), GROWS | DEFLATE, "edge-waste", "note", {}),
    # A third of what is stored.
    ((660, 1000), (1000, 1000), {"maxshape": (None, 1000)}, "edge-waste", "note", {}),
    # Half-empty chunks get the same grid.
    ((1200, 1200), (800, 800), {}, "edge-waste", "note", {"offered_chunks": "600x600", **NO_EDGE}),
    # Small as such a dataset is, its chunks are more than its data, and that is said once.
    ((1000,), (1,), GROWS, "unlimited-chunk-1", "note", {}),
    ((10_000,), (1,), GROWS, "unlimited-chunk-1", "warning", {}),
]


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_chunks_of_a_costly_shape(file: h5py.File, number: int) -> None:
    shape, chunks, more, code, severity, evidence = FOUND[number]
    allocate(file, shape, chunks, **more)
    found = one(file, code)
    assert (found.severity, found.evidence | evidence) == (severity, found.evidence)


def test_edge_chunks_that_were_never_written_waste_nothing(file: h5py.File) -> None:
    dataset = file.create_dataset("t", (3162, 3162), "<i4", chunks=(790, 790))
    dataset.id.write_direct_chunk((0, 0), bytes(790 * 790 * 4))
    assert codes(file) == []


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.tuples(st.integers(90, 3000), st.integers(90, 3000)),
)
def test_chunks_offered_for_edges_have_no_finding_themselves(shape: Shape, chunks: Shape) -> None:
    """What is offered for waste at the edges wastes less, and is not complained about."""
    chunks = tuple(map(min, chunks, shape))
    assume(math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True)) <= 200)
    with h5py.File("floor.h5", "w", driver="core", backing_store=False) as file:
        allocate_lightly(file, shape, chunks)
        found = [f for f in findings(file) if "edge_nbytes" in f.evidence]
        if not found:
            return
        (finding,) = found
        offered = tuple(map(int, str(finding.evidence["offered_chunks"]).split("x")))
        before, after = (int(finding.evidence[f"{k}edge_nbytes"]) for k in ("", "offered_"))
        assert after <= before - MIB
        del file["t"]
        allocate_lightly(file, shape, offered)
        assert not {"floor-chunk", "edge-waste"} & set(codes(file))


def allocate_lightly(file: h5py.File, shape: Shape, chunks: Shape) -> None:
    """Like `allocate`, with chunks that say that they are deflated and are empty."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    dcpl.set_deflate(1)
    space = h5s.create_simple(shape)
    dataset = h5d.create(file.id, b"t", h5t.STD_I32LE, space, dcpl)
    for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks, strict=True))):
        origin = tuple(i * c for i, c in zip(index, chunks, strict=True))
        dataset.write_direct_chunk(origin, b"x")


# --- single-chunk ----------------------------------------------------------------------


def test_one_compressed_chunk(file: h5py.File) -> None:
    allocate(file, (1024, 2048), (1024, 2048), deflate=1)
    found = one(file, "single-chunk")
    assert found.severity == "note"
    assert found.evidence["chunk_nbytes"] == 8 * MIB
    # Row by row with a cache of 1 MiB: decoded for each of 1,024 rows.
    assert found.waste_nbytes == 1023 * 8 * MIB
    assert int(found.evidence["offered_chunk_nbytes"]) <= MIB


def test_one_chunk_that_no_cache_keeps(file: h5py.File) -> None:
    dataset = file.create_dataset("t", (64, MIB), "u1", chunks=(64, MIB), compression="gzip")
    dataset.id.write_direct_chunk((0, 0), b"x")
    assert one(file, "single-chunk").severity == "warning"


# --- small-chunks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "grid", "severity"),
    [
        (31, 100, "warning"),  # 3.8 KiB, 10,000 of them
        (31, 32, "note"),
        (31, 31, None),  # 961 chunks
        (32, 32, None),  # 4 KiB, 1,024 of them
        (32, 100, "note"),
        (32, 99, None),  # 9,801 chunks: the best of region A
    ],
)
def test_small_chunks(file: h5py.File, side: int, grid: int, severity: str | None) -> None:
    allocate(file, (side * grid, side * grid), (side, side))
    found = findings(file)
    assert [(f.code, f.severity) for f in found] == (
        [("small-chunks", severity)] if severity else []
    )
    if found:
        evidence = found[0].evidence
        assert evidence["chunks"] == grid * grid
        assert evidence["chunk_nbytes"] == side * side * 4
        if HAS_CHUNK_ITER or grid < 100:
            assert evidence["median_stored_nbytes"] == side * side * 4
        else:
            assert "median_stored_nbytes" not in evidence
        assert found[0].waste_nbytes == grid * grid * 40
        assert int(evidence["offered_count"]) < grid * grid / 10


def test_chunks_of_32_kib_are_not_small(file: h5py.File) -> None:
    dataset = file.create_dataset(
        "t", (10_000, 1 << 15), "u1", chunks=(1, 1 << 15), compression="gzip"
    )
    for i in range(10_000):
        dataset.id.write_direct_chunk((i, 0), b"x")
    assert codes(file) == []


def test_small_chunks_of_a_sparse_array_are_meant(file: h5py.File) -> None:
    dataset = file.create_dataset("t", (100_000, 64), "u1", chunks=(16, 16), compression="gzip")
    for i in range(6250):
        for j in range(2):
            dataset.id.write_direct_chunk((i * 16, j * 16), b"x")
    assert codes(file) == ["small-chunks"]
    del file["t"]
    dataset = file.create_dataset("t", (100_000, 64), "u1", chunks=(16, 16), compression="gzip")
    for i in range(6250):
        dataset.id.write_direct_chunk((i * 16, 0), b"x")
        if i % 2:
            dataset.id.write_direct_chunk((i * 16, 16), b"x")
    assert codes(file) == []


# --- unlimited-chunk-1 -----------------------------------------------------------------


def test_a_step_a_chunk(file: h5py.File) -> None:
    allocate(file, (200, 100, 100), (1, 100, 100), maxshape=(None, 100, 100))
    found = one(file, "unlimited-chunk-1")
    assert found.severity == "note"
    evidence = found.evidence
    assert evidence["steps"] == 200
    assert evidence["series_nbytes"] == 800
    assert evidence["series_decoded_nbytes"] == 200 * 40_000
    assert int(evidence["offered_series_decoded_nbytes"]) <= 2 * MIB
    assert evidence["step_chunks"] == 1
    # Series by series with a cache of 1 MiB: each chunk for each of its 10,000 series.
    assert found.waste_nbytes == 9_999 * 200 * 40_000


def test_netcdfs_default_for_record_variables(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as made:
        for name, n in (("time", None), ("y", 60), ("x", 60)):
            made.createDimension(name, n)
        made.createVariable("t", "f4", ("time", "y", "x"))[:] = np.zeros((150, 60, 60))
    with h5py.File(path) as file:
        found = one(file, "unlimited-chunk-1")
    assert found.summary.startswith("Dimension 0 (time) can grow and is chunked at 1")
    assert [fix.tool for fix in found.fixes[:3]] == ["chunkwise", "nccopy", "h5repack"]


# --- what has no finding ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "chunks", "maxshape", "deflate"),
    [
        # floor-chunk: the paper's other chunks
        *(((3162, 3162), (n, n), None, None) for n in (791, 792, 1054, 1581, 527)),
        ((2126, 500), (1000, 500), None, None),  # used to more than an eighth
        ((10_001, 1000), (100, 1000), None, None),  # one row of a hundred: under a tenth
        ((301, 500), (100, 500), None, None),  # a third, but less than a MiB
        ((1001, 4000), (143, 4000), None, None),
        # edge-waste
        ((1,), (MIB // 4,), (None,), None),  # 1 MiB less one element beyond the shape
        ((680, 1000), (1000, 1000), (None, 1000), None),  # less than a third of what is stored
        # single-chunk
        ((1023, 2048), (1023, 2048), None, 1),  # 4 KiB short of the threshold
        ((1024, 2048), (512, 2048), None, 1),  # two chunks
        ((1024, 2048), (1024, 2048), None, None),  # read in part by libhdf5
        # unlimited-chunk-1
        ((999,), (1,), (None,), None),  # a value a chunk, and few of them
        ((99, 100, 100), (1, 100, 100), (None, 100, 100), None),  # few steps
        ((200, 100, 100), (2, 100, 100), (None, 100, 100), None),
        ((200, 100, 100), (1, 100, 100), None, None),  # does not grow
        ((200, 36, 36), (1, 36, 36), (None, 36, 36), None),  # under 1 MiB in 200 chunks
    ],
)
def test_chunks_that_are_as_they_should_be(
    file: h5py.File,
    shape: Shape,
    chunks: Shape,
    maxshape: tuple[int | None, ...] | None,
    deflate: int | None,
) -> None:
    allocate(file, shape, chunks, maxshape=maxshape, deflate=deflate)
    assert codes(file) == []


def test_datasets_without_such_chunks(file: h5py.File) -> None:
    file["contiguous"] = np.zeros((100, 100))
    file["null"] = h5py.Empty("f4")
    file["scalar"] = 1.0
    file.create_dataset("unwritten", (3162, 3162), "<i4", chunks=(790, 790))
    file.create_dataset("empty", (0, 5), "f8", chunks=(4, 5), maxshape=(None, 5))
    file.create_dataset("strings", (50,), h5py.string_dtype(), chunks=(5,))[:] = "abc"
    file.create_dataset("fine", data=np.zeros((1000, 1000)), chunks=(250, 250))
    for name in list(file):
        assert codes(file, name) == []
