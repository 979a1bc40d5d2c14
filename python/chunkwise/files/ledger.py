"""Which work is done already, so that a run that was stopped can continue?

A file has a line of JSON for each piece of work.  It is used only if it begins as such a file
does: others may have put something else at its name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from chunkwise import system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import system_reason

_FLAGS: Final = os.O_RDWR | os.O_APPEND | system.SAFELY


@dataclass(frozen=True)
class Ledger:
    """Such a file."""

    path: str | os.PathLike[str]
    begins: bytes  # What it begins with
    said: str  # What it is called in messages
    foreign: str  # What is said of another file that has its name
    is_own: bool = True  # Whether it must be this user's, without another name

    def read(self) -> list[dict[str, Any]]:
        """Return its lines; raises FileNotFoundError if it is not there."""
        with self._opened(0) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            content = stream.read()
            # A line that was cut by a power failure is no line.
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                os.ftruncate(descriptor, whole)
        found = []
        for line in content[:whole].splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [one for one in found if isinstance(one, dict)]

    def append(self, record: dict[str, Any]) -> None:
        """Add a line."""
        with self._opened(os.O_CREAT) as descriptor:
            line = json.dumps(record).encode() + b"\n"
            while line:
                line = line[os.write(descriptor, line) :]

    def remove(self) -> None:
        """Remove it."""
        with self._opened(0):
            pass  # It is one
        # Windows removes no file that is open.
        try:
            os.unlink(self.path)  # noqa: PTH108 (a path of any kind)
        except OSError as wrong:
            raise self._cannot_write(system_reason(wrong) or str(wrong)) from wrong

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, _FLAGS | flags, 0o666)
            try:
                self._require_own(descriptor)
                yield descriptor
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            if flags:
                raise self._cannot_write("there is no such folder") from None
            raise
        except OSError as wrong:
            if wrong.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise self._foreign() from None
            raise self._cannot_write(system_reason(wrong) or str(wrong)) from wrong

    def _require_own(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        is_own = found.st_uid == system.user() and found.st_nlink == 1
        if not stat.S_ISREG(found.st_mode) or (self.is_own and not is_own):
            raise self._foreign()
        if not self.begins.startswith(system.pread(descriptor, len(self.begins), 0)):
            raise self._foreign()

    def _cannot_write(self, reason: str) -> CannotWriteError:
        return CannotWriteError(f"{self.said}: cannot be written: {reason}")

    def _foreign(self) -> UsageError:
        return UsageError(f"{self.said}: {self.foreign}")
