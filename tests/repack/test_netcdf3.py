"""Is a netCDF-3 file repacked and mended as a netCDF-4 file with all that is in it?"""

import re
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, FileChangedError, UsageError
from chunkwise.files import netcdf3
from chunkwise.inspection import inspect
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.progress import Moment
from tests.support.commands import run
from tests.support.processes import ran
from tests.support.tools import needs_netcdf, require_tool

pytestmark = needs_netcdf

FORMATS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
TYPES = ("i1", "S1", "i2", "i4", "f4", "f8")
MORE_TYPES = ("u1", "u2", "u4", "i8", "u8")
STEPS, ROWS, COLUMNS = 30, 40, 50


def make(path: Path, format: Any = "NETCDF3_CLASSIC") -> Path:
    """Write every type, an unlimited dimension, and names and attributes of many kinds."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.set_auto_maskandscale(False)
        file.title = "température 温度"
        file.setncattr("empty", "")
        file.setncattr("numbers", np.arange(3, dtype="f4"))
        file.createDimension("time", None)
        file.createDimension("y", ROWS)
        file.createDimension("x", COLUMNS)
        file.createDimension("letters", 7)
        types = TYPES + (MORE_TYPES if format == "NETCDF3_64BIT_DATA" else ())
        for i, dtype in enumerate(types):
            if dtype == "S1":
                made = file.createVariable("name_of_step", "S1", ("time", "letters"))
                made[:] = np.full((STEPS, 7), b"q", "S1")
                continue
            made = file.createVariable(f"v.{dtype}", dtype, ("time", "y", "x"), fill_value=7)
            made.units = "°C"
            made.setncattr("range", np.array([-1, 100], "i2"))
            values = np.arange(STEPS * ROWS * COLUMNS).reshape(STEPS, ROWS, COLUMNS) + i
            made[:] = (values % 120).astype(dtype)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(STEPS) / 3
        file.createVariable("x", "f4", ("x",))[:] = np.linspace(0, 1, COLUMNS)
        file.createVariable("scalar", "i4", ())[...] = 42
        file.createVariable("never_written", "i4", ("y",))
    return path


def make_series(path: Path) -> Path:
    """Write a variable in which netCDF-C makes a chunk of each step."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("station", 6)
        made = file.createVariable("series", "f4", ("time", "station"))
        made[:5000] = np.arange(30000).reshape(5000, 6)
    return path


def dump(path: Path, kind: str = "") -> str:
    """What ncdump prints of a file, without the name that it gives it."""
    done = ran([require_tool("ncdump"), *([kind] if kind else []), str(path)], check=True)
    return re.sub(r"^netcdf .* \{", "netcdf {", done.stdout)


