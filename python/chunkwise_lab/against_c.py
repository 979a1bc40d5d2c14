"""Are the `libhdf5` figures of `chunkwise bench` those of a plain C program?

`walk.c` does in C what bench's reader does from Rust, and shares no code with it.  Both
read five patterns through the same libhdf5, in turns, each run in a process of its own,
with the files in memory; then bytes are compared, and medians.

    python -m chunkwise_lab.against_c
    python -m chunkwise_lab.against_c --repeat 3 --length 60      # a quick look
    make bench-c
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from chunkwise.errors import ChunkwiseError
from chunkwise.grammar import format_shape
from chunkwise.measure.planning import trial_of
from chunkwise.measure.process import finished, in_turns, python
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.target import look
from chunkwise.measure.verdict import Spread, spread
from chunkwise.patterns.pattern import Access
from chunkwise.trials import environment
from chunkwise.trials.pagecache import warm
from chunkwise.words import format_seconds
from chunkwise_lab import sample
from chunkwise_lab.checkout import FOLDER

SOURCE = Path(__file__).resolve().parent / "walk.c"
FLAGS = ("-std=c11", "-O2")
MIB = 1 << 20
WIDTH = 80
# No run is meant to end early, and none to hang.
FOREVER_S, PATIENCE_S = 1e6, 1800.0


class CannotRunError(Exception):
    """Something is missing or failed: one line says what."""


@dataclass(frozen=True)
class Pattern:
    """What one row of the table reads."""

    name: str  # What it is called
    sample: str  # The sample of `chunkwise_lab.sample`
    shape: tuple[int, ...]  # The array's, without its first dimension
    filters: str  # How the array is stored
    block: tuple[int, ...]  # What one read asks for; 0 stands for all of the first dimension
    cache_nbytes: int  # libhdf5's chunk cache


CRIS, CUBE = (30, 9, 717), (300, 300)
# From reads that cost hardly more than the calls to one that takes most of a second; through
# a cache that holds what is needed, and past it; with and without filters.
PATTERNS = (
    Pattern("row", "cris", CRIS, "none", (1, 1, 1, 717), 4 * MIB),
    Pattern("line", "cris", CRIS, "none", (0, 1, 1, 8), 256 * MIB),
    Pattern("chunk", "cris", CRIS, "deflate:6", (4, 30, 9, 717), 4 * MIB),
    Pattern("cell", "cube", CUBE, "shuffle+deflate:4", (10, 70, 70), 8 * MIB),
    Pattern("all", "cube", CUBE, "shuffle+deflate:4", (0, 300, 300), 8 * MIB),
)


@dataclass(frozen=True)
class Run:
    """What one run of one of the two programs gave."""

    elapsed_s: float
    first_s: float
    operations: int
    selected_nbytes: int
    checksum: int
    cache: tuple[int, int, float]
    hdf5: str
    zlib: str


@dataclass(frozen=True)
class Row:
    """A pattern's runs of both programs."""

    pattern: Pattern
    block: tuple[int, ...]
    c: tuple[Run, ...]
    bench: tuple[Run, ...]

    @property
    def ratio(self) -> float:
        """Bench's median, divided by the C program's."""
        return elapsed(self.bench).median / elapsed(self.c).median

    @property
    def difference(self) -> str | None:
        """What differs between the two besides time, in words; None where nothing does."""
        for name in ("operations", "selected_nbytes", "checksum", "cache"):
            found = {getattr(run, name) for run in (*self.c, *self.bench)}
            if len(found) > 1:
                return f"{self.pattern.name}: {name} differ: {', '.join(map(str, sorted(found)))}"
        return None


def elapsed(runs: Sequence[Run]) -> Spread:
    """Sum up the seconds of a program's runs."""
    return spread([run.elapsed_s for run in runs])


