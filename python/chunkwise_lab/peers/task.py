"""What does a worker run, and what does that give?

A task is a generator function that yields one callable; each call of it is one sample.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from chunkwise.measure.process import Ended, finished


class CannotReadError(Exception):
    """The reader is not installed, or does not read this: one line says why."""


@dataclass(frozen=True)
class Sample:
    """What one call gave."""

    value: float  # Seconds of the reading alone, or bytes
    # What was read, or the CRC-32 of it, to be compared; None where there is nothing.
    data: npt.NDArray[Any] | int | None = None
    details: dict[str, Any] = field(default_factory=dict)  # Anything else worth keeping, as JSON


# What the checksum of a sample's data is of; compiled loops also give those of their beginnings.
EVERYTHING = "everything"


def imported(*names: str) -> Any:
    """Import what a reader needs, and return the first of it."""
    try:
        found = [importlib.import_module(name) for name in names]
    except ImportError as why:
        raise CannotReadError(f"not installed ({why}); it comes with the extra 'bench'") from why
    return found[0]


def tool(name: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name)
    if name == "chunkwise":
        # Of this environment, whichever comes first on the path.
        found = str(Path(sys.executable).with_name(name))
    if found is None:
        raise CannotReadError(f"{name} is not installed: install it from your system's packages")
    return found


def succeeded(command: Sequence[str], wrong: type[Exception] = RuntimeError, **how: Any) -> Ended:
    """Run a program to its end, which has to be a good one."""
    done = finished(command, **how)
    if done.returncode:
        raise wrong(f"{command[0]} {done.how}")
    return done


def timed(call: Callable[[], Any], times: int = 1) -> Sample:
    """Time one call, which gives what was read, or does this many times the same."""
    begun = time.perf_counter()
    data = call()
    return Sample((time.perf_counter() - begun) / times, data)


def sync(path: Path) -> None:
    """Wait until storage has a file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def made_anew(
    path: Path, name: str, write: Callable[[], dict[str, Any] | None], keep: bool = False
) -> Sample:
    """Time how long it takes to write a file until storage has it, and read a dataset of it."""
    import h5py  # Here, as readers bring an HDF5 of their own.

    path.unlink(missing_ok=True)
    os.sync()  # What others left to be written is not this one's work.
    begun = time.perf_counter()
    details = write()
    sync(path)
    elapsed = time.perf_counter() - begun
    # For every writer, libhdf5 reads it.
    with h5py.File(path) as made:
        values = made[name][()]
    details = {"file_nbytes": path.stat().st_size, **(details or {})}
    if not keep:
        path.unlink()
    return Sample(elapsed, values, details)


Measure = Callable[[], Sample]
Task = Iterator[Measure]
