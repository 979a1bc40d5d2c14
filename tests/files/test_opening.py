"""Does every file and name that cannot be opened end in one line that helps?"""

import gzip
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import (
    CannotJudgeError,
    CorruptDataError,
    DatasetNotFoundError,
    FileFormatError,
    NotADatasetError,
)
from chunkwise.files.objects import walk, walk_datasets
from chunkwise.files.opening import find_dataset, full_name, largest, open_h5
from chunkwise.names import decode_name, encode_name, hdf5_reason, printable
from tests.support.damage import damage_header
from tests.support.golden import assert_golden
from tests.support.processes import ran
from tests.support.tools import has_netcdf, paste


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(1000, dtype="i4")
    return path


def refusal(path: Path | str) -> str:
    """The one line with which `open_h5` refuses a file."""
    with pytest.raises(FileFormatError) as caught:
        open_h5(path)
    message = str(caught.value)
    assert message.startswith(printable(str(path)) + ": ")
    assert message.isprintable()
    return message.removeprefix(printable(str(path)) + ": ")


# --- opening ---------------------------------------------------------------------------


def test_opens_read_only(good: Path) -> None:
    with open_h5(good, rdcc_nbytes=12345, rdcc_nslots=101, rdcc_w0=0.25) as file:
        assert file.mode == "r"
        assert file["x"][999] == 999
        assert file.id.get_access_plist().get_cache()[1:] == (101, 12345, 0.25)


@pytest.mark.parametrize("userblock", [512, 1024, 4096])
def test_user_block(tmp_path: Path, userblock: int) -> None:
    path = tmp_path / "block.h5"
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file["x"] = 7
    # What MATLAB writes there is text; here it even looks like another format.
    with path.open("r+b") as stream:
        stream.write(b"CDF\x01")
    with open_h5(path) as opened:
        assert opened["x"][()] == 7


# How files begin that are of other formats.
HEADS = {
    "hdf4": b"\x0e\x03\x13\x01",
    "grib": b"GRIB\x00\x00\x00\x02",
    "tiff": b"II*\x00\x08",
    "big-endian tiff": b"MM\x00*\x00",
    "git-lfs": b"version https://git-lfs.github.com/spec/v1",
    "page": b"<!doctype html><html>",
    "zeros": b"\x00" * 64,
    "csv": b"time,value\n0,1\n",
}


def test_what_is_refused_is_named_with_the_remedy(good: Path) -> None:
    folder = good.parent
    near = [folder / name for name in ("god.h5", "GOOD.H5", "else.nc", "nofolder/a.h5")]
    given: list[Path | str] = [*near, good / "below", "https://example.org/a.nc", folder]
    said = [refusal(one) for one in given]
    for name in ("no files", ".zgroup", ".zarray", "zarr.json"):
        (folder / f"of {name}").mkdir()
        if name != "no files":
            (folder / f"of {name}" / name).write_text("{}")
        given.append(folder / f"of {name}")
    for name, head in HEADS.items():
        (folder / name).write_bytes(head + bytes(range(256)) * 20)
        given.append(folder / name)
    (folder / "empty.h5").touch()
    os.mkfifo(folder / "pipe.h5")
    (folder / "good.h5.gz").write_bytes(gzip.compress(good.read_bytes()))
    with zipfile.ZipFile(folder / "good.zip", "w") as stream:
        stream.write(good, "good.h5")
    given += [folder / name for name in ("empty.h5", "pipe.h5", "good.h5.gz", "good.zip")]
    said += [refusal(one) for one in given[len(said) :]]
    lines = [f"{one}: {why}" for one, why in zip(given, said, strict=True)]
    assert_golden("refused-files", "\n".join(lines).replace(str(folder), "FOLDER"))


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder that anyone may enter, and a process that is not root."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)


def test_permission_denied(unprivileged: Path) -> None:
    user, path = os.geteuid(), unprivileged / "secret.h5"
    os.seteuid(os.getuid())
    with h5py.File(path, "w") as file:
        file["x"] = 1
    path.chmod(0)
    os.seteuid(user)
    assert refusal(path).startswith("permission denied; ")


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_netcdf3_says_how_to_convert(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "my model.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",))[:] = 1
    message = refusal(path)
    assert "it is a netCDF-3 classic file" in message
    command = message.rpartition("convert it: ")[2]
    assert command == f"chunkwise repack '{path}' 'my model_nc4.nc'"
    if has_netcdf():
        paste(command, tmp_path)
        with open_h5(tmp_path / "my model_nc4.nc") as converted:
            assert converted["v"][...].tolist() == [1, 1, 1]


