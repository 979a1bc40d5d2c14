"""Damaged files of every codec, index kind and layout: read as by h5py, or refused by name.

Most checksums of metadata are mended afterwards, so that damage reaches what lies behind them.
Both read in a child process of limited memory and time, as libhdf5 crashes on some damage.
Where h5py raises, chunkwise raises; where h5py gives values, chunkwise gives these or an error
of its own.
"""

import random
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

from tests.attack._sealed import parts, seal_again
from tests.support import bad_reader
from tests.support.make_bad import write_implicit

SHORT = 12

CODECS: list[dict[str, Any]] = [
    {},
    {"compression": 4},
    {"compression": 4, "shuffle": True, "fletcher32": True},
    {"fletcher32": True},
    {"compression": "szip"},
    {"compression": "lzf"},
    {"scaleoffset": 0},
    dict(hdf5plugin.BZip2()),
    dict(hdf5plugin.LZ4()),
    dict(hdf5plugin.Zstd()),
    *[
        dict(hdf5plugin.Blosc(name, 5, how))
        for name in ("blosclz", "lz4", "zstd")
        for how in (1, 2)
    ],
    *[dict(hdf5plugin.Bitshuffle(cname=name)) for name in ("none", "lz4", "zstd")],
    *[
        dict(hdf5plugin.Blosc2(name, 5, how))
        for name in ("blosclz", "lz4", "zstd")
        for how in (1, 3)
    ],
]
# Largest shape (None: as it is), and which of HDF5's formats.
INDEXES: dict[str, tuple[Any, str]] = {
    "btree1": (None, "earliest"),
    "btree1, unlimited": ((None, None), "earliest"),
    "fixed array": ((60, 50), "latest"),
    "extensible array": ((40, None), "latest"),
    "btree2": ((None, None), "latest"),
}
# Of chunks of one element: more than a page of a fixed array has, several super blocks.
MANY: dict[str, tuple[Any, str]] = {
    "fixed array, pages": ((60, 50), "latest"),
    "extensible array, super blocks": ((None, 50), "latest"),
}
# From here on an extensible array of one dimension has blocks of several pages.
_PAGED = 4 + 16 * (2**13 - 1)


def attempt(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    path = folder / "d.h5"
    _write(path, rng)
    content = bytearray(path.read_bytes())
    places = _places(path, len(content), rng)
    sound = bytes(content)
    changed = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.choice(places)
        content[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, content[at] ^ 1, rng.randrange(256)])
        changed.append(at)
        if rng.randrange(4):
            seal_again(content, sound, at)
    if rng.randrange(20) == 0:
        del content[rng.randrange(len(content)) :]
    path.write_bytes(content)
    compare(path, f"bytes at {changed} of {len(content)}")


def compare(path: Path, what: str, *, may_lack_memory: bool = False) -> None:
    """Read a damaged file by both; with `may_lack_memory`, h5py may want more than it has."""
    theirs = bad_reader.in_child(bad_reader.by_h5py, str(path), 4 << 30)
    ours = bad_reader.in_child(bad_reader.by_chunkwise, str(path))
    told = f"{what}: h5py {theirs}, chunkwise {ours}"
    if "died" in theirs:
        # What libhdf5 does not survive it may not survive for us either.
        return
    assert "died" not in ours, told
    if "error" in theirs:
        assert may_lack_memory or "error" in ours, told
    elif "error" in ours:
        assert "ChunkwiseError" in ours["classes"], told
    else:
        assert ours["read"] == theirs["read"], told


def _write(path: Path, rng: random.Random) -> None:
    shape = rng.randrange(1, 40), rng.randrange(1, 50)
    data = (np.arange(shape[0] * shape[1]) // rng.randrange(1, 9)).astype("<i4").reshape(shape)
    more = [*MANY, "single chunk", "contiguous", "implicit", "extensible array, pages"]
    kind = rng.choice([*INDEXES, *INDEXES, *more])
    if kind == "implicit":
        write_implicit(path)
        return
    if kind == "extensible array, pages":
        _write_pages(path, rng)
        return
    known = INDEXES | MANY
    largest, libver = known.get(kind, (None, rng.choice(["earliest", "latest"])))
    # Few numbers of a chunk make some filters give up.
    chunk = tuple(min(n, rng.randrange(4, 20)) for n in shape)
    options: dict[str, Any] = {"maxshape": largest, **rng.choice(CODECS)}
    options["chunks"] = shape if kind == "single chunk" else chunk
    if kind == "contiguous":
        options = {}
    elif kind in MANY:
        options = {"maxshape": largest, "chunks": (1, 1), **rng.choice(CODECS[:4])}
    elif options.get("compression") == "szip" and chunk[0] * chunk[1] < 32:
        options["compression"] = 1
    with h5py.File(path, "w", libver=libver, userblock_size=rng.choice([0, 512])) as f:
        f.create_dataset("d", data=data, **options)


def _write_pages(path: Path, rng: random.Random) -> None:
    with h5py.File(path, "w", libver="latest") as f:
        options: dict[str, Any] = {"maxshape": (None,), "chunks": (1,), **rng.choice(CODECS[:4])}
        d = f.create_dataset("d", (_PAGED + 5000,), "u1", **options)
        for _ in range(rng.randrange(1, 5)):
            begin = rng.randrange(_PAGED - 3000, _PAGED + 5000)
            d[begin : begin + 9] = rng.randrange(1, 99)


def _places(path: Path, nbytes: int, rng: random.Random) -> range:
    """Bytes of one chunk, those around it, of some metadata, or all."""
    if rng.randrange(3) == 0 and (found := parts(path.read_bytes())):
        return rng.choice(found)
    with h5py.File(path) as f:
        d = f["d"].id
        if f["d"].chunks and rng.randrange(2):
            info = d.get_chunk_info(rng.randrange(d.get_num_chunks()))
            return range(info.byte_offset, info.byte_offset + info.size)
        # Headers are sought out: an old file is mostly empty space.
        header = h5py.h5o.get_info(d).addr + f.userblock_size
    return range(header, min(header + 400, nbytes)) if rng.randrange(2) else range(nbytes)
