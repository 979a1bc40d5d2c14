"""Is a copied tree the same tree, whatever the file holds?"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import CannotWriteError, CorruptDataError, UsageError
from chunkwise.files.objects import open_at
from tests.support.checksums import lookup3
from tests.support.everything import BOUNDS, write_everything
from tests.support.processes import ran
from tests.support.repacking import require_proof
from tests.support.tools import require_tool

FOREIGN = os.environ.get("CHUNKWISE_FOREIGN_FILES")
KINDS = {
    "old": (("earliest", "latest"), 0, True),
    "new": (("latest", "latest"), 1024, True),
    "1.8": (("earliest", "v108"), 512, False),
}


def copy(
    source: Path,
    target: Path,
    *,
    dcpls: Mapping[int, int] | None = None,
    libver: tuple[str, str] = ("earliest", "latest"),
    progress: Callable[[int, int], object] | None = None,
) -> list[str]:
    """Copy a file, its plain data by h5py; gives the warnings."""
    with h5py.File(source) as old:
        fcpl, root = old.id.get_create_plist(), h5py.h5g.open(old.id, b"/").get_create_plist()
        fcpl.set_link_creation_order(root.get_link_creation_order())
        fcpl.set_attr_creation_order(root.get_attr_creation_order())
        fcpl.set_attr_phase_change(*root.get_attr_phase_change())
        fcpl.set_obj_track_times(h5py.h5g.get_objinfo(old.id, b"/").mtime != 0)
        del root
        fapl = h5p.create(h5p.FILE_ACCESS)
        fapl.set_libver_bounds(*(BOUNDS[bound] for bound in libver))
        made = h5f.create(str(target).encode(), h5f.ACC_TRUNC, fcpl, fapl)
        with h5py.File(made) as new:
            tree = _native.copy_tree(library(), old.id.id, new.id.id, dcpls or {}, progress)
            for at, made_at in tree.datasets:
                assert tree.moved(at) == made_at
                copy_plain(open_at(old.id, at), open_at(new.id, made_at))
            tree.finish(progress)
            warnings = tree.warnings
            del tree
            assert (h5f.get_obj_count(old.id), h5f.get_obj_count(new.id)) == (1, 1)
    if fcpl.get_userblock():
        with source.open("rb") as old_bytes, target.open("r+b") as new_bytes:
            new_bytes.write(old_bytes.read(fcpl.get_userblock()))
    return warnings


def copy_plain(source: h5d.DatasetID, target: h5d.DatasetID) -> None:
    datatype = source.get_type()
    if source.get_create_plist().get_layout() != h5d.CHUNKED:
        everything = np.empty(source.shape, f"V{datatype.get_size()}")
        source.read(h5s.ALL, h5s.ALL, everything, mtype=datatype)
        target.write(h5s.ALL, h5s.ALL, everything, mtype=datatype)
        return
    for number in range(source.get_num_chunks()):
        chunk = source.get_chunk_info(number)
        mask, stored = source.read_direct_chunk(chunk.chunk_offset)
        target.write_direct_chunk(chunk.chunk_offset, stored, filter_mask=mask)


def text_of(tool: str, path: Path, *options: str) -> str:
    """What a tool prints of a file, without its name and where its objects lie."""
    done = subprocess.run(
        [require_tool(tool), *options, path], capture_output=True, check=False, timeout=120
    )
    text = done.stdout.decode("utf-8", "replace").replace(f'"{path}"', "FILE")
    text = text.replace(f"netcdf {path.stem} ", "netcdf FILE ")
    text = re.sub(r"\b(DATASET|GROUP|DATATYPE) \d+ ", r"\1 ", text)
    # Where data lies, and its size, which tells addresses too where it holds some.
    text = re.sub(r"\b(OFFSET|SIZE) \d+( \(.*COMPRESSION\))?", r"\1", text)
    return re.sub(r'"/?#\d+"', '"without a name"', text)


def assert_no_difference(source: Path, target: Path) -> None:
    done = ran([require_tool("h5diff"), source, target])
    assert done.returncode == 0, done.stdout
    assert "differences found" not in done.stdout, done.stdout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_everything_survives(kind: str, tmp_path: Path) -> None:
    libver, user_block, track_order = KINDS[kind]
    source, target = tmp_path / "everything.h5", tmp_path / "copied.h5"
    write_everything(source, libver=libver, user_block=user_block, track_order=track_order)
    warnings = copy(source, target, libver=libver)
    assert [warning for warning in warnings if "dangling" not in warning] == [
        "/references/objects: 1 of its references led to nothing and are null in the copy"
    ]
    assert len(warnings) == 2
    require_proof(source, target)
    # The copy of the copy, the dangling references being null by now, warns of nothing.
    assert copy(target, tmp_path / "again.h5", libver=libver) == []
    require_proof(target, tmp_path / "again.h5")


# Debian's tools do not read all of what the newest format has.
@pytest.mark.parametrize("kind", ["old", "1.8"])
def test_tools_see_the_same(kind: str, tmp_path: Path) -> None:
    libver, user_block, track_order = KINDS[kind]
    source, target = tmp_path / "everything.h5", tmp_path / "copied.h5"
    write_everything(source, libver=libver, user_block=user_block, track_order=track_order)
    with h5py.File(source, "a") as file:
        # What h5diff 1.10 does not read, even in a file that it compares with itself.
        del file["plain/time"], file["layouts/lzf"]
        # Never written nor filled, it reads as what was in memory.
        del file["layouts/fill pair"]
        group = file["references"]
        for name in {"holders", "objects"} & set(group):
            del group[name]
        for name in {"holders", "dangling"} & set(group.attrs):
            del group.attrs[name]
    assert copy(source, target, libver=libver) == []
    assert_no_difference(source, target)
    options = ("-p", "--width=0")
    assert text_of("h5dump", source, *options) == text_of("h5dump", target, *options)


def holders(path: Path) -> list[tuple[int, bytes]]:
    """Kinds and paths of the references of HDF5 1.12, in the dataset and its group."""
    native = ctypes.CDLL(h5d.__file__)
    hid, place = ctypes.c_int64, ctypes.c_void_p
    found = []
    with h5py.File(path) as file:
        group = file["references"]
        dataset = h5d.open(group.id, b"holders")
        attribute = h5py.h5a.open(group.id, b"holders")
        kind = hid.in_dll(native, "H5T_STD_REF_g")
        for number in range(2):
            values = ctypes.create_string_buffer(4 * 64)
            if number == 0:
                status = native.H5Dread(hid(dataset.id), kind, hid(0), hid(0), hid(0), values)
            else:
                status = native.H5Aread(hid(attribute.id), kind, values)
            assert status >= 0
            assert values.raw[192:] == bytes(64)
            for element in range(3):
                at = place(ctypes.addressof(values) + 64 * element)
                name = ctypes.create_string_buffer(100)
                native.H5Rget_obj_name(at, hid(0), name, ctypes.c_size_t(100))
                found.append((native.H5Rget_type(at), name.value))
                if element == 2:
                    native.H5Rget_attr_name(at, name, ctypes.c_size_t(100))
                    found.append((-1, name.value))
                file_name = ctypes.create_string_buffer(1000)
                native.H5Rget_file_name(at, file_name, ctypes.c_size_t(1000))
                assert file_name.value == str(path).encode()
                native.H5Rdestroy(at)
    return found


def test_references_of_hdf5_1_12_lead_to_the_copies(tmp_path: Path) -> None:
    if not hasattr(ctypes.CDLL(h5d.__file__), "H5Rcreate_object"):
        pytest.skip("this libhdf5 is older than 1.12")
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    write_everything(source)
    copy(source, target)
    found = holders(target)
    assert found == holders(source)
    expected = [(2, b"/a"), (3, b"/layouts/deflate"), (4, b"/types/point"), (-1, b"shared")]
    assert found == expected * 2


def write_netcdf(path: Path) -> None:
    """A netCDF-4 file with dimensions, groups, and types of each kind."""
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        file.title = "a title"
        file.createDimension("time", None)
        file.createDimension("lat", 3)
        file.createDimension("only dimension", 2)
        time = file.createVariable("time", "f8", ("time",), fill_value=-1.0)
        time[:] = np.arange(4)
        file.createVariable("lat", "f4", ("lat",))[:] = np.arange(3)
        values = file.createVariable("values", "i2", ("time", "lat"), zlib=True, chunksizes=(2, 3))
        values[:] = np.arange(12).reshape(4, 3)
        values.setncattr_string("texts", ["a", "b"])
        group = file.createGroup("group")
        group.createDimension("x", 2)
        # A coordinate of two dimensions, and one whose name is that of another dimension.
        group.createVariable("x", "f4", ("x", "lat"))[:] = 1
        texts = group.createVariable("texts", str, ("x",))
        texts[:] = np.array(["one", "two"], object)
        point = file.createCompoundType(np.dtype([("a", "f4"), ("b", "i4", (2,))]), "point")
        file.createVariable("points", point, ("lat",))[:] = np.zeros(3, point.dtype)
        ragged = file.createVLType("i4", "ragged")
        rows = file.createVariable("rows", ragged, ("lat",))
        rows[0], rows[2] = np.arange(3, dtype="i4"), np.arange(1, dtype="i4")
        level = file.createEnumType("i1", "level", {"LOW": 0, "HIGH": 1})
        file.createVariable("levels", level, ("lat",), fill_value=1)[:] = np.array([0, 1, 0], "i1")


def test_netcdf_files_stay_netcdf_files(tmp_path: Path) -> None:
    source, target = tmp_path / "old_file.nc", tmp_path / "new_file.nc"
    write_netcdf(source)
    assert copy(source, target, libver=("v108", "v108")) == []
    require_proof(source, target)
    assert text_of("ncdump", source, "-s") == text_of("ncdump", target, "-s")
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(source) as old, xarray.open_dataset(target) as new:
        # xarray itself cannot compare rows of different lengths.
        assert old.drop_vars("rows").identical(new.drop_vars("rows"))


def test_given_properties_are_used(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    texts = np.array([f"text {n}" for n in range(600)], object)
    with h5py.File(source, "w") as file:
        small = file.create_dataset("small", data=np.arange(6))
        text = file.create_dataset("text", data=texts, dtype=h5py.string_dtype())
        addresses = [h5py.h5g.get_objinfo(dataset.id).objno[0] for dataset in (small, text)]
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4,))
    dcpl.set_deflate(1)
    assert copy(source, target, dcpls=dict.fromkeys(addresses, dcpl.id)) == []
    with h5py.File(target) as file:
        assert file["small"].chunks == file["text"].chunks == (4,)
        assert file["text"].compression == "gzip"
        np.testing.assert_array_equal(file["small"], np.arange(6))
        assert list(file["text"].asstr()) == list(texts)


def test_names_of_other_files_are_looked_at(tmp_path: Path) -> None:
    source = tmp_path / "from.h5"
    with h5py.File(source, "w") as file:
        layout = h5py.VirtualLayout((3,), "<i4")
        layout[:] = h5py.VirtualSource("parts/x.h5", "x", (3,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (3,), "<i4", external="data.raw")
    (tmp_path / "elsewhere").mkdir()
    # Beside the source they lead where they led.
    assert copy(source, tmp_path / "beside.h5") == []
    warnings = copy(source, tmp_path / "elsewhere" / "to.h5")
    assert [warning.split(":")[0] for warning in warnings] == ["/external", "/virtual"]
    assert "data.raw, a relative name" in warnings[0]
    (tmp_path / "elsewhere" / "data.raw").write_bytes(bytes(12))
    assert len(copy(source, tmp_path / "elsewhere" / "to.h5")) == 1


def test_a_user_defined_link_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    with h5py.File(source, "w", libver="latest") as file:
        file["first"] = 1
        file["group/odd"] = h5py.ExternalLink("other.h5", "/x")
    # The class of the link, 64 for an external one, becomes one that nobody has defined.
    stored = source.read_bytes()
    at = stored.index(b"\x40\x03odd")
    changed = bytearray(stored)
    changed[at] = 200
    repair_checksum(changed, at)
    source.write_bytes(changed)
    with pytest.raises(UsageError, match=r"from\.h5: /group/odd: it is a user-defined link"):
        copy(source, target)
    with h5py.File(target) as file:
        assert list(file) == []


def repair_checksum(stored: bytearray, at: int) -> None:
    """Give the object header (version 2) around a place its checksum again."""
    begin = stored.rindex(b"OHDR", 0, at)
    flags = stored[begin + 5]
    header = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(stored[begin + header : begin + header + width], "little")
    end = begin + header + width + size
    stored[end : end + 4] = lookup3(bytes(stored[begin:end])).to_bytes(4, "little")


def test_a_stopped_copy_raises_what_the_callback_raised(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    write_everything(source)
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source, target, progress=stop)
    assert len(told) == 1
    with h5py.File(target) as file:
        assert "z" in file
    seen: list[tuple[int, int]] = []
    copy(source, target, progress=lambda done, total: seen.append((done, total)))
    assert all(done <= total for done, total in seen if total)


@pytest.mark.parametrize("committed", [False, True])
def test_a_missing_filter_stays_or_is_named(committed: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((10,))
    dcpl.set_filter(h5py.h5z.FILTER_LZF, 0)  # not an optional one, as h5py's is
    with h5py.File(source, "w") as file:
        group, space = file.create_group("group"), h5s.create_simple((100,))
        datatype = h5py.h5t.STD_I32LE.copy()
        if committed:
            datatype.commit(file.id, b"kind")
        h5d.create(group.id, b"x", datatype, space, dcpl)
    stored = source.read_bytes()
    number = h5py.h5z.FILTER_LZF.to_bytes(2, "little")
    assert stored.count(number) == 1
    # The filter's number becomes one that nobody has.
    source.write_bytes(stored.replace(number, b"\xf0\xff"))
    if committed:
        named = r"from\.h5: /group/x: .*lacks its filter 65520"
        with pytest.raises(CannotWriteError, match=named):
            copy(source, target)
        return
    copy(source, target)
    with h5py.File(target) as file:
        (number_made, *_) = file["group/x"].id.get_create_plist().get_filter(0)
        assert number_made == 0xFFF0


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    with h5py.File(source, "w") as file:
        file["fine"] = 1
        file["group/broken"] = np.arange(10)
        address = h5py.h5g.get_objinfo(file["group/broken"].id).objno[0]
    with source.open("r+b") as stream:
        stream.seek(address)
        stream.write(b"\xee" * 16)
    with pytest.raises(CorruptDataError, match=r"from\.h5: /group/broken: HDF5 .* cannot read it"):
        copy(source, target)


@pytest.mark.slow
def test_values_in_many_slabs(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    # 40 MiB and more in memory, of which each element holds a text.
    data = np.zeros((500, 10), [("text", h5py.string_dtype()), ("room", "V8192")])
    data["text"] = [[f"{row} {column}" for column in range(10)] for row in range(500)]
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=data, chunks=(30, 4), compression="gzip")
        file.create_dataset("contiguous", data=data[:300])
    assert copy(source, target) == []
    with h5py.File(target) as file:
        for name, rows in (("x", 500), ("contiguous", 300)):
            texts = file[name].fields("text")[...].reshape(-1)
            assert [text.decode() for text in texts] == list(data["text"][:rows].reshape(-1))


@pytest.mark.skipif(not FOREIGN, reason="CHUNKWISE_FOREIGN_FILES names no folder of files")
def test_files_of_others_survive(tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin")  # registers the filters of HDF5's plugins
    for source in sorted(Path(FOREIGN or "").rglob("*")):
        if not (source.is_file() and h5py.is_hdf5(source)):
            continue
        target = tmp_path / source.name
        copy(source, target)
        require_proof(source, target)
