"""What opening a file costs: as libhdf5 reads it, and as h5stat has it."""

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.files.native import damaged_metadata
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import MetadataFacts
from chunkwise.inspection.native import metadata_facts
from tests.inspect.test_format import crash
from tests.support.inspect_files import make_file, make_netcdf
from tests.support.processes import ran
from tests.support.tools import require_tool
from tests.support.versions import needs_sizes

MIB = 1 << 20


def facts_of(path: Path) -> MetadataFacts:
    facts = inspect(path, sample=False).metadata
    assert facts is not None
    return facts


def h5stat(path: Path) -> dict[str, int]:
    """Read what ``h5stat -S`` says about space."""
    output = ran([require_tool("h5stat"), "-S", path], check=True).stdout
    names = {
        "metadata": "File metadata",
        "raw": "Raw data",
        "free": "Amount/Percent of tracked free space",
        "unaccounted": "Unaccounted space",
    }
    found = {key: re.search(rf"{name}: (-?\d+) bytes", output) for key, name in names.items()}
    return {key: int(match[1]) for key, match in found.items() if match is not None}


def make_many(path: Path, **options: Any) -> None:
    with h5py.File(path, "w", **options) as file:
        for i in range(30):
            file.create_dataset(f"g{i % 3}/d{i}", data=np.arange(50)).attrs["units"] = "m"


def make_chunks(path: Path, **options: Any) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w", **options) as file:
        for i in range(5):
            noise = rng.integers(0, 255, (40, 300), "u1")
            file.create_dataset(f"d{i}", data=noise, chunks=(4, 30), maxshape=(None, 300))
            file.create_dataset(f"z{i}", data=noise, chunks=(7, 30), compression="gzip")


def make_holes(path: Path, **options: Any) -> None:
    with h5py.File(path, "w", **options) as file:
        for name in "abc":
            file[name] = np.zeros(100_000, "i1")
        file["strings"] = np.array(["a", "bb"] * 100, h5py.string_dtype())
        file.flush()
        del file["b"]


@needs_sizes
@pytest.mark.parametrize("make", [make_many, make_chunks, make_holes])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"libver": ("v110", "v110")},
        {"userblock_size": 1024},
        {"fs_strategy": "page"},
        {"fs_strategy": "fsm", "fs_persist": True},
        {"track_order": True},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_space_is_that_of_h5stat(tmp_path: Path, make: Any, options: dict[str, Any]) -> None:
    path = tmp_path / "a.h5"
    make(path, **options)
    ours, theirs = facts_of(path), h5stat(path)
    assert ours.raw_nbytes == theirs["raw"]
    # The superblock's extension, what keeps track of free space, and of chunks.
    extra = 1200
    assert abs(ours.unaccounted_nbytes - theirs["unaccounted"]) <= extra
    theirs["metadata"] -= options.get("userblock_size", 0)
    # A listing does not read the free space of heaps, nor a second order of names.
    assert 0.7 * theirs["metadata"] - extra < ours.nbytes <= theirs["metadata"] + extra


@needs_sizes
def test_many_small_groups_lose_no_space(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110"), track_order=True) as file:
        for i in range(100):
            group = file.create_group(f"g{i}", track_order=True)
            for k in range(10):
                group.create_group(f"n{k}")
    lost = facts_of(path).unaccounted_nbytes
    assert abs(lost - h5stat(path)["unaccounted"]) <= 0.02 * path.stat().st_size


@needs_sizes
@pytest.mark.parametrize(("make", "compact_nbytes"), [(make_file, 20), (make_netcdf, 0)])
def test_any_layout_and_type(tmp_path: Path, make: Any, compact_nbytes: int) -> None:
    path = tmp_path / "a.h5"
    make(path)
    ours, theirs = facts_of(path), h5stat(path)
    # To h5stat, compact data is raw data; here it is part of its object header.
    assert ours.raw_nbytes == theirs["raw"] - compact_nbytes
    assert abs(ours.unaccounted_nbytes - theirs["unaccounted"]) <= 256


def test_phases(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (100, 100), "u1", chunks=(10, 10))
        file["x"][:] = 1
    facts = facts_of(path)
    # The superblock and the root group lie side by side.
    assert 1 == facts.open_requests < facts.list_requests
    assert facts.open_nbytes < facts.list_nbytes < 8192
    with h5py.File(path, "r+") as file:
        del file["x"]
        file.create_dataset("x", data=np.ones((100, 100), "u1"))
    contiguous = facts_of(path)
    assert facts.index_requests >= 1
    assert facts.index_nbytes >= 100 * 32
    assert (contiguous.index_requests, contiguous.index_nbytes) == (0, 0)
    assert contiguous.raw_nbytes == facts.raw_nbytes == 10_000


def test_data_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros(10 * MIB, "u1")
        file.create_dataset("y", data=np.zeros(MIB, "u1"), chunks=(MIB,))
    facts = facts_of(path)
    assert facts.nbytes < 8192
    assert facts.list_nbytes + facts.index_nbytes < 16_384
    assert facts.raw_nbytes == 11 * MIB


@pytest.mark.slow
def test_where_metadata_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for i in range(10):
            # Room for the object header is taken with the first attribute, before the data.
            file.create_dataset(f"d{i}", data=np.zeros(2 * MIB, "u1")).attrs["a"] = np.zeros(300)
    facts = facts_of(path)
    assert 5 <= facts.extents <= facts.blocks <= 20
    assert 16 * MIB < facts.span_nbytes <= path.stat().st_size

    together = tmp_path / "b.h5"
    with h5py.File(path) as source, h5py.File(together, "w", meta_block_size=MIB) as file:
        for name in source:
            source.copy(name, file)
    facts = facts_of(together)
    assert (facts.extents, facts.blocks) == (1, 1)
    assert facts.span_nbytes < MIB


def test_objects_with_many_names_are_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros(1000, "u1")
        file["up/and/around"] = file["/"]
        for i in range(5):
            file[f"again{i}"] = file["x"]
    assert facts_of(path).raw_nbytes == 1000


def test_unclosed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    crash(path)
    facts = facts_of(path)
    assert facts.raw_nbytes == 800
    assert facts.index_requests > 0


def test_not_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert metadata_facts(damaged_metadata(path), 0) is None
    path.write_text("x" * 1000)
    assert metadata_facts(damaged_metadata(path), 0) is None
    assert metadata_facts(damaged_metadata(tmp_path), 0) is None


@needs_sizes
def test_damaged_objects_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="v110") as file:
        file["good"] = np.zeros(1000, "u1")
        file["bad"] = np.zeros(2000, "u1")
        at = h5py.h5o.get_info(file["bad"].id).addr
    content = bytearray(path.read_bytes())
    content[at : at + 4] = b"XXXX"
    path.write_bytes(content)
    facts = facts_of(path)
    assert facts.raw_nbytes == 1000
    assert facts.unaccounted_nbytes >= 2000
