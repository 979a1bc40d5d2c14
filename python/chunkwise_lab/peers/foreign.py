"""How long does a foreign program take, alone and under `chunkwise run`?"""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

from chunkwise.measure.process import finished
from chunkwise.running import environment
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, imported, tool

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
        tells = program not in ("timmean", "tenth-rows")

        def measure() -> Sample:
            path.unlink(missing_ok=True)
            os.sync()  # What others left to be written is not this one's work.
            done = finished(words, environment=variables)
            elapsed = done.elapsed_s
            if done.returncode:
                raise CannotReadError(f"{words[0]} {done.how}")
            if tells:
                seconds, told = done.out.split()
                elapsed, found = float(seconds), int(told)
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
        compiler = tool("h5cc")
        done = finished([compiler, "-shlib", "-O2", "-o", made, SOURCE], folder=folder)
        if done.returncode:
            raise CannotReadError(f"{compiler} {done.how}")
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
