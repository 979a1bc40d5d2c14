"""What the engine's filters store is what libhdf5's decode, and the other way round."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import UsageError
from tests.support.filtered import (
    BLOSC2S,
    CASES,
    DTYPES,
    FLOATS,
    INTEGERS,
    KINDS,
    OWN_OPTIONS,
    SHAPES,
    SZIPS,
    Case,
    assert_native,
    create,
    of_plugin,
    values,
)
from tests.support.reading import same

Array = Any
ANY = CASES


def whole_chunk(data: Array, chunk: tuple[int, ...]) -> Array:
    """The first chunk of `data`, filled up with zeros, C-contiguous."""
    raw = np.zeros(chunk, data.dtype)
    part = data[tuple(slice(n) for n in chunk)]
    raw[tuple(slice(n) for n in part.shape)] = part
    return raw


class Pairs:
    """Chunks encoded here, each beside the same one encoded by libhdf5's filters."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw: list[Array] = []
        self.masks: list[int] = []
        self.file = h5py.File(path, "w")

    def add(self, raw: Array, filters: list[Case], **more: Any) -> None:
        number = len(self.raw)
        ours, theirs = (
            create(self.file, f"{who} {number}", raw.dtype, raw.shape, raw.shape, filters, **more)
            for who in ("ours", "theirs")
        )
        stored, mask = _native.encode_chunk(library(), ours.id.id, raw)
        ours.id.write_direct_chunk((0,) * raw.ndim, stored, mask)
        theirs[...] = raw
        self.raw.append(raw)
        self.masks.append(mask)

    def check(self, *, lossy: bool = False, same_bytes: bool = False) -> None:
        """libhdf5's filters decode both to the same: what was written, unless `lossy`."""
        self.file.close()
        with h5py.File(self.path) as f:
            for number, raw in enumerate(self.raw):
                ours, theirs = f[f"ours {number}"], f[f"theirs {number}"]
                assert same(ours[...], theirs[...]), (number, raw.dtype)
                assert lossy or same(ours[...], raw), (number, raw.dtype)
                # Decoded here as well, whole and in parts, whoever encoded it.
                for one in (ours, theirs):
                    assert_native(one, 2)
                mask, stored = theirs.id.read_direct_chunk((0,) * raw.ndim)
                if same_bytes and not mask:
                    assert ours.id.read_direct_chunk((0,) * raw.ndim)[1] == stored, raw.dtype
                if mask and not self.masks[number]:
                    # As long, libhdf5 would keep our mask when it leaves the filter out.
                    assert ours.id.get_storage_size() != len(stored), (number, raw.dtype)


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[Pairs]:
    made = Pairs(tmp_path / "pairs.h5")
    yield made
    made.file.close()


@pytest.mark.parametrize("case", ANY.values(), ids=ANY.keys())
@pytest.mark.slow
def test_types_shapes_and_data(pairs: Pairs, case: Case) -> None:
    shuffle = Case(h5py.h5z.FILTER_SHUFFLE)
    fletcher32 = Case(h5py.h5z.FILTER_FLETCHER32)
    pipelines = [[case], [shuffle, case, fletcher32], [fletcher32, case]]
    if case.number not in OWN_OPTIONS:
        pipelines.append([case, case])
    for number, dtype in enumerate(DTYPES):
        for kind in KINDS:
            shape, chunk = SHAPES[(number + len(kind)) % len(SHAPES)]
            raw = whole_chunk(values(dtype, shape, kind), chunk)
            pairs.add(raw, pipelines[(number + len(kind)) % len(pipelines)])
    pairs.check()


@pytest.mark.parametrize("case", BLOSC2S.values(), ids=BLOSC2S.keys())
@pytest.mark.slow
def test_blosc2(pairs: Pairs, case: Case) -> None:
    """One dimension is stored as it is; more are cut into boxes, which may not fit."""
    shapes = [(10,), (40_000,), (5, 7), (99, 257), (2, 9, 4), (30, 20, 25, 3)]
    others = [[], [Case(h5py.h5z.FILTER_DEFLATE, (1,))], [Case(h5py.h5z.FILTER_FLETCHER32)]]
    for number, dtype in enumerate([*DTYPES, "S40"]):
        for kind in [*KINDS, "zeros"]:
            shape = shapes[(number + len(kind)) % len(shapes)]
            raw = np.zeros(shape, dtype) if kind == "zeros" else values(dtype, shape, kind)
            pairs.add(raw, [case, *others[number % 3]])
    pairs.check()
    assert set(pairs.masks) == {0}


