"""Does `chunkwise trace` find what is wrong with a program's reads, and does its remedy help?

Programs as people write them read files that do not suit them.  Each is traced, the line that the
trace prints is run as it stands, and the program runs again: as it is, under `chunkwise run`, and
on the repacked file, in turns.  What is compared is the time within HDF5's calls.

    python -m chunkwise_lab.traces      # `make bench ONLY=trace`
    python -m chunkwise_lab.traces --repeat 5 --only cdo
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from chunkwise.measure.process import finished, in_turns
from chunkwise.measure.verdict import spread
from chunkwise.running.trace import Trace, under_run
from chunkwise.words import format_seconds, format_speed
from chunkwise_lab.checkout import FOLDER
from chunkwise_lab.peers.files import Data, Store

CHUNKWISE: Final = (sys.executable, "-m", "chunkwise")
ROWS: Final = """
import sys, h5py, numpy
with h5py.File(sys.argv[1], rdcc_nbytes=1 << 20) as file:
    dataset = file[sys.argv[2]]
    for index in numpy.ndindex(dataset.shape[:3]):
        dataset[index]
"""
SERIES: Final = """
import sys, xarray
field = xarray.open_dataset(sys.argv[1], engine="netcdf4")[sys.argv[2]]
for place in range(8):
    field[:, 7 * place, 11 * place].load()
"""


@dataclass(frozen=True)
class Case:
    """A program, and the file that it reads."""

    title: str  # What it does
    # The program; ``{file}``, ``{dataset}`` and ``{out}`` stand for what it reads and writes.
    words: tuple[str, ...]
    sample: str  # What it reads
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    filters: str
    netcdf: bool = True  # Whether the file must have dimensions


CASES: Final = {
    "rows": Case(
        "h5py reads paper 004's rows, by the paper's cache of 1 MiB",
        (sys.executable, "-c", ROWS, "{file}", "{dataset}"),
        "cris", (4, 30, 9, 717), (4, 30, 9, 717), "deflate:6", False,
    ),
    "cdo": Case(
        "cdo timmean, of a file in chunks for series",
        ("cdo", "-s", "--no_history", "timmean", "{file}", "{out}"),
        "cube", (200, 400, 400), (200, 20, 20), "shuffle+deflate:4",
    ),
    "xarray": Case(
        "xarray by netCDF4 reads series, of a file in chunks for maps",
        (sys.executable, "-c", SERIES, "{file}", "{dataset}"),
        "cube", (200, 300, 300), (1, 300, 300), "shuffle+deflate:4",
    ),
}  # fmt: skip


def main() -> None:
    """Run the cases that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of cases, with commas between them")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(CASES)
    for name in names:
        for line in run(CASES[name], arguments.repeat):
            print(line, flush=True)
        print()


def run(case: Case, repeat: int) -> Iterator[str]:
    """Trace one program, follow what is said, and compare."""
    yield case.title
    if shutil.which(case.words[0]) is None:
        yield f"  {case.words[0]} is not installed"
        return
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as given:
        folder = Path(given)
        store = Store(FOLDER)
        data = store.sampled(case.sample, case.shape, case.chunk, case.filters)
        data = store.netcdf(data) if case.netcdf else data
        first = _traced(case, data, folder, "--observe-only")
        found = first.values["found"]
        promised = under_run(first.trace.datasets[0], 2)
        if found is None:
            yield "  nothing was found"
        else:
            yield f"  found {found['code']}: {found['line']}"
        better: Data | None = None
        # As a user pastes it; lines of a program are not for a shell.
        words = _words(found["line"]) if found else []
        if words[:2] == ["chunkwise", "repack"]:
            _finished([*CHUNKWISE, *words[1:]], folder)
            better = replace(data, path=folder / words[-1])

        def timed(data: Data, *words: str) -> Callable[[], float]:
            return lambda: _traced(case, data, folder, *words).seconds

        ways = {"alone": timed(data, "--observe-only"), "run": timed(data)}
        if better is not None:
            ways["repacked"] = timed(better, "--observe-only")
        times = {way: spread(taken) for way, taken in in_turns(ways, repeat).items()}
        for way, found in times.items():
            ends = f"{format_seconds(found.lowest)} to {format_seconds(found.highest)}"
            said = f"  {way:10}{format_seconds(found.median):>10}  ({ends})"
            said += f"  {format_speed(times['alone'].median / found.median):>8}"
            if way == "run" and promised is not None:
                said += f"  promised: {format_seconds(promised)}"
            yield said


@dataclass(frozen=True)
class Traced:
    """What one run showed."""

    values: dict[str, Any]
    trace: Trace

    @property
    def seconds(self) -> float:
        """Within HDF5's calls that read."""
        return sum(one.seconds for one in self.trace.datasets if one.operation == "read")


def _traced(case: Case, data: Data, folder: Path, *words: str) -> Traced:
    record = folder / "trace.json"
    out = folder / "out.nc"
    out.unlink(missing_ok=True)
    program = [word.format(file=data.path, dataset=data.name, out=out) for word in case.words]
    _finished([*CHUNKWISE, "trace", "-o", str(record), *words, "--", *program], folder)
    values = json.loads(record.read_text())
    return Traced(values, Trace.of(values))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _finished(command: Sequence[str], folder: Path) -> None:
    done = finished(command, folder=folder)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.err.decode('utf-8', 'replace')}")


if __name__ == "__main__":
    main()
