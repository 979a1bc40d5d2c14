"""One file with one of everything that HDF5 can keep: what must a copy of a file not lose?

`write_everything` writes it, by h5py's low-level functions where the others do not go far
enough; each function below adds one kind of thing.
"""

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o, h5p, h5r, h5s, h5t

from tests.support import native

TRACKED = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED
BOUNDS = {"earliest": h5f.LIBVER_EARLIEST, "v108": h5f.LIBVER_V18, "latest": h5f.LIBVER_LATEST}


def write_everything(
    path: Path,
    *,
    libver: tuple[str, str] = ("earliest", "latest"),
    user_block: int = 0,
    track_order: bool = True,
) -> None:
    """Write a file with one of everything."""
    fcpl = h5p.create(h5p.FILE_CREATE)
    if user_block:
        fcpl.set_userblock(user_block)
    if track_order:
        fcpl.set_link_creation_order(TRACKED)
        fcpl.set_attr_creation_order(TRACKED)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(BOUNDS[libver[0]], BOUNDS[libver[1]])
    made = h5f.create(str(path).encode(), h5f.ACC_TRUNC, fcpl, fapl)
    with h5py.File(made) as file:
        _groups(file, track_order)
        _types(file)
        _plain(file)
        _layouts(file, path)
        if libver[1] == "latest":
            _virtual(file, path)
        _variable(file)
        _scales(file)
        _references(file)
        if libver[1] == "latest":
            write_holders(file)
        _attributes(file, track_order)
        if libver[0] == "latest":
            file.attrs["large"] = np.arange(20_000)
        _links(file)
        del file["m/dropped"]  # last, so that nothing else comes to lie there
    if user_block:
        with path.open("r+b") as stream:
            stream.write(b"user block".ljust(user_block, b"."))


def _groups(file: h5py.File, track_order: bool) -> None:
    for name in ("z", "a", "m"):  # not in the order of their names
        file.create_group(name)
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED)
    gcpl.set_attr_creation_order(TRACKED)
    gcpl.set_attr_phase_change(4, 2)
    gcpl.set_obj_track_times(False)
    wide = h5py.Group(h5g.create(file.id, b"wide", gcpl=gcpl))
    for number in reversed(range(40)):
        wide.create_group(f"member{number:02}")
    deep = file.create_group("deep", track_order=track_order)
    for _ in range(100):
        deep = deep.create_group("er")
    deep["end"] = 1
    h5o.set_comment(wide.id, b"a comment")


def _types(file: h5py.File) -> None:
    # The dataset and the attribute come first by name and by order of creation.
    types = file.create_group("types")
    point = np.dtype([("x", "<f4"), ("y", ">i2")])
    types["point"] = point
    types["level"] = h5py.enum_dtype({"LOW": 0, "HIGH": 1}, basetype="i1")
    types["text"] = h5py.string_dtype("ascii")
    types["gone"] = np.dtype("<u2")
    types["point"].attrs["of itself"] = np.zeros((), point)
    types["point"].attrs.create("shared", np.ones(2, point), dtype=types["point"])
    types["level"].attrs.create("level", 1, dtype=types["level"])
    h5o.set_comment(types["level"].id, b"of a type")
    file["a"].create_dataset("points", data=np.ones(3, point), dtype=types["point"])
    file["a"].create_dataset("more points", data=np.ones(1, point), dtype=types["point"])
    file["a"].create_dataset("texts", data=[b"a", b"bcd"], dtype=types["text"])
    file["a"].create_dataset("anonymous type", data=np.arange(4), dtype=types["gone"])
    file["a"].attrs.create("anonymous type", np.arange(4), dtype=types["gone"])
    del types["gone"]


