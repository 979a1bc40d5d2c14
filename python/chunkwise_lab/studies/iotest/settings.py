"""What does a walk measure, and which values of it make no sense?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.names import printable
from chunkwise.words import counted

SCALINGS: Final = ("weak", "strong")
# The drivers of a single process.
DRIVERS: Final = ("posix", "core", "mpi-io-uni")
# The walk always begins with this.
PLAIN_META_BLOCK: Final = 2048


@dataclass(frozen=True)
class Settings:
    """One walk."""

    steps: int = 4  # How often a program writes, and how many 2-D arrays each time
    arrays: int = 50
    # Of one array: of each rank's tile where scaling is weak, of all ranks where it is strong.
    rows: int = 100
    columns: int = 200
    process_rows: int | None = None  # The grid of ranks; None for all ranks below each other
    process_columns: int | None = None
    scaling: str = "weak"  # ``weak`` or ``strong``
    # Bytes, as ``H5Pset_alignment`` takes them; walked besides 1 and 0.
    alignment_increment: int = 1
    alignment_threshold: int = 0
    # Bytes, as ``H5Pset_meta_block_size`` takes them; walked besides 2048.
    meta_block_size: int = PLAIN_META_BLOCK
    # The driver of a single process: ``posix``, ``core`` or ``mpi-io-uni``.
    single_process: str = "posix"
    # What is written; a ``#`` stands for the combination's number, one file each.
    hdf5_file: str = "hdf5_iotest.h5"
    csv_file: str = ""  # Where rows go; empty for nowhere
    restart: bool = False  # Whether to go on after the rows that the CSV file has
    one_case: int = 0  # The number of the only combination; 0 for all
    delay_s: float = 0.0  # Seconds between two steps, for the computing of a program
    # Of chunked datasets, if the library can write them: collectively, or in one process.
    filters: Pipeline = field(default_factory=Pipeline)

    def on(self, ranks: int) -> Settings:
        """Complete the grid for this many ranks, and check everything."""
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise UsageError(f"{name.replace('_', '-')} = {value}: at least {least} is needed")
        for name, known in (("scaling", SCALINGS), ("single_process", DRIVERS)):
            if (text := getattr(self, name)) not in known:
                raise UsageError(
                    f"{name.replace('_', '-')} = {printable(text)}: choose from {', '.join(known)}"
                )
        if self.steps * self.arrays >= 2**28:
            raise UsageError(f"{self.steps} steps of {self.arrays} arrays: give fewer than 2**28")
        if not self.hdf5_file:
            raise UsageError("hdf5-file is empty: name the file to write")
        made = replace(self, **self._grid(ranks))
        grid = f"{made.process_rows}x{made.process_columns}"
        if made.ranks != ranks:
            raise UsageError(
                f"the process grid {grid} needs {counted(made.ranks, 'rank')}, and there "
                f"{'is' if ranks == 1 else 'are'} {ranks}: start {made.ranks} (mpirun -n "
                f"{made.ranks}), or give another grid (--grid ROWSxCOLUMNS)"
            )
        if self.scaling == "strong":
            for what, size, parts in (
                ("rows", self.rows, made.process_rows),
                ("columns", self.columns, made.process_columns),
            ):
                if size % (parts or 1):
                    raise UsageError(
                        f"{size} {what} do not divide among {parts} ranks of the process grid "
                        f"{grid}: give a multiple of {parts}, or another grid"
                    )
        return made

    def _grid(self, ranks: int) -> dict[str, Any]:
        """Complete what of the grid is not given."""
        rows, columns = self.process_rows, self.process_columns
        if rows is None and columns is None:
            return {"process_rows": ranks, "process_columns": 1}
        if rows is None:
            rows = max(ranks // (columns or 1), 1)
        return {"process_rows": rows, "process_columns": columns or max(ranks // rows, 1)}

    @property
    def ranks(self) -> int:
        """How many ranks the grid has."""
        return (self.process_rows or 1) * (self.process_columns or 1)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns that one rank writes of an array."""
        if self.scaling == "weak":
            return self.rows, self.columns
        return self.rows // (self.process_rows or 1), self.columns // (self.process_columns or 1)

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns that all ranks write of an array."""
        rows, columns = self.tile
        return rows * (self.process_rows or 1), columns * (self.process_columns or 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is written of one combination."""
        return 8 * self.steps * self.arrays * self.plane[0] * self.plane[1]


_LEAST: Final = {
    "steps": 1, "arrays": 1, "rows": 2, "columns": 2, "process_rows": 1, "process_columns": 1,
    "alignment_increment": 1, "alignment_threshold": 0, "meta_block_size": 0, "one_case": 0,
    "delay_s": 0,
}  # fmt: skip
