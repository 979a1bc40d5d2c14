"""Are the `libhdf5` figures of `chunkwise bench` those of a plain C program (`walk.c`)?"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from chunkwise.grammar import format_shape
from chunkwise.measure.planning import trial_of
from chunkwise.measure.process import finished, python
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.target import look
from chunkwise.patterns.pattern import Access
from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.peers.task import EVERYTHING, CannotReadError, Sample, Task

SOURCE = Path(__file__).with_name("walk.c")
FLAGS = ("-std=c11", "-O2")
# No run is meant to end early, and none to hang.
FOREVER_S, PATIENCE_S = 1e6, 1800.0


def walked(by: str, file: str, dataset: str, block: Sequence[int], cache_nbytes: int) -> Task:
    """Read block by block, by the program in C or by bench; 0 stands for all of a dimension."""
    shape = look(file, dataset).shape
    block = [b or n for b, n in zip(block, shape, strict=True)]
    read = partial(run_c, build(), h5py_library()) if by == "c" else run_bench
    yield lambda: read(file, dataset, block, cache_nbytes)


def build(folder: Path = FOLDER) -> Path:
    """Compile walk.c, unless it has not changed since, and return the program."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise CannotReadError(f"no C compiler: there is no {compiler[0]} (set CC)")
    program = folder / "walk"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    include = next((at for at in _header_folders() if (at / "hdf5.h").is_file()), None)
    if include is None:
        raise CannotReadError("no headers of HDF5: install libhdf5-dev (Debian) or hdf5-devel")
    folder.mkdir(parents=True, exist_ok=True)
    command = [*compiler, *FLAGS, f"-I{include}", str(SOURCE), "-o", str(program), "-ldl", "-lm"]
    done = finished(command)
    if done.returncode:
        raise CannotReadError(f"{shlex.join(command)} failed:\n{done.err.decode().strip()}")
    return program


def _header_folders() -> Iterator[Path]:
    """Where hdf5.h may lie, the place that was chosen on purpose first."""
    for variable in ("HDF5_DIR", "CONDA_PREFIX"):
        if variable in os.environ:
            yield Path(os.environ[variable]) / "include"
    if shutil.which("pkg-config") is not None:
        for package in ("hdf5-serial", "hdf5"):
            command = ["pkg-config", "--cflags-only-I", package]
            answer = finished(command).out.decode()
            yield from (Path(flag.removeprefix("-I")) for flag in shlex.split(answer))
    wrapper = shutil.which("h5cc")
    if wrapper is not None:
        yield Path(wrapper).resolve().parents[1] / "include"
    yield from (Path("/usr/include/hdf5/serial"), Path("/usr/include"), Path("/usr/local/include"))


def run_c(
    program: Path,
    library: str,
    file: str | os.PathLike[str],
    dataset: str,
    block: Sequence[int],
    cache_nbytes: int | None = None,
) -> Sample:
    """Read a dataset with the C program."""
    command = [str(program), "--library", library]
    if cache_nbytes is not None:
        command += ["--cache-nbytes", str(cache_nbytes)]
    command += [os.fspath(file), dataset, format_shape(tuple(block))]
    done = finished(command, environment=beside(library), timeout_s=PATIENCE_S)
    if done.returncode:
        raise RuntimeError(done.last_words or f"the C program {done.how}")
    details = json.loads(done.out)
    cache = details["cache_nslots"], details["cache_nbytes"], details["cache_w0"]
    return _sample(details, details["checksum"], cache)


def beside(library: str) -> dict[str, str]:
    """Give the variables with which the C program finds what a library needs beside it."""
    folders = [str(Path(library).parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}


def run_bench(
    file: str | os.PathLike[str],
    dataset: str,
    block: Sequence[int],
    cache_nbytes: int | None = None,
) -> Sample:
    """Read a dataset with bench's own worker and its reader `libhdf5`."""
    trial = trial_of(
        look(file, dataset),
        Access("block", tuple(block)),
        "libhdf5",
        cache_nbytes=cache_nbytes,
        max_seconds=FOREVER_S,
        timeout_s=PATIENCE_S,
    )
    # Nothing of it is None where the status is ok.
    done: Any = measure_in_worker(trial)
    if done.status != "ok":
        raise RuntimeError(f"bench: {done.error}")
    cache = done.actual_cache_nslots, done.actual_cache_nbytes, done.actual_cache_w0
    details = {name: str(done.environment[name]) for name in ("hdf5", "zlib")}
    details |= {name: getattr(done, name) for name in ("elapsed_s", *_DETAILS)}
    return _sample(details, done.checksums[done.operations], cache)


_DETAILS = ("first_s", "operations", "selected_nbytes")


def _sample(details: dict[str, Any], checksum: int, cache: tuple[int, int, float]) -> Sample:
    """Give a run's seconds; what both programs must agree on is compared as bytes are."""
    checksums = {EVERYTHING: checksum, "cache": zlib.crc32(repr(cache).encode())}
    checksums |= {name: details[name] for name in ("operations", "selected_nbytes")}
    kept = {name: details[name] for name in (*_DETAILS, "hdf5", "zlib")}
    return Sample(details["elapsed_s"], details={**kept, "cache": cache, "checksums": checksums})


@functools.cache
def h5py_library() -> str:
    """Return the path of the libhdf5 that h5py loads."""
    # In another process: netCDF4, if it is loaded in this one, brings a libhdf5 of its own.
    code = "import h5py; from chunkwise import _native as n; print(n.Library.from_process().path)"
    return os.path.realpath(finished(python(code)).out.decode().strip())
