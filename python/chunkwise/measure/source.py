"""Which file is measured if its writer has not closed it?

The file itself, beside its writer, if a user would read it so: a writer in
SWMR mode left its mark, and readers that can read such a file read it as it is.
Otherwise a temporary copy, as if the writer had closed the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.room import free_nbytes
from chunkwise.files.superblock import read_superblock
from chunkwise.files.unclosed import closed_patch, copy_patched
from chunkwise.grammar import format_size
from chunkwise.measure.planning import Plan
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SPARE_NBYTES, scratch_folder, stored
from chunkwise.names import printable

# netCDF-C does not ask libhdf5 for SWMR.
_WITHOUT_SWMR = frozenset({"netcdf4"})


@dataclass(frozen=True)
class Source:
    """What a run reads in the place of a file."""

    target: Target  # The dataset, in the file or in its copy
    plan: Plan  # What of the run's plan can be measured so
    left_out: tuple[str, ...] = ()  # What cannot, and why: a line for each reader


@contextlib.contextmanager
def opened(
    original: Target,
    plan: Plan,
    *,
    checked: bool = False,
    scratch: str | None = None,  # The folder for a copy; None for the system's
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Source]:
    """Say what is read of a dataset, for as long as the block lasts."""
    readers = dict.fromkeys(str(one.parameters["reader"]) for one in plan.planned)
    able = [name for name in readers if name not in _WITHOUT_SWMR]
    as_it_is = all((p.operation, p.variant) == ("read", stored(original)) for p in plan.planned)
    if not original.unclosed:
        yield Source(original, plan)
    elif original.unclosed == "swmr" and able and as_it_is and not checked:
        left_out = tuple(
            f"{name} is left out: netCDF-C does not read along with a writer (SWMR)"
            for name in readers
            if name not in able
        )
        planned = tuple(p for p in plan.planned if p.parameters["reader"] in able)
        yield Source(original, Plan(planned), left_out)
    else:
        with _copied(original, scratch, say) as target:
            yield Source(target, plan)


@contextlib.contextmanager
def _copied(original: Target, scratch: str | None, say: Callable[[str], None]) -> Iterator[Target]:
    where = printable(original.file)
    if original.layout in ("external", "virtual"):
        raise UsageError(
            f"{where}: its writer has not closed it, and a copy of it would not find the other "
            f"files that hold {printable(original.dataset)}; measure it once it is closed"
        )
    nbytes = Path(original.file).stat().st_size
    with scratch_folder(scratch) as folder:
        free = free_nbytes(folder)
        if free < nbytes + SPARE_NBYTES:
            raise UsageError(
                f"{where}: its writer has not closed it, and a copy of {format_size(nbytes)} "
                f"needs more than the {format_size(free)} that are free; name a folder with "
                "--scratch"
            )
        say("copying the file, which its writer has not closed")
        copy = Path(folder) / "closed.h5"
        try:
            path = original.file
            copy_patched(path, copy, closed_patch(path, read_superblock(path)))
            target = look(copy, original.dataset)
        except (OSError, ChunkwiseError) as error:
            raise UsageError(
                f"{where}: its writer has not closed it, and a copy of it cannot be read: "
                f"{error}; measure it again, or once it is closed"
            ) from None
        yield replace(target, file_filters=original.file_filters)
