"""What the engine's filters decode is, byte for byte, what libhdf5's filters decode."""

from __future__ import annotations

import ctypes
import itertools
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import ChunkwiseError
from tests.reading import assert_reads_like_h5py, same

# Filters that add to their options what they find out about the dataset.
OWN_OPTIONS = {2, 4, 5, 6, 32000, 32001, 32008}
DTYPES = ["i1", "<u2", ">i4", "<u8", "<f4", ">f8", "<c16", "S3", "V5", "?"]
SHAPES = [((37,), (10,)), ((13, 22), (5, 7)), ((5, 9, 11), (2, 9, 4)), ((3000,), (1100,))]

SLOW = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Case:
    """A filter with options: HDF5's number, and cd_values as for ``H5Pset_filter``."""

    number: int
    cd_values: tuple[int, ...] = ()


def of_plugin(options: Any) -> Case:
    found = dict(options)
    return Case(found["compression"], tuple(found["compression_opts"]))


def bloscs() -> Iterator[tuple[str, Case]]:
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            level = 1 + 4 * shuffle
            options = hdf5plugin.Blosc(cname=codec, clevel=level, shuffle=shuffle)
            yield f"blosc {codec} {shuffle}", of_plugin(options)
    yield "blosc stored", of_plugin(hdf5plugin.Blosc(clevel=0))


def bitshuffles() -> Iterator[tuple[str, Case]]:
    for codec in ("none", "lz4", "zstd"):
        for block in (0, 16, 1024):
            options = hdf5plugin.Bitshuffle(nelems=block, cname=codec)
            yield f"bitshuffle {codec} {block}", of_plugin(options)


# Over any bytes, and so in any place of a pipeline.
CASES: dict[str, Case] = {
    **{f"zstd {level}": of_plugin(hdf5plugin.Zstd(level)) for level in (-5, 1, 3, 19)},
    "lz4": of_plugin(hdf5plugin.LZ4()),
    "lz4 in blocks": of_plugin(hdf5plugin.LZ4(nbytes=1000)),
    "lzf": Case(h5py.h5z.FILTER_LZF),
    "bzip2 1": of_plugin(hdf5plugin.BZip2(1)),
    "bzip2 9": of_plugin(hdf5plugin.BZip2(9)),
    **dict(bitshuffles()),
    **dict(bloscs()),
}
# Over elements, and so first in a pipeline.
SZIPS = {
    f"szip {name} {pixels}": Case(h5py.h5z.FILTER_SZIP, (mask, pixels))
    for name, mask in (("ec", 4), ("nn", 32))
    for pixels in (4, 8, 10, 32)
}
INTEGERS = ["i1", "u1", "<i2", ">i2", "<u2", ">u4", "<i4", ">i8", "<u8", "<i8"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]
KINDS = ["constant", "few", "smooth", "random"]


def values(dtype: Any, shape: tuple[int, ...], kind: str, seed: int = 0) -> Any:
    """Elements that compress well, or not at all: then chunks get longer."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 1 if kind == "constant" else 2, shape).astype(dtype)
    if kind == "smooth" and dtype.kind in "iuf":
        return (np.cumsum(rng.integers(0, 3, count)) % 120).astype(dtype).reshape(shape)
    low, high = {"constant": (7, 8), "few": (1, 4), "smooth": (1, 4), "random": (1, 256)}[kind]
    raw = rng.integers(low, high, count * dtype.itemsize, dtype="u1")
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def create(
    file: h5py.File,
    name: str,
    dtype: Any,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    filters: list[Case],
    **more: Any,
) -> h5py.Dataset:
    """A dataset with any filters in any order, which `create_dataset` does not allow."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    if more.get("fill") == "undefined":
        # H5Pset_fill_value with NULL, which h5py lacks, called in h5py's own libhdf5.
        set_fill_value = ctypes.CDLL(h5d.__file__).H5Pset_fill_value
        set_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        assert set_fill_value(dcpl.id, h5t.NATIVE_INT32.id, None) >= 0
    elif "fill" in more:
        dcpl.set_fill_value(np.array(more["fill"], dtype))
    for case in filters:
        dcpl.set_filter(case.number, h5py.h5z.FLAG_OPTIONAL, case.cd_values)
    space = h5s.create_simple(shape)
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5d.create(file.id, name.encode(), kind, space, dcpl))


