"""Can this file be opened, and the dataset found?  If not, why, and what to do?

h5py gives the innermost line of HDF5's error stack; here the file is examined first.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import h5py
from h5py import h5d, h5f, h5g, h5l, h5o, h5p, h5t
from h5py._hl.files import make_fapl, make_fcpl

from chunkwise import _native, system
from chunkwise.errors import (
    BusyError,
    ChunkwiseError,
    CorruptDataError,
    DamagedFileError,
    DatasetNotFoundError,
    FileFormatError,
    NotADatasetError,
    UnclosedFileError,
    UsageError,
    like,
)
from chunkwise.files.formats import is_zarr, what_it_is
from chunkwise.files.objects import walk, walk_datasets
from chunkwise.files.superblock import read_superblock
from chunkwise.names import (
    HDF5_ERRORS,
    decode_name,
    encode_name,
    hdf5_reason,
    is_url,
    printable,
    shown_url,
)
from chunkwise.words import counted

# A mistyped name must not cost minutes on a file of a million objects.
_NAMES_SEARCHED = 20_000
# Version 2 or 3, with 8-byte offsets (HDF5 file format specification).
_SMALLEST_SUPERBLOCK = 48
_IS_FOLDER = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
_TRUNCATED = re.compile(r"truncated file: .*stored_eof = (\d+)")


def refuse_url(name: str) -> None:
    """Raise a `FileFormatError` if a name is a URL, where only local files are taken."""
    if "://" in name and is_url(name):
        raise FileFormatError(f"{shown_url(name)}: not a local file; download it first")


def open_h5(
    path: str | os.PathLike[str],
    mode: Literal["r", "r+", "a"] = "r",
    **options: Any,
) -> h5py.File:
    """Open an HDF5 or netCDF-4 file that exists."""
    refuse_url(os.fspath(path))
    try:
        # Opening what is no file may never return; the rest is looked at when HDF5 refuses it.
        regular = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 (a Path takes longer)
    except OSError:
        regular = False
    offset = 0 if regular else _signature_offset(Path(path))
    try:
        if mode == "r" and not options:
            return as_file(h5f.open(os.fsencode(path), h5f.ACC_RDONLY, _usual_properties()))
        return h5py.File(path, mode, **options)
    except HDF5_ERRORS as error:
        path = Path(path)
        offset = _signature_offset(path)
        if options and not isinstance(error, OSError):
            raise like(UsageError, error)(
                f"{printable(str(path))}: cannot be opened with {options}: {error}"
            ) from None
        raise _refused(path, offset, error) from None


@cache
def _usual_properties() -> h5p.PropFAID:
    """How h5py opens a file for which nothing is said; to make that takes as long as to open."""
    # Older versions of h5py want all of them.
    usual = inspect.signature(h5py.File).parameters
    wanted = inspect.signature(make_fapl).parameters
    named = [name for name in wanted if name in usual and name != "kwds"]
    return make_fapl(**{name: usual[name].default for name in named})


@cache
def _usual_creation(track_order: bool) -> h5p.PropFCID:
    """How h5py makes a file for which nothing is said."""
    return make_fcpl(track_order=track_order)


def make_h5(path: str | os.PathLike[str], *, replaces: bool) -> h5py.File:
    """Make a file as ``h5py.File(path, "w")`` does, or as with ``"x"`` where it replaces none."""
    flags = h5f.ACC_TRUNC if replaces else h5f.ACC_EXCL
    creation = _usual_creation(bool(h5py.get_config().track_order))
    return as_file(h5f.create(os.fsencode(path), flags, fapl=_usual_properties(), fcpl=creation))


def as_file(identifier: h5f.FileID) -> h5py.File:
    """Make h5py's object of an open file; h5py's own way asks for another identifier first."""
    file = h5py.File.__new__(h5py.File)
    h5py.Group.__init__(file, identifier)
    return file


def full_name(file: h5py.File, name: str) -> str:
    """Complete a dataset's bare name, if only one dataset of the file has it."""
    bare = name.strip("/")
    if "/" in name or bare in ("", ".") or encode_name(bare) in file.id:
        return name
    paths = (path for path, _ in islice(walk_datasets(file), _NAMES_SEARCHED))
    found = [path for path in paths if path.rpartition("/")[2] == bare]
    if len(found) > 1:
        said = ", ".join(map(_quoted, found[:5])) + (", ..." if len(found) > 5 else "")
        raise DatasetNotFoundError(
            f"{printable(str(file.filename))}: {len(found)} datasets are called {_quoted(bare)}: "
            f"give the path of one ({said})"
        )
    return found[0] if found else name


