"""Is every truncation found, and what was written after a file, and what was not closed?"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise.errors import FileFormatError
from tests.support.verifying import CODECS, write


@pytest.mark.parametrize(
    ("libver", "user_block"), [("earliest", 0), ("latest", 0), ("earliest", 512), ("latest", 512)]
)
def test_every_truncation_is_found(libver: str, user_block: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", libver=libver, user_block=user_block, **CODECS["deflate"])
    content = path.read_bytes()
    assert chunkwise.verify(path).verdict == "sound"
    step = max(1, len(content) // 250)
    lengths = {*range(0, len(content), step), *range(0, 720, 4), len(content) - 1}
    for length in sorted(lengths - {len(content)}):
        path.write_bytes(content[:length])
        found = chunkwise.verify(path)
        assert found.verdict == "damaged", length
        assert found.damages[0].kind in ("truncated", "no-signature"), length


def test_a_chunk_beyond_the_end_is_found(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "bad" / "cut-in-a-chunk-unnoticed.h5"
    path = tmp_path / "a.h5"
    shutil.copyfile(source, path)
    (damage,) = chunkwise.verify(path).damages
    assert (damage.kind, damage.path, damage.origin) == ("beyond-end", "/d", (22, 20))


def test_bytes_after_the_end_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5")
    with path.open("ab") as stream:
        stream.write(b"12345")
    found = chunkwise.verify(path)
    assert found.verdict == "sound"
    assert [note.reason for note in found.notes] == ["5 bytes after the end of its data"]


def test_a_file_that_its_writer_did_not_close_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    program = f"""
import h5py, os
f = h5py.File({str(path)!r}, "w", libver="latest")
f.create_dataset("d", data=list(range(1000)), chunks=(100,), compression=4)
f.flush()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    found = chunkwise.verify(path)
    assert found.verdict == "sound, with loose ends"
    assert found.damages == ()
    assert "did not close it" in found.notes[0].reason
    assert found.chunks == 10
    assert found.datasets == 1


def test_what_is_no_hdf5_file_cannot_be_looked_at(tmp_path: Path) -> None:
    other = tmp_path / "a.txt"
    other.write_text("a text, longer than a signature")
    for path, said in ((other, "not an HDF5 file"), (tmp_path / "b.h5", "no such file")):
        with pytest.raises(FileFormatError, match=said):
            chunkwise.verify(path)
    with pytest.raises(FileFormatError, match="not a regular file"):
        chunkwise.verify(tmp_path)
    # With such a name, it was one.
    renamed = other.rename(tmp_path / "a.h5")
    assert [one.kind for one in chunkwise.verify(renamed).damages] == ["no-signature"]
    classic: Any = tmp_path / "classic.nc"
    classic.write_bytes(b"CDF\x01" + bytes(100))
    with pytest.raises(FileFormatError, match="netCDF-3"):
        chunkwise.verify(classic)


def test_a_file_that_is_written_meanwhile_is_refused(tmp_path: Path) -> None:
    from chunkwise.errors import FileChangedError
    from chunkwise.verifying.file import verify_file

    path = write(tmp_path / "a.h5")
    changed = False

    def beat(_: int) -> None:
        nonlocal changed
        if not changed:
            changed = True
            with path.open("ab") as stream:
                stream.write(b"more")

    with pytest.raises(FileChangedError, match="written to meanwhile"):
        verify_file(path, beat=beat)
    with h5py.File(path) as file:
        assert "g/d" in file
