"""Which of many files are done, so that a continued run skips them?

A file in the folder of results has a line for each, written when it is done.  It is read, extended
and removed only if it is a regular file of this user's that begins with such a line: others may
have planted something at its name.
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

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.newfile.target import Identity, cannot_write

FINISHED: Final = Path(".chunkwise-repack.jsonl")
_BEGINS: Final = b'{"job": '
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Finished:
    """The files that are done."""

    def __init__(self, folder: Path, job: str, resume: bool, part: str = "") -> None:
        self._path = folder / (f"{FINISHED.stem}.{part}{FINISHED.suffix}" if part else FINISHED)
        self._job = job
        self._done: dict[str, dict[str, Any]] = {}
        with self._errors():
            try:
                content = self._content()
            except FileNotFoundError:
                return
            if not resume:
                self._path.unlink()
                return
        for line in content.splitlines():
            # A line that was cut by a power failure is no line.
            with contextlib.suppress(ValueError, TypeError, KeyError):
                record = json.loads(line)
                self._done[str(record["target"])] = record

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
        with self._errors():
            flags = _FLAGS | os.O_APPEND | os.O_CREAT
            with os.fdopen(os.open(self._path, flags, 0o666), "ab", buffering=0) as stream:
                self._require_own(stream.fileno())
                stream.write(json.dumps(record).encode() + b"\n")

    def _content(self) -> bytes:
        with os.fdopen(os.open(self._path, _FLAGS), "rb") as stream:
            self._require_own(stream.fileno())
            return stream.read()

    def _require_own(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        is_own = found.st_uid == os.geteuid() and found.st_nlink == 1
        if not stat.S_ISREG(found.st_mode) or not is_own:
            raise self._foreign()
        if not _BEGINS.startswith(os.pread(descriptor, len(_BEGINS), 0)):
            raise self._foreign()

    def _foreign(self) -> UsageError:
        return UsageError(
            f"{printable(str(self._path))}: is not the list of results that an earlier run of "
            "yours left; it was left as it is: move it away, or name another folder (-o)"
        )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as wrong:
            if wrong.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise self._foreign() from None
            raise cannot_write(str(self._path), wrong) from wrong


def _stamp_of(path: Path) -> list[int] | None:
    return _stamp(Identity.of(path)) if path.exists() else None


def _stamp(identity: Identity) -> list[int]:
    # A device has another number when it is mounted again.
    return list(astuple(identity))[1:]
