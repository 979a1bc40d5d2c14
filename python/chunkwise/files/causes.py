"""What does it mean that HDF5 refuses something: damage, or only that it cannot be judged here?

A checksum, a signature, an address beyond the end, or a stream that does not decode proves damage.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import h5py
from h5py import h5f, h5g, h5i, h5l, h5p

from chunkwise import _native
from chunkwise.errors import (
    BusyError,
    CannotJudgeError,
    ChunkwiseError,
    CorruptDataError,
    FileFormatError,
    OtherFlagsError,
    like,
)
from chunkwise.files.filters import missing_filter, named
from chunkwise.files.superblock import exceeds_stated_end
from chunkwise.names import HDF5_ERRORS, WIDE_LENGTHS, decode_name, hdf5_reason, printable
from chunkwise.verdicts import FileVerdict

# What no sound file gives (H5E descriptions of 1.10 to 2.0).
_PROOF: Final = re.compile(
    r"checksum|signature|bad object header version|truncated|overflow|corrupt"
    r"|inflate\(\) failed|beyond|past (the )?end|ran off|out of (range|bounds)|eof|negative"
)
# Of that, what bytes that HDF5 has read give, and not only those beyond the file's end.
_WRONG_BYTES: Final = re.compile(r"checksum|signature|inflate\(\) failed")
_LOCKED: Final = re.compile(r"unable to lock file|resource temporarily unavailable")
# Of a file that this process has open in another way (H5Fint.c).
_FLAGS: Final = re.compile(
    r"for file that is already open|flag values don't match|file close degree doesn't match"
    r"|already open for read-only|not already open for swmr|file access flags"
)
_FILTER: Final = re.compile(
    r"can't open directory|plugin|required filter|filter .*not (registered|available)"
    r"|(can't|unable to) load|codec version|version.* mismatch"
)
_SYSTEM: Final = re.compile(r"errno = (\d+)")
_REFUSAL: Final = re.compile(
    r"version|unknown|unsupported|not supported|not implemented|unrecognized"
    r"|does not match value calculated|no appropriate function|feature|disabled|not enabled"
)
# What some releases refuse and others read: words, whether a checksum must cover them, and help.
_STRICTER: Final = (
    (
        re.compile(WIDE_LENGTHS),
        True,
        "the format allows chunk lengths in more bytes than they need; HDF5 1.10 to 1.14 and 2.2 "
        "open it; `chunkwise repack` makes a copy that opens",
    ),
    (
        re.compile("global heap size is too small"),
        False,
        "HDF5 1.10 reads heaps smaller than 4,096 bytes: read it with h5dump of that version",
    ),
)
_ELSEWHERE: Final = re.compile("external raw data file")
# A plugin may say no more, be it for damage or for another version's bytes.
_UNDECODED: Final = re.compile("filter returned failure|filter callback failed")
_HEADER: Final = b"OHDR"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why HDF5 refuses something."""

    verdict: FileVerdict
    reason: str  # What is certain
    supposed: str  # What may be behind it, and what helps

    def __str__(self) -> str:
        return f"{self.reason}; {self.supposed}"

    def of(self, damage: Sequence[str]) -> Cause:
        """Add which structures are damaged."""
        return replace(self, reason="; ".join((self.reason, *damage)))

    @property
    def kind(self) -> type[ChunkwiseError]:
        """The class of exceptions for it."""
        return _ERRORS[self.verdict]

    def raised(self, where: str, error: BaseException) -> ChunkwiseError:
        """Make the exception for it, of the class of `error`, too."""
        return like(_ERRORS[self.verdict], error)(f"{where}: {self}")


_ERRORS: Final[dict[FileVerdict, type[ChunkwiseError]]] = {
    FileVerdict.DAMAGED: CorruptDataError,
    FileVerdict.UNJUDGED: CannotJudgeError,
    FileVerdict.BUSY: BusyError,
    FileVerdict.FAILED: FileFormatError,
}


class AlreadyOpen(Cause):
    """Another handle of this process, which has the file open in another way."""

    def raised(self, where: str, error: BaseException) -> ChunkwiseError:
        """Make an error of usage for it."""
        return like(OtherFlagsError, error)(f"{where}: {self}")


CRASHES: Final = Cause(
    FileVerdict.UNJUDGED,
    "libhdf5 crashes on it",
    "that proves no damage: another version of HDF5 may read it",
)


