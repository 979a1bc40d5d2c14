"""Are the fields of a record, read alone, those that h5py reads?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.patching import patch_stats

INNER = np.dtype([("u", ">i2"), ("v", "f8")])
TYPES = {
    "packed": np.dtype([("a", "<i4"), ("b", "<f8"), ("c", ">u2"), ("d", "S5")]),
    "padded": np.dtype(
        {
            "names": ["a", "b", "c"],
            "formats": ["u1", "<f8", "<i8"],
            "offsets": [2, 8, 24],
            "itemsize": 40,
        }
    ),
    "nested": np.dtype([("a", INNER), ("b", "<f4", (2, 3)), ("c", "?"), ("d", "<c16")]),
    "enum": np.dtype([("a", h5py.enum_dtype({"x": 1, "y": 2}, "i2")), ("b", "f4")]),
}
# Patched h5py reads less than 64 KiB itself.
SHAPE, CHUNK = (157, 43), (10, 4)


def values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    raw = rng.integers(1, 3, (*SHAPE, dtype.itemsize)).astype("u1")
    found = raw.view(dtype)[..., 0]
    if "d" in (dtype.names or ()) and dtype["d"].kind == "S":
        found["d"] = b"xyz"
    if dtype.names is not None and dtype.names[-1] == "d" and dtype["c"].kind == "b":
        found["c"] = raw[..., 0] > 1
    return found


@pytest.fixture(params=TYPES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    dtype = TYPES[request.param]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options: dict[str, Any] = {"chunks": CHUNK, "dtype": dtype, "shape": SHAPE}
        whole = file.create_dataset("deflate", compression=1, shuffle=True, **options)
        whole[...] = values(dtype)
        part = file.create_dataset("part", compression=1, **options)
        part[3:25] = values(dtype)[3:25]
        # One chunk that its filter was not applied to.
        mixed = file.create_dataset("mixed", compression=1, **options)
        mixed[...] = values(dtype)
        chunk = np.ascontiguousarray(values(dtype)[:10, :4])
        mixed.id.write_direct_chunk((0, 0), chunk.tobytes(), filter_mask=1)
        file.create_dataset("plain", data=values(dtype), chunks=CHUNK)
    return tmp_path / "x.h5"


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    assert h5py.check_enum_dtype(ours.dtype) == h5py.check_enum_dtype(theirs.dtype)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


def slices(extent: int) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.integers(0, extent - 1),
        st.builds(
            lambda start, stop, step: slice(min(start, stop), max(start, stop), step),
            st.integers(0, extent),
            st.integers(0, extent),
            st.integers(1, 5),
        ),
    )


def test_fields_are_those_of_h5py(path: Path) -> None:
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        names = tuple(theirs["deflate"].dtype.names)

        @settings(max_examples=40)
        @given(
            st.sampled_from(["deflate", "part", "mixed", "plain"]),
            st.lists(st.sampled_from(names), min_size=1, unique=True),
            slices(SHAPE[0]),
            slices(SHAPE[1]),
            st.integers(0, 2),
        )
        def check(name: str, some: list[str], rows: Any, columns: Any, place: int) -> None:
            index = [rows, columns]
            # Names may stand anywhere.
            index[place:place] = some
            same(ours[name][tuple(index)], theirs[name][tuple(index)])
            same(ours[name].fields(some)[rows, columns], theirs[name].fields(some)[rows, columns])
            one = some[0]
            same(ours[name][one], theirs[name][one])
            same(ours[name].fields(one)[rows], theirs[name].fields(one)[rows])

        check()
        for wrong in ("nothing", ("a", "nothing"), ("a", 0, 0, 0)):
            with pytest.raises((ValueError, TypeError)) as failed:
                theirs["deflate"][wrong]
            with pytest.raises(type(failed.value)):
                ours["deflate"][wrong]


def test_the_engine_reads_them(path: Path) -> None:
    with chunkwise.patch_h5py(), h5py.File(path) as file:
        before = patch_stats()["engine"]
        file["deflate"]["a"]
        file["deflate"]["b", 3:9]
        reason = chunkwise.wrap(file["deflate"]).explain()["reason"]
        assert patch_stats()["engine"] == before + (2 if reason is None else 0), patch_stats()


def test_a_damaged_chunk_is_named(path: Path) -> None:
    with h5py.File(path) as file:
        at = file["deflate"].id.get_chunk_info(3)
    content = bytearray(path.read_bytes())
    content[at.byte_offset : at.byte_offset + at.size] = b"\xff" * at.size
    path.write_bytes(content)
    with chunkwise.open(path) as file:
        # What libhdf5 has to read, it does not name.
        reason = file["deflate"].explain()["reason"]
        place = str(at.byte_offset) if reason is None else "cannot read it"
        with pytest.raises(OSError, match=place):
            file["deflate"]["a"]


def test_types_of_no_fields_or_of_fields_that_overlap_are_left_to_h5py(path: Path) -> None:
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["V2", "V2"], "offsets": [0, 1]})
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        for wanted in (np.dtype([]), overlapping, np.dtype([("a", "<c16")])):
            outcomes = []
            for file in (theirs, ours):
                try:
                    outcomes.append(repr(file["deflate"].astype(wanted)[:3, :2]))
                except (OSError, TypeError, ValueError, RuntimeError):
                    outcomes.append("refused")
            assert outcomes[0] == outcomes[1]
