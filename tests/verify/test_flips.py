"""Is every flipped bit found, in checksummed chunks always, elsewhere where it breaks decoding?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from tests.support.verifying import (
    CODECS,
    chunks_of,
    field,
    flip,
    pick,
    read_each,
    write,
)

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
    for _ in range(250):
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


@pytest.mark.parametrize("codec", CODECS)
def test_every_flip_that_h5py_refuses_is_found(codec: str, tmp_path: Path) -> None:
    rng = random.Random(codec)
    path = write(tmp_path / "a.h5", **CODECS[codec])
    sound = path.read_bytes()
    assert chunkwise.verify(path).verdict == "sound"
    ranges = [
        range(8 * one.byte_offset, 8 * (one.byte_offset + one.size)) for one in chunks_of(path)
    ]
    bits = [pick(rng, ranges) for _ in range(120)]
    contents = [flipped(sound, bit) for bit in bits]
    read = read_each([sound, *contents], tmp_path / "theirs.h5")
    assert read[0] is not None
    for bit, content, theirs in zip(bits, contents, read[1:], strict=True):
        path.write_bytes(content)
        found = chunkwise.verify(path)
        if theirs is None:
            assert found.verdict == "damaged", bit
            assert all(damage.path == "/g/d" for damage in found.damages)
    assert None in read or codec in ("none", "lzf", "scaleoffset", "szip")


def test_every_flip_in_a_file_of_checksums_is_found_or_changes_nothing(tmp_path: Path) -> None:
    """Format 1.10 and later, with Fletcher-32: all bytes but unused ones have a checksum."""
    rng = random.Random(7)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        group = file.create_group("g", track_order=True)
        for number in range(12):
            group.attrs[f"attribute {number}"] = number
            group[f"d{number}"] = h5py.SoftLink("/x")
        data = field(3)
        for name, most in (("one", None), ("fixed", (60, 70)), ("grows", (None, 70))):
            group.create_dataset(name, data=data, chunks=(16, 20), maxshape=most, fletcher32=True)
        group.create_dataset(
            "tree", data=data, chunks=(9, 20), maxshape=(None, None), **CHECKED[1]
        )
    sound = path.read_bytes()
    # Its soft links lead nowhere.
    loose = "sound, with loose ends"
    assert chunkwise.verify(path).verdict == loose
    bits = [rng.randrange(8 * len(sound)) for _ in range(500)]
    contents = [flipped(sound, bit) for bit in bits]
    passed = [content for content in contents if verdict(path, content) == loose]
    assert len(passed) < 250
    read = read_each([sound, *passed], tmp_path / "theirs.h5")
    assert set(read) == {read[0]}
    assert read[0] is not None


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
        space = h5py.h5s.create_simple((8,))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((4,))
        # Of the numbers for testing; optional, so that libhdf5 makes the dataset.
        dcpl.set_filter(511, h5py.h5z.FLAG_OPTIONAL, ())
        made = h5py.h5d.create(file.id, b"d", h5py.h5t.STD_U8LE, space, dcpl)
        made.write_direct_chunk((0,), b"abcd", 0)
    found = chunkwise.verify(path)
    assert found.verdict == "cannot be judged here"
    assert "filter 511" in found.notes[0].reason
    assert found.chunks == 1