def build(folder: Path = FOLDER) -> Path:
    """Compile walk.c, unless it has not changed since, and return the program."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise CannotRunError(f"no C compiler: there is no {compiler[0]} (set CC)")
    program = folder / "walk"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    include = next((at for at in _header_folders() if (at / "hdf5.h").is_file()), None)
    if include is None:
        raise CannotRunError("no headers of HDF5: install libhdf5-dev (Debian) or hdf5-devel")
    folder.mkdir(parents=True, exist_ok=True)
    command = [*compiler, *FLAGS, f"-I{include}", str(SOURCE), "-o", str(program), "-ldl", "-lm"]
    done = finished(command)
    if done.returncode != 0:
        raise CannotRunError(f"{shlex.join(command)} failed:\n{done.err.decode().strip()}")
    return program


def _header_folders() -> Iterator[Path]:
    """Where hdf5.h may lie, the place that was chosen on purpose first."""
    for variable in ("HDF5_DIR", "CONDA_PREFIX"):
        if variable in os.environ:
            yield Path(os.environ[variable]) / "include"
    if shutil.which("pkg-config") is not None:
        for package in ("hdf5", "hdf5-serial"):
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
) -> Run:
    """Read a dataset with the C program."""
    command = [str(program), "--library", library]
    if cache_nbytes is not None:
        command += ["--cache-nbytes", str(cache_nbytes)]
    command += [os.fspath(file), dataset, format_shape(tuple(block))]
    done = finished(command, environment=beside(library), timeout_s=PATIENCE_S)
    if done.returncode != 0:
        raise CannotRunError(done.last_words or f"the C program {done.how}")
    told = json.loads(done.out)
    return Run(
        elapsed_s=told["elapsed_s"],
        first_s=told["first_s"],
        operations=told["operations"],
        selected_nbytes=told["selected_nbytes"],
        checksum=told["checksum"],
        cache=(told["cache_nslots"], told["cache_nbytes"], told["cache_w0"]),
        hdf5=told["hdf5"],
        zlib=told["zlib"],
    )


def beside(library: str) -> dict[str, str]:
    """Give the variables with which the C program finds what a library needs beside it.

    The libraries of older h5py's wheels do not say where their neighbours are.
    """
    folders = [str(Path(library).parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}


def run_bench(
    file: str | os.PathLike[str],
    dataset: str,
    block: Sequence[int],
    cache_nbytes: int | None = None,
) -> Run:
    """Read a dataset with bench's own worker and its reader `libhdf5`."""
    trial = trial_of(
        look(file, dataset),
        Access("block", tuple(block)),
        "libhdf5",
        cache_nbytes=cache_nbytes,
        max_seconds=FOREVER_S,
        timeout_s=PATIENCE_S,
    )
    done = measure_in_worker(trial)
    if done.status != "ok":
        raise CannotRunError(f"bench: {done.error}")
    # None of them is None where the status is ok.
    told: Any = done
    return Run(
        elapsed_s=told.elapsed_s,
        first_s=told.first_s,
        operations=told.operations,
        selected_nbytes=told.selected_nbytes,
        checksum=told.checksums[told.operations],
        cache=(told.actual_cache_nslots, told.actual_cache_nbytes, told.actual_cache_w0),
        hdf5=str(told.environment["hdf5"]),
        zlib=str(told.environment["zlib"]),
    )


@functools.cache
def h5py_library() -> str:
    """Return the path of the libhdf5 that h5py loads."""
    # In another process: netCDF4, if it is loaded in this one, brings a libhdf5 of its own.
    code = "import h5py; from chunkwise import _native as n; print(n.Library.from_process().path)"
    return os.path.realpath(finished(python(code)).out.decode().strip())


def say(line: str) -> None:
    """Tell the one who waits."""
    print(f"against_c: {line}", file=sys.stderr, flush=True)


def generated(pattern: Pattern, length: int, folder: Path) -> Path:
    """Give the file that a pattern reads; it is there from an earlier run, or made."""
    shape = (length, *pattern.shape)
    filters = re.sub("[+:]", "-", pattern.filters)
    path = folder / f"{pattern.sample}-{format_shape(shape)}-{filters}.h5"
    if not path.exists():
        say(f"writing {path.name}")
        sample.write(pattern.sample, path, shape=shape, filters=pattern.filters)
    return path


def measure(
    program: Path, library: str, pattern: Pattern, length: int, repeat: int, folder: Path
) -> Row:
    """Run both programs in turns, from a warm page cache."""
    file = generated(pattern, length, folder)
    dataset = sample.find(pattern.sample).datasets[0]
    block = (min(pattern.block[0] or length, length), *pattern.block[1:])
    warm(str(file))
    say(f"{pattern.name}: {repeat} times")
    by_c = partial(run_c, program, library, file, dataset, block, pattern.cache_nbytes)
    by_bench = partial(run_bench, file, dataset, block, pattern.cache_nbytes)
    taken = in_turns({"c": by_c, "bench": by_bench}, repeat)
    return Row(pattern, block, tuple(taken["c"]), tuple(taken["bench"]))


def heading(rows: Sequence[Row], library: str) -> list[str]:
    """Say what was compared, where, and whether the libraries are the same."""
    about = environment.describe()
    c, bench = rows[0].c[0], rows[0].bench[0]
    lines = [
        f"{about['cpu']}, {about['cpu_count']} processors, {about['system']}",
        f"HDF5 {bench.hdf5}, zlib {bench.zlib}, h5py {about['h5py']}; {len(rows[0].c)} runs each",
    ]
    if not Path(library).samefile(h5py_library()):
        lines.append(f"C program: {library} (HDF5 {c.hdf5}); bench: h5py's own libhdf5")
    if c.zlib != bench.zlib:
        lines.append(f"zlib differs: {c.zlib} in the C program, {bench.zlib} in bench")
    return lines


