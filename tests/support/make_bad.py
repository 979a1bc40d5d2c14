"""Write the damaged files of ``tests/bad``: ``python -m tests.support.make_bad``.

Each is a small sound file in which some bytes were changed; a checksum above them is made
right again, so that libhdf5 believes them.  What reading each must come to is in
`tests.read.test_bad_files`.
"""

import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from tests.support.checksums import extent, lookup3

FOLDER = Path(__file__).parents[1] / "bad"
# Sizes that are nowhere else in a file.
SHAPE, CHUNK = (23, 21), (11, 10)
DATA = (np.arange(23 * 21, dtype="<i4") // 5).reshape(SHAPE)
# The chunk whose bytes or place are damaged, and another one.
ORIGIN, OTHER = (11, 10), (0, 10)
SEALED = (
    b"OHDR", b"OCHK", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB",
    b"EASB",
)  # fmt: skip
Maker = Callable[[Path], None]


# --- changing bytes --------------------------------------------------------------------


def seals(content: bytes) -> list[tuple[int, int]]:
    """Where structures with a checksum begin, and where the checksum lies."""
    found = []
    for signature in SEALED:
        start = content.find(signature)
        while start >= 0:
            found.append((start, extent(content, start)))
            start = content.find(signature, start + 4)
    return found


def patch(path: Path, at: int, new: bytes) -> None:
    """Put bytes in place of others, under a checksum that is right."""
    content = bytearray(path.read_bytes())
    above = [(start, end) for start, end in seals(bytes(content)) if start <= at < end]
    content[at : at + len(new)] = new
    for start, end in above:
        content[end : end + 4] = struct.pack("<I", lookup3(bytes(content[start:end])))
    path.write_bytes(content)


def find(path: Path, old: bytes, count: int | None = 1) -> int:
    """Where these bytes lie, which are there so many times (None: any number)."""
    content = path.read_bytes()
    assert count is None or content.count(old) == count, (path.name, old, content.count(old))
    return content.index(old)


def place(path: Path, origin: tuple[int, ...] = ORIGIN) -> Any:
    """h5py's StoreInfo of a chunk."""
    with h5py.File(path) as f:
        return f["d"].id.get_chunk_info_by_coord(origin)


# --- chunk indexes ---------------------------------------------------------------------


def write(path: Path, index: str, **more: Any) -> None:
    """A sound dataset with an index of this type."""
    options: dict[str, Any] = {"chunks": CHUNK, "compression": 4, **more}
    if index == "extensible-array":
        options["maxshape"] = (None, 21)
    elif index == "btree2":
        options["maxshape"] = (None, None)
    elif index == "single-chunk":
        options["chunks"] = SHAPE
    with h5py.File(path, "w", libver="earliest" if index == "btree1" else "latest") as f:
        f.create_dataset("d", data=DATA, **options)


def write_implicit(path: Path) -> None:
    early = h5p.create(h5p.DATASET_CREATE)
    early.set_chunk(CHUNK)
    early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    with h5py.File(path, "w", libver="latest") as f:
        space = h5s.create_simple(SHAPE)
        h5py.Dataset(h5d.create(f.id, b"d", h5t.STD_I32LE, space, early))[...] = DATA


def origin_of(index: str) -> tuple[int, ...]:
    return (0, 0) if index == "single-chunk" else ORIGIN


def address_is(address: int, index: str, path: Path) -> None:
    """The index says that the chunk lies elsewhere."""
    write(path, index)
    at = find(path, struct.pack("<Q", place(path, origin_of(index)).byte_offset))
    patch(path, at, struct.pack("<Q", address))


def overlapping(index: str, path: Path) -> None:
    """Two chunks share their bytes."""
    write(path, index)
    at = find(path, struct.pack("<Q", place(path).byte_offset))
    other = place(path, OTHER)
    patch(path, at, struct.pack("<Q", other.byte_offset))
    # The sizes as well; what an entry holds is size after address, or before it in old files.
    if index == "btree1":
        at = find(path, struct.pack("<IIQQ", place(path).size, 0, *ORIGIN))
        patch(path, at, struct.pack("<I", other.size))
    else:
        patch(path, at + 8, bytes([other.size]))


def size_is(size: int, index: str, path: Path) -> None:
    """The index says that the chunk takes so many bytes."""
    write(path, index)
    info = place(path, origin_of(index))
    if index == "btree1":
        at = find(path, struct.pack("<IIQQ", info.size, 0, *ORIGIN))
        patch(path, at, struct.pack("<I", size))
    elif index == "single-chunk":
        at = find(path, struct.pack("<QIQ", info.size, 0, info.byte_offset))
        patch(path, at, struct.pack("<Q", size))
    else:
        # Sizes take three bytes here: one more than a chunk's length does.
        at = find(path, struct.pack("<Q", info.byte_offset)) + 8
        patch(path, at, struct.pack("<I", size)[:3])


def checksum_wrong(signature: bytes, index: str, path: Path) -> None:
    """A structure of the index that does not hold what its checksum says."""
    write(path, index)
    content = path.read_bytes()
    at = extent(content, content.index(signature))
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


def record_of_btree1(path: Path, offset: int, new: bytes) -> None:
    """Change the chunk's record: size, mask, origin (and of the element's bytes), address."""
    write(path, "btree1")
    at = find(path, struct.pack("<IIQQQ", place(path).size, 0, *ORIGIN, 0))
    patch(path, at + offset, new)


def node_of_btree1(path: Path, offset: int, new: bytes) -> None:
    """Change the head of the B-tree's node: type, level, entries, siblings."""
    write(path, "btree1")
    patch(path, find(path, b"TREE\x01") + offset, new)


def implicit_beyond_the_end(path: Path) -> None:
    write_implicit(path)
    first = place(path, (0, 0)).byte_offset
    patch(path, find(path, struct.pack("<Q", first), None), struct.pack("<Q", 2**40))


# --- headers ---------------------------------------------------------------------------


def contiguous(path: Path, old: str, new: int) -> None:
    """Change the address or the shape of a dataset without chunks."""
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(1009, dtype="<i4"))
    if old == "address":
        with h5py.File(path) as f:
            # After the layout message's version and class.
            at = find(path, struct.pack("<BBQ", 3, 1, f["d"].id.get_offset())) + 2
        patch(path, at, struct.pack("<Q", new))
    else:
        content = path.read_bytes()
        path.write_bytes(content.replace(struct.pack("<Q", 1009), struct.pack("<Q", new)))