def _plain(file: h5py.File) -> None:
    group = file.create_group("plain")
    for dtype in ("<i1", ">i2", "<u4", ">u8", "<f2", ">f4", "<f8", "<c8", "?", "S5", "V3"):
        data = (
            (np.arange(12) % 2).astype(dtype) if dtype != "V3" else np.array([b"abc"] * 12, "V3")
        )
        group.create_dataset(dtype.strip("<>?") + dtype[:1], data=data.reshape(3, 4))
    padded = np.dtype(
        {"names": ["a", "b"], "formats": ["u1", ("<f8", (2,))], "offsets": [3, 8], "itemsize": 32}
    )
    group["compound"] = np.ones(3, padded)
    group.create_dataset("array", shape=(2,), dtype=np.dtype(("<i4", (2, 3))))
    low = {
        "bits": h5t.STD_B16BE,
        "time": h5t.UNIX_D32LE,
        "float80": h5t.NATIVE_LDOUBLE,
        "space padded": h5t.FORTRAN_S1,
        "utf8": h5t.C_S1.copy(),
        "opaque": h5t.create(h5t.OPAQUE, 5),
        "odd": h5t.STD_I32LE.copy(),
    }
    low["utf8"].set_size(6)
    low["utf8"].set_cset(h5t.CSET_UTF8)
    low["opaque"].set_tag(b"some tag")
    low["odd"].set_precision(20)
    low["odd"].set_offset(4)
    for name, datatype in low.items():
        made = h5d.create(group.id, name.encode(), datatype, h5s.create_simple((4,)))
        nbytes = 4 * datatype.get_size()
        made.write(h5s.ALL, h5s.ALL, np.arange(nbytes, dtype="u1") % 3 + 48, mtype=datatype)
    group["scalar"] = 2.5
    group["null"] = h5py.Empty("<i4")
    group.create_dataset("no rows", shape=(0, 3), maxshape=(None, 3), dtype="<i4")
    group.create_dataset("grows", data=np.arange(10), maxshape=(20,), chunks=(3,))
    group.create_dataset("large", data=np.arange(30_000.0))


def _layouts(file: h5py.File, path: Path) -> None:
    group = file.create_group("layouts")
    data = np.arange(600, dtype="<i4").reshape(20, 30)
    pipelines: dict[str, dict[str, Any]] = {
        "deflate": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "scaleoffset": {"scaleoffset": 0},
        "none": {},
    }
    for name, keywords in pipelines.items():
        group.create_dataset(name, data=data, chunks=(7, 8), maxshape=(None, 30), **keywords)
    sparse = group.create_dataset("sparse", (100, 100), "<i4", chunks=(10, 10), fillvalue=-1)
    sparse[5:15, 5:15] = 1
    group.create_dataset("never written", (10,), "<f8", fillvalue=1.5)
    group.create_dataset("chunks never written", (10,), "<f8", chunks=(2,), fillvalue=1.5)
    fills = {
        "text": (np.array(b"ab", "S4"), h5t.py_create(np.dtype("S4"))),
        "pair": (np.array((1, 2), "i4,f8"), h5t.py_create(np.dtype("i4,f8"))),
        "big": (np.array(7, "<i8"), h5t.STD_I16BE),
    }
    for number, (name, (value, datatype)) in enumerate(fills.items()):
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_fill_value(value)
        dcpl.set_fill_time((h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET)[number])
        dcpl.set_alloc_time(
            (h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR)[number]
        )
        dcpl.set_chunk((3,))
        dcpl.set_obj_track_times(number == 0)
        h5d.create(group.id, b"fill " + name.encode(), datatype, h5s.create_simple((8,)), dcpl)
    group.create_dataset("fill variable", (5,), h5py.string_dtype(), fillvalue="none", chunks=(2,))
    compact = h5p.create(h5p.DATASET_CREATE)
    compact.set_layout(h5d.COMPACT)
    compact.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)
    made = h5d.create(group.id, b"compact", h5t.STD_I32LE, h5s.create_simple((20, 30)), compact)
    h5py.Dataset(made)[...] = data
    external = path.with_suffix(".raw")
    external.write_bytes(data.tobytes())
    group.create_dataset("external", (20, 30), "<i4", external=[(str(external), 0, 2400)])


