"""Does inspect say of a file's own bytes what it says by asking libhdf5 object by object?"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.files.contained import contained_each
from chunkwise.inspection import FileFacts, inspect, inspection
from chunkwise.inspection.collect import object_facts
from chunkwise.inspection.native import Listed, listed
from chunkwise.verdicts import FileVerdict
from tests.support import metadata_files
from tests.support.native import write_with_small_nodes
from tests.support.versions import needs_chunk_iter

# Older libhdf5 does not tell how chunks are found.
pytestmark = needs_chunk_iter


def look(path: Path, way: Callable[[h5py.File], Listed | None]) -> FileFacts:
    """Inspect a file in a way."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(inspection, "listed", way)
        return inspect(path, sample=False)


def same(path: Path) -> bool:
    """Compare both ways, and tell whether the file's own bytes were enough."""
    ways: list[bool] = []

    def noted(file: h5py.File) -> Listed | None:
        found = listed(file)
        ways.append(found is not None)
        return found

    ours, theirs = look(path, noted), look(path, lambda _: None)
    assert ours == theirs
    assert json.dumps(ours.as_dict()) == json.dumps(theirs.as_dict())
    return ways == [True]


@pytest.mark.parametrize("name", metadata_files.NAMES)
def test_each_kind_of_file(name: str, tmp_path: Path) -> None:
    """That these facts are h5py's is in `tests.read.test_format`."""
    natively = same(metadata_files.write(tmp_path, name))
    # Some objects have no link.
    assert not natively or name in metadata_files.KINDS


DTYPES = st.sampled_from(
    [
        "u1", "<i2", ">i4", "<f4", ">f8", "<f2", "S5", "?", "<c16", "V3",
        [("a", "<i4"), ("b", ">f8", (2,))],
        h5py.string_dtype(),
        h5py.string_dtype("ascii", 4),
        h5py.vlen_dtype("<i4"),
        h5py.enum_dtype({"a": 1, "b": 7}, "u2"),
    ]
)  # fmt: skip


