"""What does a program write that flushes now and then, and what must be found when it ends early?

A history is drawn from a seed, so that whoever examines the file knows what was written.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise.errors import FileFormatError
from chunkwise.files.unclosed import open_unclosed

CHUNK = (16, 25)
ROWS, COLUMNS = 160, 50


@dataclass(frozen=True)
class Step:
    """Something that is done to the file: append, write, create or flush."""

    kind: str
    values: npt.NDArray[Any]
    row: int = 0


def history(seed: int, length: int) -> list[Step]:
    """Draw what is done; the first step that is a flush comes soon."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["append", "write", "create", "flush"], length, p=[0.4, 0.45, 0.03, 0.12])
    steps = []
    for kind in ["append", "flush", *kinds]:
        most = int(rng.choice([3, 200, 10**6]))
        values = rng.integers(0, most, (int(rng.integers(1, 40)), COLUMNS)).astype("i4")
        steps.append(Step(str(kind), values, int(rng.integers(0, ROWS - 40))))
    return steps


def perform(
    path: Path, libver: str, steps: list[Step], tell: Callable[[str, int], None], *, sync: bool
) -> None:
    """Do all steps, and tell of each before it; of flushes also when they have returned."""
    with chunkwise.open(path, "w", sync=sync, libver=libver) as file:
        d = file.create_dataset(
            "x", (ROWS, COLUMNS), "i4", maxshape=(None, COLUMNS), chunks=CHUNK, filters="deflate:1"
        )
        for number, step in enumerate(steps):
            tell(step.kind, number)
            if step.kind == "flush":
                file.flush()
                tell("flushed", number)
            elif step.kind == "append":
                d.append(step.values)
            elif step.kind == "create":
                file.create_dataset(f"step {number}", data=step.values, filters="deflate:1")
            else:
                d[step.row : step.row + len(step.values)] = step.values
        tell("closing", len(steps))


def examine(path: Path, steps: list[Step], flushed: int, told: str) -> None:
    """See that the file holds what it held at a flush, whatever was written after it."""
    values, created = expected(steps, flushed)
    with opened(path) as file:
        for name, want in created.items():
            np.testing.assert_array_equal(file[name][...], want, err_msg=f"{told}: {name}")
        d = file["x"]
        assert d.shape[0] >= len(values), f"{told}: shape {d.shape}, {len(values)} rows flushed"
        np.testing.assert_array_equal(d[: len(values)], values, err_msg=told)


def expected(
    steps: list[Step], flushed: int
) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
    """What was there at a flush: the values of the dataset that grows, and other datasets."""
    values = np.zeros((ROWS, COLUMNS), "i4")
    created = {}
    for number, step in enumerate(steps[:flushed]):
        if step.kind == "append":
            values = np.concatenate([values, step.values])
        elif step.kind == "write":
            values[step.row : step.row + len(step.values)] = step.values
        elif step.kind == "create":
            created[f"step {number}"] = step.values
    return values, created


@contextlib.contextmanager
def opened(path: Path) -> Any:
    """The file, also where the mark of its writer is left in it."""
    try:
        file: Any = chunkwise.open(path)
    except FileFormatError as error:
        if "did not close it" not in str(error):
            raise
        file = open_unclosed(path)
    with file:
        yield file
