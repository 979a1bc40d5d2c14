"""What opening a file costs, as recorded and as h5stat has it."""

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.inspection.facts import MetadataFacts
from chunkwise.inspection.metadata import merged, metadata_facts
from tests.inspect.test_format import crash
from tests.support.inspect_files import make_file, make_netcdf
from tests.support.processes import ran
from tests.support.tools import require_tool
from tests.support.versions import needs_sizes

MIB = 1 << 20


def facts_of(path: Path) -> MetadataFacts:
    facts = metadata_facts(path)
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
    # The superblock's extension, and what keeps track of free space.
    extra = 1024 if "fs_strategy" in options else 0
    lost = ours.unaccounted_nbytes
    assert lost is not None
    assert theirs["unaccounted"] <= lost <= theirs["unaccounted"] + extra
    # Object headers are read by 512 bytes, so that more may be read than is metadata.
    theirs["metadata"] -= options.get("userblock_size", 0)
    assert 0.95 * theirs["metadata"] < ours.nbytes + extra


@needs_sizes
@pytest.mark.parametrize(("make", "compact_nbytes"), [(make_file, 20), (make_netcdf, 0)])
def test_any_layout_and_type(tmp_path: Path, make: Any, compact_nbytes: int) -> None:
    path = tmp_path / "a.h5"
    make(path)
    ours, theirs = facts_of(path), h5stat(path)
    # To h5stat, compact data is raw data; here it is part of its object header.
    assert ours.raw_nbytes == theirs["raw"] - compact_nbytes
    assert ours.unaccounted_nbytes == theirs["unaccounted"]


def test_phases(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (100, 100), "u1", chunks=(10, 10))
        file["x"][:] = 1
    facts = facts_of(path)
    # The signature and the superblock in two parts, then the root group.
    assert 3 <= facts.open_requests <= facts.list_requests
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
    assert metadata_facts(path) is None
    path.write_text("x" * 1000)
    assert metadata_facts(path) is None
    assert metadata_facts(tmp_path) is None


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
    assert facts.unaccounted_nbytes is not None
    assert facts.unaccounted_nbytes >= 2000


def test_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.h5"
    make_many(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("chunkwise.inspection.metadata._Recorder.readinto", interrupt)
    with pytest.raises(KeyboardInterrupt):
        metadata_facts(path)
    monkeypatch.undo()
    assert metadata_facts(path) is not None


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), min_size=1, max_size=20),
    st.integers(0, 20),
)
def test_merged_intervals(pieces: list[tuple[int, int]], gap: int) -> None:
    begins = np.array([begin for begin, _ in pieces])
    first, last = merged(begins, begins + np.array([length for _, length in pieces]), gap)
    assert (first < last).all()
    assert (first[1:] > last[:-1] + gap).all()
    covered = {at for begin, length in pieces for at in range(begin, begin + length)}
    within = {at for begin, end in zip(first, last, strict=True) for at in range(begin, end)}
    assert covered <= within
    # What was added are gaps, each no longer than allowed and with bytes on both sides.
    for at in within - covered:
        assert any(at - back in covered for back in range(1, gap + 1))
        assert any(at + ahead in covered for ahead in range(1, gap + 1))