def cause_of(
    error: BaseException | str,
    *,
    checked: bool,
    verb: str = "open",
    path: str | os.PathLike[str] | None = None,
) -> Cause:
    """Say what an error of HDF5's proves; with `path`, what it may mean that the file goes on."""
    reason = error if isinstance(error, str) else hdf5_reason(error)
    number = None if isinstance(error, str) else getattr(error, "errno", None)
    version = h5py.version.hdf5_version
    low = reason.lower()
    found = _SYSTEM.search(low)
    number = number or (int(found[1]) if found else None)
    if number == errno.EAGAIN or _LOCKED.search(low):
        return Cause(
            FileVerdict.BUSY,
            f"{reason}; another program has it open for writing",
            "close it there, or if there is none, set HDF5_USE_FILE_LOCKING=FALSE",
        )
    if _FLAGS.search(low):
        return AlreadyOpen(
            FileVerdict.FAILED,
            f"this process has the file open in another way ({reason})",
            "close it there, or open it with the same options",
        )
    if _ELSEWHERE.search(low):
        return Cause(
            FileVerdict.UNJUDGED,
            f"an external file with its data cannot be read ({reason})",
            "`chunkwise inspect` names it; HDF5_EXTFILE_PREFIX says in which folder it is",
        )
    if _FILTER.search(low):
        return Cause(
            FileVerdict.UNJUDGED,
            f"HDF5 {version} lacks a filter for it ({reason})",
            "`chunkwise inspect` says which, and who brings it",
        )
    for words, needs_checksum, helps in _STRICTER:
        if words.search(low) and (checked or not needs_checksum):
            return Cause(FileVerdict.UNJUDGED, f"HDF5 {version} refuses it ({reason})", helps)
    refused = f"HDF5 {version} cannot {verb} it: {reason}"
    if path is not None and not _WRONG_BYTES.search(low) and exceeds_stated_end(path):
        return Cause(
            FileVerdict.UNJUDGED,
            f"{refused}; the file goes on beyond the end that its superblock states, and HDF5 "
            "refuses what lies there",
            "`chunkwise verify` says whether the file is sound; then `chunkwise repack` makes a "
            "copy that opens",
        )
    if _PROOF.search(low):
        return Cause(
            FileVerdict.DAMAGED, refused, "the file is damaged: fetch it again or restore it"
        )
    if number:
        return Cause(FileVerdict.FAILED, f"{refused} ({os.strerror(number)})", "check the disk")
    if checked:
        return Cause(
            FileVerdict.UNJUDGED,
            f"{refused}, though its checksum is right",
            "another version of HDF5 may read it",
        )
    if _REFUSAL.search(low):
        return Cause(
            FileVerdict.UNJUDGED,
            refused,
            "it was written by a newer HDF5, or is damaged: try a newer one",
        )
    return Cause(FileVerdict.DAMAGED, refused, "the file is damaged: fetch it again or restore it")


def unreadable(where: str, reason: str, dataset_id: int | None = None) -> ChunkwiseError:
    """Make the exception for a place that libhdf5 cannot read; `dataset_id` stays open."""
    if dataset_id is None:
        cause = cause_of(reason, checked=False, verb="read")
    else:
        dataset = h5i.wrap_identifier(dataset_id)
        h5i.inc_ref(dataset)  # Let go of with `dataset`
        cause = cause_of_values(reason, dataset.get_create_plist(), file_of(dataset))
    return cause.kind(f"{where}: {cause}")


def undescribed(where: str, reason: str, dataset_id: int) -> ChunkwiseError:
    """Make the exception for a dataset if libhdf5 cannot say how it is stored."""
    dataset = h5i.wrap_identifier(dataset_id)
    h5i.inc_ref(dataset)  # Let go of with `dataset`
    cause = cause_of(reason, checked=False, verb="read", path=file_of(dataset))
    return cause.kind(f"{where}: {cause}")


def unread(dataset: Any, error: BaseException) -> ChunkwiseError:
    """Make the exception for an open dataset that libhdf5 does not read."""
    path = file_of(dataset)
    name = decode_name(h5i.get_name(dataset) or b"/")
    cause = cause_of_values(error, dataset.get_create_plist(), path)
    return cause.raised(f"{printable(path)}: '{printable(name)}'", error)


def file_of(identifier: Any) -> str:
    """Name the file of an open object."""
    return decode_name(h5f.get_name(identifier))


def cause_of_values(
    error: BaseException | str,
    properties: h5p.PropDCID,
    path: str | os.PathLike[str] | None = None,
) -> Cause:
    """Say what an error of libhdf5's proves of the values of a dataset."""
    missing = missing_filter(properties)
    if missing is not None:
        return Cause(FileVerdict.UNJUDGED, "a filter is missing", missing)
    cause = cause_of(error, checked=False, verb="read", path=path)
    codes = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    # For filters that the engine undoes, too, every version of their bytes is known.
    ours = _native.filters()
    plugins = " or ".join(named(code) for code in codes if code not in ours)
    if not plugins or not _UNDECODED.search(cause.reason):
        return cause
    reason = error if isinstance(error, str) else hdf5_reason(error)
    return Cause(
        FileVerdict.UNJUDGED,
        f"{plugins} fails on it ({reason})",
        "another version of the filter wrote it, or its bytes are wrong: try that version",
    )


def verdict_of(error: BaseException) -> FileVerdict:
    """Return what an exception says of the file at work."""
    if isinstance(error, ChunkwiseError):
        return next(one for one in FileVerdict if one.exit == error.exit_code)
    if isinstance(error, MemoryError):
        return FileVerdict.UNJUDGED
    return cause_of(error, checked=False).verdict


def is_checked(file: h5f.FileID) -> bool:
    """Return whether all metadata of a file has checksums (superblock 2 and 3)."""
    try:
        version: int = h5i.get_file_id(file).get_create_plist().get_version()[0]
    except HDF5_ERRORS:
        return False
    return version >= 2


def has_checksum(identifier: Any) -> bool:
    """Return whether the header of an open object has a checksum (version 2)."""
    try:
        address: int = h5g.get_objinfo(identifier).objno[0]
        return is_checked(identifier) or _is_header(h5i.get_file_id(identifier), address)
    except HDF5_ERRORS:
        return False


def is_header_checked(group: Any, name: bytes) -> bool:
    """Return whether the header that a hard link leads to has a checksum."""
    try:
        if is_checked(group):
            return True
        link = group.links.get_info(name)
        hard = link.type == h5l.TYPE_HARD and isinstance(link.u, int)
        return hard and _is_header(h5i.get_file_id(group), link.u)
    except HDF5_ERRORS:
        return False


def _is_header(file: h5f.FileID, address: int) -> bool:
    try:
        at = file.get_create_plist().get_userblock() + address
        with Path(decode_name(h5f.get_name(file))).open("rb") as stream:
            stream.seek(at)
            return stream.read(len(_HEADER)) == _HEADER
    except (*HDF5_ERRORS, OverflowError):
        return False
