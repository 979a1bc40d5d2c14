"""What tests of verify share: files to damage, the command, and what libhdf5 makes of a file."""

import contextlib
import hashlib
import random
import signal
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

from chunkwise.errors import CrashedError
from chunkwise.files.contained import contained
from chunkwise.verifying.apart import Counter, verify_apart
from chunkwise.verifying.file import ManifestOptions
from chunkwise.verifying.records import Verified
from tests.support.commands import ended

# Pipelines without a checksum of HDF5's.
# More is a damaged shape, and takes longer to read than anybody waits.
MOST_NBYTES = 64 << 20
CODECS: dict[str, dict[str, Any]] = {
    "none": {},
    "deflate": {"compression": 4, "shuffle": True},
    "lzf": {"compression": "lzf"},
    "szip": {"compression": "szip"},
    "scaleoffset": {"scaleoffset": 0},
    "bzip2": dict(hdf5plugin.BZip2()),
    "lz4": dict(hdf5plugin.LZ4()),
    "zstd": dict(hdf5plugin.Zstd()),
    "blosc": dict(hdf5plugin.Blosc("lz4", 5, 1)),
    "blosc2": dict(hdf5plugin.Blosc2("zstd", 5, 1)),
    "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="lz4")),
}


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``chunkwise verify`` as a user would."""
    return ended("verify", *arguments, **options)


def field(seed: int = 0, shape: tuple[int, ...] = (60, 70)) -> np.ndarray[Any, Any]:
    """Give numbers that compress, and no two chunks of which are alike."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.integers(0, 9, shape), axis=-1).astype("<i4")


def write(path: Path, *, libver: Any = "latest", user_block: int = 0, **options: Any) -> Path:
    """Write a file with one chunked dataset, ``/g/d``, by h5py."""
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        group = file.create_group("g")
        group.attrs["title"] = "a field"
        made = group.create_dataset("d", data=field(), chunks=(16, 20), **options)
        made.attrs["units"] = "K"
    return path


def chunks_of(path: Path, name: str = "g/d") -> list[Any]:
    """Give libhdf5's facts on each chunk: ``chunk_offset``, ``byte_offset``, ``size``."""
    with h5py.File(path) as file:
        found: list[Any] = []
        file[name].id.chunk_iter(found.append)
        return found


def flip(content: bytearray, bit: int) -> None:
    """Change one bit."""
    content[bit // 8] ^= 1 << (bit % 8)


def apart(paths: Sequence[Path], still_s: float = 60.0) -> list[Verified]:
    """Verify files as the command does, each in a process of its own."""
    files = [(str(path), path.stat().st_size) for path in paths]
    looked = verify_apart(files, ManifestOptions(), 2, Counter(len(files)), {}, still_s)
    return [one.verified for one in looked]


def read_by_h5py(path: Path) -> dict[str, Any] | None:
    """Read all of a small file by h5py; None where it refuses anything."""
    found: dict[str, Any] = {}

    def read(name: str, thing: Any) -> None:
        found[name] = dict(thing.attrs)
        if isinstance(thing, h5py.Dataset):
            if thing.nbytes > MOST_NBYTES:
                raise MemoryError
            found[name]["data"] = (thing.dtype, thing.shape, thing[()].tobytes())

    try:
        with h5py.File(path) as file:
            file.visititems(read)
    except MemoryError:
        # Of so many elements HDF5 would read fill values.
        return {"too large": {}}
    except Exception:
        return None
    return found


def read_each(contents: Sequence[bytes], path: Path) -> list[bytes | None]:
    """Sum what h5py reads of each of some files, written to `path`; None where it refuses any.

    In children, as filters of plugins crash on some damage, or never end: refusals, too.
    """
    sums: list[bytes | None] = []
    log = path.with_suffix(".log")

    def read(begin: int) -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        with log.open("ab", buffering=0) as stream:
            for content in contents[begin:]:
                # Processor time: a busy machine may take long for what ends.
                signal.setitimer(signal.ITIMER_PROF, 10.0)
                path.write_bytes(content)
                found = read_by_h5py(path)
                said = b"" if found is None else repr(sorted(found.items())).encode()
                stream.write(hashlib.sha256(said).digest() if said else bytes(32))

    while len(sums) < len(contents):
        log.write_bytes(b"")
        with contextlib.suppress(CrashedError):
            contained(partial(read, len(sums)), str(path))
        raw = log.read_bytes()
        parts = [raw[at : at + 32] for at in range(0, len(raw), 32)]
        sums += [one if any(one) else None for one in parts]
        if len(sums) < len(contents):
            sums.append(None)
    return sums


def pick(rng: random.Random, ranges: Sequence[range]) -> int:
    """Choose a number of some ranges, each as likely as another."""
    at = rng.randrange(sum(map(len, ranges)))
    for one in ranges:
        if at < len(one):
            return one[at]
        at -= len(one)
    raise AssertionError
