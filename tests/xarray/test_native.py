"""Is a group that is read from a file's bytes the one that h5netcdf describes?"""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import netCDF4
import xarray as xr

from chunkwise.errors import ChunkwiseError
from chunkwise.remote import blocks
from chunkwise.remote.source import RemoteBytes
from chunkwise.xarray.facts import GroupFacts
from chunkwise.xarray.native import LeftToH5netcdfError, NativeFile
from chunkwise.xarray.opened import SharedFile
from chunkwise.xarray.through_h5netcdf import read_group
from tests.support.web import serving

OPTIONS = {"phony_dims": "access"}


def alike(one: Any, other: Any) -> bool:
    """Whether two facts are the same: types, orders and NaN included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.dtype):
        return bool(one == other and one.metadata == other.metadata)
    return repr(one) == repr(other)


def require_same(ours: GroupFacts, theirs: GroupFacts) -> None:
    assert alike(ours.dimensions, theirs.dimensions)
    assert alike(ours.attributes, theirs.attributes)
    assert ours.groups == theirs.groups
    assert list(ours.variables) == list(theirs.variables)
    assert {name: ours.sizes[name] for name in theirs.sizes} == theirs.sizes
    for name, one in theirs.variables.items():
        found = ours.variables[name]
        for fact in one.__dataclass_fields__:
            if fact != "address":
                assert alike(getattr(found, fact), getattr(one, fact)), (name, fact)


def read_natively(source: SharedFile) -> NativeFile:
    found = source.native()
    assert found is not None
    return found


def same_groups(path: Path) -> int:
    """Compare all groups of a file, and all numbers in them; how many groups there are."""
    source = SharedFile(str(path), OPTIONS, {})
    native = read_natively(source)
    metadata = native.file

    def below(group: str) -> int:
        ours = native.group(group)
        require_same(ours, read_group(source, group))
        with h5py.File(path) as file:
            for one in ours.variables.values():
                if one.address is None or not one.stored_shape:
                    continue
                # All chunks listed, or looked up.
                for most_listed in (1000, 0):
                    found = metadata.dataset(one.address, "x", most_listed)
                    if found is not None:
                        dataset, dtype = found
                        want = file[group][one.dataset][()]
                        assert dtype == one.dtype
                        assert dataset.getitem(()).tobytes() == want.tobytes()
        return 1 + sum(below(f"{group.rstrip('/')}/{name}") for name in ours.groups)

    try:
        return below("/")
    finally:
        source.close()


NUMBERS = ["i1", "u1", "<i2", ">i4", "<u8", "<f4", ">f8"]
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def fill_netcdf(draw: Any, file: netCDF4.Dataset, text: Any = TEXT) -> None:
    """Make any dimensions, variables, attributes and groups."""

    def attributes(holder: Any) -> None:
        for number in range(draw(st.integers(0, 4))):
            value = draw(
                st.one_of(
                    text,
                    st.lists(text, min_size=1, max_size=3),
                    st.sampled_from(NUMBERS).map(lambda one: np.arange(3).astype(one)),
                    st.sampled_from(NUMBERS).map(lambda one: np.dtype(one).type(7)),
                    st.just(np.zeros(0)),
                )
            )
            holder.setncattr(f"attribute {number}", value)

    def fill(group: Any, dimensions: list[str], depth: int) -> None:
        here = []
        for number in range(draw(st.integers(0, 3))):
            name = f"d{depth}{number}"
            here.append(group.createDimension(name, draw(st.sampled_from([None, 1, 3]))).name)
            if draw(st.booleans()):
                group.createVariable(name, draw(st.sampled_from([*NUMBERS[:3], "S1"])), (name,))
        attributes(group)
        for number in range(draw(st.integers(0, 3))):
            some = draw(st.lists(st.sampled_from([*dimensions, *here] or [""]), max_size=3))
            some = [one for one in dict.fromkeys(some) if one]
            kind = draw(st.sampled_from([*NUMBERS, "S1", str]))
            filters: Any = draw(st.sampled_from([{}, {"zlib": True}, {"fletcher32": True}]))
            one = group.createVariable(
                f"v{number}", kind, some, **({} if kind is str or not some else filters)
            )
            attributes(one)
            if kind not in ("S1", str) and draw(st.booleans()):
                one[:] = np.ones([one.shape[axis] or 2 for axis in range(len(some))])
        if depth < 2 and draw(st.booleans()):
            fill(group.createGroup("g"), dimensions + here, depth + 1)

    fill(file, [], 0)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_file_of_netcdf(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        with netCDF4.Dataset(path, "w") as file:
            fill_netcdf(data.draw, file)
        assert same_groups(path) > 0


def test_what_is_left_to_h5netcdf(tmp_path: Path) -> None:
    """And is what it was."""

    def soft(file: h5py.File) -> None:
        file["b"] = h5py.SoftLink("/x")

    def unnamed(file: h5py.File) -> None:
        file["y"] = np.zeros((3, 4))

    def twice(file: h5py.File) -> None:
        file["again"] = file["x"]

    def flags(file: h5py.File) -> None:
        file["x"].attrs["flag"] = True

    def scale_offset(file: h5py.File) -> None:
        made = file.create_dataset("s", data=np.arange(3), chunks=(3,), scaleoffset=0)
        made.dims[0].attach_scale(file["x"])

    for number, change in enumerate((soft, unnamed, twice, flags, scale_offset)):
        path = tmp_path / f"{number}.nc"
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(3)
            file["x"].make_scale("x")
            change(file)
        source = SharedFile(str(path), OPTIONS, {})
        with pytest.raises(LeftToH5netcdfError):
            read_natively(source).group("/")
        source.close()
        try:
            theirs = xr.open_dataset(path, engine="h5netcdf", phony_dims="access")
        except (ValueError, TypeError, AttributeError):
            continue
        with theirs, xr.open_dataset(path, engine="chunkwise") as ours:
            xr.testing.assert_identical(ours, theirs)


def written(path: Path) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 5)
        file.createVariable("x", "i4", ("x",))[:] = np.arange(5)
        file.createVariable("v", "f8", ("x",), zlib=True)[:] = np.arange(5)
    return path


def test_its_lock_is_that_of_a_reader(tmp_path: Path) -> None:
    path = written(tmp_path / "a.nc")
    writes = "import sys, h5py; h5py.File(sys.argv[1], 'r+', locking=True).close()"
    command = [sys.executable, "-c", writes, str(path)]
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_USE_FILE_LOCKING"}
    opened = xr.open_dataset(path, engine="chunkwise")
    assert subprocess.run(command, stderr=subprocess.DEVNULL, env=environment).returncode != 0
    opened.close()
    subprocess.run(command, check=True, env=environment)


@pytest.mark.parametrize("locking", [None, False])
def test_what_this_process_is_writing_is_seen(tmp_path: Path, locking: bool | None) -> None:
    path = written(tmp_path / "a.nc")
    with h5py.File(path, "r+", locking=locking) as file:
        file["v"][2] = 77
        source = SharedFile(str(path), OPTIONS, {})
        if locking is None:
            assert source.native() is None
        else:
            # libhdf5 opens a file in one way at a time.
            with pytest.raises(OSError, match="open in another way"):
                source.native()
        source.close()
        with xr.open_dataset(file, engine="chunkwise") as read:
            assert read["v"].values[2] == 77


def test_nobody_here_writes_over_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.nc")
    before = path.read_bytes()
    with xr.open_dataset(path, engine="chunkwise") as opened:
        with pytest.raises(OSError, match="already open"):
            opened.to_netcdf(path, engine="h5netcdf")
        with pytest.raises(OSError, match="already open"):
            h5py.File(path, "w")
        assert path.read_bytes() == before
        np.testing.assert_array_equal(opened["v"].values, np.arange(5))


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "a.nc", tmp_path / "b.nc"
    for each, first in ((path, 0), (other, 100)):
        numbers = np.arange(3) + first
        texts = ("x", np.array([f"{n}" for n in numbers], object))
        one = {"v": ("x", numbers), "scalar": ((), first), "t": texts, "x": numbers}
        xr.Dataset(one).to_netcdf(each, engine="h5netcdf")
    with xr.open_dataset(path, engine="chunkwise") as opened:
        other.replace(path)
        assert opened["v"].values.tolist() == [0, 1, 2]
        assert opened["scalar"].values == 0
        assert opened["t"].values.tolist() == ["0", "1", "2"]
        at = xr.DataArray([2, 0], dims="p")
        assert opened["v"].isel(x=at).values.tolist() == [2, 0]


@pytest.mark.parametrize(
    "name", ["This is a netCDF dimension but not a netCDF variable.  3", np.array([b"x"]), 5]
)
def test_scales_with_names_of_other_types(tmp_path: Path, name: Any) -> None:
    path = written(tmp_path / "a.nc")
    with h5py.File(path, "r+") as file:
        file["x"].attrs["NAME"] = name
    with pytest.raises(LeftToH5netcdfError):
        same_groups(path)


def test_values_that_the_heap_lacks(tmp_path: Path) -> None:
    path = written(tmp_path / "a.nc")
    with netCDF4.Dataset(path, "a") as file:
        file.setncattr_string("title", "some text of any length")
    content = bytearray(path.read_bytes())
    text = content.index(b"some text of any length")
    # Before the text is the head of its object, which begins with its number in the heap.
    content[text - 16] ^= 0xF0
    path.write_bytes(content)
    source = SharedFile(str(path), OPTIONS, {})
    with pytest.raises(LeftToH5netcdfError, match="lacks an object"):
        read_natively(source).group("/")
    source.close()


def test_after_close_it_is_opened_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.nc")
    opened = xr.open_dataset(path, engine="chunkwise")
    opened.close()
    np.testing.assert_array_equal(opened["v"].values, np.arange(5))
    opened.close()


def test_damaged_files_are_left_to_libhdf5(tmp_path: Path) -> None:
    sound = written(tmp_path / "a.nc").read_bytes()
    path = tmp_path / "b.nc"
    chance = random.Random(0)
    read = 0
    for _ in range(400):
        bytes_ = bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
        path.write_bytes(bytes_[: chance.choice([len(bytes_), chance.randrange(len(bytes_))])])
        source = SharedFile(str(path), OPTIONS, {})
        try:
            native = source.native()
            if native is None:
                continue
            facts = native.group("/")
        except (LeftToH5netcdfError, ChunkwiseError, UnicodeDecodeError):
            continue
        finally:
            source.close()
        for one in facts.variables.values():
            assert one.address is not None
            native.file.dataset(one.address, "x")
        read += 1
    assert read > 50


@pytest.mark.parametrize(("latency_s", "most"), [(0.0, 7), (0.05, 3)])
def test_what_headers_lead_to_comes_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latency_s: float, most: int
) -> None:
    pytest.importorskip("aiohttp")
    path = tmp_path / "far.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "far away"
        for name, size in (("t", None), ("y", 300), ("x", 200)):
            file.createDimension(name, size)
            file.createVariable(name, "f8", (name,)).units = "m"
        for number in range(12):
            variable = file.createVariable(f"v{number:02}", "f4", ("t", "y", "x"))
            variable[0:2] = np.full((2, 300, 200), number)
            for extra in range(8):
                variable.setncattr(f"a{extra}", f"attribute {extra} of {number}" * 4)
    rounds: list[int] = []
    fetch = RemoteBytes._fetch

    def counted(self: RemoteBytes, ranges: Any) -> list[bytes]:
        rounds.append(len(ranges))
        return fetch(self, ranges)

    monkeypatch.setattr(RemoteBytes, "_fetch", counted)
    # However busy this machine is.
    monkeypatch.setattr(blocks, "_TELLING_NBYTES", 1 << 62)
    with (
        serving({"/far.nc": path.read_bytes()}, latency_s=latency_s) as server,
        xr.open_dataset(f"{server.url}/far.nc", engine="chunkwise") as ours,
        xr.open_dataset(path, engine="chunkwise") as theirs,
    ):
        # One after the other, they were more than there are variables.
        assert len(rounds) <= most
        xr.testing.assert_identical(ours, theirs)


def test_groups_that_lead_back_end(tmp_path: Path) -> None:
    path = tmp_path / "cycle.nc"
    with netCDF4.Dataset(path, "w") as file:
        inner = file.createGroup("outer").createGroup("inner")
        inner.createDimension("x", 3)
        inner.createVariable("x", "i4", ("x",))[:] = [1, 2, 3]
    with h5py.File(path, "r+") as file:
        file["outer/inner/back"] = file["outer"]
        file["outer/inner/self"] = file["outer/inner"]
        file["again"] = file["outer/inner"]
    found = xr.open_groups(path, engine="chunkwise")
    assert set(found) == {"/", "/outer", "/outer/inner", "/again", "/again/back"}
    assert found["/outer/inner"]["x"].values.tolist() == [1, 2, 3]
