"""How is a worker that was given up kept from writing to a file that others still write?

A worker that does not answer may be dead, or only slow.  A slow one may hold bytes for places that
others have got since.  So a writer holds a shared lock on the file and checks that its
term lasts.  Before a process gives a place away again, or puts the file into place, it takes the
lock exclusively, and ends the term.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from typing import Final

from chunkwise.dask.tasks import Where
from chunkwise.errors import CannotWriteError
from chunkwise.names import printable
from chunkwise.newfile.claim import LEASE, Claim

# Seconds that writing one block may take.
_LIMIT_S: Final = 60.0
_PAUSE_S: Final = 0.005
_TERM_NBYTES: Final = 16


class Lease:
    """Who may write to a partial file."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._file = claim.open_partial(os.O_RDWR)
        try:
            self._lease = claim.make(LEASE)
        except BaseException:
            os.close(self._file)
            raise
        self._term = b""
        self._begin()

    @property
    def where(self) -> Where:
        """The file, for those who may write to it now."""
        lease = self._claim.place.folder / LEASE
        return Where(str(self._claim.partial), str(lease), self._term)

    def renew(self) -> None:
        """End the term and begin another one."""
        self._lock()
        try:
            self._begin()
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def end(self) -> None:
        """Let nobody write any more; raises as `renew`."""
        if self._file < 0:
            return
        try:
            self._lock()
            os.ftruncate(self._lease, 0)
        finally:
            self.close()

    def close(self) -> None:
        """Drop the files, even while others write."""
        for descriptor in (self._file, self._lease):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lease = -1

    def _begin(self) -> None:
        self._term = secrets.token_hex(_TERM_NBYTES // 2).encode()
        os.pwrite(self._lease, self._term, 0)

    def _lock(self) -> None:
        until = time.monotonic() + _LIMIT_S
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise CannotWriteError(
                        f"{printable(self._claim.place.said)}: a worker that was lost still holds "
                        "the file; end it, and repeat"
                    ) from None
                time.sleep(_PAUSE_S)
            except OSError:
                return  # A file system without locks.
