"""Is a copied tree the same tree, whatever the file holds?"""

import ctypes
import gc
import re
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s

import chunkwise
from chunkwise.errors import CannotWriteError, CorruptDataError, UsageError
from tests.support.checksums import lookup3
from tests.support.everything import write_everything
from tests.support.native import library as libhdf5
from tests.support.processes import ran
from tests.support.repacking import require_proof
from tests.support.tools import require_tool

# Bounds of the format, a user block, whether orders are tracked; what a copy has to be told.
KINDS: dict[str, tuple[tuple[str, str], int, bool, dict[str, Any]]] = {
    "old": (("earliest", "latest"), 0, True, {}),
    "new": (("latest", "latest"), 1024, True, {}),
    "1.8": (("earliest", "v108"), 512, False, {"high": "v108"}),
    "filtered": (("earliest", "latest"), 512, False, {"filters": "shuffle+deflate:1"}),
    "plain": (("earliest", "latest"), 512, False, {"filters": "none", "chunk": "auto"}),
    "newer": (
        *(("earliest", "latest"), 512, False),
        {"low": "v110", "chunk": "auto", "filters": "deflate:fast"},
    ),
    # Pages and aligned objects would have to fit a user block.
    "paged": (
        *(("earliest", "latest"), 0, False),
        {"page_size": "64KiB", "metadata_block": "64KiB", "alignment": "4KiB"},
    ),
}


def copy(source: Path, target: Path, **options: Any) -> tuple[str, ...]:
    """Copy a file; gives the warnings.  No object of HDF5's stays open."""
    gc.collect()  # What other tests have left, which could go meanwhile
    before = h5f.get_obj_count(h5f.OBJ_ALL)
    done = chunkwise.repack(source, target, force=True, **options)
    assert h5f.get_obj_count(h5f.OBJ_ALL) == before
    return done.warnings


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
    libver, user_block, track_order, options = KINDS[kind]
    source, target = tmp_path / "everything.h5", tmp_path / "copied.h5"
    write_everything(source, libver=libver, user_block=user_block, track_order=track_order)
    warnings = [one for one in copy(source, target, **options) if "not compared" not in one]
    assert target.read_bytes()[:user_block] == source.read_bytes()[:user_block]
    assert [warning for warning in warnings if "dangling" not in warning] == [
        "/references/objects: 1 of its references led to nothing and are null in the copy"
    ]
    assert len(warnings) == 2
    require_proof(source, target)
    # The copy of the copy, the dangling references being null by now, warns of nothing.
    high = {name: options[name] for name in {"high"} & {*options}}
    assert copy(target, tmp_path / "again.h5", **high) == ()
    require_proof(target, tmp_path / "again.h5")


# Debian's tools do not read all of what the newest format has.
@pytest.mark.parametrize("kind", ["old", "1.8"])
def test_tools_see_the_same(kind: str, tmp_path: Path) -> None:
    libver, user_block, track_order, options = KINDS[kind]
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
    assert copy(source, target, **options) == ()
    assert_no_difference(source, target)
    wide = ("-p", "--width=0")
    assert text_of("h5dump", source, *wide) == text_of("h5dump", target, *wide)


def holders(path: Path) -> list[tuple[int, bytes]]:
    """Kinds and paths of the references of HDF5 1.12, in the dataset and its group."""
    native = libhdf5()
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
    if not hasattr(libhdf5(), "H5Rcreate_object"):
        pytest.skip("this libhdf5 is older than 1.12")
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    write_everything(source)
    copy(source, target)
    found = holders(target)
    assert found == holders(source)
    expected = [(2, b"/a"), (3, b"/layouts/deflate"), (4, b"/types/point"), (-1, b"shared")]
    assert found == expected * 2


def test_given_properties_are_used(tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    texts = np.array([f"text {n}" for n in range(600)], object)
    with h5py.File(source, "w") as file:
        file.create_dataset("small", data=np.arange(6))
        file.create_dataset("text", data=texts, dtype=h5py.string_dtype())
    rules: dict[str, Any] = {"chunk": {"small": 4, "text": 4}, "filters": {"small": "deflate:1"}}
    assert copy(source, target, **rules) == ()
    with h5py.File(target) as file:
        assert file["small"].chunks == file["text"].chunks == (4,)
        assert file["small"].compression == "gzip"
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
    assert copy(source, tmp_path / "beside.h5") == ()
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
    with pytest.raises(UsageError, match=r"from\.h5: '/group/odd' is a link of a kind that"):
        copy(source, target)
    assert not target.exists()


def repair_checksum(stored: bytearray, at: int) -> None:
    """Give the object header (version 2) around a place its checksum again."""
    begin = stored.rindex(b"OHDR", 0, at)
    flags = stored[begin + 5]
    header = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(stored[begin + header : begin + header + width], "little")
    end = begin + header + width + size
    stored[end : end + 4] = lookup3(bytes(stored[begin:end])).to_bytes(4, "little")


@pytest.mark.parametrize("committed", [False, True])
def test_a_missing_filter_stays_or_is_named(committed: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "from.h5", tmp_path / "to.h5"
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((10,))
    dcpl.set_filter(h5py.h5z.FILTER_LZF, 0)  # not an optional one, as h5py's is
    # A time may hold the filter's number; that of the type lies before it.
    dcpl.set_obj_track_times(False)
    with h5py.File(source, "w") as file:
        group, space = file.create_group("group"), h5s.create_simple((100,))
        datatype = h5py.h5t.STD_I32LE.copy()
        if committed:
            datatype.commit(file.id, b"kind")
        h5d.create(group.id, b"x", datatype, space, dcpl)
    stored = source.read_bytes()
    number = h5py.h5z.FILTER_LZF.to_bytes(2, "little")
    before, found, after = stored.rpartition(number)
    assert found
    # The filter's number becomes one that nobody has.
    source.write_bytes(before + b"\xf0\xff" + after)
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
    with pytest.raises(CorruptDataError, match=r"from\.h5: '/group/broken' cannot be kept: HDF5 "):
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
    assert copy(source, target) == ()
    with h5py.File(target) as file:
        for name, rows in (("x", 500), ("contiguous", 300)):
            texts = file[name].fields("text")[...].reshape(-1)
            assert [text.decode() for text in texts] == list(data["text"][:rows].reshape(-1))
