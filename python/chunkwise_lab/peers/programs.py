"""How long do programs take that know nothing of chunkwise, and those that write a file anew?"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise.running import environment
from chunkwise.running.trace import Trace, under_run
from chunkwise_lab.peers.task import (
    CannotReadError,
    Sample,
    Task,
    imported,
    made_anew,
    succeeded,
    tool,
)

NAME: Final = "t"
FILTERS: Final[dict[str, Any]] = {"compression": "gzip", "compression_opts": 4, "shuffle": True}


def written(
    program: str, patched: bool, file: str, dataset: str, target: str, chunk: tuple[int, ...]
) -> Task:
    """Write with shuffle and deflate 4."""
    with h5py.File(file) as opened:
        data: Any = opened[dataset][()]
    write = {"xarray": _xarray, "frames": _frames}[program](data, tuple(chunk))

    def measure() -> Sample:
        with chunkwise.patch_h5py() if patched else contextlib.nullcontext():
            return made_anew(Path(target), NAME, lambda: write(target))

    yield measure


def _xarray(data: Any, chunk: tuple[int, ...]) -> Callable[[str], None]:
    xr = imported("xarray", "h5netcdf")
    field = xr.Dataset({NAME: (("time", "y", "x"), data)})
    stored = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": chunk}

    def write(target: str) -> None:
        field.to_netcdf(target, engine="h5netcdf", encoding={NAME: stored})

    return write


def _frames(data: Any, chunk: tuple[int, ...]) -> Callable[[str], None]:
    def write(target: str) -> None:
        with h5py.File(target, "w") as file:
            made = file.create_dataset(NAME, data.shape, data.dtype, chunks=chunk, **FILTERS)
            for begin in np.arange(0, len(data), chunk[0]):
                made[begin : begin + chunk[0]] = data[begin : begin + chunk[0]]

    return write


SOURCE: Final = Path(__file__).with_name("whole.c")

_NETCDF4: Final = """
import sys, time, zlib
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1]) as file:
    begun = time.perf_counter()
    variable = file[sys.argv[2]]
    variable.set_auto_maskandscale(sys.argv[3] == "masked")
    values = variable[:]
    took = time.perf_counter() - begun
print(took, zlib.crc32(numpy.ascontiguousarray(numpy.ma.getdata(values))))
"""
_TO_NETCDF: Final = """
import os, sys, time
import netCDF4, xarray
path, name, target = sys.argv[1:]
field = xarray.open_dataset(path, engine="netcdf4").load()
stored = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, *field[name].shape[1:])}
field[name].encoding.clear()
begun = time.perf_counter()
field.to_netcdf(target, engine="netcdf4", encoding={name: stored})
with open(target) as made:
    os.fsync(made.fileno())
