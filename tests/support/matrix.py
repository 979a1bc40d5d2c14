"""Any type in any layout, behind any filters, of any shape: a dataset for each combination.

`combinations` draws them at random, the same for the same seed; `write` makes the dataset,
and `reasons` says which words tell why libhdf5 has to read it, if it has to.
"""

import ctypes
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

from tests.support.filtered import CASES, SZIPS, Case
from tests.support.native import call, leave_partial_chunks_unfiltered, undefine_fill

# --- types -----------------------------------------------------------------------------

PLAIN = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">i8", ">u8"]
FLOATS = ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
NESTED = np.dtype([("p", "<i2"), ("q", [("r", ">f4"), ("s", "S3", (2,))])])
DTYPES: dict[str, Any] = {
    **{name: name for name in [*PLAIN, *FLOATS]},
    "long double": np.longdouble,
    "c8": "<c8",
    "c16 big-endian": ">c16",
    "bool": "?",
    "enum": h5py.enum_dtype({"LOW": 0, "HIGH": 3}, basetype="u1"),
    "enum big-endian": h5py.enum_dtype({"A": -1, "B": 300}, basetype=">i2"),
    "compound": np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "?")]),
    "padded": np.dtype({"names": ["a", "b"], "formats": ["u1", "<f8"], "offsets": [3, 16]}),
    "nested": NESTED,
    "array": np.dtype(("<i4", (3,))),
    "array of arrays": np.dtype((np.dtype(("<i2", (2,))), (3,))),
    "array of compounds": np.dtype((np.dtype([("x", "u1"), ("y", "<f4")]), (2,))),
    "opaque": "V5",
    "date": h5py.opaque_dtype(np.dtype("<M8[s]")),
    "string": "S7",
    "utf-8 string": h5py.string_dtype("utf-8", 9),
}
POINTING: dict[str, Any] = {
    "variable-length string": h5py.string_dtype(),
    "variable-length": h5py.vlen_dtype("<i4"),
    "reference": h5py.ref_dtype,
    "region": h5py.regionref_dtype,
    "compound with a string": np.dtype([("a", "<i4"), ("s", h5py.string_dtype())]),
}


def _string(ending: int) -> Any:
    made = h5t.C_S1.copy()
    made.set_size(7)
    made.set_strpad(ending)
    return made


def _short() -> Any:
    made = h5t.STD_I32LE.copy()
    made.set_precision(20)
    return made


# Types that h5py gives in another form than they are stored in.
CONVERTED: dict[str, Any] = {
    "null-terminated": lambda: _string(h5t.STR_NULLTERM),
    "space-padded": lambda: _string(h5t.STR_SPACEPAD),
    "20 bits": _short,
    "bit field": lambda: h5t.STD_B16LE.copy(),
}
# Of these, what the engine converts itself.
TEXTS = ["null-terminated", "space-padded"]
TYPES = [*DTYPES, *POINTING, *CONVERTED]

# --- the other axes --------------------------------------------------------------------

LAYOUTS = ["contiguous", "compact", "virtual", "external", *["chunked"] * 5]
MAXSHAPES = ["fixed", "first unlimited", "last unlimited", "all unlimited", "larger"]
WRITTEN = ["whole", "whole", "whole", "part", "never", "shrunk", "grown"]
FILLS = ["default", "default", "value", "undefined", "never"]
BYTES_FILTERS: dict[str, list[Case]] = {
    "none": [],
    "deflate": [Case(h5z.FILTER_DEFLATE, (1,))],
    "deflate twice": [Case(h5z.FILTER_DEFLATE, (1,)), Case(h5z.FILTER_DEFLATE, (6,))],
    **{name: [CASES[name]] for name in ("lzf", "zstd 3", "lz4", "lz4 in blocks", "bzip2 1")},
}
TYPED_FILTERS: dict[str, list[Case]] = {
    "none": [],
    "shuffle": [Case(h5z.FILTER_SHUFFLE)],
    "nbit": [Case(h5z.FILTER_NBIT)],
    "scaleoffset": [Case(h5z.FILTER_SCALEOFFSET, (2, 0))],
    **({"szip": [SZIPS["szip nn 8"]]} if h5z.filter_avail(h5z.FILTER_SZIP) else {}),
    **{name: [CASES[name]] for name in ("bitshuffle lz4 0", "bitshuffle zstd 16")},
    **{name: [CASES[name]] for name in ("blosc blosclz 1", "blosc lz4 2", "blosc zstd 0")},
}
CHECKSUMS = ["none", "none", "first", "last"]
# As many dimensions as HDF5 has.
DEEPEST = (1,) * 28 + (2, 1, 3, 2)


