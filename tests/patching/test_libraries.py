"""Do libraries that read through h5py run unchanged when it is patched?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import bound_always, engine_reads, traits

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

NUMBERS = np.random.default_rng(5).normal(size=(60, 40)).astype("f4")


def both(read: Callable[[], Any]) -> Any:
    """Read plain and patched; both must be identical, and the engine have a part in it."""
    plain = read()
    before = engine_reads()
    with chunkwise.patch_h5py():
        patched = read()
    assert traits(patched) == traits(plain)
    assert engine_reads() > before
    return plain


def test_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = np.zeros(500, [("time", "<i8"), ("level", "<f8"), ("name", "S4")])
    table["time"], table["level"], table["name"] = range(500), np.sqrt(range(500)), b"a"
    with h5py.File(tmp_path / "table.h5", "w") as f:
        f.create_dataset("table", data=table, chunks=(70,), compression=1)
        f.create_dataset("numbers", data=NUMBERS, chunks=(7, 9), shuffle=True, compression=1)

    def read() -> Any:
        with h5py.File(tmp_path / "table.h5") as f:
            rows = pandas.DataFrame(f["table"][...]).set_index("time")
            columns = pandas.DataFrame({name: f["table"][name] for name in ("time", "level")})
            numbers = pandas.DataFrame(np.asarray(f["numbers"]))
            series = pandas.Series(f["numbers"][:, 3])
        whole = [rows.to_csv(), columns.to_csv(), numbers.describe().to_csv()]
        return [*whole, rows["level"].to_numpy(), numbers.to_numpy(), series.to_numpy()]

    assert (both(read)[4] == NUMBERS).all()


def test_xarray_by_h5netcdf(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path = tmp_path / "field.nc"
    packed = (NUMBERS * 100).astype("i2")
    field = xarray.Dataset(
        {
            "t": (("y", "x"), NUMBERS, {"units": "K"}),
            "packed": (("y", "x"), packed, {"scale_factor": 0.01, "_FillValue": np.int16(-1)}),
            "when": (("y",), np.arange(60).astype("M8[D]").astype("M8[ns]")),
        },
        {"x": np.arange(40.0), "y": np.arange(60)},
    )
    field["packed"].attrs.clear()
    encoding = {name: {"zlib": True, "chunksizes": (13, 11)} for name in ("t", "packed")}
    field.to_netcdf(path, engine="h5netcdf", encoding=encoding)

    def read() -> Any:
        with xarray.open_dataset(path, engine="h5netcdf") as d:
            lazily = d["t"].isel(y=slice(3, 50, 4), x=[1, 2, 30]).load()
            whole = d.load()
            parts = [whole[name].to_numpy() for name in ("t", "packed", "when", "x")]
            return [repr(whole), lazily.to_numpy(), whole["t"].mean("x").to_numpy(), *parts]

    assert (both(read)[3] == NUMBERS).all()


def test_anndata(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "cells.h5ad"
    counts = sparse.random(60, 40, 0.2, "csr", random_state=1, dtype="f4")
    cells = anndata.AnnData(
        NUMBERS,
        obs=pandas.DataFrame({"kind": pandas.Categorical(["a", "b"] * 30)}, map(str, range(60))),
        var=pandas.DataFrame({"score": np.arange(40.0)}, [f"gene{n}" for n in range(40)]),
        layers={"counts": counts},
        obsm={"pca": NUMBERS[:, :5]},
    )
    cells.write_h5ad(path, compression="gzip")

    def parts(cells: Any) -> list[Any]:
        counts = cells.layers["counts"]
        frames = [cells.obs.to_csv(), cells.var.to_csv(), repr(cells)]
        return [*frames, cells.X, counts.data, counts.indices, counts.indptr, cells.obsm["pca"]]

    def read() -> Any:
        backed = anndata.read_h5ad(path, backed="r")
        some = [backed.X[5:20], backed[[1, 4, 9]].to_memory().X, backed[:, "gene3"].X[...]]
        backed.file.close()
        return [*parts(anndata.read_h5ad(path)), *some]

    assert (both(read)[3] == NUMBERS).all()


@pytest.mark.slow
def test_pynwb(tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    from datetime import datetime, timezone

    path = tmp_path / "session.nwb"
    start = datetime(2020, 1, 2, tzinfo=timezone.utc)
    session = pynwb.NWBFile("a session", "id", start)
    data = pynwb.H5DataIO(NUMBERS, compression="gzip", chunks=(7, 9))
    session.add_acquisition(pynwb.TimeSeries(name="signal", data=data, unit="V", rate=10.0))
    session.add_trial_column("side", "left or right")
    for n in range(20):
        session.add_trial(float(n), n + 0.5, side="lr"[n % 2])
    with pynwb.NWBHDF5IO(path, "w") as io:
        io.write(session)

    def read() -> Any:
        with pynwb.NWBHDF5IO(path, "r") as io:
            session = io.read()
            signal = session.acquisition["signal"]
            trials = session.trials.to_dataframe().to_csv()
            return [
                signal.data[...],
                signal.data[3:50:7, 2],
                np.asarray(signal.data),
                signal.get_data_in_units(),
                trials,
                session.session_start_time.isoformat(),
            ]

    assert (both(read)[0] == NUMBERS).all()
