"""What does libhdf5 say of a file's objects, in the words of `chunkwise-format`'s example `dump`?

`compared` compares both, object by object: names, order, types, shapes, values as stored, fill
values, filters, where chunks lie.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o, h5r, h5s, h5t

Facts = dict[str, Any]
ORDERS = {h5t.ORDER_LE: "<", h5t.ORDER_BE: ">", h5t.ORDER_VAX: "vax"}
# HDF5's numbers of the functions are not the file's.
NORMALIZATIONS = {h5t.NORM_IMPLIED: 2, h5t.NORM_MSBSET: 1, h5t.NORM_NONE: 0}
SPACES = {h5s.NULL: "null", h5s.SCALAR: "scalar", h5s.SIMPLE: "simple"}
KINDS = {h5o.TYPE_GROUP: "group", h5o.TYPE_DATASET: "dataset", h5o.TYPE_NAMED_DATATYPE: "datatype"}


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def read(dumped: str) -> tuple[Facts, dict[int, Facts]]:
    """What `dump` says of a file, and of its objects by their addresses."""
    head: Facts = {}
    objects = {}
    for line in dumped.split("\n"):
        if line:
            facts = json.loads(line)
            if "file" in facts:
                head |= facts
            else:
                objects[facts["address"]] = facts
    return head, objects


class Compared:
    """Facts of one file, and where they differ."""

    def __init__(self, path: Path, dumped: str) -> None:
        self.head, self.facts = read(dumped)
        self.path = path
        self.differences: list[str] = []
        self.where = ""
        self.objects = 0
        self.chunks = 0
        self.unread: list[str] = []

    def differ(self, what: str, mine: Any, theirs: Any) -> None:
        if mine != theirs:
            self.differences.append(
                f"{self.where}: {what}: {str(mine)[:300]} != {str(theirs)[:300]}"
            )

    def file(self) -> None:
        """Compare all objects."""
        fid = h5f.open(str(self.path).encode(), h5f.ACC_RDONLY)
        if "error" in self.head:
            self.differences.append(f"cannot be opened: {self.head['error']}")
            return
        self.base = self.head["base"]
        try:
            root = h5o.open(fid, b"/")
        except KeyError as error:
            self.unread.append(f"/: h5py: {error}")
            return
        first = h5o.get_info(root).addr
        waiting, seen = [(root, "/", first)], {first}
        reached = set()
        while waiting:
            oid, self.where, address = waiting.pop(0)
            reached.add(address)
            try:
                info = h5o.get_info(oid)
            except RuntimeError as error:
                self.unread.append(f"{self.where}: h5py: {error}")
                continue
            self.differ("address", address, info.addr)
            mine = self.facts.get(info.addr)
            self.objects += 1
            if mine is None or "error" in mine:
                self.differences.append(f"{self.where}: is not found: {mine}")
                continue
            self.unread += [f"{self.where}: {what}" for what in mine["errors"]]
            self.object(fid, oid, info, mine)
            if isinstance(oid, h5g.GroupID):
                for name, child in self.links(oid, mine):
                    if child not in seen:
                        seen.add(child)
                        where = f"{self.where.rstrip('/')}/{text(name)}"
                        try:
                            waiting.append((h5o.open(oid, name), where, child))
                        except Exception as error:
                            reached.add(child)
                            self.unread.append(f"{where}: h5py: {error}")
        more = set(self.facts) - reached
        if more:
            self.differences.append(f"objects that h5py does not reach: {more}")

    def links(self, gid: Any, mine: Facts) -> Iterator[tuple[bytes, int]]:
        """Compare a group's links; give those to objects."""
        theirs = {}
        names: list[bytes] = []
        try:
            gid.links.iterate(lambda n: names.append(raw(n) if isinstance(n, str) else n))
        except RuntimeError as error:
            self.unread.append(f"{self.where}: h5py: {error}")
            return
        for name in names:
            info = gid.links.get_info(name)
            kind = {0: "hard", 1: "soft", 64: "external"}.get(info.type, "other")
            target: Any = None
            if kind == "hard":
                # Of the link, not of what it leads to: a damaged object has an address too.
                target = info.u if isinstance(info.u, int) else None
            elif kind == "soft":
                target = text(gid.links.get_val(name))
            elif kind == "external":
                target = [text(part) for part in gid.links.get_val(name)]
            order = info.corder if info.corder_valid else None
            theirs[text(name)] = (kind, target, order)
        if "links" not in mine:
            self.differences.append(f"{self.where}: h5py reads the links: {mine['errors']}")
            return
        its = mine["links"]
        self.differ("links", [link["name"] for link in its], sorted(theirs, key=raw))
        for link in its:
            if link["name"] not in theirs:
                continue
            kind, target, order = theirs[link["name"]]
            self.differ(f"link {link['name']}", link["kind"], kind)
            if target is not None:
                self.differ(f"target of {link['name']}", link["target"], target)
            self.differ(f"order of {link['name']}", link["order"], order)
            if kind == "hard":
                yield raw(link["name"]), link["target"]

    def object(self, fid: Any, oid: Any, info: Any, mine: Facts) -> None:
        self.differ("kind", mine["kind"], KINDS.get(info.type))
        if "references" in mine:
            self.differ("reference count", mine["references"], info.rc)
        if "modified" in mine and info.mtime:
            self.differ("modified", mine["modified"], info.mtime)
        self.attributes_of(fid, oid, mine)
        if isinstance(oid, h5d.DatasetID):
            self.dataset(oid, mine)
        elif isinstance(oid, h5t.TypeID) and "datatype" in mine:
            self.datatype("datatype", mine["datatype"], oid)

    def datatype(self, what: str, mine: Facts, tid: Any, *, exact: bool = True) -> None:
        theirs = self.type_facts(tid)
        exact = exact and not mine["elsewhere"]
        if exact:
            self.differ(f"{what}: size", mine["size"], tid.get_size())
        for key, value in theirs.items():
            if key == "members" and theirs["class"] == "compound" and "members" in mine:
                its = mine["members"]
                names = [name for name, _, _ in value]
                self.differ(f"{what}: members", [name for name, _, _ in its], names)
                for (name, at, inner), (_, offset, inner_tid) in zip(its, value, strict=False):
                    if exact:
                        self.differ(f"{what}: offset of {name}", at, offset)
                    self.datatype(f"{what}.{name}", inner, inner_tid, exact=exact)
            elif key == "base" and "base" in mine:
                self.datatype(f"{what}[]", mine["base"], value, exact=exact)
            else:
                self.differ(f"{what}: {key}", mine.get(key), value)

    def type_facts(self, tid: Any) -> Facts:
        """A datatype by HDF5's functions; members and bases are HDF5's."""
        kind = tid.get_class()
        if kind == h5t.BITFIELD:
            return {"class": "bitfield", "order": ORDERS.get(tid.get_order())}
        if kind in (h5t.INTEGER, h5t.FLOAT):
            facts: Facts = {
                "class": "integer" if kind == h5t.INTEGER else "float",
                "order": ORDERS.get(tid.get_order()),
                "offset": tid.get_offset(),
                "precision": tid.get_precision(),
            }
            low, high = tid.get_pad()
            inside = tid.get_inpad() if kind == h5t.FLOAT else 0
            facts["padding"] = [low, high, inside]
            if kind == h5t.INTEGER:
                facts["signed"] = tid.get_sign() != h5t.SGN_NONE
            if kind == h5t.FLOAT:
                facts["fields"] = list(tid.get_fields())
                facts["bias"] = tid.get_ebias()
                facts["normalization"] = NORMALIZATIONS[tid.get_norm()]
            return facts
        if kind == h5t.STRING:
            return {
                "class": "long text" if tid.is_variable_str() else "text",
                "padding": tid.get_strpad(),
                "charset": tid.get_cset(),
            }
        if kind == h5t.OPAQUE:
            return {"class": "opaque", "tag": text(tid.get_tag())}
        if kind == h5t.COMPOUND:
            numbers = range(tid.get_nmembers())
            members = [
                (text(tid.get_member_name(n)), tid.get_member_offset(n), tid.get_member_type(n))
                for n in numbers
            ]
            return {"class": "compound", "members": members}
        if kind == h5t.ENUM:
            base = tid.get_super()
            size = tid.get_size()
            order = "big" if ">" in base.dtype.str else "little"
            named: list[list[str]] = []
            for number in range(tid.get_nmembers()):
                value = int(tid.get_member_value(number)) % (1 << 8 * size)
                stored = value.to_bytes(size, order).hex()
                named.append([text(tid.get_member_name(number)), stored])
            return {"class": "enum", "base": base, "members": named}
        if kind == h5t.ARRAY:
            return {"class": "array", "shape": list(tid.get_array_dims()), "base": tid.get_super()}
        if kind == h5t.VLEN:
            return {"class": "sequence", "base": tid.get_super()}
        if kind == h5t.REFERENCE:
            return {"class": "reference"}
        if kind == getattr(h5t, "COMPLEX", None):
            return {"class": "complex", "base": tid.get_super()}
        return {"class": "time"}

    def space(self, what: str, mine: Facts, space: Any) -> None:
        kind = SPACES[space.get_simple_extent_type()]
        self.differ(f"{what}: space", mine["space"], kind)
        if kind != "simple":
            return
        self.differ(f"{what}: shape", mine["shape"], list(space.get_simple_extent_dims()))
        # HDF5 2.0 knows no unlimited dimension where lengths have fewer than eight bytes.
        unlimited = {2**16 - 1, 2**32 - 1, h5s.UNLIMITED}
        most = [None if n in unlimited else n for n in space.get_simple_extent_dims(True)]
        self.differ(f"{what}: maxshape", mine["maxshape"], most)

    def attributes_of(self, fid: Any, oid: Any, mine: Facts) -> None:
        if "attributes" not in mine:
            try:
                for number in range(h5a.get_num_attrs(oid)):
                    h5a.open(oid, index=number)
            except (KeyError, RuntimeError, OSError):
                return
            self.differences.append(f"{self.where}: h5py reads the attributes: {mine['errors']}")
            return
        names = [h5a.open(oid, index=n).name for n in range(h5a.get_num_attrs(oid))]
        its = {attribute["name"]: attribute for attribute in mine["attributes"]}
        self.differ("attributes", list(its), [text(name) for name in names])
        tracked = set()
        for name in names:
            what = f"attribute {text(name)}"
            attribute = its.get(text(name))
            if attribute is None:
                continue
            aid = h5a.open(oid, name)
            info = h5a.get_info(oid, name)
            tracked.add(bool(info.corder_valid))
            if info.corder_valid and mine["tracks_attributes"]:
                self.differ(f"{what}: order", attribute["order"], info.corder)
            self.space(what, attribute, aid.get_space())
            tid = aid.get_type()
            self.datatype(what, attribute["datatype"], tid)
            try:
                self.value(fid, what, attribute, aid, tid)
            except OSError as error:
                self.unread.append(f"{self.where}: {what}: h5py: {error}")
        if tracked == {False}:
            self.differ("attributes tracked", mine["tracks_attributes"], False)

    def value(self, fid: Any, what: str, mine: Facts, aid: Any, tid: Any) -> None:
        """Compare an attribute's value, as stored."""
        if mine["space"] == "null":
            return
        count = int(np.prod(mine["shape"])) if mine["shape"] else 1
        if not mine["datatype"]["elsewhere"]:
            nbytes = count * tid.get_size()
            out = np.empty(nbytes, "u1")
            if nbytes:
                aid.read(out, tid)
            self.differ(f"{what}: value", mine["value"], out.tobytes().hex())
            return
        if count == 0:
            return
        if mine["datatype"].get("kind", 0) > 1:
            return  # which h5py does not know
        if "references" in mine and isinstance(tid, h5t.TypeReferenceID):
            found = []
            region = tid.equal(h5t.STD_REF_DSETREG)
            values = np.empty(count, dtype=h5py.regionref_dtype if region else h5py.ref_dtype)
            aid.read(values)
            for reference in values:
                found.append(_leads(reference, fid))
            its = [None if lead is None else lead[0] for lead in mine["references"]]
            if "dangling" not in found:
                self.differ(f"{what}: references", its, found)
            return
        if "variable" in mine:
            self.variable(what, mine, aid, tid, count)

    def variable(self, what: str, mine: Facts, aid: Any, tid: Any, count: int) -> None:
        its = [None if value is None else value for value in mine["variable"]]
        if tid.get_class() == h5t.STRING:
            values = np.empty(count, dtype=h5py.string_dtype())
            aid.read(values)
            theirs = [raw(value) if isinstance(value, str) else value or b"" for value in values]
            read = [
                b"" if value is None else bytes.fromhex(value[1])[: value[0]].split(b"\0")[0]
                for value in its
            ]
            self.differ(f"{what}: value", read, theirs)
            return
        base = tid.get_super()
        # h5py gives values of the other byte order as if they were of this one.
        if base.get_class() in (h5t.INTEGER, h5t.FLOAT) and base.dtype.isnative:
            values = np.empty(count, dtype=h5py.vlen_dtype(base.dtype))
            aid.read(values)
            theirs = [np.asarray(value, base.dtype).tobytes() for value in values]
            size = base.get_size()
            read = [
                b"" if value is None else bytes.fromhex(value[1])[: value[0] * size]
                for value in its
            ]
            self.differ(f"{what}: value", read, theirs)

    def dataset(self, dsid: Any, mine: Facts) -> None:
        plist = dsid.get_create_plist()
        if "datatype" in mine:
            self.datatype("type", mine["datatype"], dsid.get_type())
        if "dataspace" in mine:
            self.space("dataset", mine["dataspace"], dsid.get_space())
        if "fill" in mine:
            self.fill(dsid, plist, mine)
        if "external" in mine:
            parts = [plist.get_external(n) for n in range(plist.get_external_count())]
            theirs = [[text(name), at, None if n == h5s.UNLIMITED else n] for name, at, n in parts]
            self.differ("external", mine["external"], theirs)
        if "filters" in mine:
            theirs = []
            for number in range(plist.get_nfilters()):
                its, flags, options, _ = plist.get_filter(number)
                theirs.append([its, bool(flags & 1), list(options)])
            found = [[f["number"], f["optional"], f["options"]] for f in mine["filters"]]
            self.differ("filters", found, theirs)
        if mine.get("layout"):
            self.layout(dsid, plist, mine)

    def layout(self, dsid: Any, plist: Any, mine: Facts) -> None:
        layout = mine["layout"]
        classes = {
            h5d.COMPACT: "compact",
            h5d.CONTIGUOUS: "contiguous",
            h5d.CHUNKED: "chunked",
            h5d.VIRTUAL: "virtual",
        }
        self.differ("layout", layout["class"], classes[plist.get_layout()])
        if layout["class"] == "contiguous":
            if not mine.get("external"):
                at = layout["address"]
                theirs = dsid.get_offset()
                # Where there is none, h5py adds the user block to all bits.
                theirs = None if theirs is None or theirs == self.base - 1 else theirs
                self.differ("address", None if at is None else at + self.base, theirs)
                if layout["nbytes"] is not None and at is not None:
                    self.differ("bytes", layout["nbytes"], dsid.get_storage_size())
        elif layout["class"] == "compact":
            self.differ("bytes", len(layout["bytes"]) // 2, dsid.get_storage_size())
        elif layout["class"] == "chunked":
            self.differ("chunk shape", layout["chunk"], list(plist.get_chunk()))
            if "chunks" in mine:
                self.chunk_list(dsid, mine, layout["chunk"])
                self.differ("chunks that are looked up", mine.get("found"), True)
        elif layout["class"] == "virtual" and "virtual" in mine:
            self.virtual(plist, mine)

    def chunk_list(self, dsid: Any, mine: Facts, chunk: list[int]) -> None:
        theirs: list[Any] = []
        dsid.chunk_iter(
            lambda info: theirs.append(
                [list(info.chunk_offset), info.byte_offset, info.size, info.filter_mask]
            )
        )
        its = [
            [[at * n for at, n in zip(place, chunk, strict=True)], address + self.base, size, mask]
            for place, address, size, mask in mine["chunks"]
        ]
        self.chunks += len(its)
        most = mine["dataspace"]["maxshape"]
        if mine["layout"]["index"] == "extensible array" and None in most[1:]:
            # HDF5 2.0 lists them under other coordinates, but reads those within the shape.
            shape = mine["dataspace"]["shape"]
            its = [i for i in its if all(a < n for a, n in zip(i[0], shape, strict=True))]
            content = self.path.read_bytes()
            theirs = []
            for place, address, *_ in its:
                mask, stored = dsid.read_direct_chunk(tuple(place))
                where = address if content[address:].startswith(stored) else None
                theirs.append([place, where, len(stored), mask])
        for a, b in zip(sorted(its), sorted(theirs), strict=False):
            if a != b:
                self.differ("a chunk", a, b)
                break
        self.differ("chunks", len(its), len(theirs))

    def virtual(self, plist: Any, mine: Facts) -> None:
        count = plist.get_virtual_count()
        names = [
            [text(raw(plist.get_virtual_filename(n))), text(raw(plist.get_virtual_dsetname(n)))]
            for n in range(count)
        ]
        self.differ("virtual", [m[:2] for m in mine["virtual"]], names)
        for number, mapping in enumerate(mine["virtual"][:count]):
            for what, selection, space in (
                ("source", mapping[2], plist.get_virtual_srcspace(number)),
                ("shown", mapping[3], plist.get_virtual_vspace(number)),
            ):
                self.differ(f"{what} {number}", selection, _selected(space, selection))

    def fill(self, dsid: Any, plist: Any, mine: Facts) -> None:
        defined = plist.fill_value_defined()
        fill = mine["fill"]
        states = {h5d.FILL_VALUE_UNDEFINED: "undefined", h5d.FILL_VALUE_DEFAULT: "default"}
        its = "undefined" if fill is None else fill["value"]
        if defined in states:
            self.differ("fill value", its, states[defined])
            return
        if isinstance(its, str):
            self.differ("fill value", its, "given")
            return
        if fill["allocated"]:
            self.differ("allocated", fill["allocated"], plist.get_alloc_time())
            self.differ("written", fill["written"], plist.get_fill_time())
        if mine["datatype"]["elsewhere"]:
            return
        try:
            dtype = dsid.dtype
        except TypeError:
            return
        if dtype.kind in "biufc":
            out = np.empty((), dtype)
            plist.get_fill_value(out)
            self.differ("fill value", its, [out.tobytes().hex()])


def _leads(reference: Any, fid: Any) -> Any:
    if not reference:
        return None
    try:
        return h5o.get_info(h5r.dereference(reference, fid)).addr
    except Exception:
        return "dangling"


def _selected(space: Any, like: Any) -> Any:
    """A selection of HDF5's in the words of ours, of the same kind."""
    kind = space.get_select_type()
    if kind == h5s.SEL_ALL:
        return "all"
    if kind == h5s.SEL_NONE:
        return "none"
    if kind == h5s.SEL_POINTS:
        return space.get_select_elem_pointlist().tolist()
    if not isinstance(like, str) and len(like[0]) == 4 and space.is_regular_hyperslab():
        start, stride, count, block = space.get_regular_hyperslab()
        return [
            [s, t, None if c == h5s.UNLIMITED else c, None if b == h5s.UNLIMITED else b]
            for s, t, c, b in zip(start, stride, count, block, strict=True)
        ]
    return space.get_select_hyper_blocklist().tolist()


def compared(path: Path, dumped: str) -> Compared:
    """Compare what `dump` has printed of a file with what h5py says."""
    result = Compared(path, dumped)
    result.file()
    return result
