"""Where do a file's chunks lie according to a sidecar beside it, and is that still true?

A sidecar has a header in JSON, and then, for each dataset, pages of entries
(``crates/chunkwise-engine/src/saved_index.rs``).  The header describes the state of the file
from which it was made: size, time of the last change, a checksum of blocks of it (all of a small
file), and for each dataset a checksum of the beginning of its object header.  If one differs, the
sidecar is not used.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from chunkwise import _native
from chunkwise.errors import FileChangedError, FileFormatError
from chunkwise.files.identity import sample
from chunkwise.files.objects import Address
from chunkwise.names import printable, shell_line

_MAGIC: Final = b"\x89CWI\r\n\x1a\n"
_VERSION: Final = 1
# Magic, version, checksum of the header, its length.
_HEAD: Final = struct.Struct("<8sIIQ")
# Longer than the header of any file that could be listed.
_MOST_HEADER_NBYTES: Final = 1 << 30
# This much of an object header is compared: it holds shape and layout of most datasets.
_COMPARED_NBYTES: Final = 512


@dataclass(frozen=True, slots=True)
class State:
    """What a file was when its sidecar was made."""

    nbytes: int
    mtime_ns: int
    sample: str  # As `identity.sample`

    @classmethod
    def of(cls, descriptor: int) -> State:
        """Of an open file."""
        status = os.fstat(descriptor)
        return cls(status.st_size, status.st_mtime_ns, sample(descriptor))


@dataclass(frozen=True, slots=True)
class Part:
    """Where the chunks of one dataset are written down.

    Attributes
    ----------
    name
        The dataset's path, for people.
    address
        Of its object header, as HDF5 has it.
    header
        Checksum of the bytes there.
    begin
        Of its pages, from the beginning of the sidecar.
    dense
        Whether there is an entry for each chunk of the grid.
    entries
        How many.
    """

    name: str
    address: int
    header: int
    begin: int
    dense: bool
    entries: int


def header_address(address: Address) -> int:
    """Where an object's header lies to HDF5, from what tells it from all others."""
    low, high = address[-2:]
    return low | high << 32


def header_sum(descriptor: int, address: int) -> int:
    """Return the checksum of the beginning of an object header."""
    return zlib.crc32(os.pread(descriptor, _COMPARED_NBYTES, address))


def head_of(state: State, parts: list[Part]) -> bytes:
    """Return what a sidecar begins with; a part's `begin` is given from behind it."""
    record = {"file": asdict(state), "datasets": [asdict(part) for part in parts]}
    header = json.dumps(record, separators=(",", ":")).encode()
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(header), len(header)) + header


def is_sidecar(path: Path) -> bool:
    """Tell whether a file is a sidecar, of any file."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


class Sidecar:
    """A sidecar that holds for a file as it is.

    Parameters
    ----------
    path
        Of the sidecar.
    descriptor
        Of the file, open.
    user_block
        Bytes before the file's address 0.
    filename
        Of the file, for messages.

    Raises
    ------
    FileFormatError
        It cannot be read, or is none.
    FileChangedError
        It was made from another file, or from another state of this one.
    """

    def __init__(
        self, path: str | os.PathLike[str], descriptor: int, user_block: int, filename: str
    ) -> None:
        self._user_block = user_block
        self.path = os.fspath(path)
        self._where = printable(self.path)
        state, self._parts, self._begin = self._read()
        if state != State.of(descriptor):
            remedy = shell_line("chunkwise", "index", filename, "-o", self.path, "--force")
            raise FileChangedError(
                f"{self._where}: is of another file than {printable(filename)}, or of it before "
                f"it was changed; make it anew: {remedy}"
            )
        self._saved = _native.SavedChunks(self.path)

    def _read(self) -> tuple[State, dict[int, Part], int]:
        try:
            with Path(self.path).open("rb") as stream:
                head = stream.read(_HEAD.size)
                if len(head) < _HEAD.size or not head.startswith(_MAGIC):
                    raise FileFormatError(f"{self._where}: is no index that chunkwise has made")
                _, version, total, nbytes = _HEAD.unpack(head)
                if version != _VERSION:
                    raise FileFormatError(
                        f"{self._where}: is of version {version}; make it anew by chunkwise index"
                    )
                header = stream.read(min(nbytes, _MOST_HEADER_NBYTES))
        except OSError as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"{self._where}: {error.strerror}") from None
        damaged = f"{self._where}: is damaged; make it anew by chunkwise index"
        if len(header) != nbytes or zlib.crc32(header) != total:
            raise FileFormatError(damaged)
        try:
            record = json.loads(header)
            parts = [Part(**part) for part in record["datasets"]]
            state = State(**record["file"])
        except (ValueError, TypeError, KeyError):
            raise FileFormatError(damaged) from None
        return state, {part.address: part for part in parts}, _HEAD.size + nbytes

    def find(self, address: int, descriptor: int) -> Any:
        """Give the chunks of the dataset whose header is at an address, for `_native.Dataset`.

        None if the sidecar has none of it, or its header is not what it was.
        """
        part = self._parts.get(address)
        if part is None or header_sum(descriptor, address + self._user_block) != part.header:
            return None
        return self._saved, self._begin + part.begin, part.dense, part.entries
