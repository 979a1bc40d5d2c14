"""What does a file hold, told so that two files can be compared wherever their objects lie?

Independent of what it checks: h5py's low-level functions alone.  Objects are named by the
first path that leads to them, references by where they lead, values by their bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import h5py
import numpy as np
from h5py import h5, h5a, h5d, h5g, h5l, h5o, h5p, h5r, h5s, h5t

Facts = dict[str, Any]


class Teller:
    """Tells the facts of one open file."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.paths: dict[tuple[int, ...], bytes] = {}
        self.facts: dict[bytes, Facts] = {}
        self.committed: dict[tuple[int, ...], int] = {}

    def tell(self) -> dict[bytes, Facts]:
        """Facts of all objects by path."""
        found: list[tuple[bytes, Any]] = [(b"/", h5o.open(self.file.id, b"/"))]
        self.paths[_address(found[0][1])] = b"/"
        for path, identifier in found:
            if isinstance(identifier, h5g.GroupID):
                self._name_members(path, identifier, found)
        for path, identifier in found:
            self.facts[path] = self._object(identifier)
        return self.facts

    def _name_members(self, path: bytes, group: Any, found: list[tuple[bytes, Any]]) -> None:
        for name in _link_names(group):
            if group.links.get_info(name).type != h5l.TYPE_HARD:
                continue
            member = h5o.open(group, name)
            if _address(member) not in self.paths:
                below = path.rstrip(b"/") + b"/" + name
                self.paths[_address(member)] = below
                found.append((below, member))

    def _object(self, identifier: Any) -> Facts:
        facts: Facts = {"comment": _comment(identifier)}
        facts["tracks times"] = h5g.get_objinfo(identifier).mtime != 0
        if isinstance(identifier, h5g.GroupID):
            facts["links"] = [self._link(identifier, name) for name in _link_names(identifier)]
            ocpl = identifier.get_create_plist()
            facts["link order"] = ocpl.get_link_creation_order()
        elif isinstance(identifier, h5d.DatasetID):
            ocpl = identifier.get_create_plist()
            facts |= self._dataset(identifier, ocpl)
        else:
            ocpl = h5p.create(h5p.GROUP_CREATE)
            facts["type"] = _encoded(identifier)
        facts["attribute order"] = ocpl.get_attr_creation_order()
        facts["attribute phases"] = ocpl.get_attr_phase_change()
        facts["attributes"] = self._attributes(identifier, ocpl)
        return facts

    def _link(self, group: Any, name: bytes) -> tuple[Any, ...]:
        info = group.links.get_info(name)
        kind: Any = info.type
        target: Any
        if kind == h5l.TYPE_HARD:
            target = self.paths[_address(h5o.open(group, name))]
        else:
            target = group.links.get_val(name)
        return name, kind, info.cset, target

    def _dataset(self, dataset: Any, dcpl: Any) -> Facts:
        space = dataset.get_space()
        layout = dcpl.get_layout()
        facts: Facts = {
            "type": self._type(dataset.get_type()),
            "space": _space(space),
            "layout": layout,
            "filters": [_filter(dcpl.get_filter(n)) for n in range(dcpl.get_nfilters())],
            "times": (dcpl.get_fill_time(), dcpl.get_alloc_time()),
            "fill": dcpl.fill_value_defined(),
            "external": [dcpl.get_external(n) for n in range(dcpl.get_external_count())],
            "written": layout == h5d.CHUNKED or dataset.get_storage_size(),
        }
        if layout == h5d.CHUNKED:
            facts["chunk"] = dcpl.get_chunk()
            facts["chunks"] = dataset.get_num_chunks()
        if layout == h5d.VIRTUAL:
            facts["virtual"] = [
                (
                    dcpl.get_virtual_filename(number),
                    dcpl.get_virtual_dsetname(number),
                    dcpl.get_virtual_vspace(number).encode(),
                    dcpl.get_virtual_srcspace(number).encode(),
                )
                for number in range(dcpl.get_virtual_count())
            ]
        if space.get_simple_extent_type() != h5s.NULL:
            facts["data"] = self._data(dataset, dataset.get_type(), space)
        return facts

    def _attributes(self, identifier: Any, ocpl: Any) -> list[Any]:
        tracked = ocpl.get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
        index = h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME
        names: list[bytes] = []
        h5a.iterate(identifier, lambda name, *_: names.append(name), index_type=index)
        return [self._attribute(h5a.open(identifier, name)) for name in names]

    def _attribute(self, attribute: Any) -> tuple[Any, ...]:
        datatype, space = attribute.get_type(), attribute.get_space()
        value = None
        if space.get_simple_extent_type() != h5s.NULL:
            value = self._data(attribute, datatype, space)
        charset = h5a.get_info(attribute).cset
        return attribute.name, charset, self._type(datatype), _space(space), value

    def _type(self, datatype: Any) -> tuple[Any, ...]:
        """A type, and which committed one it is: a path, or for one without a number."""
        if not datatype.committed():
            return None, _encoded(datatype)
        address = _address(datatype)
        unnamed = self.committed.setdefault(address, len(self.committed))
        return self.paths.get(address, unnamed), _encoded(datatype)

    def _data(self, owner: Any, datatype: Any, space: Any) -> Any:
        if not _holds_pointers(datatype):
            raw = np.zeros(space.get_simple_extent_npoints() * datatype.get_size(), "u1")
            if raw.size:
                if isinstance(owner, h5d.DatasetID):
                    owner.read(h5s.ALL, h5s.ALL, raw, mtype=datatype)
                else:
                    _read_raw(owner, raw, datatype)
            return raw.tobytes()
        if _holds(datatype, _is_holder):
            return "of HDF5 1.12"
        dtype = datatype.dtype
        values = np.zeros(space.shape, dtype)
        if isinstance(owner, h5d.DatasetID):
            owner.read(h5s.ALL, h5s.ALL, values)
        else:
            owner.read(values)
        return self._value(values)

    def _value(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.void):
            if value.dtype.names:
                return [(name, self._value(value[name])) for name in value.dtype.names]
            if value.dtype.hasobject:
                return [self._value(item) for item in value.reshape(-1)]
            return value.tobytes()
        if isinstance(value, h5r.RegionReference):
            if not value:
                return None
            space = h5r.get_region(value, self.file.id)
            return self._led(value), space.encode()
        if isinstance(value, h5r.Reference):
            return self._led(value) if value else None
        return value

    def _led(self, reference: Any) -> bytes | None:
        """Where a reference leads; None for nowhere, as if it were null."""
        try:
            return self.paths.get(_address(h5r.dereference(reference, self.file.id)))
        except (KeyError, OSError, RuntimeError, ValueError):
            return None


