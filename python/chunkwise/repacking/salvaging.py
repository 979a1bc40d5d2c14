"""How is the readable part of a damaged file copied to another?

By a repack that changes nothing and leaves out what cannot be read, in another process.  If
libhdf5 crashes there, `scout` finds out on what: a child notes each part before it touches it.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import h5py
from h5py import h5d, h5g, h5l, h5o

from chunkwise import system
from chunkwise.errors import CannotJudgeError, ChunkwiseError, CorruptDataError, CrashedError
from chunkwise.files.contained import contained_each
from chunkwise.files.mended import readable_patches
from chunkwise.files.objects import decode_attributes, open_at, readable_links, some_names
from chunkwise.files.opening import is_plain
from chunkwise.files.unclosed import open_patched
from chunkwise.files.workers import by_workers, check_ended
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.target import Place, choose
from chunkwise.repacking.options import Avoid, Options
from chunkwise.repacking.records import Summary
from chunkwise.repacking.run import Job, run

# Seconds for one part; libhdf5 searches some damaged files for ever.
_LIMIT_S: Final = 120.0
# Bytes that libhdf5 reads at a time of data that it alone can read.
_BOX_NBYTES: Final = 4 << 20
# How many parts were touched, and of the last one the object's address and the part's number.
_NOTE: Final = struct.Struct("<3q")


def scout(source: Path, check: Callable[[], object] = lambda: None) -> Avoid:
    """Find what must not be touched; nothing if no child crashes, or the file cannot be opened."""
    avoid: tuple[set[int], ...] = tuple(set() for _ in _TOUCHES)
    with closing(mmap.mmap(-1, _NOTE.size)) as noted:
        while True:
            check()
            work = partial(_touch_all, source, avoid, noted)
            (outcome,) = contained_each([(work, printable(str(source)))], 1)
            _, address, part = _NOTE.unpack_from(noted)
            if not isinstance(outcome.error, CrashedError) or address in avoid[part]:
                break
            avoid[part].add(address)
    objects, attributes, data = map(frozenset, avoid)
    return objects, attributes, data


def _touch_all(source: Path, avoid: tuple[set[int], ...], noted: mmap.mmap) -> None:
    """Touch each part in the child, from the one that was noted on; errors are no matter here."""
    system.reset_alarm()
    done, *_ = _NOTE.unpack_from(noted)
    number = 0
    with open_patched(source, *readable_patches(source)) as file:
        left, seen = [-1], {-1}
        while left:
            address = left.pop()
            for part, touch in enumerate(_TOUCHES):
                if address in avoid[0]:
                    break
                number += 1
                if number < done or address in avoid[part]:
                    continue
                _NOTE.pack_into(noted, 0, number, address, part)
                system.alarm(_LIMIT_S)
                try:
                    touch(_open(file, address))
                except (*HDF5_ERRORS, MemoryError):
                    continue
            else:
                # Listing its members may crash, too.
                _NOTE.pack_into(noted, 0, number, address, 0)
                found = sorted(set(_links(file, address)) - seen)
                seen.update(found)
                left += found
    system.alarm(0)


def _open(file: h5py.File, address: int) -> Any:
    """Open an object; the root group by -1."""
    opened = h5o.open(file.id, b"/") if address < 0 else open_at(file.id, address)
    if opened is None:
        raise RuntimeError("no object is there")
    return opened


def _links(file: h5py.File, address: int) -> list[int]:
    """List the addresses of the objects of a group's hard links; nothing of what is none."""
    found = []
    try:
        group = _open(file, address)
        if not isinstance(group, h5g.GroupID):
            return []
        for name in some_names(group):
            try:
                info = group.links.get_info(name)
            except HDF5_ERRORS:
                continue
            if info.type == h5l.TYPE_HARD:
                found.append(int(info.u))
        found += [at for _, at in readable_links(group)[0] if at is not None]
    except HDF5_ERRORS:
        pass
    return found


def _touch_header(identifier: Any) -> None:
    h5g.get_objinfo(identifier)
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


# Of an object, of its attributes, and of its data, as `Avoid` has them.
_TOUCHES: Final = (_touch_header, _touch_attributes, _touch_data)


def salvage(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    check: Callable[[], object] = lambda: None,
    *,
    force: bool = False,
) -> Summary:
    """Write what can be read of a file to another, with fill values for the rest."""
    place = choose(os.fspath(source), os.fspath(target), in_place=False, force=force, salvage=True)
    return salvage_as(Job(options=Options(salvage=True)), place, check)


def salvage_as(job: Job, place: Place, check: Callable[[], object] = lambda: None) -> Summary:
    """Do the same as a job says; see `salvage`."""
    said = printable(str(place.source))

    def attempt(job: Job) -> Summary:
        for _, outcome in by_workers(
            [(0, said, partial(run, job, place, check_ended))], 1, check=check
        ):
            return outcome.get()
        raise AssertionError("a worker gives one outcome")

    try:
        return attempt(job)
    except (CorruptDataError, CannotJudgeError) as error:
        failed: ChunkwiseError = error
    avoid = scout(place.source, check)
    for adopt in (True, False):
        options = replace(job.options, avoid=avoid, adopt=adopt)
        try:
            return attempt(replace(job, options=options))
        except (CorruptDataError, CannotJudgeError) as error:
            failed = error
    raise failed
