"""What are the values of a file, in so few bytes that they can be kept and compared?

A manifest is JSON.  It holds, for each object of each file, the checksum of its values, with their
type and shape, and the checksums of its attributes; nothing of chunks, filters, addresses or the
order of bytes.  ``docs/verify.md`` says how others compute the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import h5py
import numpy as np
from h5py import h5a, h5d, h5s, h5t

from chunkwise._native import thread_count
from chunkwise.dataset import wrap
from chunkwise.errors import AlreadyExistsError, CannotWriteError, UsageError
from chunkwise.files.boxes import read_box
from chunkwise.files.objects import Entry, decode_name, walk
from chunkwise.files.references import Paths
from chunkwise.inspecting.attributes import attribute_names
from chunkwise.names import json_text, printable
from chunkwise.verifying.canonical import canonical, element_nbytes, is_exact
from chunkwise.verifying.data import Beat
from chunkwise.verifying.metadata import Owner
from chunkwise.verifying.records import Damage
from chunkwise.verifying.tiles import ALGORITHM, Shape, Tiles, boxes
from chunkwise.verifying.types import type_text

# What is known of one object, and of all objects of a file by path.
Known: TypeAlias = dict[str, Any]
FileManifest: TypeAlias = dict[str, Known]

FORMAT: Final = "chunkwise-manifest"
VERSION: Final = 1
# Values that are read at a time.
_BOX_NBYTES: Final = 256 << 20


def make(file: h5py.File, beat: Beat = lambda _: None) -> FileManifest:
    """Sum all values of a file.

    Parameters
    ----------
    file
        Open for reading.
    beat
        Told of bytes that were summed since it was told last.

    Raises
    ------
    OSError, RuntimeError, ValueError, ...
        What h5py and chunkwise raise on values that cannot be read.
    """
    entries = list(walk(file))
    paths = Paths.of(entries)
    with ThreadPoolExecutor(thread_count()) as pool:
        return {entry.path: _object(entry, paths, pool, beat) for entry in entries}


def _object(entry: Entry, paths: Paths, pool: ThreadPoolExecutor, beat: Beat) -> Known:
    known: Known = {"kind": entry.kind}
    if entry.target is not None:
        known["target"] = entry.target
    if entry.reason is not None:
        raise OSError(f"{entry.path}: {entry.reason}")
    if entry.identifier is None:
        return known
    if isinstance(entry.identifier, h5t.TypeID):
        known["type"] = type_text(entry.identifier)
    elif isinstance(entry.identifier, h5d.DatasetID):
        known |= _dataset(entry.identifier, paths, pool, beat)
    known["attributes"] = {
        decode_name(name): _attribute(entry.identifier, name, paths)
        for name in sorted(attribute_names(entry.identifier))
    }
    return known


def _dataset(
    identifier: h5d.DatasetID, paths: Paths, pool: ThreadPoolExecutor, beat: Beat
) -> Known:
    datatype = identifier.get_type()
    known: Known = {"type": type_text(datatype), "shape": None}
    if identifier.get_space().get_simple_extent_type() == h5s.NULL:
        return {**known, "sha256": hashlib.sha256(b"").hexdigest()}
    shape: Shape = tuple(identifier.shape)
    dtype = _numpy_type(datatype)
    dcpl = identifier.get_create_plist()
    chunk = dcpl.get_chunk() if dcpl.get_layout() == h5d.CHUNKED else (1,) * len(shape)
    if dtype is None:
        # As stored, since nobody else says what it means.
        raw = h5t.TypeID.copy(datatype)
        nbytes = raw.get_size()
        tiles = Tiles(shape, nbytes, lambda part: part.tobytes(), pool)
        for box in boxes(shape, tiles.tile, chunk, nbytes, _BOX_NBYTES):
            start = tuple(part.start for part in box)
            count = tuple(part.stop - part.start for part in box)
            values = read_box(identifier, raw, start, count)
            tiles.add(box, values.view(f"V{nbytes}").reshape(count))
            beat(values.nbytes)
    else:
        nbytes = element_nbytes(dtype)
        tiles = Tiles(shape, nbytes, lambda part: canonical(part, paths), pool)
        dataset = wrap(h5py.Dataset(identifier))
        for box in boxes(shape, tiles.tile, chunk, nbytes, _BOX_NBYTES):
            values = np.asarray(dataset[box], dtype)
            tiles.add(box, values)
            beat(values.nbytes)
    return {**known, "shape": list(shape), "sha256": tiles.hexdigest()}


def _attribute(identifier: Any, name: bytes, paths: Paths) -> Known:
    attribute = h5a.open(identifier, name)
    datatype = attribute.get_type()
    space = attribute.get_space()
    known: Known = {"type": type_text(datatype), "shape": None}
    if space.get_simple_extent_type() == h5s.NULL:
        return {**known, "sha256": hashlib.sha256(b"").hexdigest()}
    known["shape"] = list(space.get_simple_extent_dims())
    dtype = _numpy_type(datatype)
    if dtype is None:
        raw = h5t.TypeID.copy(datatype)
        values = np.zeros(space.get_simple_extent_npoints() * raw.get_size(), np.uint8)
        if values.size:
            attribute.read(values, raw)
        content: bytes | memoryview = values.tobytes()
    else:
        content = canonical(_attribute_values(identifier, name, attribute, dtype), paths)
    return {**known, "sha256": hashlib.sha256(content).hexdigest()}


def _attribute_values(identifier: Any, name: bytes, attribute: Any, dtype: Any) -> Any:
    """Read the values of an attribute as an array of its type."""
    shape = attribute.get_space().get_simple_extent_dims()
    values: np.ndarray[Any, np.dtype[Any]] = np.zeros(shape, dtype)
    if not dtype.hasobject:
        if values.size:
            attribute.read(values, mtype=h5t.py_create(dtype))
        return values
    given = h5py.AttributeManager(Owner(identifier))[name]
    if shape == ():
        values[()] = given
    else:
        values = np.asarray(given, dtype) if not isinstance(given, np.ndarray) else given
    return values


def _numpy_type(datatype: Any) -> np.dtype[Any] | None:
    """Give NumPy's type; None where it has none that is the same, bit for bit."""
    try:
        dtype = datatype.dtype
    except TypeError:
        return None
    return dtype if dtype.hasobject or is_exact(dtype) else None


