"""Is every flipped bit found, where it breaks decoding or a checksum, and every truncation?"""

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise.errors import FileFormatError
from chunkwise.manifest.manifest import differences
from chunkwise.manifest.summing import sum_values
from tests.support import inspect_files
from tests.support.everything import write_everything
from tests.support.filtered import Case, create
from tests.support.verifying import CODECS, chunks_of, flip, pick, write

CHECKED: list[dict[str, Any]] = [
    {"fletcher32": True},
    {"compression": 4, "shuffle": True, "fletcher32": True},
    {"compression": "lzf", "fletcher32": True},
    {**CODECS["lz4"], "fletcher32": True},
]


@pytest.mark.parametrize("options", CHECKED)
def test_every_flip_in_a_checksummed_chunk_is_found(
    options: dict[str, Any], tmp_path: Path
) -> None:
    rng = random.Random(str(options))
    path = write(tmp_path / "a.h5", **options)
    sound = path.read_bytes()
    assert chunkwise.verify(path).verdict == "sound"
    chunks = {
        range(8 * one.byte_offset, 8 * (one.byte_offset + one.size)): one
        for one in chunks_of(path)
    }
    for _ in range(100):
        bit = pick(rng, list(chunks))
        content = bytearray(sound)
        flip(content, bit)
        path.write_bytes(content)
        (chunk,) = (one for bits, one in chunks.items() if bit in bits)
        found = chunkwise.verify(path)
        (damage,) = found.damages
        assert found.verdict == "damaged"
        assert damage.path == "/g/d"
        assert damage.origin == tuple(chunk.chunk_offset)
        assert (damage.address, damage.nbytes) == (chunk.byte_offset, chunk.size)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    flip(changed, bit)
    return bytes(changed)


def verdict(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return chunkwise.verify(path).verdict


def test_bytes_after_a_stream_and_more_than_a_chunk_holds_are_found(tmp_path: Path) -> None:
    import zlib

    path = tmp_path / "a.h5"
    raw = bytes(range(200)) * 2
    streams = {
        "trailing": zlib.compress(raw) + b"more",
        "length": zlib.compress(raw + b"more"),
        "decode": zlib.compress(raw)[:-1],
        None: zlib.compress(raw),
    }
    for kind, stored in streams.items():
        with h5py.File(path, "w") as file:
            made = file.create_dataset("d", (400,), "u1", chunks=(400,), compression=4)
            made.id.write_direct_chunk((0,), stored)
        found = chunkwise.verify(path)
        assert [damage.kind for damage in found.damages] == ([] if kind is None else [kind])


def test_a_filter_that_is_not_here_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        # Of the numbers for testing.
        create(file, "d", "u1", (8,), (4,), [Case(511)]).id.write_direct_chunk((0,), b"abcd", 0)
    found = chunkwise.verify(path)
    assert found.verdict == "cannot be judged here"
    assert "filter 511" in found.notes[0].reason
    assert found.chunks == 1


# Files of every kind --------------------------------------------------------------------------

BOUNDS: list[Any] = [("earliest", "latest"), ("latest", "latest"), ("earliest", "v108")]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_one_of_everything(bounds: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_everything(path, libver=bounds, user_block=512)
    found = chunkwise.verify(path)
    # That is in it on purpose.
    assert found.damages == ()
    loose = {one.path for one in found.notes if one.verdict == "sound, with loose ends"}
    assert loose >= {"/links/dangling", "/references@dangling", "/references/objects"}
    out = tmp_path / "out.h5"
    chunkwise.repack(path, out, chunk="auto", filters="shuffle+deflate:1")
    with h5py.File(path) as mine, h5py.File(out) as theirs:
        sums = sum_values(mine)
        assert list(differences(sums, sum_values(theirs))) == []
        lacking = [name for name, one in sums.items() if one.get("sha256", "") is None]
        assert set(lacking) <= {"/references/holders"}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("make", ["make_indexes", "make_filters"])
def test_every_index_and_filter(make: str, libver: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    getattr(inspect_files, make)(path, libver)
    found = chunkwise.verify(path)
    assert (found.verdict, found.damages) == ("sound", ())
    assert found.chunks > 0


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    inspect_files.make_file(path)
    found = chunkwise.verify(path, write_manifest=tmp_path / "m.json")
    assert found.verdict == "cannot be judged here"
    said = {note.path: note.reason for note in found.notes}
    assert "no such file" in said["/virtual"]
    assert "not in the manifest" in said["/external"]
    assert "filter 32123" in said["/unknown_filter"]
    # What cannot be read is not compared either.
    again = chunkwise.verify(path, manifest=tmp_path / "m.json")
    assert (again.verdict, again.damages) == ("cannot be judged here", ())


def test_fill_values(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    inspect_files.make_fills(path)
    assert chunkwise.verify(path).verdict == "sound"


# --- truncation, and what was written after a file ---------------------------------------


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
