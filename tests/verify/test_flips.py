"""Is every flipped bit found, in checksummed chunks always, elsewhere where it breaks decoding?"""

import random
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
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
