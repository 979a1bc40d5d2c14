"""Do libraries take a chunkwise file where they take one of h5py's, and find the same in it?"""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import engine_reads

NUMBERS = np.random.default_rng(5).normal(size=(60, 40)).astype("f4")


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


def test_xarray_is_given_the_file(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "field.nc"
    names = np.array(["west", "east"], object)
    field = xarray.Dataset({"t": (("y", "x"), NUMBERS), "name": ("side", names)}, {"y": range(60)})
    field.to_netcdf(path, engine="h5netcdf", encoding={"t": {"zlib": True, "chunksizes": (7, 9)}})
    before = engine_reads()
    with chunkwise.open(path) as file:
        lazily = xarray.open_dataset(file, engine="h5netcdf")
        assert (lazily["t"][5:9, ::3] == NUMBERS[5:9, ::3]).all()
        assert engine_reads() > before
        assert lazily.load().identical(field)
        assert xarray.open_datatree(file, engine="h5netcdf").to_dataset().load().identical(field)


FRAME_FILTERS: list[dict[str, Any]] = [
    {},
    {"complevel": 3, "complib": "zlib"},
    {"complevel": 3, "complib": "blosc:lz4"},
    {"complevel": 3, "complib": "blosc2:zstd"},
]


@pytest.mark.parametrize("filters", FRAME_FILTERS, ids=lambda given: given.get("complib", "none"))
def test_what_pandas_writes(tmp_path: Path, filters: dict[str, Any]) -> None:
    """PyTables' tables, arrays and indexes: by the engine, or, where they hold text, libhdf5."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("tables", reason="pandas writes HDF5 by PyTables: pip install tables")
    path = tmp_path / "frame.h5"
    n = 5000
    frame = pandas.DataFrame({"a": np.sqrt(np.arange(n)), "b": np.arange(n) % 17})
    text = frame.assign(side=["left", "right"] * (n // 2), ok=frame["b"] > 8)
    with pandas.HDFStore(path, "w", **filters) as store:
        store.put("fixed", frame)
        store.append("table", frame, data_columns=["b"])
        store.append("text", text, data_columns=["side"])
    with chunkwise.open(path) as file:
        assert file["table"].attrs["pandas_type"] == b"frame_table"
        visited: list[str] = []
        file.visit(visited.append)
        with h5py.File(path) as theirs:
            wanted: list[str] = []
            theirs.visit(wanted.append)
        assert visited == wanted
        before = engine_reads()
        table: Any = file["table/table"]
        assert (table["b"] == frame["b"]).all()
        assert (table[700:900:3]["values_block_0"][:, 0] == frame["a"][700:900:3]).all()
        assert (file["fixed/block0_values"][:, 0] == frame["a"]).all()
        assert engine_reads() >= before + 3
        if not filters or filters["complib"] == "zlib":  # libhdf5 itself has no other.
            rows = file["text/table"][()]
            assert (rows["side"].astype("U") == text["side"]).all()
            assert (rows["index"] == text.index).all()
    with chunkwise.open(path, "r+", sync=False) as file:
        table = file["table/table"]
        rows = table[10:20]
        rows["values_block_0"] *= -1
        table[10:20] = rows
    frame.loc[10:19, "a"] *= -1
    assert pandas.read_hdf(path, "table").equals(frame)
    assert pandas.read_hdf(path, "text").equals(text)


def test_pynwb(tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    path = tmp_path / "session.nwb"
    session = pynwb.NWBFile("a session", "id", datetime(2020, 1, 2, tzinfo=timezone.utc))
    data: Any = pynwb.H5DataIO(NUMBERS, compression="gzip", chunks=(7, 9))
    session.add_acquisition(pynwb.TimeSeries(name="signal", data=data, unit="V", rate=10.0))
    session.add_trial_column("side", "left or right")
    for n in range(20):
        session.add_trial(float(n), n + 0.5, side="lr"[n % 2])
    with chunkwise.open(path, "w", sync=False) as file, pynwb.NWBHDF5IO(file=file, mode="w") as io:
        io.write(session)
    before = engine_reads()
    with chunkwise.open(path) as file, pynwb.NWBHDF5IO(file=file, mode="r") as io:
        read = io.read()
        assert (read.acquisition["signal"].data[...] == NUMBERS).all()
        assert read.trials.to_dataframe()["side"].tolist() == ["l", "r"] * 10
    assert engine_reads() > before


def test_silx(tmp_path: Path) -> None:
    io = pytest.importorskip("silx.io", reason="pip install silx")
    convert = pytest.importorskip("silx.io.convert")
    dictdump = pytest.importorskip("silx.io.dictdump")
    h5py_utils = pytest.importorskip("silx.io.h5py_utils")
    nxdata = pytest.importorskip("silx.io.nxdata")
    utils = pytest.importorskip("silx.io.utils")
    path, copy = tmp_path / "scan.h5", tmp_path / "copy.h5"
    scan = {
        "@NX_class": "NXroot",
        "@default": "entry",
        "entry": {
            "@NX_class": "NXentry",
            "@default": "data",
            "title": "a scan",
            "data": {
                "@NX_class": "NXdata",
                "@signal": "image",
                "image": NUMBERS,
                ">same": "image",
            },
        },
    }
    with chunkwise.open(path, "w", sync=False) as file:
        dictdump.dicttonx(scan, file, create_dataset_args={"compression": "gzip"})
        assert type(file["entry/data/image"]) is chunkwise.Dataset
    before = engine_reads()
    with chunkwise.open(path) as file:
        image = file["entry/data/image"]
        assert [io.is_file(x) for x in (file, image.parent, image)] == [True, False, False]
        assert [io.is_group(x) for x in (file, image.parent, image)] == [True, True, False]
        assert [io.is_dataset(x) for x in (file, image.parent, image)] == [False, False, True]
        assert io.is_softlink(image.parent.get("same", getlink=True))
        assert utils.get_h5py_class(image) is h5py.Dataset
        assert utils.h5ls(file) == utils.h5ls(str(path)).replace("<HDF5", "<chunkwise")
        assert (dictdump.h5todict(file, "/entry")["data"]["image"] == NUMBERS).all()
        assert dictdump.nxtodict(file)["entry"]["@NX_class"] == "NXentry"
        assert (nxdata.get_default(file).signal[3:5] == NUMBERS[3:5]).all()
        assert (utils.h5py_read_dataset(image) == NUMBERS).all()
        convert.write_to_h5(file, str(copy), mode="w")
    assert engine_reads() > before
    with io.open(str(copy)) as theirs:
        assert (theirs["entry/data/image"][()] == NUMBERS).all()
    # What silx opens itself, mostly without locks, is ours by `wrap`.
    with h5py_utils.File(path) as theirs:
        assert (chunkwise.wrap(theirs["entry/data/image"])[5:9] == NUMBERS[5:9]).all()


def test_nexusformat(tmp_path: Path) -> None:
    nexus = pytest.importorskip("nexusformat.nexus", reason="pip install nexusformat")
    path = tmp_path / "scan.nxs"
    with chunkwise.open(path, "w", sync=False) as file:
        file.attrs["default"] = "entry"
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        data = entry.create_group("data")
        data.attrs.update({"NX_class": "NXdata", "signal": "image"})
        data.create_dataset("image", data=NUMBERS, chunks=(7, 9), filters="deflate:1")
    # It opens files itself, by their names; a dataset it takes from whoever has it.
    assert (nexus.nxload(path)["entry/data"].nxsignal.nxdata == NUMBERS).all()
    with chunkwise.open(path) as file:
        before = engine_reads()
        field = nexus.NXfield(file["entry/data/image"])
        assert (field[3:5, 6:8].nxdata == NUMBERS[3:5, 6:8]).all()
        assert engine_reads() > before