@pytest.mark.parametrize("case", SZIPS.values(), ids=SZIPS.keys())
@pytest.mark.slow
def test_szip(pairs: Pairs, case: Case) -> None:
    """Both codings, over lines that are whole blocks and lines that are not; the same bytes."""
    shapes = [(37,), (5, 33), (4, 500), (2, 4800), (3, 4096)]
    for number, (dtype, kind) in enumerate(itertools.product([*INTEGERS, *FLOATS], KINDS)):
        pairs.add(values(dtype, shapes[number % 5], kind), [case])
    pairs.check(same_bytes=True)
    assert set(pairs.masks) == {0}


@pytest.mark.parametrize("fill", [None, 3, "undefined"])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.slow
def test_scaleoffset(pairs: Pairs, dtype: str, fill: int | str | None) -> None:
    """As many bits as needed, too few and all; what is lost is what libhdf5 loses."""
    whole = np.dtype(dtype).kind in "iu"
    factors = [0, 1, 3, 7, 8 * np.dtype(dtype).itemsize] if whole else [-2, 0, 1, 3, 9, 12]
    rng = np.random.default_rng(1)
    shape = (4, 170)
    more = {} if fill is None else {"fill": fill}
    for factor, kind in itertools.product(factors, [*KINDS, "all", "far", "odd", "wide"]):
        case = Case(h5py.h5z.FILTER_SCALEOFFSET, (2 if whole else 0, factor % 2**32))
        raw = np.zeros(shape, dtype)
        if kind == "all":
            raw[...] = 3
        elif kind == "far":
            raw[...] = rng.choice([0, 1, 3, 100], shape)
            raw[3, 5:7] = [np.iinfo(dtype).max, np.iinfo(dtype).min] if whole else [1e30, -1e30]
        elif whole and kind == "wide":
            top = np.iinfo(dtype).max
            some = np.array([top, top - 3, np.iinfo(dtype).min + 1 + factor, 3], dtype)
            raw[...] = rng.choice(some, shape)
        elif whole:
            raw[...] = values(dtype, shape, kind if kind in KINDS else "few")
        else:
            raw[...] = np.round(rng.normal(size=shape), 3) * (kind != "constant")
            raw[...] *= 1e6 if kind == "wide" else 1
            if kind == "odd":
                # Not first: then libhdf5's filter stores nothing that makes sense.
                raw[2, 3:9] = [np.nan, -0.0, 0.5, 1.5, 2.5, 3.00001]
                raw[0, 0] = -1000
        pairs.add(raw, [case], **more)
    pairs.check(lossy=True)
    assert set(pairs.masks) == {0}