@pytest.mark.parametrize("userblock", [0, 512])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_truncated_gives_both_sizes(tmp_path: Path, userblock: int, libver: str) -> None:
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w", userblock_size=userblock, libver=libver) as file:
        file["x"] = np.arange(1000)
    whole = path.stat().st_size
    os.truncate(path, whole - 1000)
    message = refusal(path)
    assert message.startswith(
        f"truncated HDF5 file: it has {whole - 1000:,} bytes and should have {whole:,}; "
    )
    os.truncate(path, userblock + 20)
    assert refusal(path).startswith("truncated HDF5 file: ")


def test_writer_still_at_work(tmp_path: Path) -> None:
    path, copy = tmp_path / "live.h5", tmp_path / "copy.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = 1
        file.flush()
        shutil.copy(path, copy)
    assert refusal(copy).endswith(f"is saved by: chunkwise repack {copy} copy_repacked.h5")


def test_damaged_superblock(good: Path) -> None:
    with good.open("r+b") as stream:
        stream.seek(8)
        stream.write(b"\xee")
    with pytest.raises(CannotJudgeError, match="bad superblock version number") as caught:
        open_h5(good)
    assert str(caught.value).endswith("written by a newer HDF5, or is damaged: try a newer one")


def test_nothing_else_on_stderr(good: Path) -> None:
    os.truncate(good, 900)
    program = (
        "import sys\nfrom chunkwise.files.opening import open_h5\n"
        "try: open_h5(sys.argv[1])\nexcept OSError as e: print(e)"
    )
    done = ran([sys.executable, "-c", program, good], check=True)
    assert "truncated HDF5 file" in done.stdout
    assert done.stderr == ""


# --- finding ---------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[h5py.File]:
    """Groups, links that lead and links that do not, and a group within itself."""
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["there"] = 2
    path = tmp_path / "tree.h5"
    with h5py.File(path, "w") as file:
        file["air/temperature"] = np.arange(10.0)
        file["air/pressure"] = np.arange(20.0)
        file["sea/Temperature"] = np.arange(5.0)
        for i in range(7):
            file[f"many/d{i}"] = i
        file.create_group("bare")
        file["kind"] = np.dtype("i4")
        file["again"] = file["air/temperature"]
        file["sea/up"] = file["/"]
        file["leads"] = h5py.SoftLink("/air/pressure")
        file["dangles"] = h5py.SoftLink("/air/nothing")
        file["abroad"] = h5py.ExternalLink("other.h5", "/there")
        file["lost"] = h5py.ExternalLink("gone.h5", "/there")
        file[b"caf\xe9"] = 1
    with open_h5(path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("air/pressure", 20),
        ("/air/pressure", 20),
        ("./air//pressure/", 20),
        ("leads", 20),
        ("abroad", 1),
        ("sea/up/sea/up/air/pressure", 20),
        (decode_name(b"caf\xe9"), 1),
    ],
)
def test_found(tree: h5py.File, name: str, size: int) -> None:
    assert find_dataset(tree, name).size == size


def test_what_is_no_dataset_is_named_with_what_is_there(tree: h5py.File, tmp_path: Path) -> None:
    words = "temperature air/presure AIR/PRESSURE pressure air/pressure/x zzz dangles lost/deeper"
    lines = []
    for name in [*words.split(), "leads\0", "line\nbreak", "air", "bare", "kind", "/", "", "many"]:
        with pytest.raises((DatasetNotFoundError, NotADatasetError)) as caught:
            find_dataset(tree, name)
        assert str(caught.value).isprintable()
        lines.append(f"{name!r}: {type(caught.value).__name__}: {caught.value}")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for fill in (lambda: None, lambda: file.__setitem__("a", 3), lambda: lone(file)):
            fill()
            with pytest.raises(DatasetNotFoundError) as caught:
                largest(file)
            lines.append(f"the largest: {caught.value}")
    # Why HDF5 does not reach it differs by its version.
    text = re.sub(r"reached \(.*?\)", "reached (...)", "\n".join(lines))
    assert_golden("no-dataset", text.replace(str(tmp_path), "FOLDER"))


def lone(file: h5py.File) -> None:
    file.create_dataset("b", (10,), h5py.string_dtype(), chunks=(5,))
    file.create_dataset("c", (0,), "i4", chunks=(5,), maxshape=(None,))


def test_damaged_object(tree: h5py.File) -> None:
    path = Path(tree.filename)
    tree.close()
    damage_header(path, "air/pressure")
    with open_h5(path) as file:
        with pytest.raises(CorruptDataError, match=r"'/air/pressure': HDF5 .* cannot open it"):
            find_dataset(file, "air/pressure")
        (entry,) = [entry for entry in walk(file) if entry.path == "/air/pressure"]
        assert entry.kind == "unreadable"
        assert entry.reason
        assert "/air/temperature" not in dict(walk_datasets(file))  # '/again' came first
        assert "/again" in dict(walk_datasets(file))