def find_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Open a dataset by its path."""
    where = printable(str(file.filename))
    parts = [part for part in encode_name(name).split(b"/") if part not in (b"", b".")]
    path = "/" + decode_name(b"/".join(parts))
    identifier = file.id
    for depth, part in enumerate(parts, 1):
        here = "/" + decode_name(b"/".join(parts[:depth]))
        try:
            there = _has_link(identifier, part)
        except HDF5_ERRORS as error:
            raise _refused_object(where, identifier, part, here, error) from None
        if not there:
            near = hint(path, _dataset_names(file, "/"))
            raise DatasetNotFoundError(f"{where}: no dataset {_quoted(path)}{near}")
        try:
            identifier = h5o.open(identifier, part)
        except HDF5_ERRORS as error:
            raise _unreachable(where, identifier, part, here, error) from None
    if isinstance(identifier, h5d.DatasetID):
        return h5py.Dataset(identifier)
    if isinstance(identifier, h5t.TypeID):
        raise NotADatasetError(f"{where}: {_quoted(path)} is a named datatype, not a dataset")
    group = file if not parts else h5py.Group(identifier)
    raise NotADatasetError(
        f"{where}: {_quoted(path)} is a group, not a dataset; {_contents(group, path)}"
    )


def largest(file: h5py.File) -> h5py.Dataset:
    """Choose the dataset whose reading is worth measuring: the largest of those with chunks."""
    # Without any, the largest of all.
    found: tuple[bool, int, h5py.Dataset] | None = None
    others: Counter[str] = Counter()
    for entry in walk(file, references=False):
        if entry.kind == "unreadable":
            others["unreadable"] += 1
        if entry.kind != "dataset":
            continue
        dataset = h5py.Dataset(entry.identifier)
        why_not = _unfit(dataset)
        if why_not:
            others[why_not] += 1
            continue
        is_chunked = dataset.id.get_create_plist().get_layout() == h5d.CHUNKED
        size = is_chunked, dataset.size * dataset.id.get_type().get_size()
        if found is None or size > found[:2]:
            found = *size, dataset
    if found is not None:
        return found[2]
    held = ", ".join(f"{count} {kind}" for kind, count in others.most_common())
    raise DatasetNotFoundError(
        f"{printable(str(file.filename))}: no dataset with data of fixed size; "
        + (f"its datasets: {held}" if held else "it holds no dataset at all")
    )


def has_variable_length(datatype: h5t.TypeID) -> bool:
    """Return whether elements hold their values elsewhere, on the file's heap."""
    # True for variable-length sequences and strings, and types with such a member.
    if isinstance(datatype, h5t.TypeVlenID):
        return True
    if isinstance(datatype, h5t.TypeStringID):
        return bool(datatype.is_variable_str())
    if isinstance(datatype, h5t.TypeArrayID):
        return has_variable_length(datatype.get_super())
    if isinstance(datatype, h5t.TypeCompoundID):
        members = range(datatype.get_nmembers())
        return any(has_variable_length(datatype.get_member_type(i)) for i in members)
    return False


def is_plain(datatype: h5t.TypeID) -> bool:
    """Return whether stored bytes of a type mean the same in every file."""
    # False for what has variable length, and for references.
    return not has_variable_length(datatype) and not datatype.detect_class(h5t.REFERENCE)


# --- opening ---------------------------------------------------------------------------


