"""Do two files have the same objects: groups, links, attributes, types and references?

Both are walked side by side.  Objects to which the same link, reference or committed type leads
become partners; each has one, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5l, h5o, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import LibraryError
from chunkwise.files.objects import Address, address_of, attribute_names
from chunkwise.files.opening import is_plain
from chunkwise.files.references import selected
from chunkwise.files.stored import read_attribute
from chunkwise.grammar.boxes import Box
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason
from chunkwise.proof.records import Allowed, Names
from chunkwise.proof.values import numpy_type

# The group in which salvage puts objects to which nothing leads any more.
_FOUND: Final = b"lost+found"


@dataclass(frozen=True)
class Partners:
    """An object of the source, and the one that should be the same."""

    # `path` is for messages; `name` leads there by links, None if only references do.

    path: str
    name: bytes | None
    mine: Any
    theirs: Any


class Structure:
    """Compares everything but the values of datasets, which go to `values`."""

    def __init__(self, names: Names, allowed: Allowed, values: Callable[[Partners], None]) -> None:
        self._names = names
        self._allowed = allowed
        self._values = values
        self._partners: dict[Address, Address] = {}
        self._backwards: dict[Address, Address] = {}
        self._pending: list[Partners] = []
        self._roots: tuple[Any, Any] = (None, None)
        self.objects = 0
        self.attributes = 0

    def compare(self, source: h5py.File, target: h5py.File) -> None:
        """Compare two open files."""
        # Not the file's own identifier: libhdf5 1.10 knows no attributes of one.
        self._roots = tuple(h5g.open(file.id, b"/") for file in (source, target))
        self._pending.append(Partners("/", b"/", *self._roots))
        # First what links lead to: an object has the name that the user knows.
        while self._pending:
            first = self._pending.pop()
            if not self._join(first):
                continue
            stack = [self._visit(first)]
            while stack:
                pair = next(stack[-1], None)
                if pair is None:
                    stack.pop()
                else:
                    stack.append(self._visit(pair))

    def _join(self, pair: Partners) -> bool:
        """Make two objects partners; return whether they are new."""
        here, there = address_of(pair.mine), address_of(pair.theirs)
        known = self._partners.setdefault(here, there), self._backwards.setdefault(there, here)
        if known != (there, here):
            raise self._names.difference(pair.path, "leads to another object than in the source")
        is_new = len(self._partners) > self.objects
        self.objects += is_new
        return is_new

    def _reach(self, pair: Partners) -> None:
        """Note that something else than a link leads to two objects."""
        here, there = address_of(pair.mine), address_of(pair.theirs)
        if here in self._partners or there in self._backwards:
            self._join(pair)
        else:
            self._pending.append(pair)

    def _visit(self, pair: Partners) -> Iterator[Partners]:
        """Compare two partners; yield those of their members that are new."""
        mine, theirs = pair.mine, pair.theirs
        are_types = isinstance(mine, h5t.TypeID) and isinstance(theirs, h5t.TypeID)
        if type(mine) is not type(theirs) and not are_types:
            raise self._names.difference(pair.path, "is another kind of object than in the source")
        if len({_native.comment(library(), one.id) for one in (mine, theirs)}) > 1:
            raise self._names.difference(pair.path, "has another comment than in the source")
        self._attributes(pair)
        if isinstance(mine, h5g.GroupID):
            yield from self._members(pair)
        elif isinstance(mine, h5d.DatasetID):
            self._dataset(pair)
        elif not mine.equal(theirs):
            raise self._names.difference(pair.path, "is another type than in the source")

    # --- links --------------------------------------------------------------------

    def _members(self, pair: Partners) -> Iterator[Partners]:
        """Compare the links of two groups; yield the objects that were not compared before."""
        mine, theirs = pair.mine, pair.theirs
        flags = [one.get_create_plist().get_link_creation_order() for one in (mine, theirs)]
        if flags[0] != flags[1]:
            raise self._names.difference(pair.path, "keeps another order of its links")
        here, there = self._listed(pair, mine), list(theirs)
        if here is None:
            return
        prefix = pair.path.rstrip("/") + "/"
        if here != there:
            here = self._of_both(prefix, mine, here, there)
        base = None if pair.name is None else pair.name.rstrip(b"/") + b"/"
        for raw in here:
            path = prefix + decode_name(raw)
            kinds = [group.links.get_info(raw).type for group in (mine, theirs)]
            if kinds[0] != kinds[1]:
                raise self._names.difference(path, "is another kind of link than in the source")
            if kinds[0] in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
                if mine.links.get_val(raw) != theirs.links.get_val(raw):
                    raise self._names.difference(path, "leads elsewhere than in the source")
                continue
            if kinds[0] != h5l.TYPE_HARD:
                continue
            first = self._opened(path, mine, raw)
            if first is None:
                continue
            try:
                second = h5o.open(theirs, raw)
            except HDF5_ERRORS as error:
                reason = f"cannot be opened ({hdf5_reason(error)})"
                raise self._names.difference(path, reason) from None
            found = Partners(path, None if base is None else base + raw, first, second)
            if self._join(found):
                yield found

    def _of_both(
        self, prefix: str, mine: Any, here: list[bytes], there: list[bytes]
    ) -> list[bytes]:
        """Return the names that both groups have, if only what cannot be opened is missing."""
        known = set(there)
        missing = [one for one in here if one not in known]
        readable = [one for one in missing if self._opened(prefix, mine, one) is not None]
        if readable:
            raise self._names.difference(prefix + decode_name(readable[0]), "is missing")
        extra = known - set(here)
        if self._allowed.salvaged:
            extra.discard(_FOUND)
            there = [one for one in there if one != _FOUND or one in here]
        if extra:
            raise self._names.difference(prefix + decode_name(min(extra)), "is not in the source")
        lost = set(missing)
        if [one for one in here if one not in lost] != there:
            raise self._names.difference(prefix, "has its links in another order")
        return there

    def _listed(self, pair: Partners, group: Any) -> list[bytes] | None:
        """List the names in a group of the source; None if that fails and need not succeed."""
        try:
            return list(group)
        except HDF5_ERRORS as error:
            if self._allowed.salvaged:
                return None
            raise self._names.unreadable(pair.path, error) from None

    def _opened(self, path: str, group: Any, raw: bytes) -> Any:
        """Open a member of the source; None if that fails and need not succeed."""
        try:
            if group.links.get_info(raw).type != h5l.TYPE_HARD:
                return group
            return h5o.open(group, raw)
        except HDF5_ERRORS as error:
            if self._allowed.salvaged:
                return None
            raise self._names.unreadable(path, error) from None

    # --- attributes ---------------------------------------------------------------

    def _attributes(self, pair: Partners) -> None:
        mine, theirs = pair.mine, pair.theirs
        names = self._attribute_names(pair)
        if names[0] != names[1]:
            odd = set(names[0]) ^ set(names[1])
            which = f" ({decode_name(min(odd))})" if odd else ""
            raise self._names.difference(
                pair.path, f"has other attributes{which}, or another order of them"
            )
        for raw in names[0]:
            self.attributes += 1
            label = f"{pair.path}@{decode_name(raw)}"
            both = h5a.open(mine, raw), h5a.open(theirs, raw)
            self.same_kind(label, *both)
            if is_plain(both[0].get_type()):
                same = read_attribute(both[0]) == read_attribute(both[1])
            else:
                same = self.same_meaning(label, *both)
            if not same:
                raise self._names.difference(label, "differs from the source")

    def _attribute_names(self, pair: Partners) -> list[list[bytes]]:
        """List the attributes of both objects, without those that salvage could not read."""
        lost, theirs = self._allowed.lost, attribute_names(pair.theirs, created=True)
        try:
            mine = attribute_names(pair.mine, created=True)
        except HDF5_ERRORS as error:
            if self._allowed.salvaged:
                return [[], []]
            raise self._names.unreadable(pair.path, error) from None
        if pair.path in lost:
            both = set(mine) & set(theirs)
            return [[one for one in names if one in both] for names in (mine, theirs)]
        return [
            [one for one in names if f"{pair.path}@{decode_name(one)}" not in lost]
            for names in (mine, theirs)
        ]

    def same_kind(self, label: str, mine: Any, theirs: Any) -> None:
        """Compare type and shape of two datasets or attributes."""
        first, second = mine.get_type(), theirs.get_type()
        if not first.equal(second) or first.committed() != second.committed():
            raise self._names.difference(label, "has another type than in the source")
        if first.committed():
            self._reach(Partners(f"{label} type", None, first, second))
        if _extent(mine.get_space()) != _extent(theirs.get_space()):
            raise self._names.difference(label, "has another shape than in the source")

    # --- values that are no plain bytes ---------------------------------------------

    def same_meaning(self, path: str, mine: Any, theirs: Any, part: Box | None = None) -> bool:
        """Compare elements of any type; the objects to which references lead become partners."""
        # `part` is a box of two datasets; None for two attributes.
        try:
            values, leads = _native.meaning(library(), mine.id, part)
        except LibraryError as error:
            if self._allowed.salvaged:
                return True
            raise self._names.unreadable(path, error) from None
        first = [_Lead.of(one) for one in leads]
        try:
            others, leads = _native.meaning(library(), theirs.id, part)
        except LibraryError as error:
            raise self._names.difference(path, f"cannot be read ({error})") from None
        second = [_Lead.of(one) for one in leads]
        if values != others or len(first) != len(second):
            return False
        numbered = enumerate(zip(first, second, strict=True))
        return all(self._same_lead(f"{path}[{number}]", *both) for number, both in numbered)

    def _same_lead(self, path: str, mine: _Lead, theirs: _Lead) -> bool:
        if mine.target is None or theirs.target is None:
            # What dangles in the source leads nowhere in the result either, or is null.
            return mine.target is theirs.target
        if type(mine.target) is not type(theirs.target) or mine.rest != theirs.rest:
            return False
        self._reach(Partners(f"{path} ->", None, mine.target, theirs.target))
        return True

    # --- datasets -----------------------------------------------------------------

    def _dataset(self, pair: Partners) -> None:
        mine, theirs = pair.mine, pair.theirs
        self.same_kind(pair.path, mine, theirs)
        lists = mine.get_create_plist(), theirs.get_create_plist()
        dtype = numpy_type(mine.get_type())
        first, second = (_fill(one, dtype) for one in lists)
        if first != second:
            raise self._names.difference(pair.path, "has another fill value than in the source")
        if pair.path not in self._allowed.moved:
            places = [_elsewhere(one) for one in lists]
            if places[0] != places[1]:
                raise self._names.difference(pair.path, "has its data elsewhere than the source")
            if places[0] is not None:
                # In other files, which nobody wrote anew.
                return
        if pair.path not in self._allowed.lost:
            self._values(pair)


@dataclass(frozen=True)
class _Lead:
    """Where a reference leads: an open object, None if nowhere; what of it is meant."""

    target: Any
    rest: object

    @classmethod
    def of(cls, found: tuple[int, int, bytes]) -> _Lead:
        handle, region, attribute = found
        target = None if handle < 0 else h5i.wrap_identifier(handle)
        space = None if region < 0 else h5s.SpaceID(region)
        return cls(target, (None if space is None else _selected(space), attribute))


def _extent(space: Any) -> tuple[object, ...]:
    kind = space.get_simple_extent_type()
    if kind != h5s.SIMPLE:
        return (kind,)
    return kind, space.get_simple_extent_dims(), space.get_simple_extent_dims(1)


def _fill(dcpl: Any, dtype: np.dtype[Any] | None) -> tuple[object, ...]:
    """Say what unwritten elements are; not of variable length, which are read instead."""
    kind, time = dcpl.fill_value_defined(), dcpl.get_fill_time()
    if kind != h5d.FILL_VALUE_USER_DEFINED or dtype is None:
        return kind, time
    value = np.zeros((), dtype)
    dcpl.get_fill_value(value)
    return kind, time, value.tobytes()


def _elsewhere(dcpl: Any) -> object:
    """Say in which other files the data lie; None if they are the file's own."""
    if dcpl.get_layout() == h5d.VIRTUAL:
        return [
            (
                dcpl.get_virtual_filename(number),
                dcpl.get_virtual_dsetname(number),
                _selected(dcpl.get_virtual_srcspace(number)),
                _selected(dcpl.get_virtual_vspace(number)),
            )
            for number in range(dcpl.get_virtual_count())
        ]
    if dcpl.get_external_count():
        return [dcpl.get_external(number) for number in range(dcpl.get_external_count())]
    return None


def _selected(space: Any) -> object:
    """Say what a dataspace selects, however it is encoded."""
    if space.get_select_type() == h5s.SEL_HYPERSLABS and space.is_regular_hyperslab():
        # Not its blocks, which may be many.
        return space.get_regular_hyperslab()
    return selected(space)
