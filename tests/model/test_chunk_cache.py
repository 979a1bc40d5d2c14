"""Does the model of libhdf5's chunk cache load the chunks that libhdf5 loads?"""

import math
import random
from pathlib import Path
from typing import Any

import h5py

from chunkwise.model.chunk_cache import MOST_FOLLOWED, Read, collisions, reloads
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2, LIBRARIES, Reader, reader, this_process


def libraries() -> list[Path]:
    """Each libhdf5 that can be found: the system's and those of the wheels."""
    site = Path(h5py.__file__).parents[1]
    wheels = [*site.glob("h5py.libs/libhdf5-*.so*"), *site.glob("netcdf4.libs/libhdf5-*.so*")]
    system = sorted(Path("/usr/lib").glob("*-linux-gnu/libhdf5_serial.so.*"))
    return wheels + system[:1]


def random_case(rng: random.Random) -> tuple[dict[str, Any], Reader, Read]:
    rank = rng.randint(1, 3)
    chunk = tuple(rng.randint(1, 3) for _ in range(rank))
    shape = tuple(rng.randint(c, (200, 24, 9)[rank - 1]) for c in chunk)
    start = tuple(rng.randrange(n) for n in shape)
    block = tuple(rng.randint(1, n - a) for n, a in zip(shape, start, strict=True))
    chunk_nbytes = math.prod(chunk)
    nslots = rng.choice([1, 2, 3, 5, 7, 11, 16, 31, 64, 101, 521])
    nbytes = chunk_nbytes * rng.randint(0, 40) + rng.randrange(chunk_nbytes)
    w0 = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0])
    case = {
        "shape": shape,
        "chunk": chunk,
        "cache": [nslots, nbytes, w0],
        "reads": [[start, block]] * 2,
    }
    return case, Reader("", "", nbytes, nslots, w0), Read(shape, chunk, 1, start, block)


def test_there_is_a_library_to_ask() -> None:
    assert libraries()


def test_a_chunk_larger_than_the_cache_is_never_kept() -> None:
    cris = Read((60, 30, 9, 717), (4, 30, 9, 717), 4, (0, 0, 0, 0), (1, 1, 1, 717))
    assert cris.chunk_nbytes == 3_097_440
    assert [reloads(each, cris) for each in LIBRARIES] == [1, 0, 0]


def test_collisions_between_chunks_that_would_fit() -> None:
    # 1024 chunks of 1 KiB fit 1 MiB, but not 521 slots.
    read = Read((1 << 20,), (1024,), 1, (0,), (1 << 20,))
    assert read.chunks == 1024
    assert collisions(LIBHDF5_1, read) == reloads(LIBHDF5_1, read) == 2 * (1024 - 521)
    assert reloads(LIBHDF5_2, read) == 0


def test_reads_too_large_to_be_followed() -> None:
    read = Read((1 << 30,), (1 << 10,), 1, (0,), (1 << 30,))
    assert math.prod(read.extent) > MOST_FOLLOWED
    assert reloads(LIBHDF5_2, read) == read.chunks == 1 << 20


def test_readers() -> None:
    # 64 MiB is what netCDF-C 4.10 asks for; the others are H5Pset_cache's documentation.
    assert [each.cache_nbytes >> 20 for each in LIBRARIES] == [1, 8, 64]
    assert reader("libhdf5-2") is LIBHDF5_2
    assert reader("chunkwise").nslots is None
    here = this_process()
    expected = LIBHDF5_2 if h5py.version.hdf5_version_tuple >= (2, 0, 0) else LIBHDF5_1
    assert (here.cache_nbytes, here.nslots) == (expected.cache_nbytes, expected.nslots)
