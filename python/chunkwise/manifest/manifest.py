"""What are the values of a file, in so few bytes that they can be kept and compared?

A manifest is JSON.  ``docs/verify.md`` says how other programs compute the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.durable import require_free, whole
from chunkwise.manifest.tiles import ALGORITHM
from chunkwise.names import json_text, printable

# What is known of one object, and of all objects of a file by path.
Known: TypeAlias = dict[str, Any]
FileManifest: TypeAlias = dict[str, Known]

FORMAT: Final = "chunkwise-manifest"
VERSION: Final = 1
# What netCDF-C writes of itself to the files that it makes.
_MAKER: Final = "_NCProperties"


def differences(
    expected: Mapping[str, Known], found: Mapping[str, Known]
) -> Iterator[tuple[str, str]]:
    """Say how a file differs from its entry in a manifest."""
    for path in sorted(expected.keys() | found.keys()):
        if path not in found:
            yield path, "is missing"
        elif path not in expected:
            yield path, "is not in the manifest"
        else:
            yield from _object_differences(path, expected[path], found[path])


def without_maker(known: FileManifest) -> FileManifest:
    """Leave out what is about netCDF-C alone, and so about no file of netCDF-3."""
    if "/" not in known:
        return known
    kept = {name: of for name, of in known["/"].get("attributes", {}).items() if name != _MAKER}
    return {**known, "/": {**known["/"], "attributes": kept}}


def _object_differences(path: str, before: Known, now: Known) -> Iterator[tuple[str, str]]:
    for key, said in _SAID.items():
        if before.get(key) != now.get(key):
            if key == "sha256" and before.get(key) is None:
                # They could not be read when the manifest was written.
                continue
            if key == "sha256":
                yield path, VALUES_DIFFER
            else:
                yield path, f"{said} {now.get(key)}, was {before.get(key)}"
            break
    attributes = before.get("attributes", {}), now.get("attributes", {})
    for name in sorted(attributes[0].keys() | attributes[1].keys()):
        one, other = attributes[0].get(name), attributes[1].get(name)
        if (one is None or other is None) and name == _MAKER:
            continue
        if one is None or other is None:
            reason = "is not in the manifest" if one is None else "is missing"
            yield f"{path}@{name}", reason
        elif one != other:
            yield from _object_differences(f"{path}@{name}", one, other)


VALUES_DIFFER: Final = "the values differ"
# What may differ, the most important first.
_SAID: Final = {
    "kind": "is a",
    "target": "leads to",
    "type": "has the type",
    "shape": "has the shape",
    "sha256": "the values",
}


def read(path: str | os.PathLike[str]) -> dict[str, FileManifest]:
    """Read a manifest: what is known of each file, by name."""
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
    """Write a manifest; it appears complete or not at all."""
    target = Path(path)
    where = printable(str(target))
    require_free(target, force=force)
    record = {"format": FORMAT, "version": VERSION, "algorithm": ALGORITHM}
    try:
        with whole(target) as stream:
            # By pieces: of 100,000 files it has gigabytes.
            stream.write(json_text(record)[:-1].encode() + b',\n"files": {')
            for number, (name, known) in enumerate(sorted(files.items())):
                stream.write(b",\n" if number else b"\n")
                stream.write(f"{json_text(name)}: {_pretty(known)}".encode("ascii"))
            stream.write(b"\n}}\n")
    except OSError as error:
        raise CannotWriteError(f"{where}: cannot be written: {error.strerror}") from None


def _pretty(known: FileManifest) -> str:
    """Write what is known of one file, an object a line."""
    lines = (f"  {json_text(path)}: {json_text(one)}" for path, one in sorted(known.items()))
    return "{\n" + ",\n".join(lines) + "\n}"
