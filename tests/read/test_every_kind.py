"""Every kind of type, layout, filter and edge case reads as h5py reads it."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from tests.support.reading import LEFT_TO_LIBHDF5, assert_reads_like_h5py, same

TYPES: dict[str, Any] = {
    "i1": "i1",
    "u2 big-endian": ">u2",
    "i4": "<i4",
    "u8 big-endian": ">u8",
    "f2": "<f2",
    "f4 big-endian": ">f4",
    "f8": "<f8",
    "long double": np.longdouble,
    "complex": "<c8",
    "bool": "?",
    "string": "S7",
    "opaque": "V5",
    "enum": h5py.enum_dtype({"LOW": 0, "HIGH": 3}, basetype="u1"),
    "compound": np.dtype([("a", "<i2"), ("b", ">f8")]),
    "padded compound": np.dtype(
        {"names": ["a", "b"], "formats": ["<i2", "<f8"], "offsets": [0, 8]}
    ),
    "array": np.dtype(("<i4", (3,))),
}
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "deflate": {"compression": 1},
    "shuffle": {"shuffle": True},
    "shuffle+deflate": {"shuffle": True, "compression": 4},
    "all": {"shuffle": True, "compression": 6, "fletcher32": True},
    "fletcher32": {"fletcher32": True},
    "lzf": {"compression": "lzf"},
}
# Shape, and a chunk shape that does not divide it.
SHAPES = [
    ((37,), (10,)),
    ((13, 22), (5, 7)),
    ((5, 9, 11), (2, 9, 4)),
    ((3, 4, 5, 6), (2, 3, 5, 1)),
]


def values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Bytes that repeat now and then, so that filters have something to do."""
    rng = np.random.default_rng(1)
    if dtype == np.dtype("?"):
        return rng.integers(0, 2, shape).astype("?")
    if dtype.kind == "S":
        return rng.integers(0, 10**6, shape).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = rng.integers(0, 5, count, dtype="u1").tobytes()
    return np.frombuffer(raw, dtype.base).reshape(shape + dtype.shape)


@pytest.mark.parametrize("user_block", [0, 1024])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.slow
def test_types_filters_and_shapes(tmp_path: Path, libver: str, user_block: int) -> None:
    path = tmp_path / "matrix.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as f:
        for (tn, t), (fn, filters) in itertools.product(TYPES.items(), FILTERS.items()):
            for number, (shape, chunk) in enumerate(SHAPES):
                if fn != "none" and (number + len(tn) + len(fn)) % 2:
                    continue
                dtype = np.dtype(t)
                name = f"{tn}/{fn}/{number}"
                f.create_dataset(name, shape, dtype, chunks=chunk, **filters)[...] = values(
                    dtype, shape
                )
                if fn == "none" and not dtype.shape:
                    f.create_dataset(f"{name} contiguous", data=values(dtype, shape), dtype=dtype)
    native = 0
    with h5py.File(path) as f:
        names: list[str] = []
        f.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
        assert len(names) > 200
        for seed, name in enumerate(names):
            assert_reads_like_h5py(f[name], 12, seed)
            native += chunkwise.wrap(f[name]).explain()["path"] != "libhdf5"
    # Types whose stored form h5py converts are left to libhdf5.
    assert native > 0.8 * len(names)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fill": {"fillvalue": -999.3},
    "deflate": {"compression": 1},
}


def test_sparse_and_shrunk_and_empty(tmp_path: Path) -> None:
    path = tmp_path / "sparse.h5"
    with h5py.File(path, "w") as f:
        for name, more in KINDS.items():
            unlimited: Any = {"dtype": "f4", "chunks": (7, 9), "maxshape": (None, None), **more}
            d = f.create_dataset(name, (40, 40), **unlimited)
            d[8, 8] = 3
            d[30:, 5:20] = 5
            f.create_dataset(f"{name} never", (40, 40), "f4", chunks=(7, 9), **more)
            s = f.create_dataset(f"{name} shrunk", (40, 40), **unlimited)
            s[...] = 1
            s.resize((23, 31))
            s.resize((50, 35))
        f.create_dataset("contiguous never", (40, 40), "f4", fillvalue=4)
        f.create_dataset("contiguous zero", (40, 0, 3), "f4")
        f.create_dataset("chunked zero", (0, 5), "f4", chunks=(2, 2), maxshape=(None, 5))
        f.create_dataset("larger chunk", (3, 4), "i4", chunks=(10, 10), maxshape=(10, 10))[...] = 7
    with h5py.File(path) as f:
        for seed, name in enumerate(f):
            assert_reads_like_h5py(f[name], 60, seed)
            assert chunkwise.wrap(f[name]).explain()["path"] != "libhdf5", name
        assert chunkwise.wrap(f["fill"]).explain()["missing_chunks"] > 10


