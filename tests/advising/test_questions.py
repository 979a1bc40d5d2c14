"""What is advised before there is a file, and what is refused?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.advice.before import advise_new
from tests.support.golden import assert_golden, mistakes

MAP, SERIES = "map=1x40x60", "series=400x1x1"


def test_a_new_dataset_gets_chunks_for_what_will_be_read(daily: Path) -> None:
    access = ("map=1x180x360", "series=2000x1x1")
    advice = advise_new("2000x180x360", "f4", access, like=f"{daily}:t2m")
    assert advice.present is None
    assert not advice.verified
    assert "no file yet" in advice.reason
    assert advice.best.chunks is not None
    assert 1 < advice.best.chunks[0] < 2000
    assert {fix.tool for fix in advice.fixes} >= {"h5py", "netCDF4", "xarray", "C", "Fortran"}
    assert all(fix.writing for fix in advice.fixes)


def test_data_that_compresses_otherwise_gets_another_size(daily: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.h5"
    with h5py.File(noise, "w") as file:
        file["x"] = np.random.default_rng(0).normal(size=(300, 40, 60)).astype("f4")
    sizes = [
        advise_new((500, 40, 60), "f4", (MAP,), like=f"{path}:{name}").best_nbytes
        for path, name in ((daily, "t2m"), (noise, "x"))
    ]
    assert sizes[0] < 0.9 * sizes[1]


def test_without_data_like_it_the_answer_says_so() -> None:
    advice = advise_new("400x40x60", "i2", (SERIES,))
    assert "made-up" in advice.reason


def test_mistakes_are_one_line(daily: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(daily.parent)
    said = mistakes("""
advise daily.nc
advise daily.nc t2m --like b.nc
advise daily.nc t2m --shape 10x10
advise --shape 10x10
advise --shape 0x10 --type f4
advise --shape auto --type f4
advise --shape 10x10 --type speed
advise --shape 10x10 --type S8
advise --shape 10x10 --type f4 --access 1x1x1
advise --shape 10x10 --type f4 --access 20x1
advise --shape 400x40x60 --type f8 --access 1x40x60 --like daily.nc:t2m
""")
    assert_golden("advise-questions-mistakes", said)
