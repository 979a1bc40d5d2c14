"""How are many files verified, one after another or several at a time?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from chunkwise.files.contained import size_of
from chunkwise.manifest.manifest import FileManifest
from chunkwise.verdicts import FileVerdict
from chunkwise.verifying.apart import STILL_S, Counter, verify_apart
from chunkwise.verifying.file import Checked, ManifestOptions
from chunkwise.verifying.records import Damage, Note, Verified
from chunkwise.verifying.state import State, stamp


@dataclass(frozen=True)
class File:
    """One of many files."""

    path: str  # Where it is
    name: str  # What a manifest calls it


@dataclass(frozen=True)
class FileSet:
    """Files to verify, and how."""

    files: Sequence[File]
    # What could not be searched, or not yet: with the reason, and what that says of it.
    failed: Sequence[tuple[str, str, FileVerdict]] = ()
    options: ManifestOptions = field(default_factory=ManifestOptions)
    # A manifest: what is known of each file, by name; None for none.
    known: dict[str, FileManifest] | None = None
    jobs: int = 1  # How many at a time
    still_s: float = STILL_S  # Seconds without any read after which a file is given up

    @property
    def values(self) -> bool:
        """Whether a manifest is written or compared, which netCDF-3 files have a part of."""
        return self.options.sums or self.known is not None


@dataclass
class Progress:
    """How far a survey is."""

    total_nbytes: int = 0  # Bytes of all files
    done_nbytes: Callable[[], int] = field(default=lambda: 0)  # Returns how many were read
    known: int = 0  # Files that an earlier run has verified


def survey(
    chosen: FileSet, state: State | None = None, progress: Progress | None = None
) -> Iterator[tuple[File, Checked]]:
    """Verify file after file; a fault in one does not stop the rest."""
    for path, reason, verdict in chosen.failed:
        if verdict is FileVerdict.FAILED and Path(path).is_file() and not size_of(path):
            gone = Damage("truncated", None, reason)
            yield File(path, path), Checked(Verified(path, 0, (gone,), 1))
            continue
        note = Note(None, reason, verdict)
        yield File(path, path), Checked(Verified(path, None, notes=(note,)))
    expected = _expected(chosen)
    left: list[File] = []
    for file in chosen.files:
        result = None if state is None else state.known(file.path)
        if result is None:
            left.append(file)
        else:
            if progress is not None:
                progress.known += 1
            yield file, result
    sizes = [(file.path, size_of(file.path)) for file in left]
    counter = Counter(len(sizes))
    if progress is not None:
        progress.total_nbytes = sum(nbytes for _, nbytes in sizes)
        progress.done_nbytes = lambda: counter.nbytes
    stamps = {file.path: stamp(file.path) for file in left} if state is not None else {}
    with TemporaryDirectory(prefix="chunkwise.") if chosen.values else nullcontext() as folder:
        options = (
            chosen.options if folder is None else replace(chosen.options, folder=Path(folder))
        )
        found = verify_apart(sizes, options, chosen.jobs, counter, expected, chosen.still_s)
        for file, result in zip(left, found, strict=True):
            result = _with_missing(chosen, file, result)
            if state is not None:
                state.note(result, stamps[file.path])
            yield file, result
    yield from _lacking(chosen)


def _expected(chosen: FileSet) -> dict[str, FileManifest | None]:
    """Return a manifest's entries, by path."""
    known = chosen.known
    if known is None:
        return {}
    if _is_pair(chosen):
        (only,) = known.values()
        return {chosen.files[0].path: only}
    return {file.path: known.get(file.name) for file in chosen.files}


def _is_pair(chosen: FileSet) -> bool:
    """Whether one file is held against a manifest of one, which may have another name."""
    return chosen.known is not None and len(chosen.files) == len(chosen.known) == 1


def _with_missing(chosen: FileSet, file: File, result: Checked) -> Checked:
    """Say that the manifest does not know a file."""
    if chosen.known is None or _is_pair(chosen) or file.name in chosen.known:
        return result
    verified = result.verified
    damage = Damage("manifest", None, "the file is not in the manifest")
    made = replace(
        verified,
        damages=(*verified.damages, damage),
        damage_count=verified.damage_count + 1,
    )
    return Checked(made, result.sums)


def _lacking(chosen: FileSet) -> Iterator[tuple[File, Checked]]:
    """Give the files of a manifest that are not there."""
    if chosen.known is None or _is_pair(chosen):
        return
    there = {file.name for file in chosen.files}
    for name in sorted(chosen.known.keys() - there):
        damage = Damage("manifest", None, "the file is missing")
        yield File(name, name), Checked(Verified(name, None, (damage,), 1))
