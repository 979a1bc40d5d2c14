"""Do libraries take a chunkwise file where they take one of h5py's, and find the same in it?"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise

NUMBERS = np.random.default_rng(5).normal(size=(60, 40)).astype("f4")


def engine_reads() -> int:
    served: int = chunkwise.patch_stats()["engine"]
    return served


def test_anndata(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "cells.h5ad"
    counts = sparse.random(60, 40, 0.2, "csr", random_state=1, dtype="f4")
    cells = anndata.AnnData(
        NUMBERS,
        obs=pandas.DataFrame({"kind": pandas.Categorical(["a", "b"] * 30)}, map(str, range(60))),
        layers={"counts": counts},
    )
    cells.write_h5ad(path, compression="gzip")
    before = engine_reads()
    with chunkwise.open(path) as file:
        some = anndata.io.sparse_dataset(file["layers/counts"])[5:9]
        assert (some.toarray() == counts[5:9].toarray()).all()
        assert engine_reads() > before
        # It looks exact classes up, and so takes no class that derives from h5py's.
        with pytest.raises(Exception, match=r"No .*method"):
            anndata.io.read_elem(file)
        with chunkwise.patch_h5py():
            ours = anndata.io.read_elem(file.h5py)
    assert (ours.X == NUMBERS).all()
    assert ours.obs.equals(cells.obs)
    assert (ours.layers["counts"] != counts).nnz == 0


def test_h5netcdf_and_xarray(tmp_path: Path) -> None:
    h5netcdf = pytest.importorskip("h5netcdf")
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "field.nc"
    with chunkwise.open(path, "w", sync=False) as file, h5netcdf.File(file, "r+") as made:
        made.dimensions = {"y": 60, "x": 40}
        made.create_variable("t", ("y", "x"), "f4", data=NUMBERS, compression="gzip")
        made.create_variable("x", ("x",), "f8", data=np.arange(40.0))
    with xarray.open_dataset(path, engine="h5netcdf") as want:
        want.load()
    before = engine_reads()
    with chunkwise.open(path) as file, h5netcdf.File(file, "r") as found:
        assert (found["t"][...] == NUMBERS).all()
        store = xarray.backends.H5NetCDFStore(found)
        assert xarray.open_dataset(store).load().identical(want)
    assert engine_reads() > before


def test_pandas(tmp_path: Path) -> None:
    """A table as `pandas.HDFStore` writes it."""
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "frame.h5"
    table = np.zeros(500, [("index", "<i8"), ("values_block_0", "<f8", (2,)), ("name", "S4")])
    table["index"], table["values_block_0"] = range(500), np.sqrt(np.arange(1000)).reshape(-1, 2)
    with h5py.File(path, "w") as file:
        file.create_dataset("frame/table", data=table, chunks=(70,), compression=1)
    with chunkwise.open(path) as file:
        found = file["frame/table"]
        columns = pandas.DataFrame({name: found[name] for name in ("index", "name")})
        assert columns["index"].tolist() == list(range(500))
        assert (found["values_block_0"] == table["values_block_0"]).all()
        assert (np.asarray(found) == table).all()


def test_pynwb(tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    path = tmp_path / "session.nwb"
    session = pynwb.NWBFile("a session", "id", datetime(2020, 1, 2, tzinfo=timezone.utc))
    data: Any = pynwb.H5DataIO(NUMBERS, compression="gzip", chunks=(7, 9))
    session.add_acquisition(pynwb.TimeSeries(name="signal", data=data, unit="V", rate=10.0))
    session.add_trial_column("side", "left or right")
    for n in range(20):
        session.add_trial(float(n), n + 0.5, side="lr"[n % 2])
    with (
        chunkwise.open(path, "w", sync=False) as file,
        pynwb.NWBHDF5IO(file=file, mode="w") as io,
    ):
        io.write(session)
    before = engine_reads()
    with chunkwise.open(path) as file, pynwb.NWBHDF5IO(file=file, mode="r") as io:
        read = io.read()
        assert (read.acquisition["signal"].data[...] == NUMBERS).all()
        assert read.trials.to_dataframe()["side"].tolist() == ["l", "r"] * 10
    assert engine_reads() > before