def assert_native(theirs: h5py.Dataset, times: int = 4) -> None:
    """The engine reads it, whole and in parts, as h5py does."""
    ours = chunkwise.wrap(theirs)
    plan = ours.explain()
    assert plan["path"] == "chunked", plan["reason"]
    assert same(ours[...], theirs[...]), theirs.name
    assert_reads_like_h5py(theirs, times)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_types_shapes_and_data(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "types.h5"
    shuffle = Case(h5py.h5z.FILTER_SHUFFLE)
    fletcher32 = Case(h5py.h5z.FILTER_FLETCHER32)
    with h5py.File(path, "w") as f:
        for number, dtype in enumerate(DTYPES):
            for kind in KINDS:
                shape, chunk = SHAPES[(number + len(kind)) % len(SHAPES)]
                data = values(dtype, shape, kind)
                for name, filters in {
                    "alone": [case],
                    "after shuffle": [shuffle, case],
                    "between": [fletcher32, case, fletcher32],
                    "twice": [case, case],
                }.items():
                    if name == "twice" and case.number in OWN_OPTIONS:
                        continue
                    create(f, f"{dtype} {kind} {name}", dtype, shape, chunk, filters)[...] = data
    with h5py.File(path) as f:
        for name in f:
            assert_native(f[name])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_fill_values_and_masks(tmp_path: Path, case: Case) -> None:
    """Chunks never written, and chunks whose mask says that the filter was left out."""
    path = tmp_path / "masks.h5"
    data = values("<i4", (40, 30), "smooth")
    with h5py.File(path, "w") as f:
        d = create(f, "x", "<i4", (40, 30), (16, 16), [case], fill=-7)
        d[:20, :20] = data[:20, :20]
        raw = np.ascontiguousarray(data[16:32, :16])
        d.id.write_direct_chunk((16, 0), raw.tobytes(), 1)
    with h5py.File(path) as f:
        assert_native(f["x"], 20)
        assert np.array_equal(chunkwise.wrap(f["x"])[16:32, :16], raw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filters")


@SLOW
@given(data=st.data())
def test_any_pipeline(folder: Path, data: st.DataObject) -> None:
    """Any filters in any order, over any type."""
    others = [Case(h5py.h5z.FILTER_SHUFFLE), Case(h5py.h5z.FILTER_FLETCHER32)]
    others.append(Case(h5py.h5z.FILTER_DEFLATE, (1,)))
    one = st.sampled_from(list(CASES.values())) | st.sampled_from(others)
    # The second of two that find out about the dataset gets no options, and crashes.
    rank = itertools.count()
    key = lambda case: case.number if case.number in OWN_OPTIONS else -next(rank)  # noqa: E731
    filters = data.draw(st.lists(one, min_size=1, max_size=4, unique_by=key))
    dtype = data.draw(st.sampled_from(DTYPES))
    shape, chunk = data.draw(st.sampled_from(SHAPES))
    kind = data.draw(st.sampled_from(KINDS))
    path = folder / "any.h5"
    path.unlink(missing_ok=True)
    with h5py.File(path, "w") as f:
        create(f, "x", dtype, shape, chunk, filters)[...] = values(dtype, shape, kind)
    with h5py.File(path) as f:
        assert_native(f["x"], 2)


def damaged(stored: bytes, rng: random.Random) -> Iterator[bytes]:
    """The bytes cut off, with bits flipped, with bytes overwritten, and others altogether."""
    yield stored[: rng.randrange(1, len(stored))]
    for _ in range(12):
        changed = bytearray(stored)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(min(len(changed), rng.choice([8, 40, len(changed)])))
            changed[at] = rng.choice([changed[at] ^ 1 << rng.randrange(8), 0, 255])
        yield bytes(changed)
    yield rng.randbytes(len(stored))


DAMAGED = {
    **CASES,
    **SZIPS,
    "scaleoffset": Case(h5py.h5z.FILTER_SCALEOFFSET, (2, 0)),
    "nbit": Case(h5py.h5z.FILTER_NBIT),
}


@pytest.mark.filterwarnings("ignore:.*reading through libhdf5:RuntimeWarning")
@pytest.mark.parametrize("case", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_chunks(tmp_path: Path, case: Case) -> None:
    """An error that says so, or bytes; never a crash."""
    sound, path = tmp_path / "sound.h5", tmp_path / "damaged.h5"
    rng = random.Random(str(case))
    dtype = np.longdouble if case.number == h5py.h5z.FILTER_NBIT else "<i4"
    raw = values("<i4", (500,), "smooth")
    with h5py.File(sound, "w") as f:
        create(f, "x", dtype, (500,), (500,), [case])[...] = raw
    with h5py.File(sound) as f:
        _, stored = f["x"].id.read_direct_chunk((0,))
    for changed in damaged(stored, rng):
        shutil.copy(sound, path)
        with h5py.File(path, "r+") as f:
            f["x"].id.write_direct_chunk((0,), changed, 0)
        with h5py.File(path) as f:
            try:
                got = chunkwise.wrap(f["x"])[...]
            except (ChunkwiseError, OSError):
                continue
            assert got.shape == (500,)


@pytest.mark.parametrize("case", SZIPS.values(), ids=SZIPS.keys())
def test_szip(tmp_path: Path, case: Case) -> None:
    """Both codings, over lines that are whole blocks and lines that are not."""
    path = tmp_path / "szip.h5"
    types = [*INTEGERS, *FLOATS]
    chunks = {(40,): (37,), (13, 90): (5, 33), (9, 600): (4, 500), (3, 5000): (2, 4800)}
    with h5py.File(path, "w") as f:
        for dtype, kind, (shape, chunk) in itertools.product(types, KINDS, chunks.items()):
            name = f"{dtype} {kind} {shape}"
            deflate = Case(h5py.h5z.FILTER_DEFLATE, (1,))
            filters = [case, deflate] if kind == "few" else [case]
            create(f, name, dtype, shape, chunk, filters)[...] = values(dtype, shape, kind)
    with h5py.File(path) as f:
        for name in f:
            assert_native(f[name], 1)


@pytest.mark.parametrize("fill", [None, 3, "undefined"])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_scaleoffset(tmp_path: Path, dtype: str, fill: int | str | None) -> None:
    """As many bits as needed, too few and all; for floats, any power of ten."""
    path = tmp_path / "scaleoffset.h5"
    whole = np.dtype(dtype).kind in "iu"
    factors = [0, 1, 3, 7, 8 * np.dtype(dtype).itemsize] if whole else [-2, 0, 1, 3, 9]
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        for factor, kind in itertools.product(factors, [*KINDS, "all", "far"]):
            cd_values = (2 if whole else 0, factor % 2**32)
            more = {} if fill is None else {"fill": fill}
            case = Case(h5py.h5z.FILTER_SCALEOFFSET, cd_values)
            d = create(f, f"{factor} {kind}", dtype, (9, 300), (4, 170), [case], **more)
            if kind == "all":
                d[...] = 3
            elif kind == "far":
                d[...] = rng.choice([0, 1, 3, 100], (9, 300))
                d[4, 5:7] = [np.iinfo(dtype).max, np.iinfo(dtype).min] if whole else [1e30, -1e30]
            elif whole:
                d[...] = values(dtype, (9, 300), kind)
            else:
                d[...] = np.round(rng.normal(size=(9, 300)), 3) * (kind != "constant")
    with h5py.File(path) as f:
        for name in f:
            assert_native(f[name], 2)


def test_nbit(tmp_path: Path) -> None:
    """Types of which all bits count, and the long double, of which 80 do."""
    path = tmp_path / "nbit.h5"
    case = Case(h5py.h5z.FILTER_NBIT)
    padded: Any = {"names": ["a", "b"], "formats": ["<i2", np.longdouble], "offsets": [0, 16]}
    types: list[Any] = [*DTYPES, np.longdouble, np.dtype(padded)]
    types.append(np.dtype([("c", np.longdouble, (3,)), ("d", "S3")]))
    with h5py.File(path, "w") as f:
        for number, dtype in enumerate(types):
            d = create(f, str(number), dtype, (9, 30), (4, 17), [case])
            if np.dtype(dtype).names or np.dtype(dtype) == np.longdouble:
                d[...] = np.arange(270).reshape(9, 30).astype("f8").astype(dtype)
            else:
                d[...] = values(dtype, (9, 30), "random")
        short = h5t.NATIVE_INT32.copy()
        short.set_precision(20)
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((4, 17))
        dcpl.set_filter(case.number)
        space = h5s.create_simple((9, 30))
        d = h5py.Dataset(h5d.create(f.id, b"short", short, space, dcpl))
        d[...] = np.arange(270).reshape(9, 30) - 100
    with h5py.File(path) as f:
        # h5py widens elements with fewer bits than NumPy's, which is libhdf5's business.
        assert "converted" in chunkwise.wrap(f["short"]).explain()["reason"]
        for name in f:
            ours = chunkwise.wrap(f[name])
            if name != "short":
                assert ours.explain()["path"] == "chunked", ours.explain()["reason"]
            assert same(ours[...], f[name][...]), (name, f[name].dtype)


def test_what_only_libhdf5_decodes(tmp_path: Path) -> None:
    """Other filters, and codecs that these filters may use, with a reason."""
    path = tmp_path / "left.h5"
    data = values("<f4", (40, 30), "smooth")
    filters = {
        "filter 32013": hdf5plugin.Zfp(reversible=True),
        "filter 32001": hdf5plugin.Blosc(cname="snappy"),
    }
    with h5py.File(path, "w") as f:
        for name, options in filters.items():
            f.create_dataset(name, data=data, chunks=(16, 16), **options)
        # A chunk that does not keep to its dataset's options.
        f.create_dataset("unlike", data=data, chunks=(40, 30), **hdf5plugin.Blosc(cname="lz4"))
        whole = f.create_dataset("s", data=data, chunks=(40, 30), **hdf5plugin.Blosc("snappy"))
        _, stored = whole.id.read_direct_chunk((0, 0))
        f["unlike"].id.write_direct_chunk((0, 0), stored, 0)
    with h5py.File(path) as f:
        for name in filters:
            assert name in chunkwise.wrap(f[name]).explain()["reason"]
            assert same(chunkwise.wrap(f[name])[...], data)
        with pytest.warns(RuntimeWarning, match="uses snappy"):
            assert same(chunkwise.wrap(f["unlike"])[...], data)
