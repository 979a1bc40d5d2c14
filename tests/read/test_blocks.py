"""Parts of chunks that filters store in blocks are what h5py reads, and cost what they read."""

from functools import cache
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import ChunkwiseError
from tests.support.filtered import Case, create, of_plugin

SHAPE, CHUNK = (7, 300, 260), (3, 200, 130)
DTYPES = ["<u2", ">i4", "<f8", "V3"]
FILTERS: dict[str, Case] = {
    "bitshuffle": of_plugin(hdf5plugin.Bitshuffle(cname="none")),
    "bitshuffle lz4": of_plugin(hdf5plugin.Bitshuffle()),
    "bitshuffle zstd": of_plugin(hdf5plugin.Bitshuffle(nelems=1024, cname="zstd")),
    "blosc lz4": of_plugin(hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=1)),
    "blosc zstd bits": of_plugin(hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=2)),
    "blosc lz4hc": of_plugin(hdf5plugin.Blosc(cname="lz4hc", clevel=1, shuffle=0)),
    "blosc stored": of_plugin(hdf5plugin.Blosc(clevel=0)),
    "blosc2 lz4": of_plugin(hdf5plugin.Blosc2(cname="lz4", clevel=5, filters=1)),
    "blosc2 zstd": of_plugin(hdf5plugin.Blosc2(cname="zstd", clevel=3, filters=2)),
    "blosc2 delta": of_plugin(hdf5plugin.Blosc2(cname="lz4", clevel=5, filters=3)),
    "blosc2 stored": of_plugin(hdf5plugin.Blosc2(clevel=0)),
    "lz4": of_plugin(hdf5plugin.LZ4(nbytes=5000)),
}
# Blocks of one of these depend on the first.
ALONE = [name for name in FILTERS if name != "blosc2 delta"]


@cache
def data(dtype: str, shape: tuple[int, ...] = SHAPE) -> Any:
    rng = np.random.default_rng(5)
    numbers = rng.poisson(9, shape)
    if np.dtype(dtype).kind == "V":
        return np.frombuffer(numbers.astype("<u4").tobytes(), "V4").reshape(shape).astype(dtype)
    return numbers.astype(dtype)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "blocks.h5"
    with h5py.File(path, "w") as f:
        for dtype in DTYPES:
            for name, case in FILTERS.items():
                create(f, f"{dtype} {name}", dtype, SHAPE, CHUNK, [case])[...] = data(dtype)
    return path


def decoded() -> tuple[int, int]:
    stats = chunkwise.cache_stats()
    return stats["decoded"], stats["decoded_blocks"]


def along(length: int) -> st.SearchStrategy[slice]:
    """Mostly short pieces, some with strides, some long."""
    return st.tuples(
        st.integers(0, length - 1),
        st.one_of(st.integers(1, 12), st.integers(1, length)),
        st.sampled_from([1, 1, 1, 2, 7]),
    ).map(lambda part: slice(part[0], min(part[0] + part[1], length), part[2]))


INDICES = st.tuples(*map(along, SHAPE))
LISTS = st.tuples(
    along(SHAPE[0]),
    st.lists(st.integers(0, SHAPE[1] - 1), min_size=1, max_size=9, unique=True).map(sorted),
    along(SHAPE[2]),
)


@settings(derandomize=True)
@given(
    st.sampled_from(DTYPES),
    st.sampled_from(sorted(FILTERS)),
    st.lists(st.one_of(INDICES, LISTS), min_size=1, max_size=8),
    st.sampled_from([1, 3]),
    st.sampled_from(["default", 0, 200_000]),
)
def test_parts_are_what_h5py_reads(
    file: Path, dtype: str, name: str, indices: list[Any], threads: int, cache: Any
) -> None:
    with (
        chunkwise.settings(threads=threads, cache_nbytes=cache),
        h5py.File(file) as theirs,
        chunkwise.open(file) as ours,
    ):
        # Once more out of what is kept.
        for index in [*indices, *indices]:
            expected = theirs[f"{dtype} {name}"][index]
            got = ours[f"{dtype} {name}"][index]
            assert got.dtype == expected.dtype
            assert got.tobytes() == expected.tobytes(), index


