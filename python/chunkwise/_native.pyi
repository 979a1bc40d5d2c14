"""Types of the Rust extension module: what it takes, gives and raises."""

from typing import Any, TypedDict, final

import numpy as np
import numpy.typing as npt

__version__: str

class WalkResult(TypedDict):
    """What a timed walk over an array measured.

    ``operations`` of ``total_operations`` blocks were read in ``elapsed_s``
    seconds (the sum of the reads alone), giving ``selected_nbytes`` bytes.
    ``latencies_s`` holds each operation's time, in order, at most 100,000 of them.
    ``checksums`` maps a number of operations (1, 2, 4, 8, ... and the last) to the
    CRC-32 of all bytes read up to there, so that two walks that ended at different
    points can still be compared.  Checksums are taken outside the timed region.
    """

    operations: int
    total_operations: int
    elapsed_s: float
    selected_nbytes: int
    latencies_s: list[float]
    checksums: dict[int, int]

@final
class Library:
    """A libhdf5, bound at run time (DESIGN: the one that made the handles)."""

    @staticmethod
    def from_handle(path: str) -> Library: ...
    @staticmethod
    def from_path(path: str) -> Library: ...
    @staticmethod
    def from_process() -> Library: ...
    @property
    def version(self) -> tuple[int, int, int]: ...
    @property
    def path(self) -> str: ...

def crc32(data: npt.NDArray[Any], value: int = 0) -> int:
    """CRC-32 of a C-contiguous array's bytes, continuing from `value`."""

def walk_libhdf5(
    library: Library,
    dataset_id: int,
    memory_type_id: int,
    itemsize: int,
    block: tuple[int, ...],
    max_operations: int,
    max_seconds: float,
) -> WalkResult:
    """Read an array block by block with H5Dread, in a loop without Python.

    Blocks are walked in C order and clipped at the array's edges.  Stops after
    `max_operations` operations, or when the timed reads reach `max_seconds`
    (at least one operation is always done).
    """
