"""Which files are the facts about files tested on?"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from tests.support.native import leave_partial_chunks_unfiltered, undefine_fill

MISSING_FILTER = 32123


def make_file(path: Path) -> None:
    """Write one dataset of every layout and many types, and every kind of link."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["title"] = "t"
        make_layouts(file)
        make_types(file.create_group("types"))
        file["links/same"] = file["chunked"]
        file["links/up"] = file["/"]
        file["links/soft"] = h5py.SoftLink("/nowhere")
        file["links/far"] = h5py.ExternalLink("gone.h5", "/x")
        file["named"] = np.dtype("i4")


def make_layouts(file: h5py.File) -> None:
    file["contiguous"] = np.zeros((3, 4), "<f4")
    file.create_dataset("unwritten", (10,), "i8")
    file.create_dataset(
        "chunked",
        data=np.arange(3500, dtype=">i4").reshape(50, 70),
        chunks=(20, 30),
        maxshape=(None, 100),
        compression="gzip",
        compression_opts=6,
        shuffle=True,
        fletcher32=True,
    ).attrs["units"] = "K"
    sparse = file.create_dataset("sparse", (100, 100), "u2", chunks=(10, 10))
    sparse[:15, :15] = 1
    file.create_dataset("empty", (0, 5), "f8", chunks=(4, 5), maxshape=(None, 5))
    layout = h5py.VirtualLayout((2, 10), "i4")
    layout[0] = h5py.VirtualSource("gone.h5", "x", (10,))
    layout[1] = h5py.VirtualSource("gone.h5", "y", (10,))
    file.create_virtual_dataset("virtual", layout)
    file.create_dataset("external", (100,), "i4", external=[("raw.bin", 0, 400)])
    raw_dataset(file, "compact", h5t.STD_I32BE, lambda dcpl: dcpl.set_layout(h5d.COMPACT))

    def unknown_filter(dcpl: h5p.PropDCID) -> None:
        dcpl.set_chunk((4,))
        dcpl.set_filter(MISSING_FILTER, h5py.h5z.FLAG_OPTIONAL, (1, 2))

    raw_dataset(file, "unknown_filter", h5t.STD_I32LE, unknown_filter)


