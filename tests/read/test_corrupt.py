"""Damaged files: is the result h5py's, or an error that says where; never a crash?"""

import bz2
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import CorruptDataError
from tests.support import bad_reader
from tests.support.damage import chunk_at, overwrite
from tests.support.make_bad import find
from tests.support.reading import same
from tests.support.versions import HDF5

SHAPE, CHUNK = (24, 24), (8, 8)
DATA = np.random.default_rng(0).integers(0, 50, SHAPE).astype("<i4")
# The chunk that is damaged, what it holds, and chunks beside it.
ORIGIN = (8, 16)
BOX = (slice(8, 16), slice(16, 24))
BESIDE = [(slice(0, 8), slice(0, 24)), (slice(8, 16), slice(0, 16)), (slice(16, 24), slice(None))]
FILTERS: dict[str, dict[str, Any]] = {
    "deflate": {"compression": 4},
    "shuffle+deflate": {"shuffle": True, "compression": 4},
    "fletcher32": {"fletcher32": True},
    "all": {"shuffle": True, "compression": 4, "fletcher32": True},
    "none": {},
}


def write(path: Path, **filters: Any) -> Path:
    with h5py.File(path, "w", userblock_size=512) as f:
        f.create_dataset("g/d", data=DATA, chunks=CHUNK, **filters)
    return path


def write_chunk(path: Path, stored: bytes, filter_mask: int = 0) -> Path:
    """A deflated dataset of which one chunk holds these bytes."""
    write(path, compression=4)
    with h5py.File(path, "r+") as f:
        f["g/d"].id.write_direct_chunk(ORIGIN, stored, filter_mask)
    return path


def assert_refused(path: Path, reason: str) -> None:
    """Whole reads and reads of the chunk fail by name; the other chunks can be read."""
    info = chunk_at(path, "g/d", ORIGIN)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["g/d"])
        # Twice: a failed chunk must not be found in the cache afterwards.
        for index in (..., BOX, (8, 16), (9, 20), np.s_[::3, ::5], ..., (9, 20)):
            with pytest.raises(CorruptDataError, match=reason) as error:
                ours[index]
            message = str(error.value)
            assert isinstance(error.value, OSError)
            assert f"{path}: dataset /g/d" in message
            assert "element [8, 16]" in message
            assert f"{info.size} bytes at address {info.byte_offset}" in message
            assert "\n" not in message
        for box in BESIDE:
            assert same(ours[box], DATA[box])


@pytest.mark.parametrize("at", [0, 1, 2, 9, -1])
@pytest.mark.parametrize("filters", ["deflate", "shuffle+deflate", "fletcher32"])
def test_a_damaged_stream_or_checksum(tmp_path: Path, filters: str, at: int) -> None:
    path = write(tmp_path / "d.h5", **FILTERS[filters])
    info = chunk_at(path, "g/d", ORIGIN)
    address = info.byte_offset + (at if at >= 0 else info.size + at)
    overwrite(path, address, bytes([path.read_bytes()[address] ^ 0x5A]))
    with h5py.File(path) as f, pytest.raises(OSError, match=r"filter|inflate|Fletcher32"):
        f["g/d"][...]
    wrong = "Fletcher-32 checksum is 0x.*, the data's is 0x"
    assert_refused(path, wrong if filters == "fletcher32" else "the deflate stream is damaged")


@pytest.mark.parametrize(
    ("stored", "mask", "reason"),
    [
        (zlib.compress(bytes(255)), 0, "decodes to 255 bytes, and lacks 1 elements"),
        (zlib.compress(b""), 0, "decodes to 0 bytes"),
        (zlib.compress(DATA[BOX].tobytes())[:-1], 0, "deflate stream is damaged"),
        (b"x", 0, "deflate stream is damaged"),
        (b"too few", 1, "7 stored bytes"),
    ],
)
def test_a_chunk_with_too_few_bytes(tmp_path: Path, stored: bytes, mask: int, reason: str) -> None:
    assert_refused(write_chunk(tmp_path / "d.h5", stored, mask), reason)


@pytest.mark.parametrize(
    "stored",
    [
        zlib.compress(bytes(range(256)) + b"more"),
        zlib.compress(bytes(range(256)) * 5),
        zlib.compress(bytes(range(256))) + b"after the stream's end",
    ],
)
def test_too_many_bytes_read_as_h5py_reads_them(tmp_path: Path, stored: bytes) -> None:
    path = write_chunk(tmp_path / "d.h5", stored)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["g/d"])
        assert ours.explain()["path"] == "chunked"
        for index in (..., BOX, (9, 20), (9, 20)):
            assert same(ours[index], f["g/d"][index])
        assert ours[8, 16] == 0x03020100


@pytest.mark.parametrize("filters", ["deflate", "bzip2", "lzf", "zstd"])
def test_far_too_many_bytes_are_dropped(tmp_path: Path, filters: str) -> None:
    many = bytes(range(256)) * 1000
    how: dict[str, tuple[Any, bytes]] = {
        "deflate": ({"compression": 4}, zlib.compress(many)),
        "bzip2": (dict(hdf5plugin.BZip2()), bz2.compress(many)),
        # Runs of 32 bytes as they are.
        "lzf": ({"compression": "lzf"}, b"".join(b"\x1f" + bytes(range(32)) for _ in range(999))),
        "zstd": (dict(hdf5plugin.Zstd()), zstd_frame(many)),
    }
    options, stored = how[filters]
    path = write(tmp_path / "d.h5", **options)
    with h5py.File(path, "r+") as f:
        f["g/d"].id.write_direct_chunk(ORIGIN, stored)
    with h5py.File(path) as f:
        ours, out = chunkwise.wrap(f["g/d"]), np.zeros(SHAPE, "<i4")
        got = ours[...]
        assert same(got, f["g/d"][...])
        assert ours.read(out=out) is out
        assert same(out, got)


