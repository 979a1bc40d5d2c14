"""Is one file as it was written?

first bytes and end -> open -> each object: header, attributes, data -> values against a manifest
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread
from typing import Final

import h5py

from chunkwise import system
from chunkwise.errors import (
    CannotJudgeError,
    ChunkwiseError,
    DamagedFileError,
    FileChangedError,
    reason_of,
)
from chunkwise.files.causes import verdict_of
from chunkwise.files.classic import classic_end
from chunkwise.files.leading import External
from chunkwise.files.mended import Mended, early_end, open_mended, refused, wide_lengths
from chunkwise.files.netcdf3 import is_netcdf3
from chunkwise.files.objects import Entry, walk
from chunkwise.files.unclosed import is_unclosed, open_readable
from chunkwise.manifest import manifest
from chunkwise.manifest.manifest import FileManifest
from chunkwise.manifest.summing import sum_values
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.proof.conversion import as_proved_netcdf4
from chunkwise.verdicts import FileVerdict
from chunkwise.verifying.data import Beat, check_data
from chunkwise.verifying.ending import Ending, cut, read_ending
from chunkwise.verifying.metadata import check_object, check_space
from chunkwise.verifying.records import Damage, Findings, Note, Verified
from chunkwise.words import counted

# Seconds after which a conversion is known to go on, far fewer than `apart.STILL_S`.
_BEAT_S: Final = 20.0


@dataclass(frozen=True)
class ManifestOptions:
    """How the values of each file are summed for a manifest."""

    sums: bool = False  # Whether the values are summed, for a manifest
    # Where netCDF-3 files are copied, for their values; None if they are refused.
    folder: Path | None = None
    external: External = "folder"  # How far a file may lead for values that are summed


@dataclass(frozen=True)
class Checked:
    """The result for one file."""

    verified: Verified  # What was found
    # Its part of a manifest; None without one, and if its values cannot be read.
    sums: FileManifest | None = None


def verify_file(
    path: str | os.PathLike[str],
    options: ManifestOptions = ManifestOptions(),
    expected: FileManifest | None = None,  # What a manifest has of it; None for none
    beat: Beat = lambda _: None,  # Called with the bytes read since its last call
) -> Checked:
    """Verify a file in this process, which libhdf5 may end where the file is damaged."""
    begun = time.monotonic()
    said = os.fspath(path)
    converts = options.folder is not None and is_netcdf3(path)
    ending = _classic(Path(path)) if converts else read_ending(path)
    found = Findings()
    sums: FileManifest | None = None
    before = _stamp(path)
    if ending.damage is not None:
        found.add(ending.damage)
    elif converts:
        sums = _look_at_netcdf3(Path(path), options, expected, found, beat)
    else:
        found, sums, _ = _look_at_all(path, ending, options, expected, beat)
    if _stamp(path) != before:
        raise FileChangedError(
            f"{printable(said)}: was written to meanwhile; verify it when nobody writes to it"
        )
    return Checked(found.of_file(said, ending.nbytes, time.monotonic() - begun), sums)


def ends_early(path: str | os.PathLike[str]) -> Mended | None:
    """Find the bytes with which HDF5 reads a sound file that states its end before its data's."""
    if early_end(path) is None:
        return None
    return _ends_early(os.fspath(path), _stamp(path))


@lru_cache(maxsize=16)
def _ends_early(path: str, _stamp: tuple[int, ...]) -> Mended | None:
    return _look_at_all(path, read_ending(path), ManifestOptions(), None, lambda _: None)[2]


def _look_at_all(
    path: str | os.PathLike[str],
    ending: Ending,
    options: ManifestOptions,
    expected: FileManifest | None,
    beat: Beat,
) -> tuple[Findings, FileManifest | None, Mended | None]:
    """Look into a file, and if only its stated end is wrong, beyond that; give what HDF5 needs."""
    found = Findings()
    sums = _look_inside(path, ending, options, expected, found, beat)
    patch = _refused(path, found)
    if patch is not None:
        beyond = Findings()
        all_sums = _look_inside(path, ending, options, expected, beyond, beat, patch)
        better = not beyond.damage_count and _unreadable(beyond) < _unreadable(found)
        if better or not patch.is_end:
            return beyond, all_sums, patch
    return found, sums, None


def _refused(path: str | os.PathLike[str], found: Findings) -> Mended | None:
    """Give what HDF5 needs to read more, if it has refused something."""
    if any(_unreadable(found)):
        return refused(path)
    # References to what is refused lead nowhere.
    loose = any(note.verdict is FileVerdict.LOOSE for note in found.notes)
    return wide_lengths(path) if loose else None


def _unreadable(found: Findings) -> tuple[int, int]:
    """Count what is damaged, and what cannot be judged."""
    unjudged = sum(note.verdict is FileVerdict.UNJUDGED for note in found.notes)
    return found.damage_count, unjudged