def differences(expected: Mapping[str, Known], found: Mapping[str, Known]) -> Iterator[Damage]:
    """Say in what a file differs from what a manifest has of it."""
    for path in sorted(expected.keys() | found.keys()):
        if path not in found:
            yield Damage("manifest", path, "is missing")
        elif path not in expected:
            yield Damage("manifest", path, "is not in the manifest")
        else:
            yield from _object_differences(path, expected[path], found[path])


def _object_differences(path: str, before: Known, now: Known) -> Iterator[Damage]:
    for key, said in _SAID.items():
        if before.get(key) != now.get(key):
            if key == "sha256":
                yield Damage("manifest", path, f"{said} differ")
            else:
                yield Damage("manifest", path, f"{said} {now.get(key)}, was {before.get(key)}")
            break
    attributes = before.get("attributes", {}), now.get("attributes", {})
    for name in sorted(attributes[0].keys() | attributes[1].keys()):
        one, other = attributes[0].get(name), attributes[1].get(name)
        if one is None or other is None:
            reason = "is not in the manifest" if one is None else "is missing"
            yield Damage("manifest", f"{path}@{name}", reason)
        elif one != other:
            yield from _object_differences(f"{path}@{name}", one, other)


# What may differ, the first to be told.
_SAID: Final = {
    "kind": "is a",
    "target": "leads to",
    "type": "has the type",
    "shape": "has the shape",
    "sha256": "the values",
}


def read(path: str | os.PathLike[str]) -> dict[str, FileManifest]:
    """Read a manifest: what is known of each file, by name.

    Raises
    ------
    UsageError
        It cannot be read, or is no manifest of this version.
    """
    where = printable(os.fspath(path))
    try:
        record = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{where}: is no manifest: it is not JSON") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UsageError(f"{where}: is no manifest of chunkwise")
    if record.get("version") != VERSION or record.get("algorithm") != ALGORITHM:
        raise UsageError(
            f"{where}: a manifest of version {record.get('version')}, algorithm "
            f"{record.get('algorithm')}; read it with the version of chunkwise that wrote it"
        )
    files = record.get("files")
    if not isinstance(files, dict) or not all(map(_is_file, files.values())):
        raise UsageError(f"{where}: is no manifest: it lists no files")
    return files


def _is_file(known: object) -> bool:
    return isinstance(known, dict) and all(isinstance(one, dict) for one in known.values())


def write(path: str | os.PathLike[str], files: Mapping[str, FileManifest], *, force: bool) -> None:
    """Write a manifest; it appears complete or not at all.

    Parameters
    ----------
    path
        Where.
    files
        What is known of each file, by name.
    force
        Whether to replace what is there.

    Raises
    ------
    AlreadyExistsError
        Something is there.
    CannotWriteError
        The system refuses.
    """
    target = Path(path)
    where = printable(str(target))
    if not force and os.path.lexists(target):
        raise AlreadyExistsError(f"{where}: exists; remove it, or give another name or --force")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    record = {"format": FORMAT, "version": VERSION, "algorithm": ALGORITHM}
    try:
        with partial.open("x", encoding="ascii") as stream:
            # By pieces: of 100,000 files it has gigabytes.
            stream.write(json_text(record)[:-1] + ',\n"files": {')
            for number, (name, known) in enumerate(sorted(files.items())):
                stream.write(",\n" if number else "\n")
                stream.write(f"{json_text(name)}: {_pretty(known)}")
            stream.write("\n}}\n")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        raise CannotWriteError(f"{where}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _pretty(known: FileManifest) -> str:
    """Write what is known of one file, an object a line."""
    lines = (f"  {json_text(path)}: {json_text(one)}" for path, one in sorted(known.items()))
    return "{\n" + ",\n".join(lines) + "\n}"
