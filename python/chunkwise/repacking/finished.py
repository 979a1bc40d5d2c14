"""Which of many files are done, so that a continued run skips them?

A file in the folder of results has a line of JSON for each, written when it is done.  It is read,
extended and removed only if it is this user's regular file, has no other name, and begins as such
a file does: others may have planted something at its name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable, system_reason
from chunkwise.newfile.target import Identity

FINISHED: Final = Path(".chunkwise-repack.jsonl")
_FOREIGN: Final = (
    "is not the list of results that an earlier run of yours left; it was left as it is: move it "
    "away, or name another folder (-o)"
)
_BEGINS: Final = b'{"job": '
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_APPEND


class Finished:
    """The files that are done."""

    def __init__(self, folder: Path, job: str, resume: bool, part: str = "") -> None:
        self._path = folder / (f"{FINISHED.stem}.{part}{FINISHED.suffix}" if part else FINISHED)
        self._said = printable(str(self._path))
        self._job = job
        self._done: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError), self._opened(0) as descriptor:
            if resume:
                self._done = {str(one.get("target")): one for one in _read(descriptor)}
            else:
                self._path.unlink()

    def has(self, source: Path, target: Path) -> bool:
        """Return whether this job made this result of this source, and both are unchanged."""
        record = self._done.get(str(target.absolute()))
        if record is None or record.get("job") != self._job:
            return False
        with contextlib.suppress(OSError):
            if _stamp(Identity.of(source)) != record.get("source_is"):
                return False
            return bool(_stamp_of(target) == record.get("target_is"))
        return False

    def note(self, source: Path, target: Path, identity: Identity) -> None:
        """Note a result."""
        record = {
            "job": self._job,
            "source": str(source),
            "source_is": _stamp(identity),
            "target": str(target.absolute()),
            "target_is": _stamp_of(target),
        }
        line = json.dumps(record).encode() + b"\n"
        with self._opened(os.O_CREAT) as descriptor:
            while line:
                line = line[os.write(descriptor, line) :]

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            descriptor = os.open(self._path, _FLAGS | flags, 0o666)
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
        is_own = found.st_uid == os.geteuid() and found.st_nlink == 1
        begins = os.pread(descriptor, len(_BEGINS), 0)
        if not (stat.S_ISREG(found.st_mode) and is_own and _BEGINS.startswith(begins)):
            raise self._foreign()

    def _cannot_write(self, reason: str) -> CannotWriteError:
        return CannotWriteError(f"{self._said}: cannot be written: {reason}")

    def _foreign(self) -> UsageError:
        return UsageError(f"{self._said}: {_FOREIGN}")


def _read(descriptor: int) -> list[dict[str, Any]]:
    """Read the lines; one that was cut by a power failure is none, and goes."""
    with open(descriptor, "rb", closefd=False) as stream:
        content = stream.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.ftruncate(descriptor, whole)
    found = []
    for line in content[:whole].splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [one for one in found if isinstance(one, dict)]


def _stamp_of(path: Path) -> list[int] | None:
    return _stamp(Identity.of(path)) if path.exists() else None


def _stamp(identity: Identity) -> list[int]:
    # A device has another number when it is mounted again.
    return list(astuple(identity))[1:]
