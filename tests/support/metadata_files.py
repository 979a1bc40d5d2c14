"""Which small files hold one of each structure of HDF5's metadata?"""

import ctypes
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from tests.support import native
from tests.support.everything import write_everything

OLD, NEW = h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST


def created(path: Path, low: int, fcpl: Any = None) -> h5py.File:
    """A new file; `low` is the oldest format that it may use."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(low, NEW)
    fcpl = fcpl or h5p.create(h5p.FILE_CREATE)
    return h5py.File(h5f.create(str(path).encode(), h5f.ACC_TRUNC, fcpl, fapl))


def groups(f: h5py.File) -> None:
    group = f.create_group("group")
    for number in range(9):
        group[f"soft {number}"] = h5py.SoftLink("/group" * number + "/x")
    group["external"] = h5py.ExternalLink("other.h5", "/there")
    f["again"] = group
    group.create_group("within")["up"] = f["/"]


def many(f: h5py.File) -> None:
    group = f.create_group("group", track_order=True)
    for number in range(60):
        group[f"link {number * 7 % 60}"] = h5py.SoftLink("/a/long/path/to/fill/blocks" * 3)
    d = f.create_dataset("d", data=1, track_order=True)
    for number in range(30):
        d.attrs[f"attribute {number}"] = np.arange(number * 5)


def huge(f: h5py.File) -> None:
    for number in range(3):
        f.attrs[f"huge {number}"] = np.zeros(9000 + number, "u1")
    f.attrs["small"] = 1
    for number in range(8):
        f.attrs[f"other {number}"] = "text"


def values(f: h5py.File) -> None:
    record = np.dtype([("a", "<i4"), ("b", ">f8", (2, 3)), ("c", "S5"), ("d", "?")])
    f["type"] = record
    f.create_dataset("records", (2,), f["type"])
    f.attrs.create("shared", np.zeros(2, record), dtype=f["type"])
    f["records"].attrs["enum"] = np.array(1, h5py.enum_dtype({"A": 0, "B": 1}))
    f["records"].attrs["texts"] = ["one", "two", ""]
    f["records"].attrs["reference"] = f["type"].ref
    f["records"].attrs["region"] = f["records"].regionref[:1]
    f.attrs.create("ragged", [np.arange(3), np.arange(1)], dtype=h5py.vlen_dtype("<i4"))
    f.attrs["complex"] = 1j
    f.attrs["null"] = h5py.Empty("<f8")
    filled = f.create_dataset("filled", (4,), "<i2", fillvalue=7)
    h5py.h5o.set_comment(filled.id, b"a comment")
    compact = h5p.create(h5p.DATASET_CREATE)
    compact.set_layout(h5d.COMPACT)
    h5d.create(f.id, b"compact", h5t.STD_B16BE, h5s.create_simple((3,)), compact)
    f.create_dataset("outside", (4,), "u1", external=[("a.raw", 0, 2), ("b.raw", 1, 2)])


def virtual(f: h5py.File) -> None:
    layout = h5py.VirtualLayout((12, 10), "<i8", (None, 10))
    for number in range(4):
        source = h5py.VirtualSource("." if number == 2 else "a_long_name.h5", "dataset", (10, 10))
        layout[number * 3 : number * 3 + 3] = source[1:4]
    f.create_virtual_dataset("v", layout)
    f["x"] = np.zeros((10, 10), "<i8")
    layout = h5py.VirtualLayout((12, 10), "<i8")
    layout[[1, 3, 6], :] = h5py.VirtualSource(f["x"])[[1, 4, 5], :]
    f.create_virtual_dataset("boxes", layout)


def chunks(f: h5py.File) -> None:
    shapes: list[tuple[Any, Any, Any]] = [
        ((9, 7), (2, 3), None),
        ((5, 7), (2, 3), (5, None)),
        ((9, 7), (2, 3), (None, None)),
        ((9, 7), (9, 7), None),
    ]
    for number, (shape, chunk, most) in enumerate(shapes):
        for level in (None, 1):
            options = {"chunks": chunk, "maxshape": most, "compression": level}
            f.create_dataset(f"{number} {level}", shape, "u1", **options)[...] = 5
    early = h5p.create(h5p.DATASET_CREATE)
    early.set_chunk((2, 3))
    early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    h5d.create(f.id, b"early", h5t.STD_U8LE, h5s.create_simple((9, 7)), early)


def paged(f: h5py.File) -> None:
    for name, shape, most in (("fixed", (3000,), None), ("extensible", (9000,), (None,))):
        d = f.create_dataset(name, shape, "u1", chunks=(1,), maxshape=most)
        d[:7], d[shape[0] // 2], d[-1] = 1, 2, 3


def deep(f: h5py.File) -> None:
    f.create_dataset("d", (20, 10), "u1", chunks=(1, 1), maxshape=(None, None))[...] = 1


def filtered(f: h5py.File) -> None:
    """A group whose heaps go through a filter, and large links, which h5py cannot make."""
    library = native.library()
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_attr_phase_change(0, 0)
    assert library.H5Pset_link_phase_change(ctypes.c_int64(gcpl.id), 0, 0) >= 0
    assert library.H5Pset_fletcher32(ctypes.c_int64(gcpl.id)) >= 0
    for count in (2, 20):
        group = h5py.Group(h5py.h5g.create(f.id, f"of {count}".encode(), gcpl=gcpl))
        for number in range(count):
            group[f"link {number}"] = h5py.SoftLink("/a/long/path/to/fill/blocks" * 3)
            group.attrs[f"attribute {number}"] = np.arange(number * 3)
    group["large"] = h5py.SoftLink("x" * 5000)
    group.attrs["huge"] = np.zeros(9000, "u1")


def repeated(f: h5py.File) -> None:
    for number in range(5):
        d = f.create_dataset(f"d{number}", (4, 30), "<f8", chunks=(1, 5), compression=1)
        for other in range(3):
            d.attrs[f"a{other}"] = np.arange(30)


def sharing(*, tree: bool) -> Any:
    """Creation properties of a file that shares messages, which h5py cannot set."""
    library = native.library()
    fcpl = h5p.create(h5p.FILE_CREATE)
    it, number = ctypes.c_int64(fcpl.id), ctypes.c_uint
    most = number(0 if tree else 50)
    assert library.H5Pset_shared_mesg_nindexes(it, number(2)) >= 0
    # Dataspaces, datatypes, fill values and pipelines; attributes.
    kinds = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 11
    assert library.H5Pset_shared_mesg_index(it, number(0), number(kinds), number(10)) >= 0
    assert library.H5Pset_shared_mesg_index(it, number(1), number(1 << 12), number(10)) >= 0
    assert library.H5Pset_shared_mesg_phase_change(it, most, number(0 if tree else 45)) >= 0
    return fcpl


def narrow() -> Any:
    """Creation properties of a file whose numbers have four bytes, behind a user block."""
    fcpl = h5p.create(h5p.FILE_CREATE)
    fcpl.set_sizes(4, 4)
    fcpl.set_userblock(512)
    return fcpl


Kind = tuple[Callable[[h5py.File], None], int, Callable[[], Any] | None]
KINDS: dict[str, Kind] = {
    "groups-old": (groups, OLD, None),
    "groups-new": (groups, NEW, None),
    "groups-narrow": (groups, OLD, narrow),
    "many-old": (many, OLD, None),
    "many-new": (many, NEW, None),
    "filtered": (filtered, NEW, None),
    "huge": (huge, NEW, None),
    "values-old": (values, OLD, None),
    "values-new": (values, NEW, None),
    "virtual-old": (virtual, OLD, None),
    "virtual-new": (virtual, NEW, None),
    "chunks-old": (chunks, OLD, None),
    "chunks-new": (chunks, NEW, None),
    "chunks-narrow": (chunks, OLD, narrow),
    "chunks-paged": (paged, NEW, None),
    "chunks-deep": (deep, NEW, None),
    "shared-list": (repeated, OLD, lambda: sharing(tree=False)),
    "shared-tree": (repeated, NEW, lambda: sharing(tree=True)),
}


# One of everything: the oldest format, a user block, whether orders are tracked.
EVERYTHING: dict[str, dict[str, Any]] = {
    f"everything-{low}-{block}-{order}": {
        "libver": (low, "latest"),
        "user_block": block,
        "track_order": order,
    }
    for low, block, order in product(("earliest", "latest"), (0, 1024), (False, True))
}
NAMES = (*KINDS, *EVERYTHING)


def write(folder: Path, name: str) -> Path:
    """Write one of them."""
    path = folder / f"{name}.h5"
    if name in EVERYTHING:
        write_everything(path, **EVERYTHING[name])
        return path
    fill, low, properties = KINDS[name]
    with created(path, low, properties and properties()) as f:
        fill(f)
    return path


def addresses(path: Path) -> list[int]:
    """Where the headers of seven objects are."""
    found: list[int] = []
    with h5py.File(path) as f:
        f.visititems(lambda _, it: found.append(h5py.h5o.get_info(it.id).addr))
    return (found * 7 + [0] * 7)[:7]
