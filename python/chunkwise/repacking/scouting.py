"""On which parts of a damaged file does libhdf5 crash?

Child processes touch object after object, many in one child; where one crashes, its objects are
divided among others, until it is known which object it is, and whether its header, its attributes
or its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias

import h5py
from h5py import h5d, h5g, h5l, h5o

from chunkwise.files.contained import contained_each
from chunkwise.files.mended import readable_patch
from chunkwise.files.objects import decode_attributes, some_names
from chunkwise.files.opening import is_plain
from chunkwise.files.unclosed import ReadOnlyFile
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.repacking.options import Avoid

Part: TypeAlias = Literal["object", "attributes", "data"]
_PARTS: Final[tuple[Part, ...]] = ("object", "attributes", "data")
# Objects that one child touches at first.
_TOGETHER: Final = 256
# Seconds for one child; libhdf5 searches some damaged files for ever.
_LIMIT_S: Final = 120.0
# Bytes that libhdf5 reads at a time of data that it alone can read.
_BOX_NBYTES: Final = 4 << 20


@dataclass(frozen=True)
class _Object:
    """A hard link: the group's path and the link's name, and the object's address."""

    group: bytes
    name: bytes
    address: int

    @property
    def path(self) -> bytes:
        return self.group.rstrip(b"/") + b"/" + self.name


def scout(source: Path, check: Callable[[], object] = lambda: None) -> Avoid:
    """Find what must not be touched; nothing if no child crashes, or the file cannot be opened."""
    found: dict[Part, set[int]] = {part: set() for part in _PARTS}
    root = _Object(b"/", b"", -1)
    seen, level = {root.address}, [root]
    while level:
        for part in _PARTS:
            sound = [one for one in level if one.address not in found["object"]]
            found[part] |= {one.address for one in _crashing(source, sound, part, check)}
        entered = [one for one in level if one.address not in found["object"]]
        level = []
        for one in _listed(source, entered, check):
            if one.address not in seen:
                seen.add(one.address)
                level.append(one)
    return (
        frozenset(found["object"]),
        frozenset(found["attributes"]),
        frozenset(found["data"]),
    )


def _crashing(
    source: Path, objects: Sequence[_Object], part: Part, check: Callable[[], object]
) -> list[_Object]:
    """Return the objects that end the process if a part of them is touched."""
    waiting = [objects[at : at + _TOGETHER] for at in range(0, len(objects), _TOGETHER)]
    found = []
    while waiting:
        check()
        batch = waiting.pop()
        work = partial(_touch, source, [one.path for one in batch], part)
        (outcome,) = contained_each([(work, printable(str(source)))], 1, _LIMIT_S)
        if outcome.error is None:
            continue
        if len(batch) == 1:
            found.append(batch[0])
            continue
        half = len(batch) // 2
        waiting += [batch[:half], batch[half:]]
    return found


def _listed(
    source: Path, groups: Iterable[_Object], check: Callable[[], object]
) -> Iterable[_Object]:
    """Give the hard links of groups whose listing does not end the process."""
    for group in groups:
        check()
        work = partial(_links, source, group.path)
        (outcome,) = contained_each([(work, printable(str(source)))], 1, _LIMIT_S)
        for name, address in outcome.result or ():
            yield _Object(group.path, name, address)


def _open(source: Path) -> h5py.File:
    """Open the file as it is, or as it has to be mended."""
    return h5py.File(ReadOnlyFile(source, readable_patch(source)), "r")


def _links(source: Path, path: bytes) -> list[tuple[bytes, int]]:
    """List a group's hard links in the child; nothing of what is no group."""
    with _open(source) as file:
        try:
            group = h5o.open(file.id, path)
        except HDF5_ERRORS:
            return []
        found = []
        for name in some_names(group) if isinstance(group, h5g.GroupID) else ():
            try:
                info = group.links.get_info(name)
            except HDF5_ERRORS:
                continue
            if info.type == h5l.TYPE_HARD:
                found.append((name, int(info.u)))
        return found


def _touch(source: Path, paths: Sequence[bytes], part: Part) -> None:
    """Touch a part of each object in the child; errors are no matter here."""
    with _open(source) as file:
        for path in paths:
            try:
                identifier = h5o.open(file.id, path)
                h5g.get_objinfo(identifier)
                _TOUCHES[part](identifier)
            except (*HDF5_ERRORS, MemoryError):
                continue


def _touch_header(identifier: Any) -> None:
    if isinstance(identifier, h5d.DatasetID):
        identifier.get_space()
        identifier.get_type()
        identifier.get_create_plist().get_layout()
    elif isinstance(identifier, h5g.GroupID):
        identifier.get_create_plist()


def _touch_attributes(identifier: Any) -> None:
    decode_attributes(identifier)
    owner = h5py.AttributeManager(SimpleNamespace(id=identifier))
    for name in list(owner):
        try:
            owner[name]
        except (*HDF5_ERRORS, MemoryError):
            continue


def _touch_data(identifier: Any) -> None:
    if not isinstance(identifier, h5d.DatasetID):
        return
    # Those whose stored bytes are copied are not decoded by libhdf5, which only looks for them.
    identifier.get_storage_size()
    if identifier.get_create_plist().get_layout() == h5d.CHUNKED:
        identifier.get_num_chunks()
    if is_plain(identifier.get_type()):
        return
    dataset = h5py.Dataset(identifier)
    if not dataset.shape:
        dataset[()]
        return
    rows = max(1, _BOX_NBYTES // max(1, dataset.nbytes // max(1, dataset.shape[0])))
    for begin in range(0, dataset.shape[0], rows):
        try:
            dataset[begin : begin + rows]
        except HDF5_ERRORS:
            for row in range(begin, min(begin + rows, dataset.shape[0])):
                try:
                    dataset[row]
                except HDF5_ERRORS:
                    continue


_TOUCHES: Final[dict[Part, Callable[[Any], None]]] = {
    "object": _touch_header,
    "attributes": _touch_attributes,
    "data": _touch_data,
}
