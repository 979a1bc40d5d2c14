"""Where is the libhdf5 of another version of h5py or netCDF4, such as ``h5py==3.8.0``?

In its wheel, which pip downloads once; its libraries are kept in the user's folder for caches.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.files.answers import cache_folder
from chunkwise.measure.process import finished

_SPEC: Final = re.compile(r"(h5py|netCDF4)==(\d[\w.]*)")
# Which Pythons a version has wheels for differs; the libraries in them do not.
_PYTHONS: Final = ("3.13", "3.12", "3.11", "3.10", "3.9", "3.8", "3.7", "3.6")
_TAGS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux2010", "manylinux1")
_PATIENCE_S: Final = 600.0


def is_wheel(text: str) -> bool:
    """Whether a text names a version of a package that brings a libhdf5."""
    return _SPEC.fullmatch(text) is not None


def library_of(text: str) -> str:
    """Return the path of the libhdf5 in the wheel that a text such as ``h5py==3.8.0`` names."""
    found = _SPEC.fullmatch(text)
    assert found is not None
    name, version = found.groups()
    folder = cache_folder() / "libraries" / f"{name}-{version}"
    if not folder.is_dir():
        if sys.platform != "linux":
            raise UsageError(f"{text}: only wheels for Linux are known here; give a path")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            whole = Path(made) / "whole"
            whole.mkdir()
            _unpack(_download(text, Path(made)), whole)
            # Another process may have been as fast.
            if not folder.is_dir():
                shutil.move(whole, folder)
    libraries = [path for path in folder.glob("libhdf5-*.so*") if "_hl" not in path.name]
    if not libraries:
        raise UsageError(f"{text}: there is no libhdf5 in its wheel: give a path")
    return str(libraries[0])


def _download(text: str, folder: Path) -> Path:
    platforms = [f"--platform={tag}_{platform.machine()}" for tag in _TAGS]
    said = ""
    for version in _PYTHONS:
        ended = finished(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", "--implementation=cp", f"--python-version={version}"),
                *platforms,
                *("--dest", folder, text),
            ],
            timeout_s=_PATIENCE_S,
        )
        wheel = next(folder.glob("*.whl"), None)
        if wheel is not None:
            return wheel
        said = ended.last_words
    raise UsageError(f"{text}: pip finds no wheel of it for this machine: {said}")


def _unpack(wheel: Path, folder: Path) -> None:
    """Take out the libraries, which lie in ``h5py.libs`` or ``h5py/.libs``."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            place = Path(entry.filename)
            if place.parent.name.endswith("libs") and ".so" in place.name:
                (folder / place.name).write_bytes(archive.read(entry))
