"""What is read from superblocks, and files that were never closed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import system
from chunkwise._native import metadata_checksum
from chunkwise.files.objects import walk
from chunkwise.files.superblock import read_superblock
from chunkwise.files.unclosed import ReadOnlyFile, closed_patch, open_unclosed
from chunkwise.inspection.collect import object_facts
from chunkwise.inspection.facts import FormatFacts
from chunkwise.inspection.format import format_facts
from tests.support.tools import require_tool

# Ends without closing the file, and without Python's or HDF5's tidying up.
CRASH = """
import h5py, os, sys
with h5py.File(sys.argv[1], "w", libver="latest", userblock_size=int(sys.argv[3])) as file:
    file.create_dataset("x", data=range(100), maxshape=(None,), chunks=(10,))
    if sys.argv[2] == "swmr":
        file.swmr_mode = True
    file.flush()
    os._exit(0)
"""


def crash(path: Path, mode: str = "write", userblock_nbytes: int = 0) -> None:
    arguments = [str(path), mode, str(userblock_nbytes)]
    subprocess.run([sys.executable, "-c", CRASH, *arguments], check=True)


def facts_of(path: Path) -> FormatFacts:
    with h5py.File(path) as file:
        return format_facts(file, tuple(object_facts(file, entry) for entry in walk(file)))


@pytest.mark.parametrize("libver", ["v108", "v110", "latest"])
@pytest.mark.parametrize("userblock_nbytes", [0, 1024])
def test_checksum_is_the_one_libhdf5_wrote(
    tmp_path: Path, libver: str, userblock_nbytes: int
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "latest"), userblock_size=userblock_nbytes) as file:
        file["x"] = np.arange(len(libver))
    superblock = read_superblock(path)
    assert superblock is not None
    assert superblock.offset == userblock_nbytes
    assert superblock.is_sound
    content = path.read_bytes()[userblock_nbytes:][:48]
    assert metadata_checksum(content[:-4]).to_bytes(4, "little") == content[-4:]


@pytest.mark.parametrize(("libver", "version"), [("earliest", 0), ("v108", 2), ("v110", 3)])
def test_superblock_versions(tmp_path: Path, libver: str, version: int) -> None:
    path = tmp_path / "a.h5"
    h5py.File(path, "w", libver=(libver, "latest")).close()
    superblock = read_superblock(path)
    assert superblock is not None
    assert (superblock.version, superblock.end) == (version, path.stat().st_size)
    assert superblock.is_sound == (version >= 2)
    assert superblock.flags == ()
    assert superblock.closed(0) == (None if version < 3 else path.read_bytes()[:48])


@pytest.mark.parametrize("content", [b"", b"x" * 600, b"\x89HDF\r\n\x1a\n", None])
def test_no_superblock(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.h5"
    if content is not None:
        path.write_bytes(content)
    assert read_superblock(path) is None
    assert open_unclosed(path) is None


def test_unknown_and_short_superblocks(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    h5py.File(path, "w", libver="latest").close()
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:40])
    assert read_superblock(path) is None
    content[8] = 9
    path.write_bytes(content)
    assert read_superblock(path) is None


@pytest.mark.parametrize(
    ("options", "strategy", "persistent", "page_nbytes"),
    [
        ({}, "fsm_aggr", False, 4096),
        ({"fs_strategy": "page", "fs_page_size": 8192}, "page", False, 8192),
        ({"fs_strategy": "fsm", "fs_persist": True}, "fsm_aggr", True, 4096),
        ({"fs_strategy": "aggregate"}, "aggr", False, 4096),
        ({"fs_strategy": "none"}, "none", False, 4096),
    ],
)
def test_file_space(
    tmp_path: Path, options: dict[str, Any], strategy: str, persistent: bool, page_nbytes: int
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", **options) as file:
        file["x"] = np.zeros(10_000, "i1")
        file["y"] = np.zeros(10_000, "i1")
        file.flush()
        del file["x"]
    facts = facts_of(path)
    assert facts.space_strategy == strategy
    assert facts.space_persistent is persistent
    assert facts.page_nbytes == page_nbytes
    assert (facts.free_nbytes >= 10_000) == persistent
    assert facts.flags == ()


def test_user_block(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    h5py.File(path, "w", userblock_size=2048).close()
    assert facts_of(path).userblock_nbytes == 2048
    assert facts_of(path).superblock_version == 0


def make_virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((3,), "i4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (3,))
    file.create_virtual_dataset("v", layout)


def make_external_link(file: h5py.File) -> None:
    file["far"] = h5py.ExternalLink("other.h5", "/x")


def make_complex(file: h5py.File) -> None:
    file["c"] = np.zeros(3, "c8")


def make_chunked(file: h5py.File) -> None:
    file.create_dataset("d", data=range(10), chunks=(3,))


def make_named_type(file: h5py.File) -> None:
    file["t"] = np.dtype([("a", "i4"), ("b", "f8")])


@pytest.mark.parametrize(
    ("make", "libver", "series"),
    [
        (make_chunked, "earliest", "1.6"),
        (make_complex, "earliest", "1.6"),
        (make_external_link, "earliest", "1.8"),
        (make_chunked, "v108", "1.8"),
        (make_virtual, "v108", "1.10"),
        (make_chunked, "v110", "1.10"),
        (make_named_type, "v110", "1.10"),
        (make_named_type, "v112", "1.12"),
        # As a compound of two, which 2.0 stores in its own version.
        (make_complex, "v112", "1.12"),
    ],
)
def test_oldest_reader(tmp_path: Path, make: Any, libver: str, series: str) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        make(file)
    assert facts_of(path).oldest_reader == series


@pytest.mark.skipif(not hasattr(h5py.h5t, "COMPLEX"), reason="libhdf5 before 2.0")
def test_complex_numbers_of_hdf5_2_need_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((3,))
        h5py.h5d.create(file.id, b"c", h5py.h5t.COMPLEX_IEEE_F32LE, space)
    facts = facts_of(path)
    assert (facts.superblock_version, facts.oldest_reader) == (0, "2.0")


@pytest.mark.skipif(h5py.version.hdf5_version_tuple < (2, 0), reason="HDF5 2.0 writes such files")
def test_what_hdf5_2_writes_by_default_of_the_latest_needs_it(tmp_path: Path) -> None:
    """Layout messages of version 5, which HDF5 1.14 cannot open."""
    path = tmp_path / "a.h5"
    for bound, series in (("latest", "2.0"), ("v110", "1.10")):
        with h5py.File(path, "w", libver=(bound, bound), userblock_size=512) as file:
            file.create_dataset("g/d", data=np.zeros((8, 64)), chunks=(1, 64), compression="gzip")
        assert facts_of(path).oldest_reader == series


@pytest.mark.parametrize("libver", ["earliest", "v108", "v110", "v112"])
def test_an_older_library_agrees(tmp_path: Path, libver: str) -> None:
    h5dump = require_tool("h5dump")
    version = subprocess.run([h5dump, "--version"], capture_output=True, text=True, check=True)
    if "Version 1.10." not in version.stdout:
        pytest.skip("h5dump is not of 1.10")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        make_named_type(file)
    opens = not subprocess.run([h5dump, "-H", path], capture_output=True, check=False).returncode
    assert opens == (facts_of(path).oldest_reader != "1.12")


# --- files that were never closed ------------------------------------------------------


@pytest.mark.parametrize("mode", ["write", "swmr"])
@pytest.mark.parametrize("userblock_nbytes", [0, 512])
def test_unclosed(tmp_path: Path, mode: str, userblock_nbytes: int) -> None:
    path = tmp_path / "a.h5"
    crash(path, mode, userblock_nbytes)
    content = path.read_bytes()
    with pytest.raises(OSError, match="already open for"):
        h5py.File(path)
    file = open_unclosed(path)
    assert file is not None
    with file:
        facts = format_facts(file, (), path)
        assert file["x"][:].tolist() == list(range(100))
        assert file["x"].id.get_num_chunks() == 10
    assert facts.flags == (("write", "swmr") if mode == "swmr" else ("write",))
    assert facts.superblock_version == 3
    assert facts.userblock_nbytes == userblock_nbytes
    assert path.read_bytes() == content


def test_presented_as_h5clear_leaves_it(tmp_path: Path) -> None:
    h5clear = require_tool("h5clear")
    path = tmp_path / "a.h5"
    crash(path, "swmr", 512)
    presented = ReadOnlyFile(path, closed_patch(path)).read()
    subprocess.run([h5clear, "-s", "--increment=0", path], check=True)
    assert presented == path.read_bytes()
    assert open_unclosed(path) is None


def test_flags_without_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = 1
    content = bytearray(path.read_bytes())
    content[11] = 5
    content[44:48] = metadata_checksum(bytes(content[:44])).to_bytes(4, "little")
    path.write_bytes(content)
    file = open_unclosed(path)
    assert file is not None
    with file:
        assert file["x"][()] == 1


def test_flags_are_not_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    crash(path)
    content = path.read_bytes()
    # Beyond what is left of the file there should be objects.
    path.write_bytes(content[:60])
    assert open_unclosed(path) is None


def test_a_writer_at_work_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    crash(path)
    with path.open("rb") as stream:
        system.lock(stream.fileno())
        assert open_unclosed(path) is None
    file = open_unclosed(path)
    assert file is not None
    file.close()


def test_python_ends_well_with_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    crash(path)
    program = (
        "import sys\n"
        "from chunkwise.files.unclosed import open_unclosed\n"
        "file = open_unclosed(sys.argv[1])\n"
        "dataset = file['x']\n"
    )
    subprocess.run([sys.executable, "-c", program, path], check=True)


def test_bytes_beyond_the_end_are_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"abc")
    with ReadOnlyFile(path) as stream:
        assert stream.seek(0, 2) == 3
        stream.seek(1)
        buffer = bytearray(b"x" * 5)
        assert stream.readinto(buffer) == 2
        assert buffer == b"bc\0\0\0"
        assert stream.tell() == 3
        assert stream.read() == b""
