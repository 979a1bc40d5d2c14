"""What does one task of a worker do?  It encodes a block, and writes chunks to given places."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5s, h5t

from chunkwise import _native, system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files import unwritten
from chunkwise.grammar import Effort
from chunkwise.grammar.boxes import Box, runs
from chunkwise.mpi.encoding import Likeness
from chunkwise.mpi.ranks import host
from chunkwise.names import printable, system_reason
from chunkwise.newfile.index import Table
from chunkwise.selection import hyperslab


@dataclass(frozen=True)
class Flat:
    """What workers need of such a dataset: its shape, and the type of its elements."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class FlatPlaces:
    """Where its parts lie; `base` is the address of the first element."""

    form: Flat
    base: int

    def allocate(self, runs: Table) -> Table:
        """Give runs their places; see `chunkwise.newfile.index.Places.allocate`."""
        steps = [math.prod(self.form.shape[axis + 1 :]) for axis in range(len(self.form.shape))]
        elements = runs[:, : len(steps)] @ np.asarray(steps, np.uint64)
        return np.uint64(self.base) + elements * np.uint64(self.form.dtype.itemsize)


def flat_places(dataset: h5py.Dataset) -> FlatPlaces:
    """Make room for a dataset in its file."""
    dcpl = dataset.id.get_create_plist()
    if dcpl.get_layout() != h5d.CONTIGUOUS or dcpl.get_external_count() or not dataset.ndim:
        raise UsageError("it has no chunks")
    dtype, stored = dataset.dtype, dataset.id.get_type()
    # Characters have the same bytes, however they end.
    if dtype.kind != "S" and h5t.py_create(dtype, logical=True) != stored:
        raise UsageError("it has no chunks, and its elements are converted")
    if dtype.itemsize != stored.get_size() or dtype.subdtype is not None:
        raise UsageError("it has no chunks, and its elements are converted")
    if dataset.id.get_offset() is None:
        # The first element that is written makes room for all.
        one = (1,) * dataset.ndim
        space = dataset.id.get_space()
        space.select_hyperslab((0,) * dataset.ndim, one)
        unwritten.keep(dataset)
        dataset.id.write(h5s.create_simple(one), space, np.zeros(one, dtype), stored)
    base = dataset.id.get_offset()
    if base is None:
        raise UsageError("it has no chunks, and libhdf5 does not say where it lies")
    return FlatPlaces(Flat(dataset.shape, dtype), base)


def runs_of(block: Any, form: Flat, start: tuple[int, ...]) -> tuple[Table, tuple[bytes, ...]]:
    """Give the runs of elements of a block: where each begins, its bytes, and 0; and the bytes."""
    values = np.ascontiguousarray(block, form.dtype)
    box = Box(start, values.shape)
    parts = list(runs(box, form.shape))
    table = [(*part.start, part.size * values.itemsize, 0) for part in parts]
    content = tuple(values[part.within(box).slices].tobytes() for part in parts)
    return np.asarray(table, np.uint64), content


# One system call takes this many buffers.
_MOST_BUFFERS: Final = min(1024, os.sysconf("SC_IOV_MAX"))


@dataclass(frozen=True)
class Form:
    """What encoding a dataset's chunks depends on."""

    image: bytes  # A file with a dataset like it, from `Likeness.image`
    label: str  # Its file and name in messages
    effort: Effort = "as-stated"  # How deflate's encoder is chosen


@dataclass(frozen=True)
class Encoded:
    """The chunks of a block."""

    table: Table  # Of each the element where it begins, its bytes and its filter mask
    chunks: tuple[bytes, ...]  # The stored bytes of each

    def __sizeof__(self) -> int:
        """All of it, by which Dask judges what a worker holds."""
        return self.table.nbytes + sum(map(len, self.chunks))


@dataclass(frozen=True)
class Where:
    """The file to which chunks are written."""

    path: str  # Of the file while it is being written
    lease: str  # Of a file that holds `term` for as long as this term lasts
    term: bytes  # Who holds another one, an earlier one, must not write any more


@dataclass(frozen=True)
class Wrote:
    """The result of writing a block."""

    host: str  # The machine that holds what is not on storage yet
    # If the block was computed anew with other bytes: its table now; nothing was written.
    other: Table | None = None
    expired: bool = False  # Whether the term had ended; then nothing was written either