def _filter(stated: tuple[int, int, tuple[int, ...], bytes]) -> tuple[Any, ...]:
    """A filter; of Bitshuffle without the version of the plugin that made the dataset."""
    number, flags, values, name = stated
    return number, flags, values[2:] if number == 32008 else values, name


def _address(identifier: Any) -> tuple[int, ...]:
    return tuple(h5g.get_objinfo(identifier).objno)


def _link_names(group: Any) -> list[bytes]:
    order = group.get_create_plist().get_link_creation_order()
    tracked = order & h5p.CRT_ORDER_TRACKED
    names: list[bytes] = []
    index = h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME
    group.links.iterate(names.append, idx_type=index)
    return names


def _encoded(datatype: Any) -> bytes:
    return bytes(datatype.copy().encode())


def _space(space: Any) -> tuple[Any, ...]:
    kind = space.get_simple_extent_type()
    if kind == h5s.SIMPLE:
        return kind, space.get_simple_extent_dims(), space.get_simple_extent_dims(True)
    return (kind,)


def _holds(datatype: Any, asked: Any) -> bool:
    kind = datatype.get_class()
    if asked(datatype):
        return True
    if kind == h5t.COMPOUND:
        members = range(datatype.get_nmembers())
        return any(_holds(datatype.get_member_type(number), asked) for number in members)
    return kind in (h5t.ARRAY, h5t.VLEN) and _holds(datatype.get_super(), asked)


def _holds_pointers(datatype: Any) -> bool:
    def is_pointer(part: Any) -> bool:
        kind = part.get_class()
        return kind in (h5t.REFERENCE, h5t.VLEN) or (kind == h5t.STRING and part.is_variable_str())

    return _holds(datatype, is_pointer)


def _is_holder(datatype: Any) -> bool:
    known = (h5t.STD_REF_OBJ, h5t.STD_REF_DSETREG)
    return datatype.get_class() == h5t.REFERENCE and not any(map(datatype.equal, known))


def _read_raw(attribute: Any, raw: Any, datatype: Any) -> None:
    """Read an attribute's bytes: h5py converts by its shape and dtype otherwise."""
    library = ctypes.CDLL(h5a.__file__)
    hid = ctypes.c_int64
    place = raw.ctypes.data_as(ctypes.c_void_p)
    status = library.H5Aread(hid(attribute.id), hid(datatype.id), place)
    assert status >= 0, attribute.name


def _comment(identifier: Any) -> bytes:
    """Give an object's comment (h5py gives what was in memory where there is none)."""
    text = ctypes.create_string_buffer(256)
    library = ctypes.CDLL(h5o.__file__)
    library.H5Oget_comment(ctypes.c_int64(identifier.id), text, ctypes.c_size_t(256))
    return text.value