def zstd_frame(raw: bytes) -> bytes:
    """A frame that tells its length, of blocks that are stored as they are."""
    most = 100_000
    parts = [raw[at : at + most] for at in range(0, len(raw), most)]
    heads = [struct.pack("<I", len(part) << 3)[:3] for part in parts]
    heads[-1] = bytes([heads[-1][0] | 1]) + heads[-1][1:]
    blocks = b"".join(head + part for head, part in zip(heads, parts, strict=True))
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(raw)) + blocks


def test_the_rest_of_a_long_stream_must_be_sound_too(tmp_path: Path) -> None:
    """Where h5py finds damage after the bytes that it wants, we find it as well."""
    stored = bytearray(zlib.compress(bytes(range(256)) * 1000))
    stored[-1] ^= 1
    path = write_chunk(tmp_path / "d.h5", bytes(stored))
    with h5py.File(path) as f, pytest.raises(OSError, match=r"filter|inflate|Fletcher32"):
        f["g/d"][...]
    assert_refused(path, "the deflate stream is damaged")


def test_a_filter_that_wants_far_too_many_bytes_is_refused(tmp_path: Path) -> None:
    """Shuffled bytes have their places by the length of the whole."""
    raw = np.arange(100_000, dtype="<i4").view("u1").reshape(-1, 4).T.tobytes()
    path = write(tmp_path / "d.h5", shuffle=True, compression=4)
    with h5py.File(path, "r+") as f:
        f["g/d"].id.write_direct_chunk(ORIGIN, zlib.compress(raw))
    with h5py.File(path) as f:
        assert same(chunkwise.wrap(f["g/d"])[...], f["g/d"][...])
    with h5py.File(path, "r+") as f:
        f["g/d"].id.write_direct_chunk(ORIGIN, zlib.compress(raw * 20))
    assert_refused(path, "the deflate stream holds more than 4194304 bytes")


@pytest.mark.parametrize("filters", ["deflate", "none", "contiguous"])
def test_a_file_truncated_while_open(tmp_path: Path, filters: str) -> None:
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as f:
        more = {} if filters == "contiguous" else {"chunks": CHUNK, **FILTERS[filters]}
        f.create_dataset("g/d", data=DATA, **more)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["g/d"])
        assert ours.explain()["path"] != "libhdf5"
        if filters == "contiguous":
            last = f["g/d"].id.get_offset() + DATA.nbytes
        else:
            infos = [f["g/d"].id.get_chunk_info(i) for i in range(9)]
            last = max(info.byte_offset + info.size for info in infos)
        os.truncate(path, last - 1)
        assert same(ours[:20, :16], DATA[:20, :16])
        for index in (..., (23, 23), np.s_[20:, 20:]):
            with pytest.raises(CorruptDataError, match=r"truncated, or shrank.*whole") as error:
                ours[index]
            assert f"{path}: dataset /g/d" in str(error.value)
        os.truncate(path, 0)
        # What was read whole twice is kept.
        chunkwise.cache_clear()
        with pytest.raises(CorruptDataError, match="ends at byte 0"):
            ours[1, 1]


# What else the index may say of a chunk, beside the files of `tests/bad`: where in its record.
INDEX: dict[str, tuple[int, bytes]] = {
    "size beyond the file": (0, struct.pack("<I", 1 << 20)),
    "address 2^63": (32, struct.pack("<Q", 2**63)),
    "address 2^64 - 2": (32, struct.pack("<Q", 2**64 - 2)),
    "size and address": (0, struct.pack("<IIQQQQ", 2**32 - 1, 0, *ORIGIN, 0, 2**63)),
    # These h5py reads somehow.
    "address undefined": (32, b"\xff" * 8),
    "origin beyond the dataset": (8, struct.pack("<QQ", 2**60, 16)),
    "origin that wraps": (8, struct.pack("<QQ", 2**64 - 8, 2**64 - 8)),
}


def test_a_hostile_index_costs_no_memory(tmp_path: Path) -> None:
    sound = tmp_path / "sound.h5"
    with h5py.File(sound, "w") as f:
        f.create_dataset("d", data=DATA, chunks=CHUNK, compression=4)
    info = chunk_at(sound, "d", ORIGIN)
    # Size and mask, an offset for each dimension and for an element's bytes, the address.
    record = struct.pack("<IIQQQQ", info.size, info.filter_mask, *ORIGIN, 0, info.byte_offset)
    paths = []
    for name, (offset, content) in INDEX.items():
        paths.append(tmp_path / f"{name}.h5")
        paths[-1].write_bytes(sound.read_bytes())
        overwrite(paths[-1], find(sound, record) + offset, content)
    for name, found in zip(INDEX, bad_reader.outcomes(paths), strict=True):
        ours = found["ours"]
        assert ours["peak_nbytes"] < 300 << 20
        # Where libhdf5 names chunks by number (no H5Dchunk_iter), it passes some damage over.
        if name.startswith(("origin", "address undefined")) or (
            HDF5 < (2,) and "error" not in ours
        ):
            assert ours["read"] == found["theirs"]["read"], name
        else:
            assert "ChunkwiseError" in ours["classes"], name
            assert f"{name}.h5: dataset /d" in ours["error"]
