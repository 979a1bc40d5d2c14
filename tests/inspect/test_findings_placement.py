"""Are bytes found that are read together and lie apart, and only those?"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.inspection.collect import dataset_facts
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings import chunks as chunks_module
from chunkwise.inspection.findings.placement import CHECKS
from chunkwise.inspection.findings.subject import Subject
from chunkwise.model.readers import LIBRARIES
from tests.support.versions import needs_chunk_iter, needs_sizes

Shape = tuple[int, ...]
MIB = 1 << 20


def findings(file: h5py.File, name: str = "t") -> list[Finding]:
    subject = Subject(file.filename, f"/{name}", dataset_facts(file[name].id), LIBRARIES)
    return [finding for check in CHECKS for finding in check(subject)]


def codes(file: h5py.File, name: str = "t") -> list[str]:
    return [finding.code for finding in findings(file, name)]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    # Without a cache, chunks come to lie where they are written.
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as opened:
        yield opened


# --- strided-contiguous ----------------------------------------------------------------


def allocate(file: h5py.File, shape: Shape, datatype: h5t.TypeID = h5t.STD_I32LE) -> None:
    """Make ``t`` contiguous, with its bytes in the file and none of them written."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.CONTIGUOUS)
    dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    h5d.create(file.id, b"t", datatype, h5s.create_simple(shape), dcpl)


def test_the_papers_column(file: h5py.File) -> None:
    """Figure 7: a column of 16384 in rows of 512."""
    allocate(file, (16384, 512))
    (found,) = findings(file)
    assert found.code == "strided-contiguous"
    assert found.severity == "note"
    assert found.evidence["pieces"] == 16384
    assert found.evidence["stride_nbytes"] == 2048
    assert found.evidence["line_nbytes"] == 64 << 10
    # The pages of a column are all the array.
    assert found.evidence["line_fetched_nbytes"] == 32 * MIB
    assert found.waste_nbytes == 512 * (32 * MIB - (64 << 10))
    offered = found.evidence["offered_chunks"]
    assert found.fixes[0].text.startswith(f"chunkwise repack --chunk /t:{offered} ")
    assert found.fixes[1].text.startswith(f"h5repack -l /t:CHUNK={offered} ")


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [
        ((1000, 4195), 0),  # 16 MiB and a little
        ((1000, 4194), None),  # just not
        ((999, 8192), None),  # few places
        ((4, 1100, 2000), 1),  # the line of most places, not that of the slowest dimension
        ((1 << 18, 32), 0),
        ((1 << 18, 31), None),  # a table, of which a column is read with all the others
        ((1 << 23,), None),  # a line is in one piece
        ((1 << 23, 1), None),
    ],
)
def test_strided(file: h5py.File, shape: Shape, dimension: int | None) -> None:
    allocate(file, shape)
    assert [f.evidence["dimension"] for f in findings(file)] == (
        [] if dimension is None else [dimension]
    )


def test_strided_and_larger_than_caches(file: h5py.File) -> None:
    allocate(file, (8000, 1 << 12), h5t.IEEE_F64LE)  # nothing of it is on disk
    (found,) = findings(file)
    # Rows are quick, and nothing says that columns are read.
    assert (found.severity, found.is_offer, found.layout) == ("note", True, None)


def test_not_strided(file: h5py.File) -> None:
    file.create_dataset("unwritten", (16384, 512), "i4")
    file.create_dataset("chunked", (16384, 512), "i4", chunks=(256, 256))
    file["small"] = np.zeros((2000, 10))
    file["scalar"] = 1.0
    file["null"] = h5py.Empty("f4")
    file.create_dataset("empty", (0, 10), "i4")
    for name in list(file):
        assert codes(file, name) == []


# --- scattered-chunks ------------------------------------------------------------------


def write_chunks(file: h5py.File, names: str, order: Iterable[int], nbytes: int = 512) -> None:
    """Write the chunks of one-dimensional datasets by turns, in an order of their own."""
    positions = list(order)
    datasets = [
        file.create_dataset(name, (len(positions) * nbytes,), "u1", chunks=(nbytes,))
        for name in names
    ]
    for position in positions:
        for dataset in datasets:
            dataset.id.write_direct_chunk((position * nbytes,), bytes(nbytes))


def test_two_variables_written_by_turns(file: h5py.File) -> None:
    write_chunks(file, "tu", range(1000))
    (found,) = findings(file)
    assert found.code == "scattered-chunks"
    assert found.severity == "note"
    assert found.evidence["pieces"] == 1000
    assert found.evidence["stored_nbytes"] == 1000 * 512
    span = int(found.evidence["span_nbytes"])
    assert span >= 1999 * 512
    assert found.waste_nbytes == span - 1000 * 512


def test_one_variable_in_order(file: h5py.File) -> None:
    """Pieces of the chunk index lie between the chunks, and are not held against them."""
    write_chunks(file, "t", range(3000))
    facts = dataset_facts(file["t"].id).chunks
    assert facts is not None
    assert facts.adjacent < facts.pairs
    assert codes(file) == []


