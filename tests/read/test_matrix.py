"""Any type x layout x filters x rank x edge case reads as h5py reads it, and by which path.

``CHUNKWISE_MATRIX=5000 pytest tests/read/test_matrix.py`` tries so many combinations.
"""

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from chunkwise.errors import ChunkwiseError
from tests.support.matrix import Combination, combinations, reasons, write
from tests.support.native import leave_partial_chunks_unfiltered
from tests.support.reading import (
    LEFT_TO_LIBHDF5,
    assert_reads_like_h5py,
    outcome,
    random_index,
    same,
)

COUNT = int(os.environ.get("CHUNKWISE_MATRIX", "400"))
# Datasets in a file.
BATCH = 50


def batches() -> Iterator[list[Combination]]:
    drawn = combinations(COUNT, seed=1)
    while batch := list(islice(drawn, BATCH)):
        yield batch


def agree(ours: Any, theirs: Any) -> bool:
    """Whether both are the same, or both errors, of which ours says more."""
    if isinstance(theirs, Exception):
        return isinstance(ours, ChunkwiseError | type(theirs))
    return same(ours, theirs)


def compare(d: h5py.Dataset, c: Combination) -> str:
    """Read in many ways; gives the path that was taken."""
    ours = chunkwise.wrap(d)
    plan = ours.explain()
    rng = np.random.default_rng(c.seed)
    assert agree(outcome(lambda: ours[()]), outcome(lambda: d[()])), (c, plan)
    indexes = [random_index(rng, d.shape) for _ in range(3)] if d.shape else [...]
    for index in indexes:
        got, want = outcome(lambda i=index: ours[i]), outcome(lambda i=index: d[i])
        assert agree(got, want), (c, index, plan, got, want)
    if d.shape:
        assert agree(outcome(ours.read), outcome(lambda: d[()])), (c, plan)
        start = [int(rng.integers(0, n + 1)) for n in d.shape]
        count = [int(rng.integers(0, n - s + 1)) for n, s in zip(d.shape, start, strict=True)]
        box = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
        slab = chunkwise.hyperslab(start, count)
        got, want = outcome(lambda: ours.read(slab)), outcome(lambda: d[box])
        assert agree(got, want), (c, slab, plan, got, want)
    wanted = reasons(c, d)
    if plan["path"] != "libhdf5":
        assert not wanted, (c, wanted)
    elif "wrong coordinates" in str(plan["reason"]):
        # Array indexes of which libhdf5 lists the chunks wrongly; see `chunks.rs`.
        assert c.maxshape not in ("fixed", "all unlimited"), c
    else:
        assert any(words in str(plan["reason"]) for words in wanted), (c, wanted, plan["reason"])
    return str(plan["path"])


@pytest.mark.filterwarnings("error:.*reading through libhdf5:RuntimeWarning")
@pytest.mark.parametrize("number", range(-(-COUNT // BATCH)))
def test_every_combination_reads_as_h5py_reads_it(tmp_path: Path, number: int) -> None:
    batch = next(islice(batches(), number, None))
    path = tmp_path / "matrix.h5"
    libver = ["earliest", "latest"][number % 2]
    user_block = [0, 512, 2048][number % 3]
    made: dict[str, Combination] = {}
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as f:
        f["target"] = np.arange(9)
        for c in batch:
            try:
                write(f, str(c.seed), c)
            except (ValueError, RuntimeError, OSError, TypeError) as refused:
                print("HDF5 refuses", c, refused)
            else:
                made[str(c.seed)] = c
    with h5py.File(path) as f:
        paths = Counter(compare(f[name], c) for name, c in made.items())
    # That much is not refused, and read by the engine.
    assert paths.total() > BATCH // 2
    assert paths["chunked"] > BATCH // 8


# Cases that the matrix does not draw -----------------------------------------------------

DATA = np.arange(60, dtype="i4").reshape(6, 10)


def test_filter_masks_and_unfiltered_edges(tmp_path: Path) -> None:
    path = tmp_path / "masks.h5"
    whole = np.arange(24 * 16, dtype="<i4").reshape(24, 16)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("masked", (24, 16), "<i4", chunks=(6, 8), shuffle=True, compression=1)
        d[...] = whole
        # Both filters off; shuffle off; deflate off.
        d.id.write_direct_chunk((0, 0), whole[:6, :8].tobytes(), 0b11)
        d.id.write_direct_chunk((6, 8), zlib.compress(whole[6:12, 8:].tobytes()), 0b01)
        shuffled = whole[12:18, :8].copy().view("u1").reshape(-1, 4).T.tobytes()
        d.id.write_direct_chunk((12, 0), shuffled, 0b10)
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((7, 7))
        dcpl.set_deflate(3)
        leave_partial_chunks_unfiltered(dcpl)
        space = h5s.create_simple((20, 20))
        edges = h5d.create(f.id, b"edges", h5t.IEEE_F32LE, space, dcpl)
        h5py.Dataset(edges)[...] = np.arange(400).reshape(20, 20)
    with h5py.File(path) as f:
        assert np.array_equal(chunkwise.wrap(f["masked"])[...], whole)
        # Of 3x3 chunks of 7x7 in 20x20, five lie at an edge and keep their 196 bytes.
        sizes = [f["edges"].id.get_chunk_info(i).size for i in range(9)]
        assert sizes.count(196) == 5
        for name in f:
            assert chunkwise.wrap(f[name]).explain()["path"] == "chunked", name
            assert_reads_like_h5py(f[name], 40)


def test_a_source_whose_filter_is_not_decoded(tmp_path: Path) -> None:
    path = tmp_path / "left.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("zfp", data=DATA, **LEFT_TO_LIBHDF5)
        f["source"] = DATA
        layout = h5py.VirtualLayout((2, 6, 10), "i4")
        for row, name in enumerate(("source", "zfp")):
            layout[row] = h5py.VirtualSource(path, name, (6, 10))
        f.create_virtual_dataset("virtual", layout)
    with h5py.File(path) as f:
        plan = chunkwise.wrap(f["virtual"]).explain()
        assert plan["path"] == "libhdf5"
        assert "filter 32013" in str(plan["reason"])
        assert_reads_like_h5py(f["virtual"], 20)


def test_files_that_are_not_plain_or_not_read_only(tmp_path: Path) -> None:
    path = tmp_path / "open.h5"
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", data=DATA, chunks=(2, 5), compression=1)
        assert "open for writing" in str(chunkwise.wrap(d).explain()["reason"])
        assert same(chunkwise.wrap(d)[...], DATA)
        d[0, 0] = 77
        assert chunkwise.wrap(d)[0, 0] == 77
    for options, said in (({"swmr": True}, "SWMR"), ({"driver": "core"}, "sec2")):
        with h5py.File(path, "r", **options) as f:
            assert said in str(chunkwise.wrap(f["x"]).explain()["reason"])
            assert_reads_like_h5py(f["x"], 10)
    with path.open("rb") as stream, h5py.File(stream, "r") as f:
        assert chunkwise.wrap(f["x"]).explain()["path"] == "chunked"
        assert_reads_like_h5py(f["x"], 10)


def test_external_links_lead_to_their_own_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "there.h5", "w", userblock_size=2048) as f:
        f.create_dataset("x", data=np.arange(100), chunks=(7,), compression=1)
    with h5py.File(tmp_path / "here.h5", "w") as f:
        f["link"] = h5py.ExternalLink("there.h5", "/x")
    with chunkwise.open(tmp_path / "here.h5") as ours:
        assert ours["link"].explain()["path"] == "chunked"
        assert np.array_equal(ours["link"][...], np.arange(100))