def low_level(f: h5py.File, name: str, shape: tuple[int, ...], dcpl: Any) -> h5py.Dataset:
    space = h5s.create_simple(shape)
    return h5py.Dataset(h5d.create(f.id, name.encode(), h5t.IEEE_F32LE, space, dcpl))


def test_fill_time_and_undefined_fill_value(tmp_path: Path) -> None:
    path = tmp_path / "fill.h5"
    with h5py.File(path, "w") as f:
        for time, chunked in itertools.product(
            (h5d.FILL_TIME_NEVER, h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET), (True, False)
        ):
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_fill_time(time)
            dcpl.set_fill_value(np.array(7, "f4"))
            if chunked:
                dcpl.set_chunk((4, 4))
            d = low_level(f, f"time {time} {chunked}", (10, 10), dcpl)
            if chunked:
                d[5:7, 2] = 1
    with h5py.File(path) as f:
        for name in f:
            assert_reads_like_h5py(f[name], 30)
            ours, out = chunkwise.wrap(f[name]), np.full((10, 10), 42, "f4")
            ours.read(out=out)
            want = np.full((10, 10), 42, "f4")
            f[name].read_direct(want)
            if ours.explain()["path"] == "chunked" and "never" not in name:
                written = ours[...] == 1
                assert np.array_equal(out[written], want[written])


def leave_partial_chunks_unfiltered(dcpl: Any) -> None:
    """H5Pset_chunk_opts, which h5py lacks, called in h5py's own libhdf5."""
    libhdf5 = ctypes.CDLL(h5d.__file__)
    libhdf5.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    dont_filter_partial_chunks = 2
    assert libhdf5.H5Pset_chunk_opts(dcpl.id, dont_filter_partial_chunks) >= 0


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
        low_level(f, "edges", (20, 20), dcpl)[...] = np.arange(400).reshape(20, 20)
        twice = h5p.create(h5p.DATASET_CREATE)
        twice.set_chunk((7, 7))
        twice.set_fletcher32()
        twice.set_shuffle()
        twice.set_deflate(2)
        twice.set_deflate(5)
        twice.set_fletcher32()
        low_level(f, "twice", (20, 20), twice)[...] = np.arange(400).reshape(20, 20)
    with h5py.File(path) as f:
        assert np.array_equal(chunkwise.wrap(f["masked"])[...], whole)
        # Of 3x3 chunks of 7x7 in 20x20, five lie at an edge and keep their 196 bytes.
        sizes = [f["edges"].id.get_chunk_info(i).size for i in range(9)]
        assert sizes.count(196) == 5
        for name in f:
            assert chunkwise.wrap(f[name]).explain()["path"] == "chunked", name
            assert_reads_like_h5py(f[name], 40)


def test_netcdf_c_pipeline(tmp_path: Path) -> None:
    """netCDF-C puts Fletcher-32 before shuffle and deflate."""
    netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806
    path = tmp_path / "c.nc"
    with netCDF4.Dataset(path, "w") as nc:
        for name, size in (("t", None), ("y", 30), ("x", 40)):
            nc.createDimension(name, size)
        v = nc.createVariable(
            "v", ">f8", ("t", "y", "x"), zlib=True, shuffle=True, fletcher32=True, fill_value=-1
        )
        v[:5] = np.random.default_rng(0).normal(size=(5, 30, 40))
        nc.createVariable("s", str, ("y",))[:] = np.array([f"name {i}" for i in range(30)], object)
    with h5py.File(path) as f:
        for name in ("v", "s", "t", "x"):
            assert_reads_like_h5py(f[name], 40)
        assert chunkwise.wrap(f["v"]).explain()["path"] == "chunked"