print(time.perf_counter() - begun, 0)
"""


def ran(program: str, under: bool, file: str, dataset: str, target: str) -> Task:
    """Run a program."""
    variables = environment.variables() if under else {}
    path = Path(target)
    with tempfile.TemporaryDirectory() as folder:
        words = _words(program, file, dataset, target, Path(folder))
        prints_checksum = program not in ("timmean", "tenth-rows")

        def measure() -> Sample:
            path.unlink(missing_ok=True)
            os.sync()  # What others left to be written is not this one's work.
            done = succeeded(words, CannotReadError, environment=variables)
            elapsed = done.elapsed_s
            if prints_checksum:
                seconds, crc = done.out.split()
                elapsed, found = float(seconds), int(crc)
            if program == "timmean":
                found = zlib.crc32(path.read_bytes())
            elif program in ("tenth-rows", "to-netcdf"):
                # Chunks that are compressed by another encoder are other bytes.
                found = _values(path, dataset)
            path.unlink(missing_ok=True)
            return Sample(elapsed, found)

        yield measure


def _values(path: Path, dataset: str) -> int:
    """Sum up what was written: chunks that chunkwise encodes have other bytes."""
    import h5py  # Here, as other programs bring an HDF5 of their own.

    with h5py.File(path) as file:
        return zlib.crc32(file[dataset][()])


def _words(program: str, file: str, dataset: str, target: str, folder: Path) -> list[str]:
    """Give the command of a program."""
    if program in ("c", "c-as-doubles"):
        made = folder / "whole"
        compile_it = [tool("h5cc"), "-shlib", "-O2", "-o", str(made), str(SOURCE)]
        succeeded(compile_it, CannotReadError, folder=folder)
        return [str(made), file, dataset, "f" if program == "c" else "d"]
    if program == "timmean":
        return [tool("cdo"), "-s", "--no_history", "timmean", file, target]
    if program == "tenth-rows":
        return [tool("ncks"), "-h", "-d", f"{dataset}_y,,,10", "-v", dataset, file, target]
    imported("netCDF4", "xarray")
    if program == "to-netcdf":
        return [sys.executable, "-c", _TO_NETCDF, file, dataset, target]
    how = "masked" if program == "netcdf4-masked" else "plain"
    return [sys.executable, "-c", _NETCDF4, file, dataset, how]


def repacked(
    argv: Sequence[str],
    file: str,
    dataset: str,
    target: str,
    unit: str = "seconds",
    keep: bool = False,
) -> Task:
    """Run a program that makes `target` of `file`; seconds, or the most memory it had."""
    files = {"{in}": file, "{out}": target}
    command = [tool(argv[0]), *(files.get(word, word) for word in argv[1:])]

    def write() -> dict[str, int]:
        return {"memory_nbytes": succeeded(command, watches_memory=True).memory_nbytes}

    def measure() -> Sample:
        made = made_anew(Path(target), dataset, write, keep)
        return made if unit == "seconds" else replace(made, value=made.details["memory_nbytes"])

    yield measure


def size(target: str) -> Task:
    """Bytes of a file that another comparison's reader has made; it goes with this."""
    path = Path(target)
    if not path.exists():
        raise CannotReadError("there is no file: the comparison before this one makes it")
    nbytes = path.stat().st_size
    path.unlink()
    yield lambda: Sample(float(nbytes))


CHUNKWISE: Final = (sys.executable, "-m", "chunkwise")


def traced(way: str, file: str, dataset: str, program: Sequence[str]) -> Task:
    """Run a program ``alone``, under ``run``, or alone on the ``repacked`` file."""
    words = [sys.executable if word == "python" else word for word in program]
    words[0] = tool(words[0])
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as name:
        folder = Path(name)
        details: dict[str, Any] = {}
        if way != "run":
            values = _traced(words, file, dataset, folder, "--observe-only")
            found = values["found"] or {"line": ""}
            promised_s = under_run(Trace.of(values).datasets[0], 2)
            details = {"found": found, "promised_s": promised_s}
        if way == "repacked":
            # As a user pastes it; lines of a program are not for a shell.
            line = shlex.split(found["line"]) if found["line"].startswith("chunkwise ") else []
            if line[1:2] != ["repack"]:
                raise CannotReadError("nothing says to repack the file")
            succeeded([*CHUNKWISE, *line[1:]], folder=folder)
            file = str(folder / line[-1])

        def measure() -> Sample:
            how = () if way == "run" else ("--observe-only",)
            trace = Trace.of(_traced(words, file, dataset, folder, *how))
            reads = [one for one in trace.datasets if one.operation == "read"]
            nbytes = sum(one.nbytes for one in reads)
            return Sample(sum(one.seconds for one in reads), nbytes, details)

        yield measure


def _traced(
    words: Sequence[str], file: str, dataset: str, folder: Path, *options: str
) -> dict[str, Any]:
    record, out = folder / "trace.json", folder / "out.nc"
    out.unlink(missing_ok=True)
    program = [word.format(file=file, dataset=dataset, out=out) for word in words]
    command = [*CHUNKWISE, "trace", "-o", str(record), *options, "--", *program]
    succeeded(command, folder=folder)
    values: dict[str, Any] = json.loads(record.read_text())
    return values
