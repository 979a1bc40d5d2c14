"""What a read takes beside its result is bounded, whatever the file."""

import json
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.support.processes import ROOT, python
from tests.support.versions import HDF5

MIB = 1 << 20


# What a program takes beside its array, under settings; see docs/memory.md.
UNDER_SETTINGS = """
import json, sys
import numpy as np
import chunkwise
from chunkwise.trials import pagecache
from tests.support.memory import begin, memory

path, what, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

chunkwise.settings(**settings)
if what == "write":
    f = chunkwise.open(path + ".new", "w")
    shape, chunks = (128, 1 << 20), (4, 1 << 20)
    d = f.create_dataset("x", shape, "u1", chunks=chunks, filters="shuffle+deflate:1")
    part = np.ones((128, 1 << 18), "u1")
    before = begin()
    # A quarter of each chunk at a time: none is complete before the last.
    for at in range(0, 1 << 20, 1 << 18):
        d[:, at : at + (1 << 18)] = part
    f.close()
    print(memory("VmHWM") - before)
else:
    d = chunkwise.open(path)["deflate" if what == "together" else "x"]
    out = np.ones(d.shape, d.dtype)
    d.prepare()
    if what == "cold":
        pagecache.drop(path)
    before = begin()
    if what == "rows":
        # Each chunk is wanted four times; of those that are kept, more than fit.
        for row in range(len(d) if settings["cache_nbytes"] else 32):
            d.read(chunkwise.hyperslab((row, 0), (1, d.shape[1])), out=out[row : row + 1])
    else:
        d.read(chunkwise.hyperslab((0, 0), d.shape), out=out)
    print(memory("VmHWM") - before)
    if what == "rows":
        # What is given up is given back to the system.
        for give_up in (chunkwise.cache_clear, lambda: chunkwise.settings(cache_nbytes=0)):
            for row in range(0, len(d), 4):
                d.read(chunkwise.hyperslab((row, 0), (1, 99)))
            held, full = chunkwise.cache_stats()["held_nbytes"], memory("VmRSS")
            give_up()
            assert chunkwise.cache_stats()["held_nbytes"] == 0
            assert memory("VmRSS") <= full - held * 3 // 4 + (1 << 20)
"""


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """128 MiB in chunks of 4 MiB that deflate makes little smaller; twice, as several chunks of
    `deflate` may be inflated together.
    """
    path = tmp_path_factory.mktemp("noise") / "noise.h5"
    with h5py.File(path, "w") as f:
        for name in ("x", "deflate"):
            filters: Any = {"shuffle": name == "x", "compression": 1}
            d = f.create_dataset(name, (128, MIB), "u1", chunks=(4, MIB), **filters)
            d[:4] = np.random.default_rng(0).integers(0, 200, (4, MIB), "u1")
            _, stored = d.id.read_direct_chunk((0, 0))
            for row in range(4, 128, 4):
                d.id.write_direct_chunk((row, 0), stored)
    return path


def formula(name: str, **settings: int) -> float:
    """Evaluate what docs/memory.md says."""
    page = (ROOT / "docs" / "memory.md").read_text("utf-8")
    [line] = [line for line in page.splitlines() if line.startswith(f"{name} = ")]
    return float(eval(line.partition("=")[2], {"MiB": MIB, **settings}))


@pytest.mark.parametrize("what", ["whole", "together", "rows", "cold", "write"])
@pytest.mark.parametrize(
    "settings",
    [
        {"threads": 1, "cache_nbytes": 0, "prefetch_nbytes": 0, "write_buffer_nbytes": 0},
        {"threads": 2, "cache_nbytes": 24 * MIB, "prefetch_nbytes": 8 * MIB}
        | {"write_buffer_nbytes": 40 * MIB},
        {"threads": 4, "cache_nbytes": 96 * MIB, "prefetch_nbytes": 32 * MIB}
        | {"write_buffer_nbytes": 100 * MIB},
    ],
    ids=["least", "some", "much"],
)
def test_memory_is_what_the_page_says(noise: Path, what: str, settings: dict[str, int]) -> None:
    taken = int(python(UNDER_SETTINGS, noise, what, json.dumps(settings)))
    name = "writing" if what == "write" else "reading"
    most = formula(name, chunk_nbytes=4 * MIB, **settings)
    assert taken <= most
    # What may be kept is, or the settings would say nothing.
    if what == "rows":
        assert taken >= settings["cache_nbytes"] * 3 // 4
    if what == "write":
        assert taken >= settings["write_buffer_nbytes"] * 3 // 4


# Reads, or repacks, in a child of its own; prints the most memory that it ever had.
HOSTILE = """
import sys
import chunkwise
from chunkwise.trials.environment import peak_rss_nbytes

path, name, what = sys.argv[1:]
if what == "repack":
    chunkwise.repack(path, path + ".new", filters="many:none", memory=2**26)
    with chunkwise.open(path + ".new") as f:
        assert not f["many"][...].any()
else:
    with chunkwise.open(path) as f:
        d = f[name]
        found = d[...] if what == "all" else d[:10]
        print(found.tolist()[:10], d.explain()["path"])
print(peak_rss_nbytes())
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small chunks that inflate to megabytes, huge grids of few written chunks."""
    if HDF5 < (2, 0):
        pytest.skip("HDF5 before 2.0 writes no chunk so much larger than it should be")
    path = tmp_path_factory.mktemp("hostile") / "d.h5"
    with h5py.File(path, "w", libver="latest") as f:
        made = zlib.compressobj(9)
        zeros = b"".join(made.compress(bytes(MIB)) for _ in range(256)) + made.flush()
        f.create_dataset("one", (10,), "u1", chunks=(10,), compression=1)
        f["one"].id.write_direct_chunk((0,), zeros)
        made = zlib.compressobj(9)
        zeros = b"".join(made.compress(bytes(MIB)) for _ in range(24)) + made.flush()
        many = f.create_dataset("many", (120,), "u1", chunks=(10,), compression=1)
        for at in range(0, 120, 10):
            many.id.write_direct_chunk((at,), zeros)
        f.create_dataset("rows", (2**45,), "u1", chunks=(2**20,), compression=1)
        f["rows"].id.write_direct_chunk((0,), zlib.compress(bytes([1]) * 2**20))
        f.create_dataset("grown", (2**25,), "u1", chunks=(1,), maxshape=(None,))[5] = 1
        f.create_dataset("unwritten", (2**44,), "f8")
        f.create_dataset("ones", (10**7,), "u1", chunks=(1,), compression=1, fillvalue=3)
    return path


@pytest.mark.parametrize(
    ("name", "what", "found"),
    [
        ("one", "some", [0] * 10),
        ("many", "all", [0] * 10),
        ("rows", "some", [1] * 10),
        ("grown", "some", [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        ("unwritten", "some", [0.0] * 10),
        ("ones", "all", [3] * 10),
        ("many", "repack", None),
    ],
)
@pytest.mark.slow
def test_a_small_file_takes_little_memory(
    hostile: Path, name: str, what: str, found: list[Any] | None
) -> None:
    *told, peak = python(HOSTILE, hostile, name, what).splitlines()
    if found is not None:
        path = "contiguous" if name == "unwritten" else "chunked"
        assert told == [f"{found} {path}"]
    # Python and its libraries take 45 MiB, a list of ten million numbers 80, a repack the 64 that
    # it may.
    most = {"all": 220, "some": 110, "repack": 170}[what]
    assert int(peak) < most * MIB
