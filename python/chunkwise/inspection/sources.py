"""Where does the data of a virtual or external dataset lie, and is it there?

libhdf5 gives fill values or zeros in silence.  This module looks where H5F_prefix_open_file
(virtual sources) and H5D__efl_read (raw files) look, in their order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from h5py import h5d, h5f, h5i, h5o, h5p

from chunkwise import system
from chunkwise.files.leading import Bounds, is_series, name_of_source
from chunkwise.files.leading import places as places
from chunkwise.inspection.facts import Source, TooShort
from chunkwise.names import HDF5_ERRORS, decode_name, encode_name, hdf5_reason
from chunkwise.verdicts import FileVerdict
from chunkwise.words import counted

# Opening takes 0.2 ms on a local disk: these take as long as all other facts of a file.
LOOKS: Final = 2_000
NOT_LOOKED_FOR: Final = f"not looked for, after {LOOKS:,} others"

_ORIGIN: Final = "${ORIGIN}"


def sources(dataset: h5d.DatasetID, dcpl: h5p.PropDCID) -> tuple[Source, ...]:
    """List the sources of a virtual or external dataset, each once."""
    own = Path(decode_name(h5f.get_name(h5i.get_file_id(dataset)))).absolute()
    if dcpl.get_layout() == h5d.VIRTUAL:
        return tuple(_virtual(dataset, dcpl, own))
    return tuple(_external(dataset, dcpl, own))


def verdict_of_source(source: Source) -> FileVerdict:
    """Say what a missing source is to its dataset: HDF5 reads fill values, or nothing at all."""
    if source.missing is None:
        return FileVerdict.SOUND
    virtual = source.dataset is not None
    gives_values = virtual or isinstance(source.missing, TooShort)
    return FileVerdict.LOOSE if gives_values else FileVerdict.UNJUDGED


# --- virtual ---------------------------------------------------------------------------


def _virtual(dataset: h5d.DatasetID, dcpl: h5p.PropDCID, own: Path) -> Iterator[Source]:
    wanted = list(
        dict.fromkeys(
            (_name(dcpl.get_virtual_filename, i), _name(dcpl.get_virtual_dsetname, i))
            for i in range(dcpl.get_virtual_count())
        )
    )
    by_file: dict[str, list[str]] = {}
    for file, name in wanted[:LOOKS]:
        by_file.setdefault(file, []).append(name)
    prefix = prefix_of("HDF5_VDS_PREFIX", dataset.get_access_plist().get_virtual_prefix(), own)
    missing: dict[tuple[str, str], str | None] = {}
    for file, names in by_file.items():
        reasons = _missing(dataset, file, names, own, prefix)
        missing.update(((file, name), reason) for name, reason in zip(names, reasons, strict=True))
    for file, name in wanted:
        yield Source(file, name, missing.get((file, name), NOT_LOOKED_FOR))


def _missing(
    dataset: h5d.DatasetID, file: str, names: list[str], own: Path, prefix: str
) -> list[str | None]:
    """Say for each dataset of a source file why it cannot be found."""
    this = h5i.get_file_id(dataset)
    if file == ".":
        return _missing_datasets(this, names)
    if is_series(file):
        return [None] * len(names)
    reason = "no such file"
    for path in places(name_of_source(file) or file, own, "HDF5_VDS_PREFIX", prefix):
        if not is_file(path):
            continue
        if system.same_file(path, own):
            return _missing_datasets(this, names)
        try:
            opened = _open(path, this)
        except HDF5_ERRORS as error:
            reason = _refused(error)
            continue
        try:
            return _missing_datasets(opened, names)
        finally:
            opened.close()
    return [reason] * len(names)


def _missing_datasets(file: h5f.FileID, names: list[str]) -> list[str | None]:
    return [None if _has_dataset(file, name) else f"no dataset {name} in it" for name in names]


def _has_dataset(file: h5f.FileID, name: str) -> bool:
    if is_series(name):
        return True
    try:
        path, own = encode_name(name_of_source(name) or name), decode_name(h5f.get_name(file))
        # Not by an external link to a pipe.
        Bounds(own, own).check_path(file, path)
        return isinstance(h5o.open(file, path), h5d.DatasetID)
    except HDF5_ERRORS:
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file of that name, as far as this process may look."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        # No permission, or a name that is too long.
        return False


def _open(path: Path, like: h5f.FileID) -> h5f.FileID:
    # libhdf5 opens no file with two degrees of closing, and h5py's depends on the release.
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fclose_degree(like.get_access_plist().get_fclose_degree())
    return h5f.open(os.fsencode(path), h5f.ACC_RDONLY, fapl)


def _refused(error: BaseException) -> str:
    reason = hdf5_reason(error)
    return "not HDF5" if "signature not found" in reason else f"cannot be opened: {reason}"


# --- external --------------------------------------------------------------------------


def _external(dataset: h5d.DatasetID, dcpl: h5p.PropDCID, own: Path) -> Iterator[Source]:
    left = math.prod(dataset.get_space().get_simple_extent_dims()) * dataset.get_type().get_size()
    ends: dict[str, int] = {}
    for i in range(dcpl.get_external_count()):
        name, offset, nbytes = dcpl.get_external(i)
        # The last one may be unlimited.
        used = min(nbytes, left)
        left -= used
        file = decode_name(name)
        ends[file] = max(ends.get(file, 0), offset + used if used else 0)
    prefix = prefix_of("HDF5_EXTFILE_PREFIX", dataset.get_access_plist().get_efile_prefix(), own)
    for count, (file, end) in enumerate(ends.items()):
        # Unlike a virtual source, relative to the working directory and nowhere else.
        missing = _missing_bytes(prefix / Path(file), end) if count < LOOKS else NOT_LOOKED_FOR
        yield Source(file, None, missing)


def _missing_bytes(path: Path, end: int) -> str | None:
    try:
        nbytes = path.stat().st_size
    except FileNotFoundError:
        return "no such file"
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if nbytes >= end:
        return None
    return TooShort(f"too short: {nbytes:,} of {counted(end, 'byte')}")


# --- both ------------------------------------------------------------------------------


def prefix_of(variable: str, of_dataset: bytes, own: Path) -> str:
    """Give the folder of H5D__build_file_prefix; empty for where the program runs."""
    prefix = os.environ.get(variable) or decode_name(of_dataset)
    if prefix.startswith(_ORIGIN):
        return f"{own.parent}/{prefix.removeprefix(_ORIGIN)}"
    return "" if prefix == "." else prefix


def _name(get: Callable[[int], str | bytes], i: int) -> str:
    try:
        name = get(i)
    except UnicodeDecodeError as error:
        # h5py gives only UTF-8, but its refusal has the name.
        name = error.object
    return decode_name(name) if isinstance(name, bytes) else name
