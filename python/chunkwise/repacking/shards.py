"""How is a large dataset divided among several files, and what holds the parts together?

Each shard has a part of the dataset, a range along one dimension that ends where chunks end.  The
target has a virtual dataset of the parts, by relative names.  libhdf5 can change a file's chunk
index only in one process; with several files, several processes can work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5d, h5o, h5p, h5s, h5t, h5z

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.grammar import format_size
from chunkwise.names import encode_name, printable
from chunkwise.parallel.encoding import Likeness, image_of
from chunkwise.parallel.index import Table

if TYPE_CHECKING:
    from chunkwise.repacking.plan import Step

# Less than this is written by one process alone, and has few chunks.
_LEAST_NBYTES: Final = 8 << 20
# Numbers below are HDF5's own filters.
_FIRST_PLUGIN: Final = 256
# An address among several files has the file's number above these bits (`write/files.rs`).
_PLACE_BITS: Final = 48


@dataclass(frozen=True)
class Division:
    """How a dataset is divided."""

    axis: int  # The dimension along which it is
    # Where each part begins along it, and where the last one ends, in elements.
    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many parts there are; that of number n is in shard n + 1."""
        return len(self.bounds) - 1

    @classmethod
    def of(cls, shape: Sequence[int], chunk: Sequence[int], count: int) -> Division | None:
        """Divide a dataset into this many parts, or fewer if it has fewer chunks.

        The slowest dimension that has as many chunks is divided, else that which has the most.
        None if the dataset is one chunk.
        """
        chunks = [-(-length // side) for length, side in zip(shape, chunk, strict=True)]
        enough = (axis for axis, n in enumerate(chunks) if n >= count)
        axis = next(enough, chunks.index(max(chunks)))
        parts = min(count, chunks[axis])
        if parts < 2:
            return None
        ends = (chunks[axis] * number // parts * chunk[axis] for number in range(parts))
        return cls(axis, (*ends, shape[axis]))

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each part along the axis."""
        return zip(self.bounds[:-1], self.bounds[1:], strict=True)

    def shape_of(self, part: int, shape: Sequence[int]) -> tuple[int, ...]:
        """Shape of a part."""
        begin, end = self.bounds[part], self.bounds[part + 1]
        return (*shape[: self.axis], end - begin, *shape[self.axis + 1 :])

    def asked(self, rows: Table, ask: Callable[[int, Table], Table], width: int) -> Table:
        """Ask of each part's chunks, as if the part were a dataset."""
        bounds = np.asarray(self.bounds, np.uint64)
        parts = np.searchsorted(bounds, rows[:, self.axis], "right") - 1
        answers = np.zeros((len(rows), width) if width else len(rows), np.uint64)
        for part in np.unique(parts).tolist():
            here = parts == part
            mine = rows[here]
            mine[:, self.axis] -= np.uint64(self.bounds[part])
            answers[here] = ask(part, mine)
        return answers


def in_file(number: int, addresses: Table) -> Table:
    """Make addresses in the file of that number addresses among all files; 0 stays 0."""
    return np.where(addresses, addresses | np.uint64(number << _PLACE_BITS), addresses)


@dataclass(frozen=True)
class Divided:
    """A dataset that is divided, as all ranks know it."""

    path: str  # In the source, in the target and in the shards
    division: Division  # Into which parts
    # Of each part, an empty one: see `chunkwise.parallel.encoding.image_of`.
    images: tuple[bytes, ...]
    whole: bytes  # Likewise of all of it, as it would be in one file


def divided(step: Step) -> Divided:
    """Make what ranks need to know of a step that is divided."""
    source, division = step.source, step.division
    assert division is not None
    shape = source.shape or ()
    by_shape: dict[tuple[int, ...], bytes] = {}
    images = []
    for part in range(division.count):
        mine = division.shape_of(part, shape)
        if mine not in by_shape:
            by_shape[mine] = _image(step, mine, division.axis)
        images.append(by_shape[mine])
    return Divided(source.path, division, tuple(images), _image(step, shape))


def make_part(file: h5py.File, one: Divided, part: int) -> h5d.DatasetID:
    """Make a part in its shard, without data."""
    with closing(Likeness(one.images[part], one.path)) as like:
        parents = h5p.create(h5p.LINK_CREATE)
        parents.set_create_intermediate_group(True)
        parents.set_char_encoding(h5t.CSET_UTF8)
        h5o.copy(like.id, b".", file.id, encode_name(one.path), lcpl=parents)
    return h5d.open(file.id, encode_name(one.path))


def virtual_list(step: Step, name_of: Callable[[int], str]) -> Any:
    """Give the properties of the virtual dataset in the target."""
    source, division = step.source, step.division
    assert division is not None
    shape = source.shape or ()
    made = _list_of(step).copy()
    if made.get_nfilters():
        made.remove_filter(h5z.FILTER_ALL)
    whole = _space(shape, source.maxshape)
    inside = _name(encode_name(source.path))
    for part, (begin, end) in enumerate(division.ranges()):
        start = [0] * len(shape)
        start[division.axis] = begin
        mine = division.shape_of(part, shape)
        ones = (1,) * len(shape)
        whole.select_hyperslab(tuple(start), ones, block=mine)
        assert end > begin
        made.set_virtual(whole, _name(os.fsencode(name_of(part + 1))), inside, _space(mine, mine))
    return made


def with_divisions(steps: Sequence[Step], count: int) -> tuple[Step, ...]:
    """Divide the steps of a plan that can be."""
    made = tuple(_with_division(step, count) for step in steps)
    if any(step.division is not None for step in made):
        return made
    large = [step for step in made if step.whole is not None]
    if large:
        first = max(large, key=lambda step: step.source.nbytes)
        reason = f"'{printable(first.source.path)}' {first.whole}"
    elif made:
        first = max(made, key=lambda step: step.source.nbytes)
        nbytes = format_size(first.source.nbytes)
        reason = f"the largest, '{printable(first.source.path)}', has {nbytes}"
    else:
        reason = "there are none"
    raise UsageError(
        f"shards {count}: no dataset can be divided ({reason}); it must have "
        f"{format_size(_LEAST_NBYTES)} or more in several chunks: give others, or no shards"
    )


def _with_division(step: Step, count: int) -> Step:
    source, chunk = step.source, step.wanted.chunk
    if source.nbytes < _LEAST_NBYTES or step.action == "kept":
        return step
    division = None
    if step.action == "by libhdf5":
        reason = "has elements of variable length, or references"
    elif not source.linked:
        reason = "has no path: only references lead to it"
    elif chunk is None:
        reason = "has no chunks"
    elif (division := Division.of(source.shape or (), chunk, count)) is None:
        reason = "is one chunk"
    else:
        reason = _unencoded(step) or ""
    return replace(step, whole=reason) if reason else replace(step, division=division)


def _unencoded(step: Step) -> str | None:
    """Say why chunks of a dataset cannot be written at places of our own, or None."""
    if step.action == "copied":
        own = step.dcpl is None
        stored = step.source.identifier.get_create_plist()
        codes = [stored.get_filter(number)[0] for number in range(stored.get_nfilters())]
        if own and any(code >= _FIRST_PLUGIN for code in codes):
            return "has a filter that would be made otherwise"
        return None
    with closing(Likeness(_image(step, step.source.shape or ()), "it")) as like:
        try:
            like.writer(_native.KeptChunks())
        except UsageError:
            return "has a filter that chunkwise does not encode"
    return None


def _list_of(step: Step) -> Any:
    """Give the properties of a dataset as it would be in one file, without its space allocated."""
    made = step.dcpl
    if made is None:
        made = step.source.identifier.get_create_plist()
    made = made.copy()
    made.set_alloc_time(h5d.ALLOC_TIME_INCR)
    return made


def _image(step: Step, shape: Sequence[int], axis: int | None = None) -> bytes:
    """Make an empty dataset like that of a step, of another shape."""
    source = step.source
    limits = list(source.maxshape)
    if axis is not None:
        # A part does not grow; a chunk may be longer than the last one is.
        limits[axis] = max(shape[axis], (step.wanted.chunk or ())[axis])
    datatype = h5t.TypeID.copy(source.identifier.get_type())
    space = _space(shape, limits)
    label = f"'{printable(source.path)}'"
    maxshape = space.get_simple_extent_dims(True)
    with closing(Likeness.made(datatype, tuple(shape), maxshape, _list_of(step), label)) as like:
        return image_of(like.id)


def _space(shape: Sequence[int], limits: Sequence[int | None]) -> Any:
    unlimited = (h5s.UNLIMITED if limit is None else limit for limit in limits)
    return h5s.create_simple(tuple(shape), tuple(unlimited))


def _name(name: bytes) -> bytes:
    """Write a name as virtual datasets have it: in theirs, %b stands for numbers."""
    return name.replace(b"%", b"%%")
