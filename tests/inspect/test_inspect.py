"""Are the facts about a file those that h5py was asked for?"""

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5t

from chunkwise.inspection import DatasetFacts, FileFacts, inspect
from chunkwise.inspection.datatypes import byte_order, describe
from tests.support.inspect_files import MISSING_FILTER


@pytest.fixture(scope="module")
def facts(path: Path) -> FileFacts:
    return inspect(path)


def of(facts: FileFacts, name: str) -> DatasetFacts:
    (dataset,) = [entry.dataset for entry in facts.objects if entry.path == f"/{name}"]
    assert dataset is not None
    return dataset


# --- facts -----------------------------------------------------------------------------


def test_file(path: Path, facts: FileFacts) -> None:
    assert facts.path == str(path)
    assert facts.nbytes == path.stat().st_size
    assert facts.file_format.userblock_nbytes == 512
    assert facts.hdf5_version == h5py.version.hdf5_version
    root = facts.objects[0]
    assert (root.path, root.kind, root.attributes) == ("/", "group", 1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contiguous", {"layout": "contiguous", "chunks": None, "stored_nbytes": 48, "ratio": 1}),
        ("unwritten", {"layout": "contiguous", "stored_nbytes": 0, "ratio": None}),
        (
            "sparse",
            {"stored_nbytes": 800, "filters": "none", "logical_nbytes": 20000, "ratio": 25},
        ),
        ("empty", {"shape": (0, 5), "stored_nbytes": 0, "ratio": None}),
        ("virtual", {"layout": "virtual", "mappings": 2, "stored_nbytes": None, "ratio": None}),
        ("external", {"layout": "external", "mappings": 1, "logical_nbytes": 400}),
        ("compact", {"layout": "compact", "stored_nbytes": 20, "byte_order": "big"}),
        (
            "unknown_filter",
            {"unavailable_filters": (MISSING_FILTER,), "filters": f"filter-{MISSING_FILTER}:1,2"},
        ),
    ],
)
def test_layouts(facts: FileFacts, name: str, expected: dict[str, object]) -> None:
    found = of(facts, name)
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "dtype", "byte_order"),
    [
        ("scalar", "float64", "little"),
        ("null", "float32", "little"),
        ("vlen_string", "string of variable length", None),
        ("vlen", "variable-length int32", "big"),
        ("string", "string(3)", None),
        ("compound", "compound{a: int32, b: float64, c: string(5)}", "mixed"),
        ("compound_vlen", "compound{a: int32, s: string of variable length}", "little"),
        ("references", "object reference", None),
        ("regions", "region reference", None),
        ("enum", "enum int16 of 3 names", "little"),
        ("bool", "bool", None),
        ("opaque", "opaque(10)", None),
        ("complex", "complex64", "big"),
        ("half", "float16", "big"),
        ("array", "compound{m: array(3x2) of float32}", "little"),
        ("byte", "int8", None),
        ("packed", "uint16 (12 bits used)", "little"),
        ("bitfield", "bitfield8", None),
    ],
)
def test_types(facts: FileFacts, name: str, dtype: str, byte_order: str | None) -> None:
    found = of(facts, f"types/{name}")
    assert (found.dtype, found.byte_order) == (dtype, byte_order)


@pytest.mark.parametrize(
    ("datatype", "name", "order"),
    [
        (h5t.UNIX_D32BE, "time32", None),
        (h5t.STD_B16BE, "bitfield16", "big"),
        (h5t.vlen_create(h5t.STD_I64BE), "variable-length int64", "big"),
        (h5t.NATIVE_LDOUBLE, None, sys.byteorder),
        (getattr(h5t, "COMPLEX_IEEE_F64BE", h5t.IEEE_F64BE), None, "big"),
    ],
)
def test_types_that_numpy_lacks(datatype: Any, name: str | None, order: str | None) -> None:
    size = 8 * datatype.get_size()
    names = [name] if name else [f"complex{size}", f"float{size}"]
    # A long double is 80 bits of 128 on one machine, and IEEE on another.
    assert describe(datatype).partition(" (")[0] in names
    assert byte_order(datatype) == order


@pytest.mark.parametrize("name", ["vlen", "vlen_string", "compound_vlen"])
def test_variable_length_has_no_ratio(facts: FileFacts, name: str) -> None:
    found = of(facts, f"types/{name}")
    assert found.variable_length
    assert (found.logical_nbytes, found.ratio) == (None, None)


def test_links_are_named_and_not_followed(facts: FileFacts) -> None:
    entries = {entry.path: entry for entry in facts.objects}
    assert (entries["/links/same"].kind, entries["/links/same"].target) == (
        "hard_link",
        "/chunked",
    )
    assert (entries["/links/up"].kind, entries["/links/up"].target) == ("hard_link", "/")
    assert (entries["/links/soft"].kind, entries["/links/soft"].target) == (
        "soft_link",
        "/nowhere",
    )
    assert entries["/links/far"].kind == "external_link"
    assert entries["/links/far"].target == "gone.h5:/x"
    assert entries["/named"].kind == "named_type"


def test_one_dataset(path: Path) -> None:
    found = inspect(path, "links/same")
    assert [(entry.path, entry.attributes) for entry in found.objects] == [("/links/same", 1)]
    chunks = of(found, "links/same").chunks
    assert chunks is not None
    assert chunks.shape == (20, 30)


def test_dataset_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file["bad"], file["good"] = 1, 2
        address = h5py.h5o.get_info(file["bad"].id).addr
    with path.open("r+b") as stream:
        stream.seek(address)
        stream.write(b"\xee")
    kinds = {entry.path: entry.kind for entry in inspect(path).objects}
    assert kinds == {"/": "group", "/bad": "unreadable", "/good": "dataset"}


def test_no_data_is_read_unless_sampled(tmp_path: Path) -> None:
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(100,), compression="gzip")
        chunk = file["x"].id.get_chunk_info(0)
    with path.open("r+b") as stream:
        stream.seek(chunk.byte_offset)
        stream.write(bytes(chunk.size))
    with h5py.File(path) as file, pytest.raises(OSError, match=r"filter|inflate"):
        file["x"][...]
    chunks = of(inspect(path, sample=False), "x").chunks
    assert chunks is not None
    assert chunks.allocated == 10
