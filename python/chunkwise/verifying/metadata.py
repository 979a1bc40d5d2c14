"""Can all metadata of a file be read, by every index, while libhdf5 checks its checksums?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import h5py
from h5py import h5, h5a, h5d, h5g, h5o, h5t

from chunkwise.files.causes import Cause, cause_of, file_of, has_checksum
from chunkwise.files.native import damaged_metadata
from chunkwise.files.objects import Entry, address_of, attribute_names, header_address, some_damage
from chunkwise.files.opening import is_plain
from chunkwise.files.references import dangling
from chunkwise.files.stored import has_long_index, read_attribute
from chunkwise.inspection.collect import is_dangling
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason
from chunkwise.verdicts import FileVerdict
from chunkwise.verifying.data import is_unknown_type, unknown_text
from chunkwise.verifying.records import Damage, Findings, Note
from chunkwise.words import counted


def check_object(file: h5py.File, entry: Entry) -> Findings:
    """Read all there is to say of one object but its data."""
    found = Findings()
    if entry.kind == "unreadable":
        damage = Damage("object", entry.path, entry.reason or "cannot be opened")
        _judge(found, damage, entry.cause)
        return found
    if entry.kind in ("soft_link", "external_link"):
        if is_dangling(file, entry):
            kind = "soft" if entry.kind == "soft_link" else "external"
            said = f"{kind} link to {entry.target} leads nowhere"
            found.notes.append(Note(entry.path, said, FileVerdict.LOOSE))
        return found
    if entry.identifier is None:
        return found
    try:
        _read_header(entry)
    except HDF5_ERRORS as error:
        _judge(found, *_damaged("object", entry.path, entry, error))
        return found
    _read_attributes(entry, found)
    return found


def _judge(found: Findings, damage: Damage, cause: Cause | None) -> None:
    """Add damage, or what only looks like it: HDF5 refuses something."""
    if cause is None or cause.verdict is FileVerdict.DAMAGED:
        found.add(damage)
    else:
        found.notes.append(Note(damage.path, str(cause), cause.verdict))


def _cause(entry: Entry, error: BaseException) -> Cause:
    return cause_of(error, checked=has_checksum(entry.identifier))


def _damaged(
    kind: Literal["object", "attribute"], path: str, entry: Entry, error: BaseException
) -> tuple[Damage, Cause]:
    """Say what libhdf5 refuses of an object, and which structures are damaged."""
    metadata = damaged_metadata(file_of(entry.identifier))
    address = header_address(address_of(entry.identifier))
    damage = [] if metadata is None else some_damage(metadata.damage(address))
    reason = "; ".join((hdf5_reason(error), *damage))
    return Damage(kind, path, reason), _cause(entry, error).of(damage)


def check_space(entry: Entry) -> Damage | None:
    """Read what only writing needs, such as the free space within heaps."""
    # To be called where all else is sound: of a damaged chunk index this may end the process.
    identifier = entry.identifier
    if identifier is None or (
        isinstance(identifier, h5d.DatasetID)
        and identifier.get_create_plist().get_layout() == h5d.CHUNKED
        and has_long_index(identifier)
    ):
        return None
    try:
        h5o.get_info(identifier)
    except HDF5_ERRORS as error:
        return Damage("object", entry.path, hdf5_reason(error))
    return None


def _read_header(entry: Entry) -> None:
    identifier = entry.identifier
    if isinstance(identifier, h5d.DatasetID):
        identifier.get_space()
        identifier.get_type()
        identifier.get_create_plist().fill_value_defined()
    elif isinstance(identifier, h5g.GroupID):
        # The walk has taken the names by one of two indexes.
        by_name = _counted(identifier, h5.INDEX_NAME)
        stated = identifier.get_num_objs()
        if by_name != stated:
            raise RuntimeError(f"{by_name:,} of {counted(stated, 'link')} found by name")
        if identifier.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
            by_order = _counted(identifier, h5.INDEX_CRT_ORDER)
            if by_order != stated:
                raise RuntimeError(f"{by_order:,} of {counted(stated, 'link')} found by order")


def _counted(group: Any, index: int) -> int:
    """Count the links of a group by one of its indexes."""
    count = 0

    def add(_name: bytes) -> None:
        nonlocal count
        count += 1

    # In any other order libhdf5 sorts what it has by name, and leaves the second index alone.
    group.links.iterate(add, idx_type=index, order=h5.ITER_NATIVE)
    return count


def _read_attributes(entry: Entry, found: Findings) -> None:
    identifier = entry.identifier
    try:
        stated = h5a.get_num_attrs(identifier)
        names = attribute_names(identifier) if stated else []
        if stated:
            _list_by_order(identifier)
    except HDF5_ERRORS as error:
        # Of those that libhdf5 does not list, some can be read.
        metadata = damaged_metadata(file_of(identifier))
        address = header_address(address_of(identifier))
        found.attributes += 0 if metadata is None else metadata.readable_attributes(address)
        _judge(found, *_damaged("attribute", f"{entry.path}@*", entry, error))
        return
    if len(names) != stated:
        said = f"{len(names):,} of {counted(stated, 'attribute')} found"
        found.add(Damage("attribute", f"{entry.path}@*", said))
    for name in names:
        label = f"{entry.path}@{decode_name(name)}"
        found.attributes += 1
        try:
            strange = unknown_text(h5a.open(identifier, name).get_type())
            if strange is not None:
                found.notes.append(Note(label, strange, FileVerdict.UNJUDGED))
                continue
            lost = _read_attribute(identifier, name)
        except (*HDF5_ERRORS, MemoryError) as error:
            if is_unknown_type(error):
                said = f"not read: {hdf5_reason(error)}"
                found.notes.append(Note(label, said, FileVerdict.UNJUDGED))
            else:
                damage = Damage("attribute", label, hdf5_reason(error))
                _judge(found, damage, _cause(entry, error))
            continue
        if lost:
            said = f"{counted(lost, 'reference')} leading nowhere"
            found.notes.append(Note(label, said, FileVerdict.LOOSE))


def _list_by_order(identifier: Any) -> None:
    """Go through the attributes in the order of their creation, if that is kept."""
    if isinstance(identifier, h5t.TypeID):
        return
    if identifier.get_create_plist().get_attr_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
        order = h5.ITER_NATIVE  # As of links.
        h5a.iterate(identifier, lambda _name: None, index_type=h5.INDEX_CRT_ORDER, order=order)


def _read_attribute(identifier: Any, name: bytes) -> int:
    """Read a value; count the references in it that lead nowhere."""
    attribute = h5a.open(identifier, name)
    datatype = h5t.TypeID.copy(attribute.get_type())
    if is_plain(datatype):
        read_attribute(attribute)
        return 0
    return dangling(h5py.AttributeManager(SimpleNamespace(id=identifier))[name], identifier)