@dataclass(frozen=True)
class Combination:
    """One dataset; printed where it does not read as it should."""

    kind: str
    layout: str
    shape: tuple[int, ...] | None
    chunk: tuple[int, ...]
    maxshape: str
    written: str
    fill: str
    filters: tuple[Case, ...]
    early: bool
    unfiltered_edges: bool
    masked: bool
    track_order: bool
    seed: int

    @property
    def resizable(self) -> bool:
        return self.layout == "chunked" and self.maxshape != "fixed"


def combinations(count: int, seed: int) -> Iterator[Combination]:
    """So many, at random."""
    rng = np.random.default_rng(seed)

    def one(of: Any) -> Any:
        items = list(of)
        return items[int(rng.integers(len(items)))]

    for number in range(count):
        rank = one([0, 1, 1, 2, 2, 3, 3, 4, 5])
        most = {0: 1, 1: 60, 2: 22, 3: 9, 4: 6, 5: 4}[rank]
        shape: tuple[int, ...] | None = tuple(int(n) for n in rng.integers(1, most + 1, rank))
        odd = int(rng.integers(0, 25))
        if odd == 0:
            shape = None
        elif odd == 1:
            shape = DEEPEST
        elif odd == 2 and rank:
            shape = (*shape[:-1], 0) if shape else shape
        deep = shape == DEEPEST
        layout = one(LAYOUTS) if shape else one(["contiguous", "compact"])
        if shape is None:
            layout = "contiguous"
        chunk = tuple(int(rng.integers(1, max(n, 1) + 1)) for n in shape or ())
        if int(rng.integers(0, 6)) == 0:
            chunk = tuple(max(n, 1) for n in shape or ())
        if deep:
            # libhdf5 2.0 now and then divides by zero where such a one is chunked.
            layout = "contiguous"
        maxshape = one(MAXSHAPES)
        if maxshape in ("all unlimited", "larger") and int(rng.integers(0, 4)) == 0:
            chunk = tuple(n + 3 for n in shape or ())
        kind = one(PLAIN if deep else TYPES)
        if shape == () and kind == "variable-length":
            # h5py 3 crashes when it writes one.
            kind = "variable-length string"
        filters = []
        if layout == "chunked" and kind not in POINTING:
            typed = one(suiting(kind, math.prod(chunk)))
            filters = [*TYPED_FILTERS[typed], *BYTES_FILTERS[one(BYTES_FILTERS)]]
            checksum = one(CHECKSUMS)
            if checksum != "none":
                at = 0 if checksum == "first" and typed in ("none", "shuffle") else len(filters)
                filters.insert(at, Case(h5z.FILTER_FLETCHER32))
        written = one(WRITTEN)
        combination = Combination(
            kind,
            layout,
            shape,
            chunk,
            maxshape,
            written,
            one(FILLS),
            tuple(filters),
            int(rng.integers(0, 4)) == 0,
            int(rng.integers(0, 6)) == 0,
            int(rng.integers(0, 5)) == 0,
            int(rng.integers(0, 8)) == 0,
            number,
        )
        yield combination


