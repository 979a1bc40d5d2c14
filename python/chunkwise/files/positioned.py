"""What have all file objects in common through which libhdf5 reads (h5py's file-object driver)?"""

from __future__ import annotations

import errno
import io
import os
from typing import Final

# The largest that the operating system knows (off_t).
_LAST_OFFSET: Final = (1 << 63) - 1


class Positioned(io.RawIOBase):
    """A file object with a position of its own."""

    position = 0

    def end(self) -> int:
        """Return where the file ends."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be sought in."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset from the beginning, the current position or the end."""
        if whence == os.SEEK_END:
            offset += self.end()
        elif whence == os.SEEK_CUR:
            offset += self.position
        if offset > _LAST_OFFSET:
            # A damaged address; preadv would raise an OverflowError.
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.position = offset
        return offset

    def tell(self) -> int:
        """Return the current position."""
        return self.position
