"""A file that ends at any boundary of its parts: an error, or what h5py reads; at no cost."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import pytest

from tests.support import bad_reader
from tests.support.checksums import lookup3
from tests.support.make_bad import SEALED, write

LAYOUTS = ["btree1", "btree2", "fixed-array", "extensible-array", "single-chunk"]


def boundaries(path: Path) -> list[int]:
    """Where parts begin and end: the superblock, headers, index nodes, chunks."""
    content = path.read_bytes()
    found = {8, 48, 96, len(content) - 1}
    for signature in (*SEALED, b"TREE", b"HEAP", b"SNOD"):
        at = content.find(signature)
        while at >= 0:
            found |= {at, at + 4, at + 20}
            at = content.find(signature, at + 1)
    with h5py.File(path) as f:
        d = f["d"].id
        for info in (d.get_chunk_info(i) for i in range(d.get_num_chunks())):
            found |= {info.byte_offset, info.byte_offset + 1, info.byte_offset + info.size}
    return sorted(end for end in found if end < len(content))


def cut(content: bytes, end: int) -> bytes:
    """The file up to `end`, and a superblock that says so, if it is still there."""
    short = bytearray(content[:end])
    if content[8] == 0 and end >= 48:
        short[40:48] = struct.pack("<Q", end)
    elif content[8] > 0 and end >= 48:
        short[28:36] = struct.pack("<Q", end)
        short[44:48] = struct.pack("<I", lookup3(bytes(short[:44])))
    return bytes(short)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_at_every_boundary(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "whole.h5"
    write(path, layout)
    paths = [path]
    for end in boundaries(path):
        paths.append(tmp_path / f"{end}.h5")
        paths[-1].write_bytes(cut(path.read_bytes(), end))
    first, *others = bad_reader.outcomes(paths)
    assert first["ours"]["read"] == first["theirs"]["read"]
    for each in others:
        check(each["file"], each["ours"], each["theirs"])
    assert sum("error" in each["ours"] for each in others) > len(others) // 2


def check(file: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert "died" not in ours, file
    assert ours["peak_nbytes"] < 120 << 20
    if "read" in theirs:
        assert ours.get("read") == theirs["read"], (file, ours)
        return
    assert "ChunkwiseError" in ours["classes"], (file, ours)
    assert f"{file}: " in ours["error"]
    assert "\n" not in ours["error"]
