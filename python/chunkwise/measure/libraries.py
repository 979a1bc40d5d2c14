"""Which libhdf5 does a worker load, and how is it started?

By default the one of the h5py installed here.  Another one is given by its own path, or
by the path of a Python whose h5py brings it: that Python then runs the worker.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.trials.readers import is_shared_library
from chunkwise.trials.trial import Trial
from chunkwise.trials.zlibs import preloading

# Without the folder that `-c` and `-m` put first on the path: a `statistics.py` beside the
# user's data is not the one that is meant.
_WITHOUT_FOLDER: Final = "import sys; sys.path[:] = filter(None, sys.path)\n"
_WORK: Final = _WITHOUT_FOLDER + "from chunkwise.trials.worker import main; main()"
_ASK: Final = (
    _WITHOUT_FOLDER + "import json\n"
    "from chunkwise import _native\n"
    "given = sys.argv[1] if len(sys.argv) > 1 else None\n"
    "if given is None:\n"
    "    from chunkwise import _lib\n"
    "library = _native.Library.from_path(given) if given else _lib.library()\n"
    "from chunkwise.trials.environment import zlib_version\n"
    "version = '.'.join(map(str, library.version))\n"
    "print(json.dumps({'hdf5': version, 'zlib': zlib_version()}))\n"
)
_ASK_ZLIB: Final = (
    _WITHOUT_FOLDER + "import json\n"
    "from chunkwise.trials.readers import below\n"
    "from chunkwise.trials.trial import Trial\n"
    "from chunkwise.trials.zlibs import check_in_force\n"
    "trial = Trial.from_json(json.loads(sys.argv[1]))\n"
    "print(check_in_force(trial.zlib_path, below(trial).path))\n"
)
WORKER: Final = (sys.executable, "-c", _WORK)
# The first import of h5py from a cold disk takes a while.
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True)
class LibHDF5:
    """A libhdf5 that workers can load."""

    asked: str | None  # As it was asked for; None for the one of the h5py installed here
    version: str  # Its version, such as ``1.10.8``
    command: tuple[str, ...]  # Starts a worker
    environment: Mapping[str, str]  # What the worker's environment has besides this process's
    zlib: str = "unknown"  # The version of the zlib that it has loaded, or ``unknown``


def find(asked: str | None, folder: str) -> LibHDF5:
    """Find a library, and ask it for its version, in a process of its own."""
    environment = plugins()
    if asked is None:
        command = WORKER
    elif not Path(asked).exists():
        raise UsageError(
            f"--libhdf5 {printable(asked)}: there is no such file; give the path of a "
            "libhdf5.so, or of a Python that has h5py"
        )
    elif is_shared_library(asked):
        _check_architecture(asked)
        command = WORKER
    else:
        command = (asked, "-c", _WORK)
        environment = {**environment, "PYTHONPATH": _package_alone(folder)}
    version, zlib = _versions(asked, command[0], environment)
    return LibHDF5(asked, version, command, environment, zlib)


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
    trial = Trial("", "", "", (), reader, libhdf5=library.asked, zlib_path=zlib)
    command = [library.command[0], "-c", _ASK_ZLIB, json.dumps(trial.to_json())]
    answer = _run(command, {**library.environment, **preloading(zlib)})
    if answer.returncode == 0:
        return answer.stdout.strip()
    raise UsageError(_reason(answer) or f"zlib {printable(zlib)}: cannot be used")


def plugins() -> dict[str, str]:
    """Tell HDF5 where hdf5plugin has its filters, after the user's own folders."""
    found = importlib.util.find_spec("hdf5plugin")
    said = os.environ.get("HDF5_PLUGIN_PATH", "")
    # "::" tells HDF5 to load none at all.
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


def _versions(asked: str | None, python: str, environment: Mapping[str, str]) -> tuple[str, str]:
    command = [python, "-c", _ASK]
    if is_shared_library(asked):
        command.append(str(Path(str(asked)).resolve()))
    answer = _run(command, environment)
    try:
        values: dict[str, Any] = json.loads(answer.stdout)
        return str(values["hdf5"]), str(values["zlib"])
    except (ValueError, KeyError, TypeError):
        reason = _reason(answer) or "it says nothing"
        name = printable(str(asked or "of h5py"))
        raise UsageError(f"--libhdf5 {name}: cannot be used: {printable(reason)}") from None


def _reason(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the last words of a Python that failed, without the exception's name."""
    said = [line for line in answer.stderr.splitlines() if line.strip()]
    return said[-1].partition(": ")[2] or said[-1] if said else ""


def _run(
    command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired:
        said = f"error: it gave no answer within {_PATIENCE_S:g} s"
    except OSError as error:
        said = f"error: {error.strerror}"
    return subprocess.CompletedProcess(command, 1, "", said)