def raw_dataset(
    file: h5py.File, name: str, datatype: h5t.TypeID, prepare: Callable[[h5p.PropDCID], Any]
) -> None:
    """Make a five-element dataset in ways that h5py's high-level interface lacks."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    prepare(dcpl)
    h5d.create(file.id, name.encode(), datatype, h5s.create_simple((5,)), dcpl)


def make_types(group: h5py.Group) -> None:
    group["scalar"] = 1.5
    group["null"] = h5py.Empty("f4")
    group["vlen_string"] = np.array(["a", "bb"], h5py.string_dtype())
    group.create_dataset("vlen", (10,), h5py.vlen_dtype(">i4"), chunks=(5,))
    group["string"] = np.array([b"abc"])
    group["compound"] = np.zeros(3, [("a", "<i4"), ("b", ">f8"), ("c", "S5")])
    group.create_dataset("compound_vlen", (1,), [("a", "<i4"), ("s", h5py.string_dtype())])
    group["references"] = np.array([group.ref], h5py.ref_dtype)
    group.create_dataset("regions", (1,), h5py.regionref_dtype)
    group["enum"] = np.zeros(3, h5py.enum_dtype({"A": 1, "B": 2, "C": 3}, "i2"))
    group["bool"] = np.zeros(3, bool)
    group["opaque"] = np.zeros(3, "V10")
    group["complex"] = np.zeros(3, ">c8")
    group["half"] = np.zeros(3, ">f2")
    group["array"] = np.zeros(4, np.dtype([("m", "<f4", (3, 2))]))
    group["byte"] = np.zeros(3, "i1")
    bits = h5t.STD_U16LE.copy()
    bits.set_precision(12)
    raw_dataset(group, "packed", bits, lambda _: None)
    raw_dataset(group, "bitfield", h5t.STD_B8LE, lambda _: None)


def make_netcdf(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 30)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(12)
        values = file.createVariable(
            "deep/values",
            ">i2",
            ("time", "x"),
            compression="zlib",
            complevel=3,
            fletcher32=True,
            chunksizes=(5, 7),
            endian="big",
        )
        values[:] = np.arange(360).reshape(12, 30)


def make_plain(path: Path) -> None:
    with h5py.File(path, "w") as file:
        make_layouts(file)


# --- the matrix of chunk indexes, filters and fill values ------------------------------

SHAPE, CHUNK = (40, 30), (7, 8)
MAXSHAPES: dict[str, tuple[int | None, int | None]] = {
    "fixed": SHAPE,
    "limited": (45, 61),
    "first": (None, 30),
    "second": (40, None),
    "both": (None, None),
}


def make_indexes(path: Path, libver: str | tuple[str, str] = "earliest") -> None:
    """Write one dataset for each kind of chunk index, filtered or not, full and less so."""
    values = np.arange(1200, dtype="i4").reshape(SHAPE) % 97
    with h5py.File(path, "w", libver=libver, userblock_size=1024) as file:
        for kind, maxshape in MAXSHAPES.items():
            for filters in ({}, {"compression": 1}):
                name = f"{kind}-{'deflate' if filters else 'plain'}"
                given: dict[str, Any] = {"chunks": CHUNK, "maxshape": maxshape, **filters}
                file.create_dataset(f"{name}-full", data=values, **given)
                some = file.create_dataset(f"{name}-some", SHAPE, "i4", **given)
                for origin in ((35, 24), (7, 8), (0, 0), (21, 16)):
                    some[origin] = 1
                file.create_dataset(f"{name}-none", SHAPE, "i4", **given)
                if kind != "fixed":
                    shrunk = file.create_dataset(f"{name}-shrunk", data=values, **given)
                    shrunk.resize((20, 30) if kind == "first" else (40, 11))
        file.create_dataset("single", data=values, chunks=SHAPE)
        file.create_dataset("single-deflate", data=values, chunks=SHAPE, compression=1)
        file.create_dataset("larger", data=values, chunks=(64, 64), maxshape=(99, 99))
        file.create_dataset("empty", (0, 30), "i4", chunks=CHUNK, maxshape=(None, 30))
        interleave(file)
        make_early(file)


def interleave(file: h5py.File) -> None:
    """Write two datasets chunk by chunk, one of them backwards."""
    forth = file.create_dataset("forth", SHAPE, "i4", chunks=CHUNK)
    back = file.create_dataset("back", SHAPE, "i4", chunks=CHUNK)
    origins = [(i, j) for i in range(0, 40, 7) for j in range(0, 30, 8)]
    for one, other in zip(origins, reversed(origins), strict=True):
        forth[one], back[other] = 1, 2
        file.flush()


def make_early(file: h5py.File) -> None:
    """Allocate all chunks at once, which gives an implicit index where there is one."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(CHUNK)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    h5d.create(file.id, b"early", h5t.STD_I32LE, h5s.create_simple(SHAPE), dcpl)


FILTERS: dict[str, Callable[[h5p.PropDCID], Any]] = {
    "deflate": lambda dcpl: dcpl.set_deflate(3),
    "shuffle": lambda dcpl: dcpl.set_shuffle(),
    "fletcher32": lambda dcpl: dcpl.set_fletcher32(),
    "szip": lambda dcpl: dcpl.set_szip(h5py.h5z.SZIP_NN_OPTION_MASK, 8),
    "nbit": lambda dcpl: dcpl.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_MANDATORY, ()),
    "scaleoffset": lambda dcpl: dcpl.set_scaleoffset(h5py.h5z.SO_INT, 0),
    "lzf": lambda dcpl: dcpl.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL, ()),
    "shuffle+deflate": lambda dcpl: (dcpl.set_shuffle(), dcpl.set_deflate(9)),
    "fletcher32 first": lambda dcpl: (dcpl.set_fletcher32(), dcpl.set_shuffle()),
    "deflate twice": lambda dcpl: (dcpl.set_deflate(1), dcpl.set_deflate(2)),
}


