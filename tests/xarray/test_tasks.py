"""Is it said, once and with the line that helps, that Dask reads tiny chunks one by one?"""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.xarray import tasks

xarray = pytest.importorskip("xarray")
pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def nothing_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_warned", False)
    monkeypatch.setattr(tasks, "_reads", itertools.count(1))


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """A file of 1,200 chunks of 400 bytes."""
    path = tmp_path / "tiny.nc"
    values = xarray.DataArray(np.arange(120_000.0).astype("f4").reshape(1200, 10, 10))
    values.to_dataset(name="t").rename(dim_0="time", dim_1="y", dim_2="x").to_netcdf(
        path, engine="h5netcdf", encoding={"t": {"chunksizes": (1, 10, 10), "zlib": True}}
    )
    return str(path)


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_the_line_in_the_warning_makes_fewer_tasks(tiny: str, scheduler: str) -> None:
    with xarray.open_dataset(tiny, engine="chunkwise", chunks={}) as ds:
        with pytest.warns(UserWarning, match="1,000 tasks") as said:
            values = ds["t"].compute(scheduler=scheduler).values
        assert len(said) == 1
        assert len(ds["t"].chunks[0]) == 1200
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ds["t"].compute(scheduler=scheduler)
    (line,) = re.findall(r"open with (chunks=.*)$", str(said[0].message))
    assert line == "chunks={'time': 1200, 'y': 10, 'x': 10}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = eval(
            f"xarray.open_dataset(tiny, engine='chunkwise', {line})",
            {"xarray": xarray, "tiny": tiny},
        )
        with again:
            assert again["t"].data.npartitions == 1
            assert np.array_equal(again["t"].compute(scheduler=scheduler), values)
    with h5py.File(tiny) as file:
        assert np.array_equal(file["t"], values)


def test_reads_without_dask_are_not_spoken_of(tiny: str) -> None:
    with xarray.open_dataset(tiny, engine="chunkwise") as ds, warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(1200):
            ds["t"].isel(time=step).load()


@pytest.mark.parametrize("chunk_size", ["128MiB", "400B"])
def test_what_larger_blocks_would_not_help_is_not_spoken_of(tiny: str, chunk_size: str) -> None:
    import dask

    with dask.config.set({"array.chunk-size": chunk_size}), warnings.catch_warnings():
        warnings.simplefilter("error")
        if chunk_size == "400B":
            # Dask is told to make none that are larger.
            with xarray.open_dataset(tiny, engine="chunkwise", chunks={}) as ds:
                ds["t"].compute(scheduler="threads")
        else:
            # Of larger blocks, a series at a time: no read is of more elements than a chunk.
            with xarray.open_dataset(tiny, engine="chunkwise", chunks={"time": 60}) as ds:
                for number in range(60):
                    ds["t"].isel(x=number % 10, y=number % 7).compute(scheduler="threads")


def test_chunks_that_are_large_or_all_are_not_counted() -> None:
    kind = np.dtype("f4")
    of = tasks.Blocks.of
    assert of(("t", "x"), (100, 1 << 18), kind, (1, 1 << 18)) is None
    assert of(("t", "x"), (10, 10), kind, (10, 10)) is None
    assert of(("t", "x"), (10, 10), kind, None) is None
    found = of(("t", "x"), (1 << 20, 1000), kind, (10, 100))
    assert found is not None
    larger = found.larger()
    assert larger["t"] % 10 == 0
    assert larger["x"] % 100 == 0
    assert 32 << 20 < 4 * larger["t"] * larger["x"] <= 128 << 20