def _stamp(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _classic(path: Path) -> Ending:
    """Look where a netCDF-3 file ends."""
    nbytes, stated = path.stat().st_size, classic_end(path)
    if stated is None or nbytes >= stated:
        return Ending(nbytes, stated)
    return Ending(nbytes, stated, cut(nbytes, stated))


def _look_at_netcdf3(
    path: Path,
    options: ManifestOptions,
    expected: FileManifest | None,
    found: Findings,
    beat: Beat,
) -> FileManifest | None:
    """Look at the values of a netCDF-3 file, in a netCDF-4 copy; give its part of a manifest."""
    with ExitStack() as opened:
        with _at_work(beat):
            copy = opened.enter_context(as_proved_netcdf4(path, options.folder))
        known = None if expected is None else manifest.without_maker(expected)
        sums = _look_inside(copy, read_ending(copy), options, known, found, beat)
    return None if sums is None else manifest.without_maker(sums)


@contextmanager
def _at_work(beat: Beat) -> Iterator[None]:
    """Call `beat` while the block runs, which reports nothing itself."""
    ended = Event()

    def keep_beating() -> None:
        while not ended.wait(_BEAT_S):
            beat(0)

    beater = Thread(target=keep_beating, daemon=True)
    beater.start()
    try:
        yield
    finally:
        ended.set()
        beater.join()


def _look_inside(
    path: str | os.PathLike[str],
    ending: Ending,
    options: ManifestOptions,
    expected: FileManifest | None,
    found: Findings,
    beat: Beat,
    patch: Mended | None = None,
) -> FileManifest | None:
    """Look at all that is in a file; give its part of a manifest."""
    # With a patch, HDF5 is shown its bytes instead of the file's own.
    if patch is not None:
        said = f"{patch.said}: HDF5 refuses what lies beyond" if patch.is_end else patch.said
        verdict = FileVerdict.LOOSE if patch.is_end else FileVerdict.SOUND
        found.notes.append(
            Note(None, f"{said}; chunkwise repack makes a copy that opens", verdict)
        )
    elif is_unclosed(path):
        found.notes.append(_unclosed(path))
    elif ending.stated is not None and ending.nbytes > ending.stated:
        more = counted(ending.nbytes - ending.stated, "byte")
        found.notes.append(Note(None, f"{more} after the end of its data"))
    try:
        file = open_readable(path) if patch is None else open_mended(path, patch)
    except (DamagedFileError, CannotJudgeError) as error:
        if not isinstance(error, DamagedFileError) and early_end(path) is None:
            raise
        found.add(Damage("cannot-open", None, reason_of(error, os.fspath(path))))
        return None
    with file:
        for entry in walk(file):
            found.objects += entry.address is not None
            _look_at(file, entry, found, beat)
        busy = any(note.verdict is FileVerdict.BUSY for note in found.notes)
        if (options.sums or expected is not None) and not found.damage_count and not busy:
            return _compare(file, expected, found, beat, options.external)
    return None


def _look_at(file: h5py.File, entry: Entry, found: Findings, beat: Beat) -> None:
    beat(0)
    metadata, before = check_object(file, entry), found.damage_count
    found.take(metadata)
    if entry.kind == "dataset" and all(one.kind != "object" for one in metadata.damages):
        _look_at_data(file, entry, found, beat)
    if found.damage_count == before:
        lacking = check_space(entry)
        if lacking is not None:
            found.add(lacking)


def _look_at_data(file: h5py.File, entry: Entry, found: Findings, beat: Beat) -> None:
    found.datasets += 1
    label = f"{printable(str(file.filename))}: '{printable(entry.path)}'"
    try:
        found.take(check_data(entry.identifier, entry.path, label, beat))
    except MemoryError as error:
        said = f"not checked: no memory for it ({error})"
        found.notes.append(Note(entry.path, said, FileVerdict.UNJUDGED))
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        reason, verdict = reason_of(error, label), verdict_of(error)
        if verdict is FileVerdict.DAMAGED:
            found.add(Damage("values", entry.path, reason))
        else:
            found.notes.append(Note(entry.path, f"not checked: {reason}", verdict))


def _compare(
    file: h5py.File,
    expected: FileManifest | None,
    found: Findings,
    beat: Beat,
    external: External,
) -> FileManifest | None:
    """Sum the values, and hold them against a manifest."""
    unread: list[tuple[str, str]] = []
    try:
        sums = sum_values(file, beat, unread, external)
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        why = f"values cannot be summed: {reason_of(error)}"
        found.notes.append(Note(None, why, FileVerdict.UNJUDGED))
        return None
    found.notes += [Note(path, reason, FileVerdict.UNJUDGED) for path, reason in unread]
    if expected is not None:
        # What cannot be read here is no difference: a note says so.
        said = {note.path for note in found.notes if note.verdict is FileVerdict.UNJUDGED}
        for path, reason in manifest.differences(expected, sums):
            if not (path in said and reason == manifest.VALUES_DIFFER):
                found.add(Damage("manifest", path, reason))
    return sums


def failed(path: str, error: BaseException) -> Checked:
    """Report a file that could not be verified, or that ended the verifying process."""
    reason = reason_of(error, path)
    try:
        nbytes = Path(path).stat().st_size
    except (OSError, ValueError):
        nbytes = None
    verdict = verdict_of(error)
    if verdict is FileVerdict.DAMAGED:
        return Checked(Verified(path, nbytes, (Damage("cannot-open", None, reason),), 1))
    return Checked(Verified(path, nbytes, notes=(Note(None, reason, verdict),)))


def _unclosed(path: str | os.PathLike[str]) -> Note:
    """Say of a file without its writer's last word whether that is still at work."""
    written = system.is_being_written(path)
    if written:
        return Note(
            None, "a program has it open for writing; verify it again later", FileVerdict.BUSY
        )
    said = "its writer did not close it: HDF5 opens it only for readers of SWMR, if at all"
    if written is None:
        said += "; it may still be at work, and what it has not flushed is not here yet"
    else:
        said += "; what it had not flushed was never in the file"
    return Note(None, f"{said}; chunkwise repack makes a copy that opens", FileVerdict.LOOSE)