def _signature_offset(path: Path) -> int:
    """Find where HDF5's signature stands; raise for what is no HDF5 file at all."""
    where = printable(str(path))
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise like(FileFormatError, _IS_FOLDER)(f"{where}: {_directory(path)}")
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{where}: not a regular file; copy its content to one first")
        with path.open("rb") as stream:
            head = stream.read(64)
            offset = _native.signature_offset(stream.fileno())
    except FileFormatError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise like(FileFormatError, error)(f"{where}: no such file{_near_files(path)}") from None
    except PermissionError as error:
        raise like(FileFormatError, error)(
            f"{where}: permission denied; ask its owner, or see `ls -l` for who may read it"
        ) from None
    except OSError as error:
        raise like(FileFormatError, error)(
            f"{where}: cannot be read: {error.strerror or error}"
        ) from None
    if not head:
        raise DamagedFileError(f"{where}: the file is empty (0 bytes); write or download it again")
    if offset is None:
        raise FileFormatError(f"{where}: not an HDF5 file: {what_it_is(path, head)}")
    return offset


def _directory(path: Path) -> str:
    if is_zarr(path):
        return "a Zarr store, not an HDF5 file; open it with zarr or xarray.open_zarr"
    inside = sorted(_files_in(path, (".h5", ".hdf5", ".he5", ".nc", ".nc4", ".nxs")))
    if not inside:
        return "a directory; name a file"
    return f"a directory; name a file, such as {_listed(inside, 3)}"


def _near_files(path: Path) -> str:
    folder = path.parent
    try:
        near = _near(path.name, list(_files_in(folder)))
    except FileNotFoundError:
        return f" (nor is there a folder {_quoted(str(folder))})"
    except OSError:
        near = []
    return f"; did you mean {_listed([str(folder / name) for name in near], 3)}?" if near else ""


def _files_in(folder: Path, suffixes: tuple[str, ...] = ()) -> Iterable[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, _NAMES_SEARCHED)]
    return [n for n in names if not suffixes or n.lower().endswith(suffixes)]


def _refused(path: Path, offset: int, error: BaseException) -> ChunkwiseError:
    """Say why HDF5 refuses a file that has its signature, and what helps."""
    where = printable(str(path))
    reason = hdf5_reason(error)
    truncated = _TRUNCATED.search(reason)
    nbytes = path.stat().st_size
    if truncated:
        stored = int(truncated[1])
        return like(DamagedFileError, error)(
            f"{where}: truncated HDF5 file: it has {counted(nbytes, 'byte')} and should have "
            f"{stored:,}; copy or download it again, or repeat the run that wrote it"
        )
    if nbytes < offset + _SMALLEST_SUPERBLOCK:
        return like(DamagedFileError, error)(
            f"{where}: truncated HDF5 file: it has {counted(nbytes, 'byte')}, and ends within the "
            "superblock; get it again"
        )
    if "already open for write" in reason:
        written = system.is_being_written(path)
        kind = UnclosedFileError if written is False else BusyError
        return like(kind, error)(f"{where}: {_not_closed(path, written)}")
    from chunkwise.files.causes import cause_of

    superblock = read_superblock(path)
    checked = superblock is not None and superblock.is_sound
    cause = cause_of(error, checked=checked, path=path)
    made = cause.raised(where, error)
    if isinstance(made, CorruptDataError):
        return like(DamagedFileError, error)(str(made))
    return made


def _not_closed(path: Path, written: bool | None) -> str:
    # Here, as most files need no remedy.
    from chunkwise.remedy.records import Copy, FollowWriter
    from chunkwise.remedy.spelling import in_short

    superblock = read_superblock(path)
    swmr = superblock is not None and "swmr" in superblock.flags
    follow = f"read along: {in_short(FollowWriter(str(path)))}" if swmr else "wait for it to end"
    if written:
        return f"a program has it open for writing; {follow}"
    copy = printable(in_short(Copy(str(path), by_us=True)) or "")
    saved = f"what it had flushed is saved by: {copy}"
    if written is None:
        return (
            f"its writer is still at work, or did not close it; if it is at work, {follow}; "
            f"if it was killed, {saved}"
        )
    return (
        "its writer did not close it, and no program of this machine has it open for writing; if "
        f"one of another machine has, {follow}; {saved}"
    )


