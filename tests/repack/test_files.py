"""Does everything survive, whatever is asked?  Others' tools and libraries say so."""

import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import chunkwise
from tests.support.everything import write_everything
from tests.support.netcdf_files import WRITTEN
from tests.support.repacking import require_equal, text_of, write_example

FOREIGN = os.environ.get("CHUNKWISE_FOREIGN_FILES")


@pytest.mark.parametrize("low", ["earliest", "v108", "latest"])
@pytest.mark.parametrize("tracked", [False, True])
def test_formats_stay_as_old_as_they_are(tmp_path: Path, low: str, tracked: bool) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    write_everything(source, libver=(low, "latest"), track_order=tracked)
    chunkwise.repack(source, out)
    version = [path.read_bytes()[8] for path in (source, out)]
    assert version[0] == version[1]
    with h5py.File(source) as mine, h5py.File(out) as theirs:
        assert list(mine) == list(theirs)


def test_merged_data_are_real_data(tmp_path: Path) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "apart" / "out.h5"
    out.parent.mkdir()
    write_everything(source)
    chunkwise.repack(source, out, merge=True)
    with h5py.File(source) as mine, h5py.File(out) as theirs:
        for name in ("layouts/external", "layouts/virtual"):
            assert theirs[name].external is None
            assert not theirs[name].is_virtual
            np.testing.assert_array_equal(theirs[name][...], mine[name][...])


@pytest.mark.parametrize(
    "rules",
    [
        {"chunk": {"cube": (40, 16, 16)}},
        {"chunk": {"cube": (7, 30, 64)}, "filters": {"cube": "fletcher32+shuffle+deflate:1"}},
        {"chunk": {"cube": "contiguous", "plane": (30, 7)}},
        {"filters": {"cube": "lzf", "plane": "shuffle+szip:nn:8"}},
        {"filters": "none"},
        {"filters": "shuffle+zstd:3", "memory": "4MiB", "chunk": {"cube": (40, 8, 8)}},
        {"chunk": "auto", "access": ["row"], "min_size": "10kB"},
        {"chunk": {"line": 7}, "threads": 1},
    ],
    ids=str,
)
def test_any_rules(tmp_path: Path, rules: dict[str, Any]) -> None:
    source, out = write_example(tmp_path / "in.h5"), tmp_path / "out.h5"
    done = chunkwise.repack(source, out, **rules)
    require_equal(source, out)
    assert done.target_nbytes == out.stat().st_size
    assert out.read_bytes()[:12] == b"a user block"
    with h5py.File(out) as file:
        for one in done.datasets:
            chunks = file[one.path].chunks
            assert one.chunk == ("x".join(map(str, chunks)) if chunks else "contiguous") or (
                one.action == "kept"
            )
            assert one.stored_nbytes == file[one.path].id.get_storage_size()


@pytest.mark.parametrize("low", ["earliest", "latest"])
def test_objects_keep_times_only_if_they_did(tmp_path: Path, low: str) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver=(low, "latest")) as file:
        for name, timed in (("timed", True), ("timeless", False)):
            file.create_dataset(name, data=np.arange(100), chunks=(10,), track_times=timed)
        file.create_group("group")
    chunkwise.repack(source, out, chunk="20")
    # In the latest format groups of HDF5 1.12 have times, too.
    assert [name for name in timed_in(out) if name in ("timed", "timeless")] == ["timed"]
    assert timed_in(out) == timed_in(source)


def timed_in(path: Path) -> list[str]:
    with h5py.File(path) as file:
        return [n for n in ("/", *file) if h5py.h5g.get_objinfo(file[n].id).mtime]


def test_pages_and_format_are_as_asked(tmp_path: Path) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    write_everything(source)
    chunkwise.repack(source, out, page_size="64KiB", low="v110")
    with h5py.File(out) as file:
        fcpl = file.id.get_create_plist()
        assert fcpl.get_file_space_strategy()[0] == h5py.h5f.FSPACE_STRATEGY_PAGE
        assert fcpl.get_file_space_page_size() == 65536
    assert out.read_bytes()[8] == 3  # the superblock's version
    again = tmp_path / "again.h5"
    chunkwise.repack(out, again)
    with h5py.File(again) as file:
        assert file.id.get_create_plist().get_file_space_page_size() == 65536


# netCDF-C may crash on what is not its own.
NETCDF: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in WRITTEN if "HDF5" not in name]
NETCDF += [("groups", {"chunk": "v:5x2"}), ("names", {"filters": "deflate:2"})]


@pytest.mark.parametrize(("name", "rules"), NETCDF, ids=str)
def test_netcdf_stays_netcdf(tmp_path: Path, name: str, rules: dict[str, Any]) -> None:
    source, out = tmp_path / "in.nc", tmp_path / "out.nc"
    write, groups = WRITTEN[name]
    write(source)
    chunkwise.repack(source, out, **rules)
    require_equal(source, out)
    if shutil.which("ncdump"):
        options = () if rules else ("-s",)
        assert text_of(source, *options) == text_of(out, *options)
    for group in groups:
        with (
            xarray.open_dataset(source, group=group, engine="netcdf4") as mine,
            xarray.open_dataset(out, group=group, engine="netcdf4") as theirs,
        ):
            # xarray itself cannot compare rows of different lengths.
            both = [one.drop_vars("ragged", errors="ignore") for one in (mine, theirs)]
            xarray.testing.assert_identical(*both)
    if name == "groups":
        # It can be written to as before.
        with netCDF4.Dataset(out, "a") as file:
            file["a/v"][5] = 1
            assert file["a/v"].shape == (6, 6)


def foreign_files() -> list[Path]:
    found = sorted(path for path in Path(FOREIGN).rglob("*") if path.is_file()) if FOREIGN else []
    return [path for path in found if h5py.is_hdf5(path)]


@pytest.mark.parametrize("path", foreign_files(), ids=lambda path: path.name)
@pytest.mark.parametrize("rules", [{}, {"chunk": "auto", "filters": "shuffle+deflate:1"}], ids=str)
def test_files_of_others(path: Path, tmp_path: Path, rules: dict[str, Any]) -> None:
    out = tmp_path / "out.nc"
    done = chunkwise.repack(path, out, **rules)
    require_equal(path, out)
    assert all("led to nothing" in warning for warning in done.warnings)
    if path.suffix == ".nc" and shutil.which("ncdump"):
        assert text_of(path) == text_of(out)


# --- pages -------------------------------------------------------------------------------


def test_pages_that_double_a_file_are_not_silent(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(path, "w") as file:
        for i in range(30):
            file[f"group{i}/x"] = np.arange(1000.0) + i
    done = chunkwise.repack(path, out, page_size=4 << 20)
    (said,) = (one for one in done.warnings if "pages of 4.0 MiB" in one)
    assert said.endswith("--paged 65536")
    again = chunkwise.repack(path, out, page_size=65536, force=True)
    assert again.target_nbytes < done.target_nbytes / 8