@needs_sizes
def test_chunks_smaller_than_their_entries_in_the_index(file: h5py.File) -> None:
    """What lies between these is the index, which a copy would not take away."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((16,))
    dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    space = h5s.create_simple((160_000 * 16,))
    h5d.create(file.id, b"t", h5t.STD_U8LE, space, dcpl)
    facts = dataset_facts(file["t"].id).chunks
    assert facts is not None
    assert facts.span_nbytes > 2 * 160_000 * 16
    assert facts.pairs - facts.adjacent > 1000
    assert codes(file) == []


@pytest.mark.parametrize(
    ("names", "order", "expected"),
    [
        ("tu", range(999), []),
        ("t", np.random.default_rng(0).permutation(1100).tolist(), ["scattered-chunks"]),
        # By columns: nothing is adjacent, and each plane still lies together.
        *(
            ("t", [row * wide + column for column in range(wide) for row in range(high)], expected)
            for wide, high, expected in (
                (40, 40, []),
                # One pair in four goes back, and one in three.
                (4, 400, []),
                (3, 400, ["scattered-chunks"]),
            )
        ),
    ],
    ids=["few", "no order", "columns of 40", "one in four", "one in three"],
)
def test_orders_of_chunks(
    file: h5py.File, names: str, order: Sequence[int], expected: list[str]
) -> None:
    write_chunks(file, names, order)
    assert codes(file) == expected


@pytest.mark.parametrize(("between", "expected"), [(400, []), (480, ["scattered-chunks"])])
def test_as_much_between_as_in_them(file: h5py.File, between: int, expected: list[str]) -> None:
    dataset = file.create_dataset("t", (1100 * 512,), "u1", chunks=(512,))
    other = file.create_dataset("u", (1100 * between,), "u1", chunks=(between,))
    for i in range(1100):
        dataset.id.write_direct_chunk((i * 512,), bytes(512))
        other.id.write_direct_chunk((i * between,), bytes(between))
    assert codes(file) == expected


def test_chunks_that_begin_on_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", fs_strategy="page", fs_page_size=4096, rdcc_nbytes=0) as file:
        write_chunks(file, "t", range(1100), nbytes=4000)
        assert codes(file) == []


@pytest.mark.slow
def test_large_pieces(file: h5py.File) -> None:
    """A MiB takes as long to read as to find."""
    for name, nbytes in (("t", MIB), ("u", MIB - 1)):
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((nbytes,))
        dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
        space = h5s.create_simple((1100 * nbytes,))
        h5d.create(file.id, name.encode(), h5t.STD_U8LE, space, dcpl)
    # Only the first and last byte of a chunk are ever on disk: the file is sparse.
    from_last = [1099 - i for i in range(1100)]
    for name, nbytes in (("t", MIB), ("u", MIB - 1)):
        for position in from_last:
            file[name][position * nbytes] = 1
    assert codes(file) == []
    assert codes(file, "u") == ["scattered-chunks"]


@needs_chunk_iter
def test_very_many_pieces(file: h5py.File) -> None:
    write_chunks(file, "tu", range(10_000), nbytes=64)
    assert [f.severity for f in findings(file)] == ["warning"]
    write_chunks(file, "vw", range(9_999), nbytes=64)
    assert [f.severity for f in findings(file, "v")] == ["note"]


def test_no_chunks_to_scatter(file: h5py.File) -> None:
    file["contiguous"] = np.zeros((100, 100))
    file["null"] = h5py.Empty("f4")
    file.create_dataset("unwritten", (100,), "f4", chunks=(10,))
    for name in list(file):
        assert codes(file, name) == []


# --- whatever a file says --------------------------------------------------------------

LENGTH = st.integers(1, 1 << 20) | st.integers(1, (1 << 64) - 2)
DIMENSIONS = st.lists(st.tuples(LENGTH, LENGTH, st.booleans()), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(DIMENSIONS, st.integers(1, 1 << 32), st.integers(1, 1 << 64), st.booleans())
@pytest.mark.slow
def test_no_shape_is_too_odd(
    dimensions: list[tuple[int, int, bool]], itemsize: int, stored: int, chunked: bool
) -> None:
    """Lengths as damaged files give them are judged as any others, and raise nothing."""
    shape = tuple(n for n, _, _ in dimensions)
    chunk = tuple(c for _, c, _ in dimensions)
    with h5py.File("odd.h5", "w", driver="core", backing_store=False) as file:
        facts = dataset_facts(file.create_dataset("t", (4, 4), "i4", chunks=(2, 2)).id)
    assert facts.chunks is not None
    chunks = replace(
        facts.chunks,
        shape=chunk,
        nbytes=math.prod(chunk) * itemsize,
        grid=math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True)),
        allocated=stored,
        edge_nbytes=stored,
        pairs=stored,
        span_nbytes=stored,
        order_known=True,
    )
    facts = replace(
        facts,
        shape=shape,
        maxshape=tuple(None if grows else n for n, _, grows in dimensions),
        itemsize=itemsize,
        stored_nbytes=stored,
        layout="chunked" if chunked else "contiguous",
        chunks=chunks if chunked else None,
    )
    subject = Subject("a.h5", "/t", facts, LIBRARIES)
    for check in (*CHECKS, *chunks_module.CHECKS):
        for finding in check(subject):
            assert finding.waste_nbytes >= 0
