"""How does libhdf5 read a remote file?  Through a file object, by h5py's file-object driver."""

from __future__ import annotations

from typing import Any

from chunkwise.errors import ChunkwiseError
from chunkwise.files.positioned import Positioned
from chunkwise.remote.source import RemoteBytes


class Stream(Positioned):
    """A source as a file object."""

    # What of a buffer lies beyond the end of the file is filled with zeros, as libhdf5's own
    # driver does: h5py does not look at how many bytes came.

    def __init__(self, source: RemoteBytes) -> None:
        self.source = source
        self.error: ChunkwiseError | None = None  # What the last read ended with

    def __repr__(self) -> str:
        # h5py takes it for the file's name.
        return self.source.shown

    def end(self) -> int:
        """Return where the file ends."""
        return self.source.size

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the current position on; gives how many bytes came."""
        view = memoryview(buffer).cast("B")
        self.error = None
        try:
            found = self.source.read(self.position, self.position + len(view))
        except ChunkwiseError as error:
            # h5py passes it on as it is.
            self.error = type(error)(f"{self.source.shown}: {error}")
            raise self.error from error
        view[: len(found)] = found
        view[len(found) :] = bytes(len(view) - len(found))
        self.position += len(found)
        return len(found)