@pytest.mark.parametrize(("first", "factor"), [(np.nan, 2), (0, 400)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_scaleoffset_keeps_what_cannot_be_scaled(
    tmp_path: Path, dtype: str, first: float, factor: int
) -> None:
    """Of which libhdf5's filter stores what it cannot read, in single precision."""
    raw = np.linspace(0, 7, 300).astype(dtype)
    raw[0] = first
    case = Case(h5py.h5z.FILTER_SCALEOFFSET, (0, factor))
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = create(f, "x", dtype, raw.shape, raw.shape, [case])
        stored, mask = _native.encode_chunk(library(), d.id.id, raw)
        d.id.write_direct_chunk((0,), stored, mask)
    with h5py.File(tmp_path / "x.h5") as f:
        assert same(f["x"][...], raw)


def test_nbit(pairs: Pairs) -> None:
    """Types of which all bits count, and the long double."""
    padded: Any = {"names": ["a", "b"], "formats": ["<i2", np.longdouble], "offsets": [0, 16]}
    types: list[Any] = [*DTYPES, np.longdouble, np.dtype(padded)]
    types.append(np.dtype([("c", np.longdouble, (3,)), ("d", "S3")]))
    types.append(np.dtype([(f"m{i}", ">i2" if i % 3 else np.longdouble) for i in range(41)]))
    for dtype in types:
        if np.dtype(dtype).names or np.dtype(dtype) == np.longdouble:
            raw = np.arange(68).reshape(4, 17).astype("f8").astype(dtype)
        else:
            raw = values(dtype, (4, 17), "random")
        pairs.add(raw, [Case(h5py.h5z.FILTER_NBIT)])
    pairs.check(lossy=True)


@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("order", ["<", ">"])
def test_nbit_of_few_bits(tmp_path: Path, order: str, offset: int) -> None:
    kind = (h5t.STD_U32LE if order == "<" else h5t.STD_U32BE).copy()
    kind.set_precision(20)
    kind.set_offset(offset)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4, 17))
    dcpl.set_filter(h5py.h5z.FILTER_NBIT)
    numbers = np.arange(68, dtype="u4").reshape(4, 17) * 997
    with h5py.File(tmp_path / "x.h5", "w") as f:
        space = h5s.create_simple((4, 17))
        d = h5py.Dataset(h5d.create(f.id, b"x", kind, space, dcpl))
        raw = (numbers << offset).astype(f"{order}u4")
        stored, mask = _native.encode_chunk(library(), d.id.id, raw)
        d.id.write_direct_chunk((0, 0), stored, mask)
        # 20 of 32 bits, and the byte behind them.
        assert (len(stored), mask) == (68 * 20 // 8 + 1, 0)
    with h5py.File(tmp_path / "x.h5") as f:
        out = np.empty((4, 17), "u4")
        f["x"].id.read(h5s.ALL, h5s.ALL, out, h5t.NATIVE_UINT32)
        assert np.array_equal(out, numbers)


REAL = {
    **{f"szip {k}": Case(h5py.h5z.FILTER_SZIP, (mask, 16)) for k, mask in (("ec", 4), ("nn", 32))},
    **{name: CASES[name] for name in ("lzf", "bzip2 9")},
    **{name: case for name, case in CASES.items() if "blosc" in name and name != "blosc stored"},
    **{name: case for name, case in CASES.items() if "bitshuffle" in name},
    **{name: case for name, case in BLOSC2S.items() if name.endswith(("1", "2"))},
}


@pytest.mark.parametrize("case", REAL.values(), ids=REAL.keys())
@pytest.mark.slow
def test_as_small_as_the_original(pairs: Pairs, case: Case) -> None:
    rng = np.random.default_rng(5)
    walk = np.cumsum(rng.integers(-2, 3, 1 << 16))
    waves = np.sin(np.arange(1 << 16) / 300) * 1000
    for raw in [(walk / 16).astype("f4"), walk.astype("<i2"), waves.astype("<i4")]:
        pairs.add(raw.reshape(256, -1), [case])
    pairs.check()
    with h5py.File(pairs.path) as f:
        for number, mask in enumerate(pairs.masks):
            ours, theirs = (f[f"{who} {number}"].id for who in ("ours", "theirs"))
            sizes = ours.get_storage_size(), theirs.get_storage_size()
            assert sizes[0] <= 1.1 * sizes[1] + 64, sizes
            assert mask == 0


@pytest.mark.parametrize("flag", [h5py.h5z.FLAG_OPTIONAL, h5py.h5z.FLAG_MANDATORY])
def test_what_does_not_shrink(tmp_path: Path, flag: int) -> None:
    """No filter is left out, and little is added: libhdf5's own rewriting trips over masks."""
    cases = {**CASES, **SZIPS, **BLOSC2S, "deflate": Case(h5py.h5z.FILTER_DEFLATE, (6,))}
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        for name, case in cases.items():
            for dtype, count in (("<i4", 300), ("<i4", 16384), ("u1", 7), ("u1", 4096)):
                dcpl = h5p.create(h5p.DATASET_CREATE)
                dcpl.set_chunk((count,))
                dcpl.set_filter(case.number, flag, case.cd_values)
                kind, space = h5t.py_create(np.dtype(dtype)), h5s.create_simple((count,))
                label = f"{name} {dtype} {count}"
                try:
                    d = h5py.Dataset(h5d.create(f.id, label.encode(), kind, space, dcpl))
                except (OSError, ValueError, RuntimeError):
                    continue  # The filter takes no chunk of this shape.
                raw = np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype)
                stored, mask = _native.encode_chunk(library(), d.id.id, raw)
                assert mask == 0, label
                if count > 4000 and not name.startswith(("bitshuffle", "bzip2")):
                    assert len(stored) <= 1.13 * raw.nbytes + 256, (label, len(stored))
                d.id.write_direct_chunk((0,), stored, mask)
                assert same(d[...], raw), label


def test_what_only_libhdf5_encodes(tmp_path: Path) -> None:
    others = [hdf5plugin.Zfp(reversible=True), hdf5plugin.Blosc(cname="snappy")]
    with h5py.File(tmp_path / "x.h5", "w") as f:
        for number, options in enumerate(others):
            case = of_plugin(options)
            d = create(f, str(number), "<f4", (40, 30), (16, 16), [case])
            with pytest.raises(UsageError, match="is not encoded natively"):
                _native.encode_chunk(library(), d.id.id, np.zeros((16, 16), "<f4"))
