"""What is written through chunkwise is what h5py, netCDF4 and HDF5's tools read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.tools import require_tool


def test_hdf5_tools_find_no_difference(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(40, 30)).astype("f4")
    ours, theirs = tmp_path / "ours.h5", tmp_path / "theirs.h5"
    with chunkwise.open(ours, "w", sync=False) as file:
        file.attrs["title"] = "t"
        made = file.create_dataset("g/x", data=data, chunks=(7, 9), filters="shuffle+deflate:4")
        made.attrs["units"] = "K"
        file["grown"] = [1, 2, 3]
    with h5py.File(theirs, "w") as file:
        file.attrs["title"] = "t"
        other = file.create_dataset(
            "g/x", data=data, chunks=(7, 9), compression="gzip", compression_opts=4, shuffle=True
        )
        other.attrs["units"] = "K"
        file["grown"] = [1, 2, 3]
    subprocess.run([require_tool("h5diff"), ours, theirs], check=True)
    dumped = [
        subprocess.run(
            [require_tool("h5dump"), path.name], cwd=tmp_path, check=True, capture_output=True
        ).stdout.splitlines()[1:]
        for path in (ours, theirs)
    ]
    assert dumped[0] == dumped[1]


# netCDF4 brings a libhdf5 of its own, and so gets a process of its own.
NETCDF = """
import sys, numpy as np, netCDF4
path, step = sys.argv[1:]
if step == "make":
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("time", None); d.createDimension("x", 50)
        v = d.createVariable("t", "f4", ("time", "x"), compression="zlib", complevel=2,
                             fletcher32=True, chunksizes=(4, 20), fill_value=-1)
        v.units = "K"; v[:3] = np.arange(150).reshape(3, 50)
        d.createVariable("time", "f8", ("time",))[:] = [0, 1, 2]
else:
    with netCDF4.Dataset(path) as d:
        v = d["t"]; v.set_auto_mask(False)
        assert v.shape == (10, 50) and v.units == "degC" and d.history == "longer", v
        want = np.arange(500).reshape(10, 50); want[1] = 7
        assert (v[:] == want).all()
        assert d["time"].shape == (10,) and (d["time"][:] == np.arange(10)).all()
"""


def test_a_netcdf_file_is_one_afterwards(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    path = tmp_path / "x.nc"

    def netcdf(step: str) -> None:
        subprocess.run([sys.executable, "-c", NETCDF, str(path), step], check=True)

    netcdf("make")
    with chunkwise.open(path, "r+", sync=False) as file:
        variable: Any = file["t"]
        variable.append(np.arange(150, 500).reshape(7, 50))
        variable[1] = 7
        variable.attrs["units"] = "degC"
        time: Any = file["time"]
        time.append(np.arange(3, 10))
        file.attrs["history"] = "longer"
    netcdf("check")
    subprocess.run([require_tool("ncdump"), "-h", path], check=True, capture_output=True)


def test_fast_reaches_the_encoder(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 50, (20, 5000), "i4")
    told = {}
    for level in ("9", "fast"):
        with chunkwise.open(tmp_path / f"{level}.h5", "w", sync=False) as file:
            made = file.create_dataset(
                "x", data=data, chunks=(10, 5000), filters=f"deflate:{level}"
            )
            file.flush()
            told[level] = made.explain_write()["encoder"]
    assert told["fast"] != told["9"]


def test_a_removed_dataset_takes_what_waits_with_it(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "x.h5", "w", sync=False) as file:
        made = file.create_dataset("x", (4, 100), "i4", chunks=(4, 100), filters="deflate:1")
        made[0] = 1
        del file["x"]
        other = file.create_dataset("x", (4, 100), "i4", chunks=(2, 100), filters="deflate:1")
        other[3] = 9
    with h5py.File(tmp_path / "x.h5") as read:
        assert read["x"][3, 0] == 9
        assert read["x"].chunks == (2, 100)