@pytest.mark.parametrize("name", ALONE)
def test_a_small_part_decodes_the_blocks_that_explain_tells(file: Path, name: str) -> None:
    index = (slice(0, 3), slice(20, 24), slice(10, 14))
    with chunkwise.open(file) as f:
        d = f[f"<f8 {name}"]
        plan: Any = d.explain(index)
        chunks, blocks = decoded()
        assert np.array_equal(d[index], data("<f8")[index])
        after = decoded()
        if plan["blocks"] is None:
            # The filter was left out, as it makes nothing smaller.
            assert name == "blosc stored"
            assert after == (chunks, blocks)
        elif plan["decoded_blocks"] == plan["blocks"]:
            # Its blocks are too large for that.
            assert after == (chunks + 1, blocks)
        else:
            assert 2 * plan["decoded_blocks"] <= plan["blocks"]
            assert after == (chunks + 1, blocks + plan["decoded_blocks"])
            assert plan["decoded_nbytes"] < 3 * 200 * 130 * 8
        # Nothing twice.
        assert np.array_equal(d[index], data("<f8")[index])
        assert decoded() == after


def test_what_is_not_in_blocks_has_none(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as f:
        f.create_dataset("d", data=data("<f8"), chunks=CHUNK, compression="gzip")
        shuffled = [Case(h5py.h5z.FILTER_SHUFFLE), FILTERS["lz4"]]
        create(f, "s", "<f8", SHAPE, CHUNK, shuffled)[...] = data("<f8")
        create(f, "delta", "<f8", SHAPE, CHUNK, [FILTERS["blosc2 delta"]])[...] = data("<f8")
    with chunkwise.open(tmp_path / "f.h5") as f:
        for name in ("d", "s", "delta"):
            plan = f[name].explain(np.s_[0, 0, :5])
            assert (plan["decoded_blocks"], plan["blocks"]) == (None, None)
            assert plan["decoded_nbytes"] == 3 * 200 * 130 * 8


def outcome(d: Any, index: Any, whole: bool = False) -> Any:
    """What is read, or the error; of a frame that is read whole, if asked for."""
    try:
        return d[index[0]][index[1:]] if whole else d[index]
    except ChunkwiseError as error:
        return error


@settings(max_examples=40, derandomize=True)
@given(
    st.sampled_from(ALONE),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=3),
    st.booleans(),
    st.lists(INDICES, min_size=1, max_size=4),
)
def test_damage_that_was_met_is_told(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    changes: list[tuple[float, int]],
    at_the_head: bool,
    indices: list[Any],
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "damaged.h5"
    chunk, sound = (1, *SHAPE[1:]), data("<u2")
    with h5py.File(path, "w") as f:
        d = create(f, "d", "<u2", SHAPE, chunk, [FILTERS[name]])
        d[...] = sound
        places = [d.id.get_chunk_info(number) for number in range(SHAPE[0])]
    with path.open("r+b") as raw:
        for place in places:
            within = 100 if at_the_head else place.size
            for at, byte in changes:
                raw.seek(place.byte_offset + int(at * within))
                raw.write(bytes([byte]))
    for index in indices:
        # Without threads and cache a whole chunk is decoded as one.
        with chunkwise.settings(threads=1, cache_nbytes=0), chunkwise.open(path) as f:
            frames = range(*index[0].indices(SHAPE[0]))
            outcomes = [outcome(f["d"], (frame, *index[1:]), whole=True) for frame in frames]
        with chunkwise.open(path) as f:
            got = outcome(f["d"], index)
        if isinstance(got, ChunkwiseError):
            refused = [one for one in outcomes if isinstance(one, ChunkwiseError)]
            assert str(got) in {str(one) for one in refused}
            assert {type(one) for one in refused} >= {type(got)}
            continue
        for part, whole, true in zip(got, outcomes, sound[index], strict=True):
            # Where the chunk is damaged elsewhere, this part of it is as it was written.
            expected = true if isinstance(whole, ChunkwiseError) else whole
            assert np.array_equal(part, expected)
    path.unlink()
