"""Which objects does an HDF5 file hold, each of them once?

The walk visits every object under the first name it finds, reports further names, and follows
hard links only.  It uses h5py's low-level identifiers, which cost a tenth of `h5py.Group`, and
names as bytes, because they need not be UTF-8.  Objects to which only references lead come last;
``/refs[3]->`` is what element 3 of ``/refs`` means.
"""

from __future__ import annotations

import contextlib
import struct
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import h5py
from h5py import h5, h5a, h5d, h5g, h5i, h5l, h5o, h5p, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason

if TYPE_CHECKING:
    from chunkwise.files.causes import Cause

Kind = Literal[
    "group",
    "dataset",
    "named_type",
    "hard_link",
    "soft_link",
    "external_link",
    "user_link",
    "unreadable",
]

# What identifies an object (H5G_stat_t): its file's number and its place, two halves each.
Address = tuple[int, ...]

# A longer name of an object without a link is replaced by a number: one may lead to the next.
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the walk."""

    # Absolute path of the link (`decode_name`), or what an object without a link is called.
    path: str
    depth: int  # Number of groups above it; the root group has 0
    # What the link leads to; for ``hard_link`` and soft, external, user-defined links: that.
    kind: Kind
    identifier: Any = None  # The open h5py low-level object, for groups, datasets and named types
    # Path: of a ``hard_link`` the object's first, else the link's own (``FILE:PATH``) or None.
    target: str | None = None
    reason: str | None = None  # For ``unreadable``, why HDF5 could not open it, in one line
    address: Address | None = None  # Of the open object: the same under each of its names
    names: int = 0  # How many names the open object has, by its own count
    linked: bool = True  # Whether links lead there from the root group
    group: Any = None  # The open group that holds a soft or external link
    # For ``unreadable``, what that proves.
    cause: Cause | None = None


def walk(
    top: h5py.Group,
    path: str = "/",
    avoid: Collection[int] = frozenset(),
    *,
    references: bool = True,
) -> Iterator[Entry]:
    """Visit everything below a group, depth first, then what only references lead to."""
    # Members come in the order of creation if the group keeps it, else by name.
    try:
        # Not by the file's own identifier: libhdf5 1.10 knows no attributes of one.
        is_file = isinstance(top, h5py.File)
        root = _opened(path, 0, h5g.open(top.id, b"/") if is_file else top.id)
    except HDF5_ERRORS as error:
        from chunkwise.files.causes import cause_of, is_checked

        cause = cause_of(error, checked=is_checked(top.id))
        yield Entry(path, 0, "unreadable", reason=hdf5_reason(error), cause=cause)
        return
    unlinked = _Unlinked(root.identifier, avoid) if references and is_file else None
    seen: dict[Address | None, str] = {}
    yield from _below(root, seen, avoid, unlinked)
    if unlinked is not None:
        for entry in unlinked:
            yield from _below(entry, seen, avoid, unlinked)


def _below(
    top: Entry,
    seen: dict[Address | None, str],
    avoid: Collection[int],
    unlinked: _Unlinked | None,
) -> Iterator[Entry]:
    """Visit an object and everything below it that was not `seen`."""
    yield top
    if unlinked is not None:
        unlinked.note(top)
    seen[top.address] = top.path
    if top.kind != "group":
        return
    pending = [_members(top.identifier, top.path, top.depth + 1, avoid)]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        if not top.linked:
            entry = replace(entry, linked=False)
        if entry.address is not None:
            first = seen.get(entry.address)
            if first is not None:
                yield Entry(
                    entry.path, entry.depth, "hard_link", target=first, linked=entry.linked
                )
                continue
            # Groups are always remembered: a damaged count must not make the walk endless.
            if entry.kind == "group" or entry.names > 1:
                seen[entry.address] = entry.path
        yield entry
        if unlinked is not None:
            unlinked.note(entry)
        if entry.kind == "group":
            pending.append(_members(entry.identifier, entry.path, entry.depth + 1, avoid))


class _Unlinked:
    """What was found that no link leads to; gives each object once, in the order of discovery."""

    def __init__(self, root: Any, avoid: Collection[int]) -> None:
        self._root = root
        self._leads = _leads()
        self._known = set(avoid)
        self._waiting: deque[tuple[int, str]] = deque()
        # What no other object may be called.
        self._names: set[str] = set()

    def note(self, entry: Entry) -> None:
        """Note the addresses to which an entry leads by other means than links."""
        if "->" in entry.path:
            self._names.add(entry.path)
        if entry.address is None:
            return
        self._known.add(header_address(entry.address))
        try:
            found = self._leads.of(entry.identifier.id)
        except HDF5_ERRORS:
            return
        for attribute, place, address in found:
            if address not in self._known:
                self._waiting.append((address, _place(entry.path, attribute, place)))

    def __iter__(self) -> Iterator[Entry]:
        """Give them; what is noted meanwhile comes too."""
        count = 0
        while self._waiting:
            address, name = self._waiting.popleft()
            if address in self._known:
                continue
            self._known.add(address)
            try:
                opened = open_at(self._root, address)
                found = None if opened is None else _opened(name, 1, opened)
            except HDF5_ERRORS:
                continue
            if found is None:
                continue
            count += 1
            if len(name) > _LONGEST_NAME:
                name = f"/->{count}"
            while name in self._names:
                name += ">"
            yield replace(found, path=name, linked=False)


def _place(path: str, attribute: bytes | None, place: tuple[int, int] | None) -> str:
    """Name what an element leads to, or (None) the type of the elements."""
    holder = path if attribute is None else f"{path}@{decode_name(attribute)}"
    if place is None:
        return f"{holder}(type)->"
    index, number = place
    return f"{holder}[{index}:{number}]->" if number else f"{holder}[{index}]->"


@cache
def _leads() -> _native.Leads:
    return _native.Leads(library())


def open_at(place: Any, address: int) -> Any:
    """Open an object by its address, in the file of an open object; None if there is none."""
    opened = _leads().open(place.id, address)
    return None if opened is None else h5i.wrap_identifier(opened)


def walk_datasets(file: h5py.Group) -> Iterator[tuple[str, h5py.Dataset]]:
    """Visit every dataset of a file (or below a group) once."""
    name = "/" if isinstance(file, h5py.File) else file.name
    for entry in walk(file, name, references=False):
        if entry.kind == "dataset":
            yield entry.path, h5py.Dataset(entry.identifier)


def _members(group: Any, path: str, depth: int, avoid: Collection[int]) -> Iterator[Entry]:
    """Give a group's links, their objects opened."""
    prefix = path.rstrip("/") + "/"
    # Where those lie that libhdf5 does not find by their names.
    addresses: dict[bytes, int] = {}
    try:
        names = list(group)
    except HDF5_ERRORS as error:
        from chunkwise.files.causes import cause_of, has_checksum

        names = some_names(group)
        links, found = readable_links(group)
        damage = some_damage(found)
        cause = cause_of(error, checked=has_checksum(group)).of(damage)
        reason = "; ".join((hdf5_reason(error), *damage))
        yield Entry(prefix + "*", depth, "unreadable", reason=reason, cause=cause)
        addresses = {name: at for name, at in links if at is not None and name not in names}
        names += addresses
    for name in names:
        member = prefix + decode_name(name)
        try:
            yield _member(group, name, member, depth, avoid, addresses.get(name))
        except HDF5_ERRORS as error:
            from chunkwise.files.causes import cause_of, is_header_checked

            damage = _damage_of(group, name)
            cause = cause_of(error, checked=is_header_checked(group, name)).of(damage)
            reason = "; ".join((hdf5_reason(error), *damage))
            yield Entry(member, depth, "unreadable", reason=reason, cause=cause)


