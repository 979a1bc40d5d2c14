"""Does `fix` keep its budget, and cost little where nothing is measured?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.fixing import measuring
from chunkwise.model import followed
from chunkwise.model.chunk_cache import ChunkCache
from chunkwise.trials.trial import Measurement, Trial


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Many datasets of different shapes in chunks that are far too small."""
    found = tmp_path / "a.h5"
    with h5py.File(found, "w") as file:
        for i in range(8):
            values = np.arange(40 * 50 * (60 + i), dtype="f4").reshape(40, 50, 60 + i)
            file.create_dataset(f"x{i}", data=values, chunks=(2, 5, 6), compression=1)
    return found


def test_all_promises_together_follow_a_bounded_number_of_chunks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    class Counted(ChunkCache):
        def access(self, *words: Any) -> bool:
            nonlocal steps
            steps += 1
            return super().access(*words)

    monkeypatch.setattr(followed, "ChunkCache", Counted)
    # Others may have asked for the same walks.
    followed.loads_of_walk.cache_clear()
    planned = chunkwise.fix(path, dry_run=True)
    assert len(planned.changes) == 8
    assert steps <= measuring._STEPS


def test_measuring_ends_with_its_seconds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def measured(trial: Trial) -> Measurement:
        nonlocal now
        now += 4.0  # On a machine that others use.
        return Measurement(trial, "ok", total_s=1.0, total_operations=1)

    monkeypatch.setattr(measuring, "measure_in_worker", measured)
    monkeypatch.setattr("chunkwise.fixing.measuring.time.monotonic", lambda: now)
    done = chunkwise.fix(path, path.with_name("b.h5"), seconds=30)
    # No pair of trials begins when the time is up.
    assert 30 <= now <= 30 + 2 * 4.0
    reasons = {gain.reason for gain in done.gains if gain.times is None and gain.reason}
    assert reasons <= {"there was no time to measure it"}
