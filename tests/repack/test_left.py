"""In place, what needs no change is left alone; merging names the filter that is missing."""

import os
import sys
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import CannotJudgeError
from tests.support.filtered import Case, create
from tests.support.processes import ran
from tests.support.repacking import command


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(10,), compression=1)
    return path


def stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


@pytest.mark.parametrize("words", [(), ("--unchanged", "skip")])
def test_in_place_a_file_that_is_as_asked_is_left_alone(
    source: Path, words: tuple[str, ...]
) -> None:
    before = stamp(source)
    done = command(source, "--in-place", "--chunk", "x:10", *words)
    assert done.returncode == 0, done.stderr
    assert "already has this layout, and was left as it is" in done.stdout
    assert stamp(source) == before
    summary = chunkwise.repack(source, in_place=True, chunk="x:10")
    assert summary.left
    assert [one.path for one in summary.datasets] == ["/x"]
    assert stamp(source) == before


def test_in_place_it_is_written_anew_if_told_so(source: Path) -> None:
    before = stamp(source)
    done = command(source, "--in-place", "--chunk", "x:10", "--unchanged", "copy")
    assert done.returncode == 0, done.stderr
    assert stamp(source)[0] != before[0]
    before = stamp(source)
    assert not chunkwise.repack(source, in_place=True, unchanged="copy").left
    assert stamp(source)[0] != before[0]
    # What changes the file as a whole is a change.
    before = stamp(source)
    assert not chunkwise.repack(source, in_place=True, alignment=4096).left
    assert stamp(source)[0] != before[0]


@pytest.mark.parametrize("absolute", [False, True])
def test_merging_names_the_filter_that_is_missing(tmp_path: Path, absolute: bool) -> None:
    with h5py.File(tmp_path / "behind.h5", "w") as file:
        data = np.arange(1000).reshape(10, 100)
        file.create_dataset("d", data=data, chunks=(1, 100), **hdf5plugin.Zstd())
    name = str(tmp_path / "behind.h5") if absolute else "behind.h5"
    layout = h5py.VirtualLayout((10, 100), "i8")
    layout[:] = h5py.VirtualSource(name, "d", (10, 100))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    program = (
        "import sys; sys.modules['hdf5plugin'] = None\n"
        "from chunkwise.cli.main import main\n"
        "sys.argv = ['chunkwise', 'repack', 'in.h5', 'out.h5', '--merge']\n"
        "sys.exit(main())"
    )
    environment = {**os.environ, "HDF5_PLUGIN_PATH": str(tmp_path / "none")}
    done = ran([sys.executable, "-c", program], cwd=tmp_path, env=environment)
    assert done.returncode == 3, done.stderr
    assert "'/v': " in done.stderr
    assert "behind.h5 cannot be read here: filter 32015 (zstd)" in done.stderr
    assert "pip install hdf5plugin" in done.stderr
    assert "damaged" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in.h5", "behind.h5"}
    # With what the message says, it works.
    assert command("in.h5", "out.h5", "--merge", cwd=tmp_path).returncode == 0


def test_a_dataset_whose_filter_is_missing_is_left_by_a_pattern(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "b.h5"
    stored = bytes(range(24))
    with h5py.File(path, "w") as file:
        file["here"] = np.arange(1000)
        made = create(file, "lzo", "<i4", (10,), (10,), [Case(305, (2,))])
        made.id.write_direct_chunk((0,), stored)
    done = chunkwise.repack(path, out, chunk="*:500", filters="deflate:1")
    lzo = next(one for one in done.datasets if one.path == "/lzo")
    assert any("filter 305 (LZO) is not here" in reason for reason in lzo.left)
    with h5py.File(out) as file:
        assert file["here"].chunks == (500,)
        assert file["lzo"].id.read_direct_chunk((0,)) == (0, stored)
    with pytest.raises(CannotJudgeError, match="filter 305"):
        chunkwise.repack(path, out, filters="lzo:none", force=True)


def test_plugins_of_netcdf4s_wheel_are_left_to_its_own_hdf5(tmp_path: Path) -> None:
    """`import netCDF4` names their folder for child processes; in h5py's HDF5 they fail."""
    netcdf4 = pytest.importorskip("netCDF4")
    folder = Path(netcdf4.__file__).parent / "plugins"
    if not (folder.parents[1] / "netcdf4.libs").is_dir():
        pytest.skip("netCDF4 has no HDF5 of its own here")
    path, out = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.arange(1000)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(100,), **hdf5plugin.Blosc())
    made = [sys.executable, "-m", "chunkwise", "repack", str(path), str(out)]
    environment = {**os.environ, "HDF5_PLUGIN_PATH": str(folder)}
    done = ran([*made, "--filter", "blosc:lz4:3"], env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(out) as file:
        np.testing.assert_array_equal(file["x"][:], values)
