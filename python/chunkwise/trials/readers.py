"""Who does the reading and the writing, and what does each of them know?

``libhdf5``, ``netcdf4`` and ``chunkwise`` loop in Rust; ``h5py`` and ``chunkwise-py`` in Python,
as a user's program does.  Compare only readers that loop alike.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.files import netcdf3
from chunkwise.trials.trial import Trial

if TYPE_CHECKING:
    from chunkwise._native import WalkResult

# Slots, bytes and w0 of a chunk cache.
Cache = tuple[int | None, int | None, float | None]


# Looks at what each operation read, by its number; what it raises ends the walk.
Look = Callable[[int, Any], None]


@dataclass(frozen=True)
class Opened:
    """A dataset that a reader has open, ready to be timed."""

    # Walks selections within the trial's bounds; shows what it read, untimed.
    walk: Callable[[_native.Walk, Look | None], WalkResult]
    # Gives slots, bytes and w0 of the chunk cache in force, once the walk is over.
    cache: Callable[[], Cache] = lambda: (None, None, None)
    # The libhdf5 that reads; None if the reader has none to ask.
    library: _native.Library | None = None
    dataset_id: int | None = None  # The dataset's handle in that library
    watched: bool = True  # Whether that library does the reading; chunkwise's engine otherwise
    versions: dict[str, str] = field(default_factory=dict)  # Of what else took part
    # Seconds of opening; None if not measured, or if each operation opens the dataset.
    open_s: float | None = None


Opener = Callable[[Trial], AbstractContextManager[Opened]]
# Writes to the new file that it is given, and says which cache was in force.
Writer = Callable[[Trial, _native.Walk, str], tuple["_native.WriteResult", Cache]]


@dataclass(frozen=True)
class Reader:
    """What the run has to know of a reader, before a worker loads it."""

    name: str  # As in ``--reader``
    module: str  # The module of `chunkwise.trials` with its ``read`` and ``write``
    any_libhdf5: bool  # Whether the user may choose which libhdf5 to load, by the library's path

    def opener(self) -> Opener:
        """Load what opens a dataset for reading."""
        found: Opener = self._loaded().read
        return found

    def writer(self) -> Writer:
        """Load what writes a dataset."""
        found: Writer = self._loaded().write
        return found

    @property
    def compiled(self) -> bool:
        """Whether its loop is compiled, with no Python inside the timed region."""
        return self.module == "in_rust"

    def _loaded(self) -> Any:
        return importlib.import_module(f"chunkwise.trials.{self.module}")


READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader("libhdf5", "in_rust", True),
        Reader("netcdf4", "in_rust", False),
        Reader("chunkwise", "in_rust", True),
        Reader("h5py", "in_python", False),
        Reader("chunkwise-py", "in_python", False),
    )
}
# The readers that read and write by the engine.
NATIVE = frozenset({"chunkwise", "chunkwise-py"})
# The readers that libhdf5's chunk cache concerns.
WITH_LIBRARY_CACHE = frozenset(READERS) - NATIVE
# The readers whose loop is compiled.
COMPILED = frozenset(d.name for d in READERS.values() if d.compiled)


def check_reader(name: str) -> str:
    """Return the reader's name, or raise UsageError with the names there are."""
    if name not in READERS:
        raise UsageError(f"unknown reader '{name}': choose from {', '.join(READERS)}")
    return name


def library_of(trial: Trial) -> _native.Library:
    """Bind the libhdf5 that a trial is about, in this process."""
    if is_shared_library(trial.libhdf5):
        return _native.Library.from_path(str(trial.libhdf5))
    from chunkwise import _lib  # imports h5py, which loads a libhdf5

    return _lib.library()


def below(trial: Trial) -> _native.Library:
    """Bind the libhdf5 that a trial's reader calls: netCDF-C has its own."""
    if trial.reader == "netcdf4":
        return _native.Library.from_path(_native.NetCdf(netcdf_library()).path)
    return library_of(trial)


def is_shared_library(libhdf5: str | None) -> bool:
    """Whether a trial names a libhdf5 itself, rather than a Python that has one."""
    return libhdf5 is not None and ".so" in Path(libhdf5).name


def netcdf_library() -> str:
    """Find netCDF-C: netCDF4-python's, or the system's."""
    found = netcdf3.netcdf_library()
    if found is None:
        raise UsageError("the netcdf4 reader needs netCDF-C: pip install netCDF4")
    return found