# --- finding ---------------------------------------------------------------------------


def _has_link(parent: Any, name: bytes) -> bool:
    """Return whether an object is a group with a link of that name."""
    if not isinstance(parent, h5g.GroupID | h5py.h5f.FileID):
        return False
    # Python's bytes may hold a NUL, at which HDF5 would end the name.
    return b"\0" not in name and bool(parent.links.exists(name))


def _refused_object(
    where: str, group: Any, name: bytes, path: str, error: BaseException
) -> ChunkwiseError:
    from chunkwise.files.causes import cause_of, file_of, is_header_checked

    cause = cause_of(error, checked=is_header_checked(group, name), path=file_of(group))
    return cause.raised(f"{where}: {_quoted(path)}", error)


def _unreachable(
    where: str, group: Any, name: bytes, path: str, error: BaseException
) -> ChunkwiseError:
    """Explain a link that is there and cannot be followed."""
    kind = group.links.get_info(name).type
    reason = hdf5_reason(error)
    if kind == h5l.TYPE_SOFT:
        target = decode_name(group.links.get_val(name))
        return DatasetNotFoundError(
            f"{where}: {_quoted(path)} is a soft link to {_quoted(target)}, "
            f"which cannot be reached ({reason})"
        )
    if kind == h5l.TYPE_EXTERNAL:
        file, target = map(decode_name, group.links.get_val(name))
        return DatasetNotFoundError(
            f"{where}: {_quoted(path)} is an external link to {_quoted(target)} in the file "
            f"{_quoted(file)}, which cannot be reached ({reason}); put that file in its place, or "
            "its folder in HDF5_EXT_PREFIX"
        )
    return _refused_object(where, group, name, path, error)


def hint(wanted: str, names: list[str]) -> str:
    """Go on from a name that no dataset has: with those like it, or some that are there."""
    if not names:
        return "; the file holds no dataset"
    near = _near(wanted, names)
    return f"; did you mean {_listed(near, 3)}?" if near else f"; it holds {_listed(names, 3)}"


def _near(wanted: str, names: list[str]) -> list[str]:
    """Give at most three of `names` that `wanted` may stand for, the likeliest first."""
    import difflib

    def last(name: str) -> str:
        return name.rpartition("/")[2]

    folded = wanted.casefold()
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(last(name).casefold(), []).append(name)
    found = [name for name in names if name.casefold() == folded]
    found += [name for name in names if last(name) == last(wanted)]
    found += by_last.get(last(folded), [])
    found += difflib.get_close_matches(wanted, names, 3, 0.7)
    for alike in difflib.get_close_matches(last(folded), by_last, 3, 0.6):
        found += by_last[alike]
    return list(dict.fromkeys(found))[:3]


def _contents(group: h5py.Group, path: str) -> str:
    names = _dataset_names(group, path)
    return f"datasets in it: {_listed(names, 5)}" if names else "it holds no dataset"


def _dataset_names(group: h5py.Group, path: str) -> list[str]:
    """List the names that may be opened, soft and external links included."""
    names: dict[str, None] = {}
    for entry in islice(walk(group, path, references=False), _NAMES_SEARCHED):
        if entry.kind in ("dataset", "soft_link", "external_link") or entry.target in names:
            names[entry.path] = None
    return list(names)


def _unfit(dataset: h5py.Dataset) -> str | None:
    """Say why a dataset cannot stand for the reads of its file, or None if it can."""
    if not dataset.size:
        return "empty"
    if not dataset.shape:
        return "of a single value"
    if has_variable_length(dataset.id.get_type()):
        return "of variable length"
    try:
        _ = dataset.dtype
    except HDF5_ERRORS:
        return "of a type that NumPy lacks"
    return None


def _quoted(name: str) -> str:
    return f"'{printable(name)}'"


def _listed(names: list[str], limit: int) -> str:
    more = len(names) - limit
    return ", ".join(map(_quoted, names[:limit])) + (f" and {more:,} more" if more > 0 else "")
