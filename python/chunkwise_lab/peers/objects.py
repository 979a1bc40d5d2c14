"""What does it cost to find objects: all of a file, by reference, or one after another?"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise import _native
from chunkwise.measure.process import finished
from chunkwise.trials.environment import peak_rss_nbytes
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, timed


def command(words: list[str], file: str = "", folder: str = "") -> Task:
    """Run a command of chunkwise on a file or a folder: seconds of processor time."""

    def measure() -> Sample:
        before = _children_s()
        finished([sys.executable, "-m", "chunkwise", *words, file or folder])
        return Sample(_children_s() - before)

    yield measure


def by_reference(reader: str, file: str) -> Task:
    """Read what each reference of a dataset leads to."""

    def read() -> int:
        with _opened(reader, file) as opened:
            return _sum(opened[reference][()] for reference in opened["references"][()])

    yield lambda: timed(read)


def once(reader: str, file: str) -> Task:
    """Read each dataset of each group."""

    def read() -> int:
        with _opened(reader, file) as opened:
            return _sum(group[name][()] for group in opened.values() for name in group)

    yield lambda: timed(read)


def row(reader: str, folder: str) -> Task:
    """Open a file of a folder and read one row, again and again: seconds each."""
    times, file = 200, str(min(Path(folder).iterdir()))

    def read() -> int:
        crc = 0
        for _ in range(times):
            with _opened(reader, file) as opened:
                crc = _native.crc32(opened["x"][3], crc)
        return crc

    yield lambda: timed(read, times)


def visit(reader: str, file: str) -> Task:
    """Open each object of a file once, by its name."""

    def read() -> int:
        crc = 0

        def look(name: str, _: Any) -> None:
            nonlocal crc
            crc = zlib.crc32(name.encode(), crc)

        with _opened(reader, file) as opened:
            opened.visititems(look)
        return crc

    yield lambda: timed(read)


def metadata(reader: str, folder: str) -> Task:
    """List the objects of each file, their types, shapes and attributes: h5py one by one."""
    paths = sorted(map(str, Path(folder).iterdir()))

    def walked(path: str) -> int:
        found: list[Any] = []
        with h5py.File(path) as file:
            file.visititems(
                lambda name, one: found.append(
                    (name, getattr(one, "shape", None), getattr(one, "dtype", None), [*one.attrs])
                )
            )
        return len(found)

    def read() -> int:
        if reader == "h5py":
            return sum(map(walked, paths))
        # The root is one of them.
        return sum(len(listed.objects) - 1 for listed in chunkwise.list_many(paths))

    yield lambda: timed(read)


def write_groups(path: Path, count: int, datasets: int) -> None:
    """Write groups with a few small datasets each."""
    with h5py.File(path, "w") as file:
        for number in range(count):
            group = file.create_group(f"group {number:05d}")
            for each in range(datasets):
                group[f"x{each}"] = np.arange(10.0) + number


def write_cells(path: Path, count: int) -> None:
    """Write references to small arrays, as MATLAB stores cells."""
    with h5py.File(path, "w") as file:
        for number in range(count):
            file[f"#refs#/{number}"] = np.arange(10.0) + number
        references = [one.ref for one in file["#refs#"].values()]
        file["references"] = np.array(references, h5py.ref_dtype)


def write_small(path: Path, count: int) -> None:
    """Write a folder of small files."""
    path.mkdir()
    for number in range(count):
        with h5py.File(path / f"{number:05d}.h5", "w") as file:
            for name in ("x", "y", "z"):
                values = np.arange(600.0).reshape(20, 30) + number
                one = file.create_dataset(name, data=values, chunks=(10, 10), compression=4)
                one.attrs["units"] = "m"


def _sum(arrays: Iterable[Any]) -> int:
    """Return the CRC-32 of arrays, one after the other."""
    crc = 0
    for one in arrays:
        crc = _native.crc32(one, crc)
    return crc


def _opened(reader: str, file: str) -> Any:
    return h5py.File(file) if reader == "h5py" else chunkwise.open(file)


def _children_s() -> float:
    import resource  # Windows has none.

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# The libraries' own: standard streams, shared libraries being loaded, the pool.
SPARE = 64


def held_open(reader: str, folder: str, dataset: str) -> Task:
    """Open every file of a folder, read a dataset of each, close none: peak resident bytes."""
    import resource  # Windows has none.

    paths = sorted(Path(folder).glob("*.h5"))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < len(paths) + SPARE:
        raise CannotReadError(f"this process may have {most:,} descriptors: too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    # Never closed: with thousands open, H5Fclose looks through all of them each time.
    held: list[Any] = []

    def measure() -> Sample:
        for path in paths:
            held.append(h5py.File(path) if reader == "h5py" else chunkwise.open(path))
        crc = _sum(opened[dataset][:1, :-1] for opened in held)
        descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
        details = {"files": len(held), "descriptors": descriptors, "descriptor_limit": most}
        return Sample(float(peak_rss_nbytes() or 0), crc, details)

    yield measure
