"""Which of many files are verified already, so that a stopped run can continue?"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.files.ledger import Ledger
from chunkwise.names import printable
from chunkwise.verdicts import FileVerdict
from chunkwise.verifying.file import Checked, ManifestOptions
from chunkwise.verifying.records import Verified

FORMAT: Final = "chunkwise-verify-state"
VERSION: Final = 2
_KEPT: Final = (FileVerdict.SOUND, FileVerdict.LOOSE, FileVerdict.DAMAGED)


class State:
    """The results for files, in this run and in earlier ones."""

    def __init__(
        self, path: str | os.PathLike[str], options: ManifestOptions, manifest: str | None
    ) -> None:
        said = f"--resume {printable(os.fspath(path))}"
        foreign = "is no list of verified files, and was left as it is; name another file"
        begins = f'{{"format": "{FORMAT}"'.encode()
        self._ledger = Ledger(path, begins, said, foreign, is_own=False)
        head = {"format": FORMAT, "version": VERSION, "sums": options.sums, "manifest": manifest}
        if options.external != "folder":
            head["external"] = options.external
        lines: list[dict[str, Any]] = []
        with contextlib.suppress(FileNotFoundError):
            lines = self._ledger.read()
        if not lines:
            self._ledger.append(head)
        elif lines[0] != head:
            raise UsageError(
                f"{said}: is of a run with another version, or other words about manifests; give "
                "the same ones, or another file"
            )
        self._known = {str(record.get("path")): record for record in lines[1:]}

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
        self._ledger.append(
            {
                "path": _full(result.verified.path),
                "stamp": before,
                "verified": result.verified.as_dict(),
                "sums": result.sums,
            }
        )


def stamp(path: str) -> list[int] | None:
    """Return what shows a change of a file, its size and last write; None if it is not there."""
    with contextlib.suppress(OSError, ValueError):
        status = Path(path).stat()
        return [status.st_size, status.st_mtime_ns]
    return None


def _full(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # Links are not followed.