def some_names(group: Any) -> list[bytes]:
    """List the names that a group with a damaged index still gives, by any of its indexes."""
    names: dict[bytes, None] = {}
    for index in (h5.INDEX_NAME, h5.INDEX_CRT_ORDER):
        for order in (h5.ITER_INC, h5.ITER_NATIVE):
            with contextlib.suppress(*HDF5_ERRORS):
                group.links.iterate(names.setdefault, idx_type=index, order=order)
    return list(names)


def readable_links(group: Any) -> tuple[list[tuple[bytes, int | None]], list[str]]:
    """Give names and addresses that a damaged group still has, and what is wrong with others."""
    from chunkwise.files.causes import file_of
    from chunkwise.files.native import damaged_metadata

    metadata = damaged_metadata(file_of(group))
    if metadata is None:
        return [], []
    return metadata.readable_links(header_address(address_of(group)))


def _damage_of(group: Any, name: bytes) -> list[str]:
    """Say which structures are damaged of an object that cannot be opened."""
    from chunkwise.files.causes import file_of
    from chunkwise.files.native import damaged_metadata

    try:
        info, metadata = group.links.get_info(name), damaged_metadata(file_of(group))
    except HDF5_ERRORS:
        return []
    is_hard = info.type == h5l.TYPE_HARD and isinstance(info.u, int)
    return some_damage(metadata.damage(info.u)) if metadata is not None and is_hard else []


