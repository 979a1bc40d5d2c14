"""Which of many files are verified already, so that a stopped run can continue?

A file that the user names holds the result for each file, one line each, as soon as it is known.
If a file has changed since, by its size or time of last change, it is verified again.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable
from chunkwise.verdicts import Verdict
from chunkwise.verifying.file import Checked, ManifestOptions
from chunkwise.verifying.records import Verified

FORMAT: Final = "chunkwise-verify-state"
VERSION: Final = 2
_KEPT: Final = (Verdict.SOUND, Verdict.LOOSE, Verdict.DAMAGED)
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_APPEND


class State:
    """The results for files, in this run and in earlier ones."""

    def __init__(
        self, path: str | os.PathLike[str], options: ManifestOptions, manifest: str | None
    ) -> None:
        self._where = printable(os.fspath(path))
        self._known: dict[str, dict[str, Any]] = {}
        head = {"format": FORMAT, "version": VERSION, "sums": options.sums, "manifest": manifest}
        if options.external != "folder":
            head["external"] = options.external
        try:
            descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o666)
            self._stream = os.fdopen(descriptor, "r+b", buffering=0)
        except OSError as error:
            raise CannotWriteError(
                f"--resume {self._where}: cannot be written: {error.strerror}"
            ) from None
        try:
            self._begin(head)
        except BaseException:
            self._stream.close()
            raise

    def _begin(self, head: dict[str, Any]) -> None:
        if not stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode):
            raise self._foreign()
        # By position: writes go to the end in any case.
        self._stream.seek(0)
        lines = self._stream.read().split(b"\n")
        # A line that was cut by a power failure is no line.
        torn = lines.pop()
        if not lines:
            if torn and not json.dumps(head).encode().startswith(torn):
                raise self._foreign()
            os.ftruncate(self._stream.fileno(), 0)
            self._write(head)
            return
        try:
            found = json.loads(lines[0])
        except ValueError:
            raise self._foreign() from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._foreign()
        if found != head:
            raise UsageError(
                f"--resume {self._where}: is of a run with another version, or other words about "
                "manifests; give the same ones, or another file"
            )
        if torn:
            os.ftruncate(self._stream.fileno(), sum(len(line) + 1 for line in lines))
        for line in lines[1:]:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                record = json.loads(line)
                self._known[str(record["path"])] = record

    def _foreign(self) -> UsageError:
        return UsageError(
            f"--resume {self._where}: is no list of verified files, and was left as it is; "
            "name another file"
        )

    def known(self, path: str) -> Checked | None:
        """Return the result for a file, if it is known and the file has not changed since."""
        record = self._known.get(_full(path))
        if record is None:
            return None
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            if record["stamp"] == stamp(path):
                return Checked(Verified.from_dict(record["verified"]), record["sums"])
        return None

    def note(self, result: Checked, before: list[int] | None) -> None:
        """Keep the result for a file, with its state when work on it began."""
        # What could not be read or judged is not kept: it may be possible the next time.
        if before is None or result.verified.verdict not in _KEPT:
            return
        self._write(
            {
                "path": _full(result.verified.path),
                "stamp": before,
                "verified": result.verified.as_dict(),
                "sums": result.sums,
            }
        )

    def _write(self, record: dict[str, Any]) -> None:
        try:
            self._stream.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise CannotWriteError(
                f"--resume {self._where}: cannot be written: {error.strerror}"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def stamp(path: str) -> list[int]:
    """Return what shows a change of a file: its size, and the time of its last write."""
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]


def _full(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # Links are not followed.
