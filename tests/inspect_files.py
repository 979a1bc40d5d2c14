"""Which files are the facts about files tested on?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from h5py import h5d, h5p, h5s, h5t

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
