"""Which libhdf5 does a worker load, and how is it started?

By default h5py's here; or one by its path, or by that of a Python, which then runs the worker.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.measure.process import Ended, finished, python
from chunkwise.names import printable
from chunkwise.trials.readers import is_shared_library
from chunkwise.trials.trial import Trial
from chunkwise.trials.zlibs import preloading

_ASK: Final = """
import json, sys
from chunkwise import _native
given = sys.argv[1] if len(sys.argv) > 1 else None
if given is None:
    from chunkwise import _lib
library = _native.Library.from_path(given) if given else _lib.library()
from chunkwise.trials.environment import zlib_version
version = ".".join(map(str, library.version))
print(json.dumps({"hdf5": version, "zlib": zlib_version()}))
"""
_ASK_ZLIB: Final = """
import json, sys
from chunkwise.trials.readers import below
from chunkwise.trials.trial import Trial
from chunkwise.trials.zlibs import check_in_force
trial = Trial.from_json(json.loads(sys.argv[1]))
print(check_in_force(trial.zlib_path, below(trial).path))
"""
WORKER: Final = python("from chunkwise.trials.worker import main; main()")
# The first import of h5py from a cold disk takes a while.
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True)
class LibHDF5:
    """A libhdf5 that workers can load."""

    path: str | None  # As the user gave it; None for the one of the h5py installed here
    version: str  # Its version, such as ``1.10.8``
    command: tuple[str, ...]  # Starts a worker
    environment: Mapping[str, str]  # What the worker's environment has besides this process's
    zlib: str = "unknown"  # The version of the zlib that it has loaded, or ``unknown``


def find(path: str | None, folder: str) -> LibHDF5:
    """Find a library, and ask it for its version, in a process of its own."""
    environment = plugins()
    if path is None:
        version, zlib = _here(tuple(environment.items()))
        return LibHDF5(None, version, WORKER, environment, zlib)
    if not Path(path).exists():
        raise UsageError(
            f"--libhdf5 {printable(path)}: there is no such file; give the path of a "
            "libhdf5.so, or of a Python that has h5py"
        )
    if is_shared_library(path):
        _check_architecture(path)
        command = WORKER
    else:
        command = (path, *WORKER[1:])
        environment = {**environment, "PYTHONPATH": _package_alone(folder)}
    version, zlib = _versions(path, command[0], environment)
    return LibHDF5(path, version, command, environment, zlib)


def check_zlib(zlib: str, reader: str, library: LibHDF5) -> str:
    """See that a libhdf5 calls a zlib that workers are started with."""
    if not Path(zlib).is_file():
        raise UsageError(
            f"zlib {printable(zlib)}: there is no such file; give the path of a libz.so"
        )
    # Either would end the path, for the loader.
    if set(zlib) & set(": "):
        raise UsageError(
            f"zlib {printable(zlib)}: a path with a colon or a space cannot be preloaded; link "
            "to it from another folder"
        )
    trial = Trial("", "", "", (), reader, libhdf5=library.path, zlib_path=zlib)
    variables = {**library.environment, **preloading(zlib)}
    answer = _answer(library.command[0], _ASK_ZLIB, variables, json.dumps(trial.to_json()))
    if answer.returncode == 0:
        return answer.out.decode().strip()
    raise UsageError(_reason(answer) or f"zlib {printable(zlib)}: cannot be used")


def plugins() -> dict[str, str]:
    """Give HDF5 the folder in which hdf5plugin has its filters, after the user's own folders."""
    found = importlib.util.find_spec("hdf5plugin")
    said = os.environ.get("HDF5_PLUGIN_PATH", "")
    # With "::", HDF5 loads none at all.
    if found is None or found.origin is None or said == "::":
        return {}
    folders = [folder for folder in said.split(os.pathsep) if folder]
    ours = str(Path(found.origin).parent / "plugins")
    return {"HDF5_PLUGIN_PATH": os.pathsep.join(dict.fromkeys([*folders, ours]))}


def _check_architecture(path: str) -> None:
    """Raise UsageError for a library of another architecture, which the loader calls missing."""
    ours, theirs = (_architecture(each) for each in (os.path.realpath(sys.executable), path))
    if ours and theirs and ours != theirs:
        raise UsageError(
            f"--libhdf5 {printable(path)}: is built for another architecture than "
            f"{platform.machine()}; give a library of this machine's"
        )


def _architecture(path: str) -> tuple[bytes, bytes] | None:
    """Return an ELF file's word size and byte order, and its machine; None for other files."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(20)
    except OSError:
        return None
    return (head[4:6], head[18:20]) if head[:4] == b"\x7fELF" else None


def _package_alone(folder: str) -> str:
    """Offer this package to another Python, but not the packages installed beside it."""
    alone = Path(folder) / "chunkwise-alone"
    alone.mkdir(exist_ok=True)
    link = alone / "chunkwise"
    if not link.exists():
        link.symlink_to(Path(str(chunkwise.__file__)).parent)
    return str(alone)


@cache
def _here(environment: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return the versions of the h5py installed here: the same as long as this process lives."""
    return _versions(None, WORKER[0], dict(environment))


def _versions(path: str | None, program: str, environment: Mapping[str, str]) -> tuple[str, str]:
    given = [str(Path(str(path)).resolve())] if is_shared_library(path) else []
    answer = _answer(program, _ASK, environment, *given)
    try:
        values: dict[str, Any] = json.loads(answer.out)
        return str(values["hdf5"]), str(values["zlib"])
    except (ValueError, KeyError, TypeError):
        reason = _reason(answer) or "it says nothing"
        name = printable(str(path or "of h5py"))
        raise UsageError(f"--libhdf5 {name}: cannot be used: {printable(reason)}") from None


def _reason(answer: Ended) -> str:
    """Return the last words of a Python that failed, without the exception's name."""
    return answer.last_words.partition(": ")[2] or answer.last_words


def _answer(program: str, code: str, environment: Mapping[str, str], *words: str) -> Ended:
    try:
        command = [program, *python(code)[1:], *words]
        return finished(command, environment=environment, timeout_s=_PATIENCE_S)
    except TimeoutError:
        said = f"error: it gave no answer within {_PATIENCE_S:g} s"
    except OSError as error:
        said = f"error: {error.strerror}"
    return Ended(1, b"", said.encode(), 0.0)