class _Encoder:
    """Encodes blocks of one form, one after another."""

    # What it has found out about the data, such as the encoder of deflate, holds for later ones.

    def __init__(self, form: Form) -> None:
        self._label = form.label
        self._like = Likeness(form.image, form.label)
        self._kept = _native.KeptChunks()
        self._writer = self._like.writer(self._kept, effort=form.effort)

    def encode(self, block: Any, start: tuple[int, ...]) -> Encoded:
        values = np.ascontiguousarray(block, self._like.dataset.dtype)
        slab = hyperslab(start, values.shape).resolve(tuple(self._writer.shape), self._label)
        self._writer.write(slab, values)
        self._writer.flush()
        table, chunks = self._kept.take()
        return Encoded(table, tuple(chunks))

    def close(self) -> None:
        self._like.close()


# Those that no thread uses now.
_idle: dict[Form, list[_Encoder]] = {}
_lock: Final = threading.Lock()
_MOST_FORMS: Final = 16


def encode(block: Any, form: Form | Flat, start: tuple[int, ...]) -> Encoded:
    """Encode a block of whole chunks, or of a dataset without chunks."""
    if isinstance(form, Flat):
        return Encoded(*runs_of(block, form, start))
    with _lock:
        idle = _idle.get(form)
        encoder = idle.pop() if idle else None
    if encoder is None:
        encoder = _Encoder(form)
    try:
        encoded = encoder.encode(block, start)
    except BaseException:
        encoder.close()
        raise
    with _lock:
        # The form that was used last is the last one.
        _idle[form] = [*_idle.pop(form, []), encoder]
        old = [] if len(_idle) <= _MOST_FORMS else _idle.pop(next(iter(_idle)))
    for one in old:
        one.close()
    return encoded


def forget(form: Form | Flat) -> None:
    """Drop what encoding blocks of a form has left in this process."""
    if isinstance(form, Flat):
        return
    with _lock:
        idle = _idle.pop(form, [])
    for one in idle:
        one.close()


def table_of(encoded: Encoded) -> Table:
    """Return what the process that gives places needs: sizes."""
    return encoded.table


def write(encoded: Encoded, expected: Table, addresses: Table, where: Where) -> Wrote:
    """Write the chunks of a block to their places."""
    if not np.array_equal(encoded.table, expected):
        return Wrote(host(), other=encoded.table)
    try:
        with _lasting(where) as descriptor:
            if descriptor is None:
                return Wrote(host(), expired=True)
            write_at(descriptor, encoded.chunks, addresses)
    except OSError as wrong:
        raise CannotWriteError(
            f"{printable(where.path)}: cannot be written by the worker on {host()}: "
            f"{system_reason(wrong) or wrong}"
        ) from None
    return Wrote(host())


def write_at(descriptor: int, chunks: Sequence[bytes], addresses: Table) -> None:
    """Write chunks at their addresses, those that lie together at once."""
    order = np.argsort(addresses, kind="stable").tolist()
    places = addresses.tolist()
    run: list[bytes] = []
    begin = end = 0
    for number in order:
        if run and (places[number] != end or len(run) == _MOST_BUFFERS):
            _write_run(descriptor, run, begin)
            run = []
        if not run:
            begin = end = places[number]
        run.append(chunks[number])
        end += len(chunks[number])
    _write_run(descriptor, run, begin)


def _write_run(descriptor: int, run: list[bytes], begin: int) -> None:
    if not run:
        return
    done = os.pwritev(descriptor, run, begin)
    if done == sum(map(len, run)):
        return
    for chunk in run:
        rest = memoryview(chunk)[done:]
        done = max(0, done - len(chunk))
        begin += len(chunk)
        system.pwrite_all(descriptor, rest, begin - len(rest))


@contextlib.contextmanager
def _lasting(where: Where) -> Iterator[int | None]:
    """Open the file, and keep its term from ending until then; None if it has ended."""
    # The end of a term waits for those who write.
    descriptor = os.open(where.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(OSError):  # A file system without locks.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor if see(where.lease) == where.term else None
    finally:
        os.close(descriptor)


def see(lease: str) -> bytes:
    """Read the term that holds; empty if there is none, or it is not seen from here."""
    try:
        return Path(lease).read_bytes()
    except OSError:
        return b""


def to_storage(path: str) -> None:
    """Wait until what this machine has written is on storage."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
