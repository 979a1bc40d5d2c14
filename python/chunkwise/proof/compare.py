"""Is a finished file what its source is, for whoever reads it?

The new file is complete and closed.  It is opened again, and both files are read side by side, by
another way than the copy took: h5py reads all objects (`structure.py`), the engine and libhdf5 the
values (`values.py`).  Nothing that the copy noted is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import h5py

from chunkwise.errors import ChunkwiseError, CorruptDataError, WrongValueError
from chunkwise.files.boxes import Box, boxes
from chunkwise.files.opening import is_plain, open_h5
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.proof.records import GOES_ON, Allowed, Names, Proved
from chunkwise.proof.structure import Partners, Structure
from chunkwise.proof.values import SourceUnreadableError, Values, ValuesDifferError

# Smaller datasets are compared here, and not by other processes.
_SHARED_NBYTES: Final = 8 << 20
# Elements that are no plain bytes, compared at a time.
_FEW: Final = 1 << 14


@dataclass(frozen=True)
class Piece:
    """A part of a dataset's values: a box, or a part of the chunks that are stored alike."""

    path: str
    name: bytes
    box: Box | None
    part: tuple[int, int]
    nbytes: int


class Share(Protocol):
    """Other processes that compare values, too."""

    @property
    def size(self) -> int:
        """How many parts the chunks of a dataset are divided into."""

    def compare(self, pieces: Sequence[Piece], allowed: Allowed, names: Names) -> None:
        """Compare pieces in all processes; raises as `compare_pieces`."""


def prove(
    source: h5py.File,
    made: Path,
    said: str,
    *,
    allowed: Allowed = Allowed(),  # noqa: B008 (frozen)
    memory_nbytes: int,
    tell: Callable[[int], None] = lambda _: None,
    share: Share | None = None,
) -> Proved:
    """Compare a finished file with its source."""
    begun = time.monotonic()
    names = Names(str(source.filename), said)
    comparing = _Comparing(names, allowed, memory_nbytes, tell, share)
    structure = comparing.structure
    with _opened(made, names) as target:
        structure.compare(source, target)
        _compare_user_blocks(source, made, names)
        if share is not None and comparing.pieces:
            share.compare(comparing.pieces, allowed, names)
    read = comparing.values.read
    return Proved(
        structure.objects,
        structure.attributes,
        read.nbytes + sum(one.nbytes for one in comparing.pieces),
        read.stored_nbytes,
        read.by_libhdf5_nbytes,
        time.monotonic() - begun,
    )


@contextmanager
def _opened(made: Path, names: Names) -> Iterator[h5py.File]:
    """Open a finished file; what libhdf5 refuses of it is a difference.

    The source was read before, when it was copied.
    """
    try:
        target = open_h5(made)
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        raise names.difference("/", f"cannot be opened again ({error})") from None
    with target:
        try:
            yield target
        except HDF5_ERRORS as error:
            if isinstance(error, ChunkwiseError):
                raise
            raise names.difference("/", f"cannot be read again ({hdf5_reason(error)})") from None


def compare_pieces(
    source: h5py.File,
    target: h5py.File,
    pieces: Sequence[Piece],
    allowed: Allowed,
    names: Names,
    memory_nbytes: int,
    tell: Callable[[int], None] = lambda _: None,
) -> None:
    """Compare some pieces of two open files."""
    values = Values(memory_nbytes, tell, salvaged=allowed.salvaged)
    for piece in pieces:
        mine, theirs = (h5py.h5d.open(file.id, piece.name) for file in (source, target))
        values.label = names.label(piece.path)
        with _named(names, piece.path):
            if piece.box is None:
                if not values.same_stored(mine, theirs, piece.part):
                    for box in values.boxes(mine, theirs):
                        values.compare_box(mine, theirs, box, allowed.bounds.get(piece.path))
            else:
                values.compare_box(mine, theirs, piece.box, allowed.bounds.get(piece.path))


class _named:  # noqa: N801 (a context manager)
    """Turn what `Values` raises into errors that name the file and the dataset."""

    def __init__(self, names: Names, path: str) -> None:
        self._names, self._path = names, path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValuesDifferError):
            raise difference(self._names, self._path, error.start, error.how) from None
        if isinstance(error, SourceUnreadableError):
            cause = error.__cause__
            if isinstance(cause, CorruptDataError):
                raise type(cause)(f"{cause}; {GOES_ON}") from None
            if isinstance(cause, ChunkwiseError):
                # Such as a filter that is missing: no proof of damage.
                raise cause from None
            raise self._names.unreadable(self._path, cause or error) from None


def difference(names: Names, path: str, start: Sequence[int], how: str) -> WrongValueError:
    """Return the error that names the first element that differs."""
    at = ", ".join(map(str, start))
    return names.difference(path, f"{how}, at element [{at}]" if start else how)


@dataclass
class _Comparing:
    """One comparison: structure and values."""

    names: Names
    allowed: Allowed
    memory_nbytes: int
    tell: Callable[[int], None]
    share: Share | None
    pieces: list[Piece] = field(default_factory=list)
    structure: Structure = field(init=False)
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        self.structure = Structure(self.names, self.allowed, self._dataset)
        self.values = Values(self.memory_nbytes, self.tell, salvaged=self.allowed.salvaged)

    def _dataset(self, met: Partners) -> None:
        mine, theirs, bound = met.mine, met.theirs, self.allowed.bounds.get(met.path)
        if mine.shape is None:
            return
        if not is_plain(mine.get_type()):
            self._objects(met)
            return
        self.values.label = self.names.label(met.path)
        with _named(self.names, met.path):
            nbytes = mine.get_space().get_simple_extent_npoints() * mine.get_type().get_size()
            if self.share is None or met.name is None or nbytes < _SHARED_NBYTES:
                self.values.compare(mine, theirs, bound)
                return
            if self.values.is_stored_alike(mine, theirs):
                size = self.share.size
                parts = ((number, size) for number in range(size))
                self.pieces += (Piece(met.path, met.name, None, one, 0) for one in parts)
                return
            itemsize = mine.get_type().get_size()
            for box in self.values.boxes(mine, theirs):
                nbytes = math.prod(box[1]) * itemsize
                self.pieces.append(Piece(met.path, met.name, box, (0, 1), nbytes))

    def _objects(self, met: Partners) -> None:
        """Compare elements of variable length, references, and compounds of these."""
        size = met.mine.get_type().get_size()
        for start, count in self.values.boxes(met.mine, met.theirs):
            # Few at a time: each reference is an open object.
            for offset, part in boxes(count, (1,) * len(count), _FEW):
                at = tuple(s + o for s, o in zip(start, offset, strict=True))
                if not self.structure.same_meaning(met.path, met.mine, met.theirs, (at, part)):
                    raise difference(self.names, met.path, at, "differs from the source")
                self.tell(math.prod(part) * size)


def _compare_user_blocks(source: h5py.File, made: Path, names: Names) -> None:
    size = source.userblock_size
    if not size:
        return
    with open(source.filename, "rb") as mine, made.open("rb") as theirs:  # noqa: PTH123 (bytes)
        if mine.read(size) != theirs.read(size):
            raise names.difference("/", "has another user block than the source")