def some_damage(damage: Sequence[str], most: int = 3) -> list[str]:
    """Name the first damage, and the number of further ones."""
    more = len(damage) - most
    return [*damage[:most], *([f"{more} more"] if more > 0 else [])]


def _member(
    group: Any,
    name: bytes,
    path: str,
    depth: int,
    avoid: Collection[int],
    address: int | None = None,  # If it is not found by its name
) -> Entry:
    if address is not None and address not in avoid:
        found = open_at(group, address)
        if found is None:
            raise RuntimeError("no object is where its link leads")
        return _opened(path, depth, found)
    info = group.links.get_info(name)
    link = info.type
    if link == h5l.TYPE_HARD and info.u in avoid:
        from chunkwise.files.causes import CRASHES

        return Entry(path, depth, "unreadable", reason=CRASHES.reason, cause=CRASHES)
    if link == h5l.TYPE_SOFT:
        target = decode_name(group.links.get_val(name))
        return Entry(path, depth, "soft_link", target=target, group=group)
    if link == h5l.TYPE_EXTERNAL:
        file, inside = group.links.get_val(name)
        target = f"{decode_name(file)}:{decode_name(inside)}"
        return Entry(path, depth, "external_link", target=target, group=group)
    if link != h5l.TYPE_HARD:
        return Entry(path, depth, "user_link")
    return _opened(path, depth, h5o.open(group, name))


def address_of(identifier: Any) -> Address:
    """Return where an open object lies: the same for each of its names (H5Gget_objinfo)."""
    info = h5g.get_objinfo(identifier)
    return (*info.fileno, *info.objno)


def header_address(address: Address) -> int:
    """Give where an object's header lies in its file."""
    return address[-2] | address[-1] << 32


def address_at(number: tuple[int, ...], at: int) -> Address:
    """Give what `address_of` says of an object, by libhdf5's number of its file."""
    return (*number, at & _LONG, at >> _LONG.bit_length())


# The greatest unsigned long of C.
_LONG = (1 << 8 * struct.calcsize("L")) - 1

# A name that no attribute has.
_NO_ATTRIBUTE = b"\x01"


def decode_attributes(identifier: Any) -> None:
    """Let libhdf5 decode the headers of an object's attributes, or fail without a crash."""
    # To be called before they are listed.  Where one is damaged, H5Aiterate of libhdf5 before 2.0
    # releases entries of a table that it has not filled yet; looking for one by name decodes the
    # same headers, with no such table.
    h5a.exists(identifier, _NO_ATTRIBUTE)


def attribute_names(identifier: Any, *, created: bool = False) -> list[bytes]:
    """List an open object's attributes by name, or as they were `created` if it keeps that."""
    decode_attributes(identifier)
    index = h5.INDEX_NAME
    if created and not isinstance(identifier, h5t.TypeID):
        flags = identifier.get_create_plist().get_attr_creation_order()
        index = h5.INDEX_CRT_ORDER if flags & h5p.CRT_ORDER_TRACKED else index
    names: list[bytes] = []
    h5a.iterate(identifier, names.append, index_type=index)
    return names


def names_of(identifier: Any) -> int:
    """Return how many names an open object has, by its own count."""
    return int(h5g.get_objinfo(identifier).nlink)


def _opened(path: str, depth: int, identifier: Any) -> Entry:
    # h5o.get_info reads a whole chunk index; if it is damaged, HDF5 2.0 may end the process.
    info = h5g.get_objinfo(identifier)
    kind: Kind = "named_type"
    if isinstance(identifier, h5g.GroupID):
        kind = "group"
    elif isinstance(identifier, h5d.DatasetID):
        kind = "dataset"
    address = (*info.fileno, *info.objno)
    return Entry(path, depth, kind, identifier, address=address, names=info.nlink)
