"""Is a finished file what its source is, as a reader sees both?

The closed file is read again, by another way than the copy took: h5py reads all objects
(`structure.py`), the engine and libhdf5 the values (`values.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import h5py

from chunkwise.errors import ChunkwiseError, CorruptDataError, WrongValueError
from chunkwise.files.opening import is_plain, open_h5
from chunkwise.grammar.boxes import Box, boxes
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.proof.records import GOES_ON, Allowed, Names, Proved
from chunkwise.proof.structure import Partners, Structure
from chunkwise.proof.values import Pair, SourceUnreadableError, Values, ValuesDifferError

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


@dataclass(frozen=True)
class Comparison:
    """Pieces of the values of two closed files, for any process to compare."""

    source: str  # Paths
    target: str
    pieces: tuple[Piece, ...]
    allowed: Allowed
    names: Names
    memory_nbytes: int

    def part(self, first: int, step: int) -> Comparison:
        """Return every `step`-th piece, from the first."""
        return replace(self, pieces=self.pieces[first::step])

    def run(self, report: Callable[[int], None] = lambda _: None) -> None:
        """Open the files, and compare the pieces."""
        if self.pieces:
            with open_h5(self.source) as source, open_h5(self.target) as target:
                _compare_pieces(self, source, target, report)


@dataclass(frozen=True)
class Sharing:
    """Other processes that compare values, too."""

    size: int  # How many parts the chunks of a dataset are divided into
    memory_nbytes: int  # What one process may take
    compare: Callable[[Comparison], None]  # Lets them do it; raises as `Comparison.run`


def prove(
    source: h5py.File,
    made: Path,
    said: str,
    *,
    allowed: Allowed = Allowed(),  # noqa: B008 (frozen)
    memory_nbytes: int,
    report: Callable[[int], None] = lambda _: None,
    sharing: Sharing | None = None,
) -> Proved:
    """Compare a finished file with its source."""
    begun = time.monotonic()
    names = Names(str(source.filename), said)
    comparing = _Comparing(names, allowed, memory_nbytes, report, sharing)
    structure = comparing.structure
    with _opened(made, names) as target:
        structure.compare(source, target)
        _compare_user_blocks(source, made, names)
        if sharing is not None and comparing.pieces:
            pieces, made_at = tuple(comparing.pieces), os.fspath(made)
            sharing.compare(
                Comparison(names.source, made_at, pieces, allowed, names, sharing.memory_nbytes)
            )
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
    """Open a finished file; what libhdf5 refuses of it is a difference."""
    # The source was read before, when it was copied.
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


def _compare_pieces(
    what: Comparison, source: h5py.File, target: h5py.File, report: Callable[[int], None]
) -> None:
    values = Values(what.memory_nbytes, report, salvaged=what.allowed.salvaged)
    for piece in what.pieces:
        mine, theirs = (h5py.h5d.open(file.id, piece.name) for file in (source, target))
        pair = Pair(mine, theirs, what.allowed.bounds.get(piece.path))
        values.label = what.names.label(piece.path)
        with _named(what.names, piece.path):
            if piece.box is not None:
                values.compare_box(pair, piece.box)
            elif not values.same_stored(pair, piece.part):
                for box in values.boxes(pair):
                    values.compare_box(pair, box)


@contextmanager
def _named(names: Names, path: str) -> Iterator[None]:
    """Turn what `Values` raises into errors that name the file and the dataset."""
    try:
        yield
    except ValuesDifferError as error:
        raise _difference(names, path, error.start, error.how) from None
    except SourceUnreadableError as error:
        cause = error.__cause__
        if isinstance(cause, CorruptDataError):
            raise type(cause)(f"{cause}; {GOES_ON}") from None
        if isinstance(cause, ChunkwiseError):
            # Such as a filter that is missing: no proof of damage.
            raise cause from None
        raise names.unreadable(path, cause or error) from None


def _difference(names: Names, path: str, start: Sequence[int], how: str) -> WrongValueError:
    """Return the error that names the first element that differs."""
    at = ", ".join(map(str, start))
    return names.difference(path, f"{how}, at element [{at}]" if start else how)


@dataclass
class _Comparing:
    """One comparison: structure and values."""

    names: Names
    allowed: Allowed
    memory_nbytes: int
    report: Callable[[int], None]
    sharing: Sharing | None
    pieces: list[Piece] = field(default_factory=list)
    structure: Structure = field(init=False)
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        self.structure = Structure(self.names, self.allowed, self._dataset)
        self.values = Values(self.memory_nbytes, self.report, salvaged=self.allowed.salvaged)

    def _dataset(self, partners: Partners) -> None:
        path, name = partners.path, partners.name
        pair = Pair(partners.mine, partners.theirs, self.allowed.bounds.get(path))
        if pair.mine.shape is None:
            return
        if not is_plain(pair.mine.get_type()):
            self._objects(path, pair)
            return
        self.values.label = self.names.label(path)
        with _named(self.names, path):
            itemsize = pair.datatype.get_size()
            nbytes = pair.mine.get_space().get_simple_extent_npoints() * itemsize
            if self.sharing is None or name is None or nbytes < _SHARED_NBYTES:
                self.values.compare(pair)
            elif self.values.is_stored_alike(pair):
                size = self.sharing.size
                self.pieces += (Piece(path, name, None, (n, size), 0) for n in range(size))
            else:
                self.pieces += (
                    Piece(path, name, box, (0, 1), box.size * itemsize)
                    for box in self.values.boxes(pair)
                )

    def _objects(self, path: str, pair: Pair) -> None:
        """Compare elements of variable length, references, and compounds of these."""
        for box in self.values.boxes(pair):
            # Few at a time: each reference is an open object.
            for part in boxes(box.shape, (1,) * len(box.shape), _FEW):
                there = part.moved(box.start)
                if not self.structure.same_meaning(path, pair.mine, pair.theirs, there):
                    raise _difference(self.names, path, there.start, "differs from the source")
                self.report(there.size * pair.datatype.get_size())


def _compare_user_blocks(source: h5py.File, made: Path, names: Names) -> None:
    size = source.userblock_size
    if not size:
        return
    with open(source.filename, "rb") as mine, made.open("rb") as theirs:  # noqa: PTH123 (bytes)
        if mine.read(size) != theirs.read(size):
            raise names.difference("/", "has another user block than the source")
