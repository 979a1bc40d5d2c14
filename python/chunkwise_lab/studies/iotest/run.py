"""What happens when `mpirun -n N chunkwise study iotest` walks?"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py

from chunkwise.errors import (
    AlreadyExistsError,
    CannotWriteError,
    ChunkwiseError,
    LibraryError,
    UsageError,
)
from chunkwise.files.durable import write_whole
from chunkwise.measure.schedule import Step
from chunkwise.names import hdf5_reason, printable
from chunkwise_lab.mpi_check.environment import require_shared_folder
from chunkwise_lab.studies.iotest import table
from chunkwise_lab.studies.iotest.lists import lists
from chunkwise_lab.studies.iotest.measure import measure
from chunkwise_lab.studies.iotest.pattern import Geometry, Values
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.table import Row
from chunkwise_lab.studies.iotest.walk import Combination, chosen
from chunkwise_lab.studies.iotest.world import World

# It waits for a word, and the end of the program is none.
_WAIT = 'read -r word || rm -f -- "$@"'


@contextlib.contextmanager
def removed(paths: Sequence[str]) -> Iterator[None]:
    """Remove files at the end of the block, and also if the process does not get there."""
    full = [str(Path(path).absolute()) for path in paths]
    quiet = subprocess.DEVNULL
    try:
        watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT, "sh", *full],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            # Not of the group that the launcher kills.
            start_new_session=True,
        )
    except OSError:
        watcher = None
    try:
        yield
    finally:
        for path in full:
            with contextlib.suppress(OSError):
                Path(path).unlink()
        if watcher is not None and watcher.stdin is not None:
            with contextlib.suppress(OSError):
                watcher.stdin.write(b"removed\n")
                watcher.stdin.close()
            watcher.wait()


Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Walked:
    """A walk that is done."""

    settings: Settings  # With its grid
    ranks: int
    version: str  # Of HDF5
    rows: list[Row]  # What this run measured, on rank 0; empty on others
    kept: int = 0  # Rows that the CSV file had before
    crowded: str = ""  # How many ranks share how few processors; empty where each has one

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = (
            "steps", "arrays", "rows", "columns", "process_rows", "process_columns", "scaling",
        )  # fmt: skip
        return {
            "format": "chunkwise-iotest",
            "version": 2,
            "ranks": self.ranks,
            "hdf5": self.version,
            **{name: getattr(self.settings, name) for name in names},
            "oversubscribed": bool(self.crowded),
            "combinations": [row.to_json() for row in self.rows],
        }


def walk(
    world: World, settings: Settings, only: Sequence[str] = (), progress: Progress | None = None
) -> Walked:
    """Measure all requested combinations; every rank calls it (collective)."""
    settings = settings.on(world.size)
    found = chosen(settings, world.size, only)
    files = [_file(settings, one) for one in found]
    # A folder that only some ranks see would end in a hang.
    require_shared_folder(world.together, Path(settings.hdf5_file).parent)
    kept = world.on_first(lambda: _look(settings, found, files))
    version = str(h5py.version.hdf5_version)
    walked = Walked(settings, world.size, version, [], kept, world.crowded())
    values = Values(settings, world.rank)
    watched = removed(sorted(set(files))) if world.rank == 0 else contextlib.nullcontext()
    with watched:
        todo = list(zip(found, files, strict=True))[kept:]
        for number, (one, file) in enumerate(todo):
            if progress is not None:
                progress(Step(one.label, kept + number, len(found)))
            row = once(world, settings, one, values, file)
            if row is not None:
                walked.rows.append(row)
                _note(settings, walked, row)
                if len(set(files)) > 1:
                    Path(file).unlink(missing_ok=True)
        world.barrier()
    return walked


def once(
    world: World, settings: Settings, one: Combination, values: Values, file: str
) -> Row | None:
    """Measure one combination; the row is rank 0's alone (collective)."""
    geometry = Geometry(settings, one)
    try:
        property_lists = lists(geometry, settings.filters, world.comm)
        clock = measure(world, geometry, property_lists, values, file, settings.delay_s)
    except ChunkwiseError:
        raise
    except (OSError, RuntimeError, ValueError) as wrong:
        raise LibraryError(
            f"{printable(file)}: rank {world.rank}, combination {one.number} ({one.label}): "
            f"{hdf5_reason(wrong)}"
        ) from None
    clocks = world.gather(clock)
    if world.rank:
        return None
    filters = str(property_lists.filters)
    return table.row(one, filters, clocks, Path(file).stat().st_size, settings.nbytes)


def _file(settings: Settings, one: Combination) -> str:
    return settings.hdf5_file.replace("#", f"{one.number:04d}", 1)


def _look(settings: Settings, found: Sequence[Combination], files: Sequence[str]) -> int:
    """Look at what is there on rank 0, and return how many combinations are done."""
    for file in files:
        if os.path.lexists(file):
            raise AlreadyExistsError(
                f"{printable(file)}: exists already, and would be overwritten: remove it, or "
                "name another file (--hdf5-file)"
            )
    if not settings.csv_file:
        return 0
    path = Path(settings.csv_file)
    name = printable(settings.csv_file)
    try:
        if settings.restart and path.exists():
            text = path.read_text("utf-8")
            kept = table.done(text, settings, found)
            write_whole(path, "".join(f"{one}\n" for one in text.split("\n")[: kept + 1]).encode())
            return kept
        if os.path.lexists(path):
            raise AlreadyExistsError(
                f"{name}: exists already: remove it, name another file (--csv), or go on after "
                "its rows (--restart)"
            )
        path.write_text(table.header(settings) + "\n", "utf-8")
    except UsageError as wrong:
        raise UsageError(f"{name}: {wrong}") from None
    except (OSError, UnicodeDecodeError) as wrong:
        if isinstance(wrong, AlreadyExistsError):
            raise
        reason = getattr(wrong, "strerror", None) or "is no text"
        raise CannotWriteError(f"{name}: cannot be written: {reason}") from None
    return 0


def _note(settings: Settings, walked: Walked, row: Row) -> None:
    """Put a row into the CSV file."""
    if not settings.csv_file:
        return
    try:
        with Path(settings.csv_file).open("a", encoding="utf-8") as file:
            file.write(table.line(settings, walked.version, row) + "\n")
    except OSError as wrong:
        raise CannotWriteError(
            f"{printable(settings.csv_file)}: cannot be written: {wrong.strerror}"
        ) from None