def suiting(kind: str, elements: int) -> list[str]:
    """The filters over elements that are meant for this type, and so many in a chunk.

    libhdf5 itself ends the process where szip is asked for and cannot be applied.
    """
    number = kind in PLAIN or kind in FLOATS[2:]
    return [
        name
        for name in TYPED_FILTERS
        if not (name == "szip" and (not number or elements < 8))
        and not (name == "scaleoffset" and kind not in PLAIN)
        and not (name == "nbit" and kind in CONVERTED)
    ]


# --- writing ---------------------------------------------------------------------------


def values(f: h5py.File, kind: str, shape: tuple[int, ...], seed: int) -> Any:
    """Elements of a type: for numbers any bytes, few of them different."""
    rng = np.random.default_rng(seed)
    count = math.prod(shape)
    if kind in CONVERTED:
        if kind == "20 bits":
            return rng.integers(-1000, 1000, shape).astype("<i4")
        return rng.integers(0, 999, shape).astype("<u2" if kind == "bit field" else "S7")
    if kind in POINTING:
        dtype = POINTING[kind]
        made = np.zeros(count, dtype)
        for i in range(count):
            if kind == "variable-length":
                made[i] = np.arange(rng.integers(0, 4), dtype="<i4")
            elif kind == "reference":
                made[i] = f.ref
            elif kind == "region":
                made[i] = f["target"].regionref[: int(rng.integers(1, 5))]
            elif kind == "compound with a string":
                made[i] = (i, "x" * int(rng.integers(0, 5)))
            else:
                made[i] = "é" * int(rng.integers(0, 5))
        return made.reshape(shape)
    dtype = np.dtype(DTYPES[kind])
    base = dtype.base
    if base.kind == "b":
        return rng.integers(0, 2, shape).astype("?")
    if enum := h5py.check_enum_dtype(dtype):
        return rng.choice(list(enum.values()), shape).astype(dtype)
    if base.kind == "S":
        return rng.integers(0, 10**6, shape).astype(dtype)
    if base.kind in "fc" or base == np.longdouble:
        return (rng.integers(-40, 40, shape + dtype.shape) / 8).astype(base)
    raw = rng.integers(0, 2, count * dtype.itemsize, dtype="u1")
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape + dtype.shape)


def _type_of(kind: str) -> Any:
    if kind in CONVERTED:
        return CONVERTED[kind]()
    return h5t.py_create(np.dtype({**DTYPES, **POINTING}[kind]), logical=True)


def _properties(file: h5py.File, c: Combination, kind: Any) -> Any:
    dcpl = h5p.create(h5p.DATASET_CREATE)
    if c.layout == "compact":
        dcpl.set_layout(h5d.COMPACT)
    if c.layout == "chunked":
        dcpl.set_chunk(c.chunk)
        for case in c.filters:
            dcpl.set_filter(case.number, h5z.FLAG_OPTIONAL, case.cd_values)
        if c.unfiltered_edges:
            leave_partial_chunks_unfiltered(dcpl)
        if c.early:
            dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    if c.layout == "external":
        dcpl.set_external(f"{file.filename}.{c.seed}".encode(), 0, h5f.UNLIMITED)
    if c.track_order:
        dcpl.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)
    if c.kind in POINTING:
        return dcpl
    if c.fill == "value":
        element = np.frombuffer(bytes([1] * kind.get_size()), f"V{kind.get_size()}")
        pointer = element.ctypes.data_as(ctypes.c_void_p)
        call("H5Pset_fill_value", ctypes.c_int64(dcpl.id), ctypes.c_int64(kind.id), pointer)
    elif c.fill == "undefined":
        undefine_fill(dcpl, kind)
    elif c.fill == "never":
        dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
    return dcpl


def _maxshape(c: Combination) -> tuple[int, ...] | None:
    assert c.shape is not None
    if not c.resizable:
        return None
    unlimited = {"first unlimited": [0], "last unlimited": [len(c.shape) - 1]}
    if c.maxshape == "larger":
        return tuple(max(n + 5, m) for n, m in zip(c.shape, c.chunk, strict=True))
    free = unlimited.get(c.maxshape, range(len(c.shape)))
    return tuple(h5s.UNLIMITED if d in free else max(n, 1) for d, n in enumerate(c.shape))


