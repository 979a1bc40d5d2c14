"""What lies in the folder of a study's run, and may another run continue in it?"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chunkwise import system
from chunkwise.errors import UsageError
from chunkwise.files.durable import free_nbytes
from chunkwise.grammar import format_size
from chunkwise.names import printable
from chunkwise.words import counted
from chunkwise_lab.studies.results import StudyResults

RESULTS: Final = "results.json.gz"


@dataclass(frozen=True)
class Folder:
    """The folder of one study at one scale."""

    path: Path

    @property
    def files(self) -> Path:
        """Where data is generated."""
        return self.path / "files"

    @property
    def trials(self) -> Path:
        """Where each trial is saved as it is done."""
        return self.path / "trials"

    @property
    def results(self) -> Path:
        """The result of all of them."""
        return self.path / RESULTS

    @property
    def name(self) -> str:
        """The path, for a message."""
        return printable(str(self.path))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out while the block lasts, as each removes what the other generates."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = system.open_to_lock(self.path)
        except OSError as error:
            raise self._cannot_make(error) from None
        try:
            try:
                system.lock(descriptor)
            except BlockingIOError:
                raise UsageError(
                    f"{self.name}: another run measures in this folder: wait until it ends, or "
                    "name another one (-o)"
                ) from None
            except OSError:
                pass  # Some file systems have no locks: there, nobody is kept out.
            yield
        finally:
            os.close(descriptor)

    def _cannot_make(self, error: OSError) -> UsageError:
        return UsageError(
            f"{self.name}: no folder that can be written to: {error.strerror}; name another "
            "one (-o)"
        )

    def claim(self, new: StudyResults, needed: int, resume: bool) -> StudyResults | None:
        """Make the folders, and return what an earlier run left if this one goes on with it."""
        earlier = StudyResults.read(self.results) if self.results.exists() else None
        if earlier is not None and resume:
            self._check(earlier, new)
        tried = self.trials.is_dir() and any(self.trials.iterdir())
        if not resume and (tried or (earlier is not None and earlier.outcomes)):
            raise UsageError(
                f"{self.name}: there are trials of an earlier run: go on with it (--resume), or "
                "name another folder (-o)"
            )
        self._clear(is_ours=earlier is not None)
        try:
            for folder in (self.files, self.trials):
                folder.mkdir(parents=True, exist_ok=True)
            free = free_nbytes(self.path)
        except OSError as error:
            raise self._cannot_make(error) from None
        if free < needed:
            raise UsageError(
                f"{self.name}: {new.study} needs about {format_size(needed)}, and "
                f"{format_size(free)} are free; name another folder (-o)"
            )
        return earlier if resume else None

    def _clear(self, *, is_ours: bool) -> None:
        """Remove what a run that was killed had generated, as it may be half a file."""
        if self.files.is_symlink():
            raise UsageError(
                f"{self.name}: 'files' in it is a link, which may lead anywhere: "
                "name another folder (-o)"
            )
        if is_ours:
            shutil.rmtree(self.files, ignore_errors=True)
        elif self.files.is_dir() and any(self.files.iterdir()):
            raise UsageError(
                f"{self.name}: there is a folder 'files' in it that is not of a study: name "
                "another folder (-o)"
            )

    def _check(self, earlier: StudyResults, new: StudyResults) -> None:
        if (earlier.study, earlier.scale) != (new.study, new.scale):
            raise UsageError(
                f"{self.name}: it holds {printable(earlier.study)} at the scale {earlier.scale}, "
                f"and not {new.study} at the scale {new.scale}: name another folder (-o)"
            )
        if _described(earlier) != _described(new):
            raise UsageError(
                f"{self.name}: it holds measurements of {_described(earlier)}, and not of "
                f"{_described(new)}: name another folder (-o)"
            )
        if earlier.repeat > new.repeat:
            raise UsageError(
                f"{self.name}: everything in it was to be measured "
                f"{counted(earlier.repeat, 'time')}: go on "
                f"with --repeat {earlier.repeat} or more, or name another folder (-o)"
            )


def _described(results: StudyResults) -> str:
    """Say what data was measured."""
    if results.target is None:
        return "the study's own data"
    return printable(f"{results.target['file']}: {results.target['dataset']}")
