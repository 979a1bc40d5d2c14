"""How are many files verified, one after another or several at a time?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from chunkwise.manifest.manifest import FileManifest
from chunkwise.verdicts import Verdict
from chunkwise.verifying.apart import SLOTS_EACH, STILL_S, Counter, look_apart
from chunkwise.verifying.file import Looked, Wish
from chunkwise.verifying.records import Damage, Note, Verified
from chunkwise.verifying.state import State, stamp


@dataclass(frozen=True)
class File:
    """One of many files."""

    path: str  # Where it is
    name: str  # What a manifest calls it


@dataclass(frozen=True)
class Asked:
    """What to verify."""

    files: Sequence[File]
    failed: Sequence[tuple[str, str]] = ()  # What could not be looked into, with the reason
    wish: Wish = field(default_factory=Wish)  # What is asked of each
    # A manifest: what is known of each file, by name; None for none.
    known: dict[str, FileManifest] | None = None
    jobs: int = 1  # How many at a time
    still_s: float = STILL_S  # Seconds without any read after which a file is given up

    @property
    def values(self) -> bool:
        """Whether a manifest is written or compared, which netCDF-3 files have a part of."""
        return self.wish.sums or self.known is not None


@dataclass
class Progress:
    """How far a survey is."""

    total_nbytes: int = 0  # Bytes of all files
    done_nbytes: Callable[[], int] = field(default=lambda: 0)  # Tells how many were read
    known: int = 0  # Files that an earlier run has verified


def survey(
    asked: Asked, state: State | None = None, progress: Progress | None = None
) -> Iterator[tuple[File, Looked]]:
    """Verify file after file; a fault in one does not stop the rest."""
    for path, reason in asked.failed:
        if Path(path).is_file() and not _size(path):
            gone = Damage("truncated", None, reason)
            yield File(path, path), Looked(Verified(path, 0, (gone,), 1))
            continue
        note = Note(None, reason, Verdict.FAILED)
        yield File(path, path), Looked(Verified(path, None, notes=(note,)))
    expected = _expected(asked)
    left: list[File] = []
    for file in asked.files:
        looked = None if state is None else state.known(file.path)
        if looked is None:
            left.append(file)
        else:
            if progress is not None:
                progress.known += 1
            yield file, looked
    sizes = [(file.path, _size(file.path)) for file in left]
    counter = Counter(SLOTS_EACH * asked.jobs)
    if progress is not None:
        progress.total_nbytes = sum(nbytes for _, nbytes in sizes)
        progress.done_nbytes = lambda: counter.nbytes
    stamps = {file.path: _stamp(file.path) for file in left} if state is not None else {}
    with TemporaryDirectory(prefix="chunkwise.") if asked.values else nullcontext() as folder:
        wish = asked.wish if folder is None else replace(asked.wish, folder=Path(folder))
        found = look_apart(sizes, wish, asked.jobs, counter, expected, asked.still_s)
        for file, looked in zip(left, found, strict=True):
            looked = _with_missing(asked, file, looked)
            if state is not None:
                state.note(looked, stamps[file.path])
            yield file, looked
    yield from _lacking(asked)


def _expected(asked: Asked) -> dict[str, FileManifest | None]:
    """Return a manifest's entries, by path."""
    known = asked.known
    if known is None:
        return {}
    if _is_pair(asked):
        (only,) = known.values()
        return {asked.files[0].path: only}
    return {file.path: known.get(file.name) for file in asked.files}


def _is_pair(asked: Asked) -> bool:
    """Whether one file is held against a manifest of one, which may have another name."""
    return asked.known is not None and len(asked.files) == len(asked.known) == 1


def _with_missing(asked: Asked, file: File, looked: Looked) -> Looked:
    """Say that the manifest does not know a file."""
    if asked.known is None or _is_pair(asked) or file.name in asked.known:
        return looked
    verified = looked.verified
    damage = Damage("manifest", None, "the file is not in the manifest")
    made = replace(
        verified,
        damages=(*verified.damages, damage),
        damage_count=verified.damage_count + 1,
    )
    return Looked(made, looked.sums)


def _lacking(asked: Asked) -> Iterator[tuple[File, Looked]]:
    """Give the files of a manifest that are not there."""
    if asked.known is None or _is_pair(asked):
        return
    there = {file.name for file in asked.files}
    for name in sorted(asked.known.keys() - there):
        damage = Damage("manifest", None, "the file is missing")
        yield File(name, name), Looked(Verified(name, None, (damage,), 1))


def _size(path: str) -> int:
    with suppress(OSError, ValueError):
        return os.stat(path).st_size  # noqa: PTH116  # A string, as given.
    return 0


def _stamp(path: str) -> list[int] | None:
    with suppress(OSError, ValueError):
        return stamp(path)
    return None
