"""A machine of which nothing has to be measured, and a file worth advice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.advice import calibration
from chunkwise.model.seconds import Machine, Rates
from tests.support.patience import patient_trials

__all__ = ["patient_trials"]

RATES = Rates(1e-4, 1e-6, 6e-7, 4e-7, 2e-6, 2.5e-7, 4e-9, 2.5e-10, 5e-11, 8e-8)
MACHINE = Machine(
    {"libhdf5": RATES, "chunkwise": RATES}, {"libhdf5": RATES, "chunkwise": RATES}, 2, 1.8
)


@pytest.fixture(autouse=True, scope="session")
def known_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the figures of a machine in a cache folder of the tests' own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        path = calibration.cache_path()
        path.parent.mkdir(parents=True)
        record = {
            "version": calibration.VERSION,
            **calibration.key(),
            "busy": False,
            "machine": MACHINE.as_dict(),
        }
        path.write_text(json.dumps(record), "utf-8")
        yield path


def write_daily(folder: Path) -> Path:
    """Write 400 maps, each a chunk: good for maps, bad for series."""
    path = folder / "daily.nc"
    rng = np.random.default_rng(0)
    values = rng.standard_normal((400, 40, 60)).cumsum(0).round(1).astype("f4")
    with h5py.File(path, "w") as file:
        options = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
        file.create_dataset("t2m", data=values, chunks=(1, 40, 60), **options)
        file.create_dataset("small", data=np.arange(10))
    return path


@pytest.fixture
def daily(tmp_path: Path) -> Path:
    return write_daily(tmp_path)
