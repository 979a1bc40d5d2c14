"""Which of many files are done, so that a continued run skips them?

A file in the folder of results has a line for each; see `files/ledger.py`.
"""

from __future__ import annotations

import contextlib
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from chunkwise.files.ledger import Ledger
from chunkwise.names import printable
from chunkwise.newfile.target import Identity

FINISHED: Final = Path(".chunkwise-repack.jsonl")
_FOREIGN: Final = (
    "is not the list of results that an earlier run of yours left; it was left as it is: move it "
    "away, or name another folder (-o)"
)


class Finished:
    """The files that are done."""

    def __init__(self, folder: Path, job: str, resume: bool, part: str = "") -> None:
        path = folder / (f"{FINISHED.stem}.{part}{FINISHED.suffix}" if part else FINISHED)
        self._ledger = Ledger(path, b'{"job": ', printable(str(path)), _FOREIGN)
        self._job = job
        self._done: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError):
            if resume:
                self._done = {str(record.get("target")): record for record in self._ledger.read()}
            else:
                self._ledger.remove()

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
        self._ledger.append(
            {
                "job": self._job,
                "source": str(source),
                "source_is": _stamp(identity),
                "target": str(target.absolute()),
                "target_is": _stamp_of(target),
            }
        )


def _stamp_of(path: Path) -> list[int] | None:
    return _stamp(Identity.of(path)) if path.exists() else None


def _stamp(identity: Identity) -> list[int]:
    # A device has another number when it is mounted again.
    return list(astuple(identity))[1:]
