"""A file with all that the page must cope with, and a machine that need not be measured."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.advice import calibration
from chunkwise.model.seconds import Machine, Rates
from tests.support.patience import patient_trials

__all__ = ["patient_trials"]

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "it's <b>bold<b>.h5"
    values = np.cumsum(np.random.default_rng(0).integers(-3, 4, (24, 60, 50)), axis=0)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "cube", data=values.astype("i4"), chunks=(1, 30, 50), shuffle=True, compression=4
        )
        sparse = file.create_dataset("group/sparse", (90, 80), "f4", chunks=(10, 10), fillvalue=-1)
        sparse[15:40, 25:50] = 1
        file.create_dataset("contiguous", data=values.astype("f8"))
        file.create_dataset("row", data=np.arange(1000), chunks=(64,))
        file.create_dataset("scalar", data=3)
        file.create_dataset("empty", (0, 5), "f4", maxshape=(None, 5))
        file.create_dataset(HOSTILE.replace("/", ""), data=values[0], chunks=(7, 11))
        file.create_dataset(b"not \xff utf-8", data=np.arange(10))
    return path


@pytest.fixture
def known_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """A machine that was measured already, also for processes that are started."""
    rates = Rates(call_s=1e-5, touch_s=1e-6, load_s=5e-6, copy_s=2e-10, fetch_s=1e-10)
    found = Machine({"libhdf5": rates, "chunkwise": rates}, {"libhdf5": rates}, 2, 1.8)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    record = {"version": calibration.VERSION, **calibration.key(), "busy": False}
    calibration.cache_path().parent.mkdir(parents=True)
    calibration.cache_path().write_text(json.dumps(record | {"machine": found.as_dict()}))
    return found