@st.composite
def datasets(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments for `h5py.Group.create_dataset`."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 9)) for _ in range(rank))
    options: dict[str, Any] = {"shape": shape, "dtype": draw(DTYPES)}
    if rank and draw(st.booleans()):
        options["chunks"] = tuple(draw(st.integers(1, max(1, n))) for n in shape)
        grows = [draw(st.sampled_from([max(1, n), n + 3, None])) for n in shape]
        options["maxshape"] = tuple(grows)
        options |= draw(
            st.sampled_from([{}, {"compression": 4}, {"compression": "lzf", "shuffle": True}])
        )
        options["fletcher32"] = draw(st.booleans()) and not str(options["dtype"]).startswith(
            "object"
        )
    number = isinstance(options["dtype"], str) and np.dtype(options["dtype"]).kind in "iuf"
    if number and draw(st.booleans()):
        options["fillvalue"] = draw(st.sampled_from([1, 7, 100]))
    if draw(st.booleans()):
        options["fill_time"] = draw(st.sampled_from(["alloc", "ifset"]))
    return options


@given(
    made=st.lists(st.tuples(datasets(), st.booleans(), st.booleans()), max_size=6),
    libver=st.sampled_from(["earliest", "v110", "latest"]),
    track_order=st.booleans(),
    user_block=st.sampled_from([0, 512]),
)
def test_any_datasets(
    made: list[tuple[dict[str, Any], bool, bool]],
    libver: str,
    track_order: bool,
    user_block: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("native") / "x.h5"
    options = {"libver": (libver, "latest"), "userblock_size": user_block}
    with h5py.File(path, "w", track_order=track_order, **options) as file:
        for number, (arguments, written, deep) in enumerate(made):
            name = f"{'deep/er/' if deep else ''}{9 - number}"
            one = file.create_dataset(name, **arguments)
            one.attrs["units"] = "m"
            if written and one.size and one.dtype.kind != "O":
                # One chunk of perhaps many.
                index = (slice(0, 1),) * one.ndim
                one[index] = np.zeros((1,) * one.ndim, one.dtype)
            if deep:
                file[f"again {number}"] = one
                file[f"soft {number}"] = h5py.SoftLink("/" + name if written else "/nothing")
    assert same(path)


def netcdf_like(path: Path) -> None:
    """Write dimension scales and datasets that have them."""
    with h5py.File(path, "w") as file:
        for name in ("t", "x"):
            file[name] = np.arange(4.0)
            file[name].make_scale(name)
        for number in range(3):
            one = file.create_dataset(f"deep/v{number}", (4, 4, 2), "f4", fillvalue=1e20)
            one.dims[0].attach_scale(file["t"])
            one.dims[1].attach_scale(file["x"])


def test_dimension_scales_are_named(tmp_path: Path) -> None:
    path = tmp_path / "scales.h5"
    netcdf_like(path)
    assert same(path)
    found = {one.path: one.dataset for one in inspect(path).objects if one.dataset}
    assert found["/deep/v1"].dimensions == ("t", "x", None)
    assert found["/t"].is_scale


def test_only_unusual_objects_are_asked_of_libhdf5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = np.arange(4)
        layout = h5py.VirtualLayout((4,), "i8")
        layout[:] = h5py.VirtualSource(file["plain"])
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("named", (3,), h5py.enum_dtype({"a": 1}), fillvalue=1)
        file.create_dataset("outside", (3,), "u1", external=[("raw", 0, 3)])
        file["soft"] = h5py.SoftLink("plain")
        file["far"] = h5py.ExternalLink("other.h5", "/x")
    assert same(path)
    asked: list[str] = []

    def noted(file: h5py.File, entry: Any, paths: Any) -> Any:
        asked.append(entry.path)
        return object_facts(file, entry, paths)

    monkeypatch.setattr("chunkwise.inspection.collect.object_facts", noted)
    inspect(path, sample=False)
    assert asked == ["/far", "/named", "/outside", "/soft", "/virtual"]


def test_what_may_hide_objects_is_left_to_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        alone = file.create_dataset(None, data=1)
        file.attrs["leads"] = alone.ref
    assert not same(path)
    with h5py.File(path, "w") as file:
        file["x"] = 1
        file.attrs["leads"] = file["x"].ref
    assert same(path)
    with h5py.File(path, "w") as file:
        file["x"] = np.array([file.ref], h5py.ref_dtype)
    assert not same(path)


def test_what_lies_behind_the_stated_end_is_left_to_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    netcdf_like(path)
    with path.open("ab") as file:
        file.write(bytes(100))
    assert not same(path)


def test_a_file_that_this_process_writes_is_left_to_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
        assert listed(file) is None
    with h5py.File(path) as file:
        assert listed(file) is not None
        with h5py.File(path, driver="core") as other:
            assert listed(other) is None


@settings(max_examples=30)  # Each in two processes
@given(at=st.integers(0, 5000), byte=st.integers(0, 255))
@example(at=944, byte=0)  # The name of an attribute, cut short
@example(at=949, byte=65)  # Its end
@example(at=1048, byte=0)  # A block of a header without bytes
@example(at=956, byte=0)  # A string of no bytes
@example(at=938, byte=1)  # The length of an attribute's name, which is none
@example(at=940, byte=1)  # That of its datatype, and of its dataspace: cut short
@example(at=942, byte=1)
@example(at=904, byte=1)  # A shape that compact values do not fill
@example(at=16, byte=1)  # Names in a node of a group
@example(at=16, byte=74)
@example(at=18, byte=0)  # Its children
@example(at=18, byte=255)
def test_a_changed_byte_is_damage_both_ways(
    at: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("native") / "x.h5"
    netcdf_like(path)
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)

    def verdict(way: Callable[[h5py.File], Listed | None]) -> Any:
        # HDF5 crashes on some.
        (found,) = contained_each([(lambda: look(path, way).verdict, "x")], 1)
        return type(found.error) if found.error else found.result

    assert verdict(listed) == verdict(lambda _: None)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 200, 65535])
def test_a_node_must_fit_the_file_and_its_chunks_the_node(k: int, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    write_with_small_nodes(path)
    content = bytearray(path.read_bytes())
    assert content[8] == 1
    content[24:26] = k.to_bytes(2, "little")
    path.write_bytes(content)
    try:
        with h5py.File(path) as file:
            expected = file["d"][...].tolist()
    except OSError:
        with chunkwise.open(path) as ours, pytest.raises(chunkwise.ChunkwiseError):
            ours["d"][...]
        assert inspect(path).findings[0].verdict == FileVerdict.DAMAGED
    else:
        with chunkwise.open(path) as ours:
            assert ours["d"][...].tolist() == expected