def chunks_of_2_gib(path: Path) -> None:
    """The layout message says that a chunk has 2^29 elements of four bytes."""
    write(path, "btree1")
    patch(path, find(path, struct.pack("<III", *CHUNK, 4)), struct.pack("<I", 2**29 // 10))


def chunk_and_size_of_1_gib(path: Path) -> None:
    """Shape and index agree that a chunk takes so much; the file has nothing of it."""
    stored = zlib.compress(bytes(1000))
    with h5py.File(path, "w") as f:
        how: dict[str, Any] = {"chunks": (2**15, 2**15), "maxshape": (None, None)}
        d = f.create_dataset("d", (2, 2), "u1", compression=1, **how)
        d.id.write_direct_chunk((0, 0), stored)
    at = find(path, struct.pack("<IIQQ", len(stored), 0, 0, 0))
    patch(path, at, struct.pack("<I", 2**30))


def shape_of_2_60(path: Path) -> None:
    """A dataspace of 2^60 elements, over the index of few."""
    write(path, "btree1")
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<Q", 23), struct.pack("<Q", 2**55)))


def two_to_the_40_chunks(path: Path) -> None:
    """Of which three are written: sound, but nothing to be gone through."""
    with h5py.File(path, "w") as f:
        shape = (2**40, 8)
        d = f.create_dataset("d", shape, "<i2", chunks=(1, 8), compression=1, fillvalue=-1)
        for row in (0, 2**39, 2**40 - 1):
            d[row] = np.arange(8) + row % 100


# --- filters ---------------------------------------------------------------------------


def options_are(filters: dict[str, Any], number: int, value: int, path: Path) -> None:
    """The filter's `number`-th option is something else."""
    write(path, "btree1", **filters)
    with h5py.File(path) as f:
        _, _, options, name = f["d"].id.get_create_plist().get_filter(0)
    # They come after the name, which takes a multiple of eight bytes.
    name += bytes(8 - len(name) % 8)
    at = find(path, name + struct.pack(f"<{len(options)}I", *options)) + len(name)
    patch(path, at + 4 * number, struct.pack("<I", value))


def stored_is(stored: bytes, filters: dict[str, Any], path: Path) -> None:
    """The chunk holds these bytes."""
    write(path, "btree1", **filters)
    with h5py.File(path, "r+") as f:
        f["d"].id.write_direct_chunk(ORIGIN, stored)


def stored_has(at: int, new: bytes, filters: dict[str, Any], path: Path) -> None:
    """Some of the bytes that the chunk holds are others."""
    write(path, "btree1", **filters)
    info = place(path)
    patch(path, info.byte_offset + at % info.size, new)


def bomb(path: Path) -> None:
    """Two kilobytes that inflate to one, and that to a gigabyte."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(CHUNK)
    dcpl.set_deflate(9)
    dcpl.set_deflate(9)
    inner = zlib.compressobj(9)
    gigabyte = b"".join(inner.compress(bytes(1 << 20)) for _ in range(1024)) + inner.flush()
    with h5py.File(path, "w") as f:
        d = h5py.Dataset(h5d.create(f.id, b"d", h5t.STD_I32LE, h5s.create_simple(SHAPE), dcpl))
        d[...] = DATA
        d.id.write_direct_chunk(ORIGIN, zlib.compress(gigabyte, 9))


# --- whole files -----------------------------------------------------------------------


def cut_at(nbytes: int, path: Path) -> None:
    write(path, "btree1")
    path.write_bytes(path.read_bytes()[:nbytes])


def cut_unnoticed(path: Path) -> None:
    """The file ends within the chunk, and its superblock says so."""
    write(path, "btree1")
    info = place(path)
    content = bytearray(path.read_bytes())
    last = max(info.byte_offset, place(path, (22, 20)).byte_offset)
    del content[last + 5 :]
    # The end of file's address, after the base address and that of free space.
    content[40:48] = struct.pack("<Q", len(content))
    path.write_bytes(content)


DEFLATE: dict[str, Any] = {"compression": 4}
NONE: dict[str, Any] = {"compression": None}
INDEXES = ("btree1", "btree2", "fixed-array", "extensible-array")
SEALS = {"btree2": b"BTLF", "fixed-array": b"FADB", "extensible-array": b"EAIB"}
MAKERS: dict[str, Maker] = {
    **{f"{i}-address-beyond-the-end": partial(address_is, 1 << 40, i) for i in INDEXES},
    **{f"{i}-address-2-62": partial(address_is, 1 << 62, i) for i in INDEXES},
    **{f"{i}-overlapping-chunks": partial(overlapping, i) for i in INDEXES},
    **{f"{i}-checksum": partial(checksum_wrong, seal, i) for i, seal in SEALS.items()},
    **{f"{i}-size-largest": partial(size_is, 2**32 - 1, i) for i in INDEXES},
    **{f"{i}-size-0": partial(size_is, 0, i) for i in INDEXES},
    "single-chunk-address-beyond-the-end": partial(address_is, 1 << 40, "single-chunk"),
    "single-chunk-size-2-60": partial(size_is, 1 << 60, "single-chunk"),
    "implicit-address-beyond-the-end": implicit_beyond_the_end,
    "btree1-mask": partial(record_of_btree1, offset=4, new=b"\xff" * 4),
    "btree1-unaligned-origin": partial(record_of_btree1, offset=8, new=struct.pack("<Q", 12)),
    "btree1-same-origin-twice": partial(record_of_btree1, offset=8, new=struct.pack("<QQ", 11, 0)),
    "btree1-origin-2-60": partial(record_of_btree1, offset=8, new=struct.pack("<Q", 2**60)),
    "btree1-signature": partial(node_of_btree1, offset=0, new=b"XXXX"),
    "btree1-level-255": partial(node_of_btree1, offset=5, new=b"\xff"),
    "btree1-65535-entries": partial(node_of_btree1, offset=6, new=b"\xff\xff"),
    "contiguous-address-beyond-the-end": partial(contiguous, old="address", new=1 << 40),
    "contiguous-address-2-62": partial(contiguous, old="address", new=1 << 62),
    "contiguous-shape-2-40": partial(contiguous, old="shape", new=1 << 40),
    "chunks-of-2-gib": chunks_of_2_gib,
    "chunk-and-size-of-1-gib": chunk_and_size_of_1_gib,
    "shape-of-2-60": shape_of_2_60,
    "two-to-the-40-chunks": two_to_the_40_chunks,
    "deflate-bomb": bomb,
    "blosc2-trailer": partial(stored_has, -20, b"\x22", hdf5plugin.Blosc2()),
    "blosc2-frame-length": partial(stored_has, 23, b"\x22", hdf5plugin.Blosc2()),
    "blosc-format": partial(stored_has, 0, b"\x03", hdf5plugin.Blosc()),
    "deflate-level-77": partial(options_are, DEFLATE, 0, 77),
    "deflate-damaged": partial(stored_has, 9, b"\xff\xff", DEFLATE),
    "deflate-too-short": partial(stored_is, zlib.compress(bytes(439)), DEFLATE),
    "deflate-too-long": partial(stored_is, zlib.compress(bytes(range(220)) * 3), DEFLATE),
    "deflate-empty": partial(stored_is, zlib.compress(b""), DEFLATE),
    "fletcher32-wrong": partial(stored_has, -1, b"\x5a", {**NONE, "fletcher32": True}),
    "fletcher32-too-short": partial(stored_is, b"abc", {**NONE, "fletcher32": True}),
    "shuffle-element-of-0-bytes": partial(options_are, {"shuffle": True}, 0, 0),
    "szip-blocks-of-0": partial(options_are, {"compression": "szip"}, 1, 0),
    "szip-blocks-of-4-gib": partial(options_are, {"compression": "szip"}, 1, 2**32 - 1),
    "szip-200-bits": partial(options_are, {"compression": "szip"}, 2, 200),
    "szip-length-2-gib": partial(
        stored_has, 0, struct.pack("<I", 1 << 31), {"compression": "szip"}
    ),
    "scaleoffset-fill-of-2": partial(options_are, {"scaleoffset": 0}, 7, 2),
    "scaleoffset-order-of-2": partial(options_are, {"scaleoffset": 0}, 6, 2),
    "scaleoffset-sign-of-2": partial(options_are, {"scaleoffset": 0}, 5, 2),
    "scaleoffset-size-of-0": partial(options_are, {"scaleoffset": 0}, 4, 0),
    "scaleoffset-width": partial(stored_has, 0, b"\x21", {**NONE, "scaleoffset": 0}),
    "lzf-distance": partial(stored_is, b"\xff\xff\xff\xff" * 20, {"compression": "lzf"}),
    "lz4-length-2-60": partial(stored_has, 0, struct.pack(">Q", 1 << 60), hdf5plugin.LZ4()),
    "lz4-block-of-0": partial(stored_has, 8, bytes(4), hdf5plugin.LZ4()),
    "zstd-frame": partial(stored_has, 4, b"\xff" * 4, hdf5plugin.Zstd()),
    "blosc-length-4-gib": partial(stored_has, 4, b"\xff" * 4, hdf5plugin.Blosc()),
    "blosc-block-beyond-the-end": partial(
        stored_has, 16, struct.pack("<I", 1 << 30), hdf5plugin.Blosc()
    ),
    "bitshuffle-element-of-0-bytes": partial(options_are, hdf5plugin.Bitshuffle(), 2, 0),
    "bitshuffle-length-2-60": partial(
        stored_has, 0, struct.pack(">Q", 1 << 60), hdf5plugin.Bitshuffle()
    ),
    "bzip2-block": partial(stored_has, 12, b"\xff" * 8, hdf5plugin.BZip2()),
    "cut-in-the-superblock": partial(cut_at, 60),
    "cut-in-a-header": partial(cut_at, 900),
    "cut-in-a-chunk": partial(cut_at, -7),
    "cut-in-a-chunk-unnoticed": cut_unnoticed,
}


def main() -> None:
    """Write all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.h5"):
        old.unlink()
    for name, make in MAKERS.items():
        make(FOLDER / f"{name}.h5")


if __name__ == "__main__":
    main()