@pytest.mark.parametrize("format", FORMATS)
def test_ncdump_prints_the_same_of_both(format: str, tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", format)
    before = source.read_bytes()
    done = chunkwise.repack(source, tmp_path / "b.nc")
    assert dump(tmp_path / "b.nc") == dump(source)
    assert dump(tmp_path / "b.nc", "-k").strip() == "netCDF-4"
    assert done.verified == "proof"
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc"]


def test_rules_are_followed(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc")
    rules = {"chunk": {"v.f4": (30, 10, 10)}, "filters": {"v.*": "shuffle+deflate:1"}}
    plan = chunkwise.plan_repack(source, **rules)  # type: ignore[arg-type]
    assert "/v.f4" in {step.source.path for step in plan.steps if step.changes}
    chunkwise.repack(source, tmp_path / "b.nc", **rules)  # type: ignore[arg-type]
    assert dump(tmp_path / "b.nc") == dump(source)
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["v.f4"].chunks == (30, 10, 10)
        assert file["v.i2"].compression == "gzip"


def test_in_place_and_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    make(folder / "old.nc")
    said = dump(folder / "old.nc")
    with h5py.File(folder / "new.h5", "w") as file:
        file["x"] = np.arange(5)
    assert [source.name for source, _ in gather([str(folder)], None).pairs] == ["new.h5", "old.nc"]
    done = run("repack", folder, "--in-place")
    assert done.code == 0, done.err
    assert {"1 repacked", "1 skipped"} <= set(re.findall(r"1 [a-z]+", done.out))
    assert h5py.is_hdf5(folder / "old.nc")
    assert dump(folder / "old.nc") == said


def test_fix(tmp_path: Path) -> None:
    nothing = make(tmp_path / "a.nc")
    assert chunkwise.fix(nothing, tmp_path / "b.nc").outcome == "nothing to mend"
    source = make_series(tmp_path / "c.nc")
    plan = chunkwise.fix(source, dry_run=True)
    done = chunkwise.fix(source, tmp_path / "b.nc", seconds=0)
    assert plan.options == done.options
    assert (done.source, done.outcome) == (str(source), "fixed")
    assert not any(one.layout for one in inspect(tmp_path / "b.nc").findings)
    assert dump(tmp_path / "b.nc") == dump(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc", "c.nc"]


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_changes_while_it_is_mended_is_left_alone(
    in_place: bool, tmp_path: Path
) -> None:
    """What is read is a copy, but what counts is the file."""
    source = make_series(tmp_path / "a.nc")

    def change(_: Moment) -> None:
        with netCDF4.Dataset(source, "a") as file:
            file["series"][0, 0] += 1

    target = None if in_place else tmp_path / "b.nc"
    with pytest.raises(FileChangedError, match=r"[/\\]a\.nc: changed while it was repacked"):
        chunkwise.fix(source, target, in_place=in_place, seconds=0, progress=change)
    assert dump(source, "-k").strip() == "classic"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc"]


def test_without_netcdf_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make(tmp_path / "a.nc")
    monkeypatch.setattr(netcdf3, "netcdf_library", lambda: None)
    for work in (
        lambda: chunkwise.repack(source, tmp_path / "b.nc"),
        lambda: chunkwise.fix(source, tmp_path / "b.nc"),
        lambda: chunkwise.plan_repack(source),
    ):
        with pytest.raises(UsageError, match=r"a\.nc: is a netCDF-3 file.*pip install netCDF4"):
            work()
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_what_netcdf4_cannot_hold_is_named_with_the_remedy(tmp_path: Path) -> None:
    """netCDF-3 lets a fill value be of another type than the variable, netCDF-4 does not."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        made = file.createVariable("wind", "i2", ("x",), fill_value=7)
        made[:] = 1
    # The attribute's type in the header: NC_SHORT, which becomes NC_FLOAT, of one value as well.
    raw = (tmp_path / "a.nc").read_bytes()
    at = raw.index(b"_FillValue") + 12
    assert raw[at : at + 4] == b"\0\0\0\x03"
    (tmp_path / "a.nc").write_bytes(raw[:at] + b"\0\0\0\x05" + raw[at + 4 :])
    with pytest.raises(UsageError, match=r"_FillValue of 'wind' has another type .* ncatted -a"):
        chunkwise.repack(tmp_path / "a.nc", tmp_path / "b.nc")
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_damaged_files(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc")
    whole = source.read_bytes()
    for number, damaged in enumerate((whole[:20], whole[:200], b"CDF\x01" + b"\xff" * 100)):
        path = tmp_path / f"{number}.nc"
        path.write_bytes(damaged)
        with pytest.raises(ChunkwiseError, match=rf"{number}\.nc"):
            chunkwise.repack(path, tmp_path / "b.nc")
    assert not (tmp_path / "b.nc").exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_inspect_names_the_command_that_converts(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc")
    with pytest.raises(ChunkwiseError, match=r"convert it: chunkwise repack .*a\.nc a_nc4\.nc"):
        inspect(source)


def test_a_file_that_was_cut_is_told(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc")
    assert chunkwise.repack(source, tmp_path / "b.nc").warnings == ()
    source.write_bytes(source.read_bytes()[:-1000])
    (said,) = chunkwise.repack(source, tmp_path / "c.nc").warnings
    assert "values beyond its end were read as zeros" in said