def make_filters(path: Path, libver: str | tuple[str, str] = "earliest") -> None:
    """Write one dataset for each filter, some with chunks that were not filtered."""
    values = np.arange(1200, dtype="i4").reshape(SHAPE) % 97
    space = h5s.create_simple(SHAPE)
    with h5py.File(path, "w", libver=libver) as file:
        for name, prepare in FILTERS.items():
            for edges in ("", " unfiltered edges"):
                if edges and libver == "earliest":
                    # Only the layout message of HDF5 1.10 can say so.
                    continue
                dcpl = h5p.create(h5p.DATASET_CREATE)
                dcpl.set_chunk(CHUNK)
                prepare(dcpl)
                if edges:
                    leave_partial_chunks_unfiltered(dcpl)
                dataset = h5py.Dataset(
                    h5d.create(file.id, (name + edges).encode(), h5t.STD_I32LE, space, dcpl)
                )
                dataset[...] = values
        masked = file.create_dataset("masked", SHAPE, "i4", chunks=CHUNK, compression=1)
        masked[...] = values
        for origin in ((0, 0), (7, 16), (35, 24)):
            masked.id.write_direct_chunk(origin, bytes(7 * 8 * 4), 1)


def make_fills(path: Path) -> None:
    """Write datasets with every fill value, fill time and allocation time."""
    with h5py.File(path, "w") as file:
        for name, dtype, value in FILLS:
            file.create_dataset(name, (3,), dtype, fillvalue=value)
        for time in (h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET):
            for when in (h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR):
                raw_dataset(file, f"times-{time}-{when}", h5t.STD_I32LE, times(time, when))
        for layout in (h5d.COMPACT, h5d.CONTIGUOUS):
            raw_dataset(file, f"layout-{layout}", h5t.STD_I32LE, partial(set_layout, layout))
        undefine = partial(undefine_fill, kind=h5t.STD_I32LE)
        raw_dataset(file, "undefined", h5t.STD_I32LE, undefine)


FILLS: list[tuple[str, Any, Any]] = [
    ("float", "<f4", -999.3),
    ("big-endian", ">f8", 1e20),
    ("nan", "<f8", np.nan),
    ("half", "<f2", 0.1),
    ("integer", ">i2", -32768),
    ("unsigned", "<u8", 2**64 - 1),
    ("string", "S5", b"none"),
    ("unicode", h5py.string_dtype("utf-8", 8), "höhe"),
    ("variable string", h5py.string_dtype(), "missing"),
    ("bool", "?", True),
    ("enum", h5py.enum_dtype({"A": 1, "B": 2}, "i2"), 2),
    ("opaque", "V3", np.void(b"\x0a\xff\x00")),
    ("complex", "<c8", 1 - 2j),
    ("default", "<f4", None),
]


def set_layout(layout: int, dcpl: h5p.PropDCID) -> None:
    dcpl.set_layout(layout)


def times(time: int, when: int) -> Callable[[h5p.PropDCID], None]:
    def prepare(dcpl: h5p.PropDCID) -> None:
        dcpl.set_chunk((2,))
        dcpl.set_fill_time(time)
        dcpl.set_alloc_time(when)
        dcpl.set_fill_value(np.array(7, "i4"))

    return prepare


# --- all of them -----------------------------------------------------------------------

# That of HDF5 1.10, with all kinds of chunk index.
V110 = ("v110", "v110")
MADE: dict[str, Callable[[Path], None]] = {
    "all kinds": make_file,
    "plain": make_plain,
    "netcdf": make_netcdf,
    "indexes": make_indexes,
    "indexes-1.10": partial(make_indexes, libver=V110),
    "filters": make_filters,
    "filters-1.10": partial(make_filters, libver=V110),
    "fills": make_fills,
    "indexes-latest": partial(make_indexes, libver="latest"),
    "filters-latest": partial(make_filters, libver="latest"),
}