def test_damaged_group(tree: h5py.File) -> None:
    path = Path(tree.filename)
    tree.close()
    damage_header(path, "many")
    with open_h5(path) as file:
        kinds = {entry.path: entry.kind for entry in walk(file)}
        assert kinds["/many"] == "unreadable"
        assert "/many/d0" not in kinds
        assert kinds["/sea/Temperature"] == "dataset"


def test_damaged_root_group(good: Path) -> None:
    text = good.read_bytes()
    # The heap that holds the names of the root group's members.
    good.write_bytes(text.replace(b"HEAP", b"HE\0P"))
    with open_h5(good) as file:
        kinds = [(entry.path, entry.kind) for entry in walk(file)]
        assert kinds == [("/", "group"), ("/*", "unreadable")]
        with pytest.raises(CorruptDataError, match=r"'/x': HDF5 .* cannot open it: "):
            find_dataset(file, "x")
        with pytest.raises(DatasetNotFoundError, match="its datasets: 1 unreadable"):
            largest(file)


# --- walking ---------------------------------------------------------------------------


def test_walk_visits_each_object_once(tree: h5py.File) -> None:
    entries = {entry.path: entry for entry in walk(tree)}
    assert len(entries) == sum(1 for _ in walk(tree))
    assert (entries["/again"].kind, entries["/air/temperature"].kind) == ("dataset", "hard_link")
    assert entries["/air/temperature"].target == "/again"
    assert (entries["/sea/up"].kind, entries["/sea/up"].target) == ("hard_link", "/")
    assert (entries["/leads"].kind, entries["/leads"].target) == ("soft_link", "/air/pressure")
    assert entries["/abroad"].target == "other.h5:/there"
    assert entries["/kind"].kind == "named_type"
    assert entries["/many/d6"].depth == 2


def test_walk_datasets(tree: h5py.File) -> None:
    names = [path for path, _ in walk_datasets(tree)]
    assert sorted(names) == sorted(
        ["/again", "/air/pressure", "/sea/Temperature", decode_name(b"/caf\xe9")]
        + [f"/many/d{i}" for i in range(7)]
    )
    assert all(isinstance(dataset, h5py.Dataset) for _, dataset in walk_datasets(tree))
    inside = [path for path, _ in walk_datasets(tree["air"])]
    assert inside == ["/air/pressure", "/air/temperature"]


def test_walk_of_a_chain_deeper_than_the_stack(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() + 100
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        group = file.id
        for _ in range(depth):
            group = h5py.h5g.create(group, b"g")
        assert sum(1 for _ in walk(file)) == depth + 1


@given(st.binary(min_size=1))
def test_names_survive(name: bytes) -> None:
    assert encode_name(decode_name(name)) == name


@given(st.text() | st.binary().map(decode_name))
@pytest.mark.slow
def test_printable_is_one_harmless_line(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(text).encode("utf-8").decode("utf-8") == printable(text)


def test_reason_without_h5py_words() -> None:
    wrapped = OSError("Unable to synchronously open file (file read failed: (x)\n time = 1)")
    assert hdf5_reason(wrapped) == "file read failed: (x) time = 1"
    assert hdf5_reason(ValueError("Not a (location)")) == "location"
    assert hdf5_reason(ValueError("plain words")) == "plain words"
    assert hdf5_reason(RuntimeError()) == "RuntimeError"


# --- choosing --------------------------------------------------------------------------


def test_the_largest_of_those_with_chunks_or_else_of_all(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one"] = 3.0
        file["small"] = np.arange(3)
        file.create_dataset("contiguous", (1000, 1000), "f8")
        assert largest(file).name == "/contiguous"
        file.create_dataset("strings", (10**6,), h5py.string_dtype(), chunks=(100,))
        file.create_dataset("empty", (0, 10**6), "f8", chunks=(1, 100), maxshape=(None, 10**6))
        file.create_dataset("many_small", (1000,), "i1", chunks=(10,))
        file.create_dataset("g/few_large", (200,), "f8", chunks=(10,))
        assert largest(file).name == "/g/few_large"


def test_a_bare_name_is_completed_where_one_dataset_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        for name in ("g/x", "g/y", "h/y", "x/deep", "z"):
            f[name] = [1]
    with h5py.File(path) as f:
        assert full_name(f, "deep") == "/x/deep"
        # What is there under that very name is meant, also a group.
        assert full_name(f, "x") == "x"
        assert full_name(f, "/z") == "/z"
        assert full_name(f, "gone") == "gone"
        assert full_name(f, "g/y") == "g/y"
        with pytest.raises(
            DatasetNotFoundError, match=r"2 datasets are called 'y'.*'/g/y', '/h/y'"
        ):
            full_name(f, "y")
