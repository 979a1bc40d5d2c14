"""With what is a trial compared?  The truth is made up: seconds for each combination."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

from chunkwise import measure
from chunkwise.measure.planning import spell_out, trial_of
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.trials.trial import Measurement


def test_a_pattern_is_compared_with_itself(tmp_path: Path) -> None:
    """Writes are not measured by reads, nor one pattern by another."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((40, 30), "i4"), chunks=(10, 30), compression=1)
    target = look(path, "x")
    space = Space.of(operation=["read", "write"], access=["all", "line:0"], reader=["libhdf5"])
    cells = []
    for one in spell_out(target, space).planned:
        trial = trial_of(target, one.access, **one.parameters)
        measured = Measurement(trial, "ok", total_s=3.0 if one.operation == "write" else 1.0)
        cells.append(Cell(one.access, trial, (measured,), one.point))
    results = Results(target, tuple(cells), 30.0, 1.0)
    assert [results.speed(cell) for cell in results.cells] == [1.0] * 4


def test_a_real_run_says_what_was_varied(tmp_path: Path) -> None:
    path = tmp_path / "slow.h5"
    data = np.random.default_rng(1).integers(0, 99, (60, 100, 100), "i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(60, 100, 100), compression=1)
    space = Space.of(
        access=["row=1x1x100"], reader=["libhdf5"], cache=["1MiB", "64MiB"], w0=["0.75", "0"]
    )
    results = measure.run(path, "x", space, repeat=3, seconds=8)
    assert results.cells[0].extrapolated

    found = json.loads(json.dumps(results.as_dict(), allow_nan=False))
    assert found["varied"] == ["cache", "w0"]
    assert [row["cache"] for row in found["summary"]] == ["1MiB", "1MiB", "64MiB", "64MiB"]