def write(f: h5py.File, name: str, c: Combination) -> h5py.Dataset:
    """The dataset; a ValueError where HDF5 refuses to make it."""
    kind = _type_of(c.kind)
    if c.layout == "virtual":
        return _virtual(f, name, c)
    dcpl = _properties(f, c, kind)
    if c.shape is None:
        space = h5s.create(h5s.NULL)
    elif c.shape == ():
        space = h5s.create(h5s.SCALAR)
    else:
        space = h5s.create_simple(c.shape, _maxshape(c))
    d = h5py.Dataset(h5d.create(f.id, name.encode(), kind, space, dcpl))
    if c.shape is None or c.written == "never" or 0 in c.shape:
        return d
    whole = values(f, c.kind, c.shape, c.seed)
    rng = np.random.default_rng(c.seed)
    box = tuple(slice(int(rng.integers(0, n)), n) for n in c.shape) if c.written == "part" else ()
    if c.shape == () or not box:
        d[()] = whole
    else:
        d[box] = whole[box]
    # libhdf5 decodes such a chunk when it becomes smaller, though its mask says not to, and LZF
    # then writes beyond its buffer.
    shrinks = c.resizable and c.written == "shrunk"
    if c.masked and c.filters and not c.unfiltered_edges and not shrinks:
        raw = np.ascontiguousarray(values(f, c.kind, c.chunk, c.seed + 1))
        if raw.nbytes == math.prod(c.chunk) * kind.get_size():
            d.id.write_direct_chunk((0,) * len(c.shape), raw.tobytes(), 2 ** len(c.filters) - 1)
    if c.resizable and c.written in ("shrunk", "grown"):
        most = [n or 10**6 for n in d.maxshape]
        less = tuple(n // 2 + 1 for n in c.shape)
        if c.written == "shrunk":
            d.resize(less)
        d.resize(tuple(min(n + 4, m) for n, m in zip(d.shape, most, strict=True)))
    return d


def _virtual(f: h5py.File, name: str, c: Combination) -> h5py.Dataset:
    """Half of it from a dataset of the same file."""
    assert c.shape
    if c.kind in CONVERTED or c.kind in POINTING:
        raise ValueError("virtual datasets of such types are not made here")
    dtype = np.dtype(DTYPES[c.kind])
    if dtype.shape:
        raise ValueError("h5py's VirtualLayout takes no array types")
    source = f.create_dataset(f"{name} source", data=values(f, c.kind, c.shape, c.seed))
    layout = h5py.VirtualLayout((2, *c.shape), source.dtype)
    layout[0] = h5py.VirtualSource(source)
    return f.create_virtual_dataset(name, layout)


# --- what is expected ------------------------------------------------------------------


def reasons(c: Combination, d: h5py.Dataset) -> list[str]:
    """Words that say why libhdf5 has to read it; none where the engine does."""
    found = []
    if c.kind in POINTING:
        found.append("variable length or references")
    if c.kind in CONVERTED and c.kind not in TEXTS:
        found.append("converted")
    if not c.shape:
        found.append("scalar or null")
    if c.layout == "compact":
        found.append("layout is compact")
    if any(not Path(os.fsdecode(name)).exists() for name, *_ in d.external or ()):
        found.append("external file")
    elsewhere = c.layout in ("virtual", "external")
    if c.shape and c.fill == "undefined" and not elsewhere and not _anything_written(d):
        found.append("fill value is undefined")
    return found


def _anything_written(d: h5py.Dataset) -> bool:
    if d.chunks:
        return bool(d.id.get_num_chunks())
    return bool(d.id.get_space_status() != h5d.SPACE_STATUS_NOT_ALLOCATED)
