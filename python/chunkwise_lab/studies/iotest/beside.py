"""What does hdf5-iotest itself measure, in turns with our walk?"""

from __future__ import annotations

import csv
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from chunkwise.errors import LibraryError, UsageError
from chunkwise.measure.schedule import Step
from chunkwise.measure.tables import plain_table, say
from chunkwise.names import printable
from chunkwise.words import counted, three_digits
from chunkwise_lab.studies.iotest.launching import under_launcher
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.table import HEADER
from chunkwise_lab.turns import in_turns

_SHOWN: Final = ("rank", "slowdim", "layout", "fill", "fmt", "io")
_WALL, _SIZE = " wall [s]", "fsize [B]"
# What both must say of a row: all but seconds and bytes.
_SAME: Final = tuple(name for name in HEADER if not name.endswith("]"))
_OURS: Final = (sys.executable, "-m", "chunkwise", "study", "iotest", "--ini")
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Beside:
    """One combination by both programs."""

    point: dict[str, str]
    # Median seconds, and bytes of the file, by who measured: ``ours`` and ``theirs``.
    wall_s: dict[str, float]
    file_nbytes: dict[str, int]

    @property
    def ratio(self) -> float:
        """How many times as long as theirs ours takes."""
        return self.wall_s["ours"] / max(self.wall_s["theirs"], 1e-4)


def walk(
    program: str,
    settings: Settings,
    ranks: int,
    repeat: int,
    progress: Callable[[Step], None] | None = None,
) -> list[Beside]:
    """Run both, in turns."""
    if settings.filters.filters:
        raise UsageError("--beside compares walks without filters: leave --filter out")
    settings, path = settings.on(ranks), shutil.which(program)
    if path is None:
        raise UsageError(f"--beside {printable(program)}: is no program")
    commands: dict[str, tuple[str, ...]] = {"theirs": (str(Path(path).resolve()),), "ours": _OURS}

    def rows_of(name: str) -> Rows:
        if progress is not None:
            progress(Step(f"{name}: {counted(ranks, 'rank')}"))
        return _run(commands[name], settings, ranks)

    found = in_turns({name: partial(rows_of, name) for name in commands}, repeat)
    runs = [one for rows in found.values() for one in rows]
    points = [[{name: row[name] for name in _SAME} for row in rows] for rows in runs]
    if any(one != points[0] for one in points):
        raise LibraryError(
            f"{printable(program)} walks other combinations, or with another HDF5: its rows "
            "cannot be put beside ours"
        )
    return [
        Beside(
            {name: point[name] for name in _SHOWN},
            {
                who: statistics.median(float(rows[n][_WALL]) for rows in found[who])
                for who in found
            },
            {who: int(found[who][0][n][_SIZE]) for who in found},
        )
        for n, point in enumerate(points[0])
    ]


def _run(command: Sequence[str], settings: Settings, ranks: int) -> Rows:
    with tempfile.TemporaryDirectory(prefix="iotest-", dir=".") as name:
        folder = Path(name).resolve()
        Path(folder, "walk.ini").write_text(_ini(settings), "utf-8")
        ended = under_launcher(ranks, [*command, "walk.ini"], folder=folder)
        if ended.returncode or not Path(folder, "walk.csv").exists():
            raise LibraryError(f"{printable(command[0])} {ended.how}")
        with Path(folder, "walk.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def _ini(settings: Settings) -> str:
    """Write settings as hdf5-iotest reads them."""
    names = (
        "steps", "arrays", "rows", "columns", "process_rows", "process_columns", "scaling",
        "alignment_increment", "alignment_threshold", "meta_block_size", "single_process",
    )  # fmt: skip
    values: Mapping[str, Any] = {
        "version": 0,
        **{name.replace("_", "-"): getattr(settings, name) for name in names},
        "hdf5-file": "walk.h5",
        "csv-file": "walk.csv",
    }
    return "".join(["[DEFAULT]\n", *(f"{name} = {value}\n" for name, value in values.items())])


def show(found: Sequence[Beside], console: Console) -> None:
    """Print a row for each combination, and what follows of all."""
    table = plain_table()
    for name in _SHOWN:
        table.add_column(name)
    for name in ("ours s", "theirs s", "ratio", "bytes"):
        table.add_column(name, justify="right")
    for one in found:
        ours, theirs = one.file_nbytes["ours"], one.file_nbytes["theirs"]
        table.add_row(
            *one.point.values(),
            *(f"{one.wall_s[who]:.4f}" for who in ("ours", "theirs")),
            three_digits(one.ratio),
            "same" if ours == theirs else f"{ours - theirs:+,}",
        )
    console.print(table, highlight=False)
    console.print()
    same = sum(one.file_nbytes["ours"] == one.file_nbytes["theirs"] for one in found)
    mean = statistics.geometric_mean([max(one.ratio, 1e-9) for one in found])
    say(
        console,
        f"{counted(len(found), 'combination')}: the file has as many bytes in {same:,}; ours "
        f"takes {three_digits(mean)} times as long as theirs, on average.",
    )
