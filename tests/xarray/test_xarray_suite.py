"""Do xarray's own tests of its netCDF engines pass, when they read by ours?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

SUITE = Path(__file__).parents[1] / "support" / "xarray_suite.py"
# A minute on a busy machine; a hang is what this ends.
HANG_S = 900

# What each run has, which engines it replaces, and how many tests pass at least.
RUNS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "what h5netcdf writes": (
        "(TestH5NetCDFData or TestH5NetCDFFileObject or TestH5NetCDFViaDaskData"
        " or TestH5NetCDFDatatreeIO)",
        ("h5netcdf",),
        250,
    ),
    "what netCDF4 writes": (
        "(TestNetCDF4Data or TestNetCDF4ViaDaskData or TestOpenMFDatasetWithDataVarsAndCoordsKw"
        " or TestDask or TestNetCDF4DatatreeIO or TestNetCDF4ClassicViaNetCDF4Data)",
        ("netcdf4", "h5netcdf"),
        250,
    ),
}
# These fail by our engine, and why that is meant: parts of their names.
ON_PURPOSE = {
    "test_phony_dims_warning": "a warning of a default that changed is for who knew the former",
    "TestNetCDF4Data::test_byte_attrs": "attributes are h5netcdf's: those of bytes are decoded",
    "TestNetCDF4ViaDaskData::test_byte_attrs": "as above",
    "TestNetCDF4Data::test_compression_encoding": "filters are named as h5netcdf names them",
    "TestNetCDF4ViaDaskData::test_compression_encoding": "as above",
    "TestNetCDF4Data::test_roundtrip_complex": "an option that netCDF4 alone has",
    "TestNetCDF4ViaDaskData::test_roundtrip_complex": "as above",
}


def _run(
    folder: Path, expression: str, replaced: tuple[str, ...], *, may_crash: bool = False
) -> Any:
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(SUITE), "outcomes.json", expression, *replaced],
            cwd=folder,
            stdout=log,
            stderr=log,
            env=os.environ | {"TMPDIR": str(folder)},
            timeout=HANG_S,
        )
    if may_crash and done.returncode < 0:
        return {"outcomes": {}}
    assert done.returncode == 0, (folder / "log").read_text()[-2000:]
    return json.loads((folder / "outcomes.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_xarrays_own_tests(run: str, tmp_path: Path) -> None:
    if "netCDF4" in run and not os.environ.get("CHUNKWISE_XARRAY"):
        pytest.skip("netCDF4 by Dask's threads crashes at times: set CHUNKWISE_XARRAY=1 to run it")
    expression, replaced, least = RUNS[run]
    found = _run(tmp_path / "ours", expression, replaced)
    assert sum(outcome == "passed" for outcome in found["outcomes"].values()) >= least
    failed = {
        test: found["why"].get(test, "")
        for test, outcome in found["outcomes"].items()
        if outcome == "failed" and not any(part in test for part in ON_PURPOSE)
    }
    if failed:
        # Some fail with xarray's own engines, too, in some versions of what they use; netCDF4 at
        # times crashes where Dask's threads write by it.
        names = {test.rpartition("::")[2].partition("[")[0] for test in failed}
        plain = _run(
            tmp_path / "plain", f"{expression} and ({' or '.join(names)})", (), may_crash=True
        )
        failed = {
            test: why for test, why in failed.items() if plain["outcomes"].get(test) == "passed"
        }
    assert failed == {}
