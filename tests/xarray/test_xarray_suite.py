"""Do xarray's own tests of its netCDF engines pass, when they read by ours?"""

import os
from pathlib import Path

import pytest

pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")


from tests.support.suites import finish, start

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


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_xarrays_own_tests(run: str, tmp_path: Path) -> None:
    if "netCDF4" in run and not os.environ.get("CHUNKWISE_XARRAY"):
        pytest.skip("netCDF4 by Dask's threads crashes at times: set CHUNKWISE_XARRAY=1 to run it")
    expression, replaced, least = RUNS[run]
    ours = tmp_path / "ours"
    found = finish(start(ours, "xarray", expression, *replaced), ours)
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
        folder = tmp_path / "plain"
        again = start(folder, "xarray", f"{expression} and ({' or '.join(names)})")
        plain = finish(again, folder, may_crash=True)
        failed = {
            test: why for test, why in failed.items() if plain["outcomes"].get(test) == "passed"
        }
    assert failed == {}
