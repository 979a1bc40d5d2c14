"""Where do a file's chunks lie according to a sidecar beside it, and is that still true?

A header in JSON says from which state of which file it was made; then come pages of entries for
each dataset (``crates/chunkwise-engine/src/saved_index.rs``).  It is used only if nothing differs.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from chunkwise import _native, system
from chunkwise.errors import FileChangedError, FileFormatError, UsageError
from chunkwise.files.identity import sample
from chunkwise.names import printable, shell_line

if TYPE_CHECKING:
    from chunkwise.remote.source import RemoteBytes

_MAGIC: Final = b"\x89CWI\r\n\x1a\n"
_VERSION: Final = 1
# Magic, version, checksum of the header, its length.
_HEAD: Final = struct.Struct("<8sIIQ")
# Longer than the header of any file that could be listed.
_MOST_HEADER_NBYTES: Final = 1 << 30
# This much of an object header is compared: it holds shape and layout of most datasets.
_COMPARED_NBYTES: Final = 512


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file was when its sidecar was made."""

    nbytes: int
    mtime_ns: int
    sample: str  # As `identity.sample`; of an object behind a URL, its version


class Content(Protocol):
    """The bytes of a file, and what identifies them."""

    def state(self) -> FileState:
        """What the file is now."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address, as far as the file reaches."""


class LocalContent(Content):
    """Those of an open file here."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def state(self) -> FileState:
        """What the file is now."""
        status = os.fstat(self._descriptor)
        return FileState(status.st_size, status.st_mtime_ns, sample(self._descriptor))

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address, as far as the file reaches."""
        return system.pread(self._descriptor, nbytes, address)


class RemoteContent(Content):
    """Those of an object, as it was when it was opened: another one's are refused."""

    def __init__(self, source: RemoteBytes) -> None:
        self._source = source

    def state(self) -> FileState:
        """What the object is."""
        if not (self._source.version.tag or self._source.version.changed):
            raise UsageError(
                f"{self._source.shown}: the server sends neither ETag nor Last-Modified, by which "
                "a sidecar knows its file; write OUT.json"
            )
        version = self._source.version
        said = " ".join(filter(None, (version.tag, version.changed)))
        return FileState(self._source.size, 0, f"version {said}")

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address, as far as the object reaches."""
        return self._source.read(address, address + nbytes)


@dataclass(frozen=True, slots=True)
class SidecarEntry:
    """Where the chunks of one dataset are written down."""

    name: str  # The dataset's path, for people
    address: int  # Of its object header, as HDF5 has it
    header: int  # Checksum of the bytes there
    begin: int  # Of its pages, from the beginning of the sidecar
    dense: bool  # Whether there is an entry for each chunk of the grid
    entries: int  # How many


def header_sum(content: Content, address: int) -> int:
    """Return the checksum of the beginning of an object header."""
    return zlib.crc32(content.read(address, _COMPARED_NBYTES))


def head_of(state: FileState, parts: list[SidecarEntry]) -> bytes:
    """Return what a sidecar begins with; a part's `begin` is given from behind it."""
    record = {"file": asdict(state), "datasets": [asdict(part) for part in parts]}
    header = json.dumps(record, separators=(",", ":")).encode()
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(header), len(header)) + header


def is_sidecar(path: Path) -> bool:
    """Return whether a file is a sidecar, of any file."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


class Sidecar:
    """A sidecar that holds for a file as it is."""

    def __init__(
        self, path: str | os.PathLike[str], content: Content, user_block: int, filename: str
    ) -> None:
        self._user_block = user_block
        self.path = os.fspath(path)
        self._where = printable(self.path)
        state, self._parts, self._begin = self._read()
        if state != content.state():
            remedy = shell_line("chunkwise", "index", filename, "-o", self.path, "--force")
            raise FileChangedError(
                f"{self._where}: is of another file than {printable(filename)}, or of it before "
                f"it was changed; make it anew: {remedy}"
            )
        self._saved = _native.SavedChunks(self.path)

    def _read(self) -> tuple[FileState, dict[int, SidecarEntry], int]:
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
            parts = [SidecarEntry(**part) for part in record["datasets"]]
            state = FileState(**record["file"])
        except (ValueError, TypeError, KeyError):
            raise FileFormatError(damaged) from None
        return state, {part.address: part for part in parts}, _HEAD.size + nbytes

    def find(self, address: int, content: Content) -> Any:
        """Give the chunks of the dataset whose header is at an address, for `_native.Dataset`."""
        # None if the sidecar has none of it, or its header is not what it was.
        part = self._parts.get(address)
        if part is None or header_sum(content, address + self._user_block) != part.header:
            return None
        return self._saved, self._begin + part.begin, part.dense, part.entries