def _virtual(file: h5py.File, path: Path) -> None:
    layout = h5py.VirtualLayout((40, 30), "<i4", (None, 30))
    layout[:20] = h5py.VirtualSource(file["layouts/none"])
    layout[20:] = h5py.VirtualSource(path.with_suffix(".elsewhere"), "x", (20, 30))
    file["layouts"].create_virtual_dataset("virtual", layout, fillvalue=-3)


def _variable(file: h5py.File) -> None:
    group = file.create_group("variable")
    texts = np.array(["", "one", "Grüße" * 9] * 50, object)
    group.create_dataset(
        "texts",
        data=texts.reshape(10, 15),
        dtype=h5py.string_dtype(),
        chunks=(3, 4),
        compression="gzip",
    )
    group.create_dataset("ascii", data=[b"x", b"yz"], dtype=h5py.string_dtype("ascii"))
    group.create_dataset("never written", (4,), h5py.string_dtype())
    sparse = group.create_dataset("sparse", (50, 50), h5py.string_dtype(), chunks=(5, 5))
    sparse[12, 13] = "alone"
    ragged = group.create_dataset(
        "ragged", (3,), h5py.vlen_dtype(np.dtype("<f4")), maxshape=(None,)
    )
    ragged[0], ragged[2] = [1, 2, 3], [4]
    record = np.dtype(
        [
            ("id", "<i4"),
            ("name", h5py.string_dtype()),
            ("values", h5py.vlen_dtype(np.dtype("<i2"))),
        ]
    )
    records = group.create_dataset("records", (2,), record)
    records[0] = (1, "first", np.array([1, 2], "<i2"))
    records[1] = (2, "second", np.array([], "<i2"))
    group.create_dataset("scalar", data="alone", dtype=h5py.string_dtype())


def _scales(file: h5py.File) -> None:
    group = file.create_group("scales")
    for name in ("lat", "lon"):
        group[name] = np.arange(4.0)
        group[name].make_scale(f"the {name}")
    for name in ("t", "u"):
        group[name] = np.ones((4, 4))
        for axis, scale in enumerate(("lat", "lon")):
            group[name].dims[axis].attach_scale(group[scale])
            group[name].dims[axis].label = f"along {scale}"


def _references(file: h5py.File) -> None:
    group = file.create_group("references")
    target = file["layouts/deflate"]
    file["m/dropped"] = 1
    dangling = file["m/dropped"].ref
    to = [target.ref, file["z"].ref, file["types/point"].ref, file.ref, h5r.Reference(), dangling]
    group.create_dataset("objects", data=np.array(to, object), dtype=h5py.ref_dtype)
    points = [[1, 2], [3, 4], [19, 29]]
    space = h5s.create_simple((20, 30))
    space.select_elements(np.array(points, "u8"))
    of_points = h5r.create(target.id, b".", h5r.DATASET_REGION, space)
    regions = [target.regionref[2:9:3, 4:7], target.regionref[:], of_points, h5r.RegionReference()]
    group.create_dataset(
        "regions", data=np.array(regions, object), dtype=h5py.regionref_dtype, chunks=(2,)
    )
    record = np.dtype([("one", h5py.ref_dtype), ("two", h5py.ref_dtype, (2,)), ("n", "<i4")])
    value = np.zeros(2, record)
    for number in range(2):
        value[number] = (target.ref, [file["a"].ref, file["types"].ref], number)
    group["records"] = value
    group.attrs.create("records", value, dtype=record)
    lists = group.create_dataset("lists", (3,), h5py.vlen_dtype(h5py.ref_dtype))
    lists[0] = np.array([target.ref, group.ref], object)
    lists[2] = np.array([file["plain/scalar"].ref], object)
    group.attrs["object"] = target.ref
    group.attrs["region"] = target.regionref[1:3, 2]
    group.attrs.create("dangling", dangling, dtype=h5py.ref_dtype)