def table(rows: Sequence[Row], tolerance: float) -> Table:
    """Draw a row for each pattern."""
    drawn = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    drawn.add_column("pattern", no_wrap=True)
    drawn.add_column("block", overflow="fold")
    for title in ("reads", "a read", "C", "spread", "bench", "spread", "ratio"):
        drawn.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        c, bench = elapsed(row.c), elapsed(row.bench)
        reads = row.c[0].operations
        drawn.add_row(
            row.pattern.name,
            format_shape(row.block),
            f"{reads:,}",
            format_seconds(c.median / reads),
            *(
                cell
                for one in (c, bench)
                for cell in (
                    format_seconds(one.median),
                    f"{(one.highest - one.lowest) / one.median:.0%}",
                )
            ),
            f"{row.ratio:.3f}" + (" !" if apart(row, tolerance) else ""),
        )
    return drawn


def apart(row: Row, tolerance: float) -> bool:
    """Whether the two medians differ by more than so many percent of the C program's."""
    return abs(row.ratio - 1) * 100 > tolerance


def as_json(rows: Sequence[Row], library: str, tolerance: float) -> dict[str, Any]:
    """Return all runs, and what came of them, as plain JSON values."""
    return {
        "library": library,
        "environment": environment.describe(),
        "tolerance_percent": tolerance,
        "agree": not any(apart(row, tolerance) or row.difference for row in rows),
        "patterns": [
            {
                "name": row.pattern.name,
                "sample": row.pattern.sample,
                "filters": row.pattern.filters,
                "block": row.block,
                "cache_nbytes": row.pattern.cache_nbytes,
                "operations": row.c[0].operations,
                "ratio": row.ratio,
                "difference": row.difference,
                **{
                    name: {
                        "median_s": elapsed(runs).median,
                        "elapsed_s": [run.elapsed_s for run in runs],
                        "first_s": [run.first_s for run in runs],
                    }
                    for name, runs in (("c", row.c), ("bench", row.bench))
                },
            }
            for row in rows
        ],
    }


def verdict(rows: Sequence[Row], tolerance: float) -> str:
    """Say in one sentence whether bench's figures are those of a C program."""
    far = [row for row in rows if apart(row, tolerance)]
    if not far:
        return (
            f"All {len(rows)} patterns agree within {tolerance:g}%: bench's libhdf5 figures are "
            "those of a C program."
        )
    named = ", ".join(f"{row.pattern.name} by {row.ratio - 1:+.1%}" for row in far)
    return f"Bench differs from the C program by more than {tolerance:g}%: {named}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, measure, compare."""
    parser = argparse.ArgumentParser(
        description="Compare the libhdf5 figures of `chunkwise bench` with a plain C program's.",
        epilog="example: python -m chunkwise_lab.against_c --repeat 3 --length 60",
    )
    parser.add_argument("--repeat", type=int, default=9, help="runs of each program (default 9)")
    parser.add_argument(
        "--length", type=int, default=180, help="the arrays' first dimension (default 180)"
    )
    parser.add_argument(
        "--tolerance", type=float, default=5.0, help="percent between medians (default 5)"
    )
    parser.add_argument("--library", help="the C program's libhdf5 (default: h5py's own)")
    parser.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        help="for files and program (default target/benches)",
    )
    parser.add_argument("--json", action="store_true", help="print all runs as JSON")
    options = parser.parse_args(arguments)
    if options.repeat < 1 or options.length < 1:
        parser.error("--repeat and --length begin with 1")
    library = options.library or h5py_library()
    try:
        program = build(options.folder)
        rows = [
            measure(program, library, pattern, options.length, options.repeat, options.folder)
            for pattern in PATTERNS
        ]
    except (CannotRunError, ChunkwiseError, OSError) as wrong:
        say(str(wrong))
        return 1
    differences = [row.difference for row in rows if row.difference]
    if options.json:
        print(json.dumps(as_json(rows, library, options.tolerance), indent=1))
    else:
        console = Console(width=None if sys.stdout.isatty() else WIDTH)
        for line in (*heading(rows, library), ""):
            console.print(line, highlight=False, markup=False)
        console.print(table(rows, options.tolerance), highlight=False)
        for line in ("", *differences, verdict(rows, options.tolerance)):
            console.print(line, highlight=False, markup=False)
    return 1 if differences or any(apart(row, options.tolerance) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