def test_every_index_type(tmp_path: Path) -> None:
    path = tmp_path / "indexes.h5"
    data = np.arange(30 * 40, dtype="i4").reshape(30, 40)
    with h5py.File(path, "w", libver="latest", userblock_size=512) as f:
        f.create_dataset("single chunk", data=data, chunks=(30, 40), compression=1)
        f.create_dataset("fixed array", data=data, chunks=(7, 9), compression=1)
        f.create_dataset("extensible array", data=data, chunks=(7, 9), maxshape=(None, 40))
        f.create_dataset("v2 b-tree", data=data, chunks=(7, 9), maxshape=(None, None))
        early = h5p.create(h5p.DATASET_CREATE)
        early.set_chunk((7, 9))
        early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        d = h5py.Dataset(
            h5d.create(f.id, b"implicit", h5t.NATIVE_INT32, h5s.create_simple((30, 40)), early)
        )
        d[...] = data
    with h5py.File(path) as f:
        for name in f:
            assert np.array_equal(chunkwise.wrap(f[name])[...], data), name
            assert chunkwise.wrap(f[name]).explain()["path"] == "chunked", name
            assert_reads_like_h5py(f[name], 30)


def test_what_libhdf5_has_to_read(tmp_path: Path) -> None:
    path, other = tmp_path / "left.h5", tmp_path / "raw.bin"
    data = np.arange(60, dtype="i4").reshape(6, 10)
    with h5py.File(path, "w") as f:
        f.create_dataset("variable-length strings", data=["a", "bcd", "é" * 300])
        vlen = f.create_dataset("variable-length", (3,), h5py.vlen_dtype("i4"))
        vlen[0], vlen[2] = [1, 2], [3]
        refs = [f.ref, f["variable-length"].ref]
        f.create_dataset("references", data=refs, dtype=h5py.ref_dtype)
        f.create_dataset("scalar", data=3.5)
        f.create_dataset("null", data=h5py.Empty("f4"))
        f.create_dataset("zfp", data=data, **LEFT_TO_LIBHDF5)
        f.create_dataset("source", data=data)
        compact = h5p.create(h5p.DATASET_CREATE)
        compact.set_layout(h5d.COMPACT)
        low_level(f, "compact", (5, 5), compact)[...] = 3
        f.create_dataset("external", data=data, external=[(str(other), 0, h5py.h5f.UNLIMITED)])
        layout = h5py.VirtualLayout((2, 6, 10), "i4")
        layout[0] = h5py.VirtualSource(path, "source", (6, 10))
        layout[1] = h5py.VirtualSource(path, "zfp", (6, 10))
        f.create_virtual_dataset("virtual", layout)
        short = h5t.STD_I32LE.copy()
        short.set_precision(20)
        space = h5s.create_simple((3,))
        h5py.Dataset(h5d.create(f.id, b"20 bits", short, space))[...] = 1, 2, 3
    reasons = {
        "variable-length strings": "variable length",
        "variable-length": "variable length",
        "references": "references",
        "scalar": "scalar",
        "null": "null",
        "zfp": "filter 32013",
        "compact": "compact",
        # Of a source.
        "virtual": "filter 32013",
        "20 bits": "converted",
    }
    with h5py.File(path) as f:
        for name, reason in reasons.items():
            plan = chunkwise.wrap(f[name]).explain()
            assert plan["path"] == "libhdf5", name
            assert reason in plan["reason"], (name, plan)
            assert_reads_like_h5py(f[name], 20)
        assert chunkwise.wrap(f["external"]).explain()["path"] == "contiguous"
        zfp = chunkwise.wrap(f["zfp"]).explain(chunkwise.hyperslab((0, 0), (1, 10)))
        assert zfp["chunks"] == 1
        assert zfp["selected_nbytes"] == 40


def test_files_that_are_not_plain_or_not_read_only(tmp_path: Path) -> None:
    path = tmp_path / "open.h5"
    data = np.arange(60, dtype="i4").reshape(6, 10)
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", data=data, chunks=(2, 5), compression=1)
        assert "open for writing" in chunkwise.wrap(d).explain()["reason"]
        assert same(chunkwise.wrap(d)[...], data)
        d[0, 0] = 77
        assert chunkwise.wrap(d)[0, 0] == 77
    with h5py.File(path, "r", swmr=True) as f:
        assert "SWMR" in chunkwise.wrap(f["x"]).explain()["reason"]
        assert_reads_like_h5py(f["x"], 10)
    with h5py.File(path, "r", driver="core") as f:
        assert "sec2" in chunkwise.wrap(f["x"]).explain()["reason"]
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
        d = ours["link"]
        assert isinstance(d, chunkwise.Dataset)
        assert d.explain()["path"] == "chunked"
        assert np.array_equal(d[...], np.arange(100))