def write_holders(file: h5py.File) -> None:
    """References of HDF5 1.12 and later (`H5R_ref_t`), which h5py does not know."""
    library = native.library()
    if not hasattr(library, "H5Rcreate_object"):
        return
    hid, text, any_pointer = ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p
    kind = hid.in_dll(library, "H5T_STD_REF_g")
    space = h5s.create_simple((4,))
    region = h5s.create_simple((20, 30))
    region.select_hyperslab((1, 2), (3, 4))
    values = ctypes.create_string_buffer(4 * 64)
    at = ctypes.addressof(values)
    of = hid(file.id.id)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("H5Rcreate_object", (of, text(b"/a"), hid(0), any_pointer(at))),
        (
            "H5Rcreate_region",
            (of, text(b"/layouts/deflate"), hid(region.id), hid(0), any_pointer(at + 64)),
        ),
        (
            "H5Rcreate_attr",
            (of, text(b"/types/point"), text(b"shared"), hid(0), any_pointer(at + 128)),
        ),
    ]
    for name, arguments in calls:
        assert getattr(library, name)(*arguments) >= 0, name
    library.H5Dcreate2.restype = library.H5Acreate2.restype = hid
    owner = file["references"]
    group = hid(owner.id.id)
    default = (hid(0), hid(0), hid(0))
    made = hid(library.H5Dcreate2(group, text(b"holders"), kind, hid(space.id), *default))
    status = library.H5Dwrite(made, kind, hid(0), hid(0), hid(0), any_pointer(at))
    assert status >= 0
    assert library.H5Dclose(made) >= 0
    attribute = (group, text(b"holders"), kind, hid(space.id), hid(0), hid(0))
    made = hid(library.H5Acreate2(*attribute))
    assert library.H5Awrite(made, kind, any_pointer(at)) >= 0
    assert library.H5Aclose(made) >= 0
    for number in range(3):
        library.H5Rdestroy(any_pointer(at + 64 * number))


def _attributes(file: h5py.File, track_order: bool) -> None:
    group = file.create_group("attributes", track_order=track_order)
    group["of a dataset"] = np.arange(3)
    for owner in (group, group["of a dataset"], file):
        owner.attrs["scalar"] = 1
        owner.attrs["array"] = np.arange(6, dtype=">f4").reshape(2, 3)
        owner.attrs["text"] = "Grüße"
        owner.attrs["texts"] = ["a", "bc"]
        owner.attrs["bytes"] = np.bytes_("fixed")
        owner.attrs["null"] = h5py.Empty("<f8")
        owner.attrs["none"] = np.zeros((0,), "<i4")
        owner.attrs["Grüße"] = "name"
        owner.attrs.create("ragged", [np.arange(3), np.arange(1)], dtype=h5py.vlen_dtype("<i4"))
        h5a.create(owner.id, b"\xff not text", h5t.STD_B8LE, h5s.create(h5s.SCALAR))
    many = file.create_group("many attributes", track_order=track_order)
    for number in reversed(range(30)):
        many.attrs[f"attribute{number:02}"] = number


def _links(file: h5py.File) -> None:
    group = file.create_group("links")
    group["second name"] = file["layouts/deflate"]
    group["of a type"] = file["types/point"]
    group["root"] = file["/"]
    file["deep/er/er/up"] = file["deep"]
    group["soft"] = h5py.SoftLink("/layouts/deflate")
    group["dangling"] = h5py.SoftLink("nowhere/at all")
    group["external"] = h5py.ExternalLink("other.h5", "/there")
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(h5t.CSET_UTF8)
    group.id.links.create_soft("Grüße".encode(), b"/", lcpl)
    h5g.create(group.id, b"\xff\xfe not text")
