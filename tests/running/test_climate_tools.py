"""Do CDO, NCO and netCDF's own tools give the same, byte for byte, with the engine under them?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from chunkwise.running import environment
from tests.running.test_programs import reads
from tests.support.tools import require_tool

pytest.importorskip("netCDF4")

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)


@pytest.fixture(scope="module")
def climate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A field as models write it, packed and plain, with coordinates."""
    import netCDF4

    path = tmp_path_factory.mktemp("climate") / "in.nc"
    steps, rows, columns = 24, 36, 72
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("lat", rows), ("lon", columns)):
            file.createDimension(name, size)
        axes = (
            ("time", np.arange(steps) * 0.25, "days since 2000-01-01"),
            ("lat", np.linspace(-87.5, 87.5, rows), "degrees_north"),
            ("lon", np.arange(columns) * 5.0, "degrees_east"),
        )
        for name, values, units in axes:
            axis = file.createVariable(name, "f8", (name,))
            axis.units = units
            axis.standard_name = {"lat": "latitude", "lon": "longitude"}.get(name, name)
            axis[:] = values
        rng = np.random.default_rng(1)
        field = 280 + rng.normal(size=(steps, rows, columns)).cumsum(2).round(2)
        plain = file.createVariable(
            "t", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(5, 20, 30),
            fill_value=np.float32(-999),
        )  # fmt: skip
        plain.units = "K"
        plain[:] = np.where(field > 290, -999, field)
        packed = file.createVariable(
            "p", "i2", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=(1, 36, 72),
            fill_value=np.int16(-32768),
        )  # fmt: skip
        packed.scale_factor, packed.add_offset, packed.units = 0.01, 280.0, "K"
        packed[:] = field
    return path


CDO = [
    ("timmean",), ("fldmean",), ("-selname,t", "-sellonlatbox,20,90,-30,30"),
    ("-seltimestep,3,9",),
    ("-b", "F64", "-addc,1"), ("-f", "nc", "copy"), ("-yearmean", "-selname,p"),
]  # fmt: skip
NCO = [
    ("ncks", "-h", "-d", "lat,,,7"), ("ncra", "-h"), ("ncwa", "-h", "-a", "lon"),
    ("ncks", "-h", "-C", "-v", "p", "-d", "time,2,20,3"), ("ncpdq", "-h", "-U", "-L", "0"),
]  # fmt: skip
PRINTED = [
    ("cdo", "-s", "infon"), ("ncks", "-H"), ("ncdump",), ("nccopy", "-k", "classic"),
]  # fmt: skip


def both(words: list[str | Path], climate: Path, folder: Path, writes: bool) -> None:
    """Run alone and with the engine; what is said and written is the same."""
    report = folder / "report"
    under = dict(os.environ, **environment.variables(report=str(report)))
    found = []
    for way, variables in (("plain", dict(os.environ)), ("under", under)):
        (folder / way).mkdir()
        (folder / way / "in.nc").symlink_to(climate)
        done = subprocess.run(
            [*words, "in.nc", *(["out.nc"] if writes else [])], cwd=folder / way, env=variables,
            capture_output=True, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        written = (folder / way / "out.nc").read_bytes() if writes else b""
        found.append((done.stdout, written))
    assert found[0] == found[1]
    assert len(found[0][0]) + len(found[0][1]) > 500
    assert reads(report) > 0, report.read_text()


@pytest.mark.parametrize("operators", CDO, ids=" ".join)
def test_cdo(operators: tuple[str, ...], climate: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [require_tool("cdo"), "-s", "--no_history", *operators]
    both(words, climate, tmp_path, writes=True)


@pytest.mark.parametrize("words", NCO, ids=" ".join)
def test_nco(words: tuple[str, ...], climate: Path, tmp_path: Path) -> None:
    both([require_tool(words[0]), *words[1:]], climate, tmp_path, writes=True)


@pytest.mark.parametrize("words", PRINTED, ids=" ".join)
def test_what_is_printed(words: tuple[str, ...], climate: Path, tmp_path: Path) -> None:
    writes = words[0] == "nccopy"
    both([require_tool(words[0]), *words[1:]], climate, tmp_path, writes)
