"""Does another zlib take the place of libhdf5's, and is one refused that would not?"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import _native, measure
from chunkwise.errors import UsageError
from chunkwise.measure.libraries import check_zlib
from chunkwise.measure.libraries import find as find_library
from chunkwise.measure.space import Space
from chunkwise.measure.tables import cell_label
from chunkwise.trials.zlibs import check_in_force, preloading
from chunkwise_lab.studies.libraries import ALL, expand, find_zlibs
from chunkwise_lab.studies.study import OTHERS


def loaded(name: str) -> str:
    """Find a library that this process, which has h5py, has loaded."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.rpartition(" ")[2]
        if Path(path).name.startswith(name):
            return path
    pytest.skip(f"no {name} is loaded: libhdf5 has its own built in")


@pytest.fixture
def other(tmp_path: Path) -> str:
    """Copy the zlib that is installed: it does the same, from another place."""
    folder = tmp_path / "other"
    folder.mkdir()
    return str(shutil.copy(loaded("libz.so"), folder / "libz.so.1"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset(
            "x", data=np.arange(120).reshape(12, 10), chunks=(4, 10), compression=1
        )
    return path


@pytest.mark.parametrize("operation", ["read", "write"])
def test_another_zlib_is_in_force_and_told(file: Path, other: str, operation: str) -> None:
    readers = ["libhdf5", "h5py", "chunkwise"]
    space = Space.of(
        operation=[operation], access=["4x10"], reader=readers, zlib=["default", other]
    )
    results = measure.run(file, "x", space, repeat=1)
    # chunkwise has encoders of its own.
    assert [(c.reader, c.point["zlib"]) for c in results.cells] == [
        ("libhdf5", "default"), ("libhdf5", other), ("h5py", "default"), ("h5py", other),
        ("chunkwise", "default"),
    ]  # fmt: skip
    assert [cell.problem for cell in results.cells] == [None] * 5
    assert (results.mismatches, results.compared) == ([], 5)
    assert [record["zlib"] for record in results.records[:4]] == [results.records[0]["zlib"]] * 4
    assert f"zlib {results.records[1]['zlib']}" in cell_label(results, results.cells[1])
    # The record also has what was asked for.
    assert [record["zlib_path"] for record in results.records[:2]] == [None, other]


def test_what_is_no_zlib_is_refused(file: Path) -> None:
    libm = loaded("libm.so")
    space = Space.of(access=["all"], reader=["libhdf5"], zlib=[libm])
    with pytest.raises(UsageError, match="cannot be loaded in zlib's place") as caught:
        measure.run(file, "x", space, repeat=1)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no such file"):
        measure.run(file, "x", Space.of(reader=["libhdf5"], zlib=["/nowhere/libz.so"]))
    spaced = file.parent / "a b"
    shutil.copy(libm, spaced)
    with pytest.raises(UsageError, match="colon or a space"):
        measure.run(file, "x", Space.of(reader=["libhdf5"], zlib=[str(spaced)]))
    concerns = r"zlib .* concerns read and write by h5py, libhdf5 and netcdf4"
    with pytest.raises(UsageError, match=concerns):
        Space.of(access=["all"], reader=["chunkwise"], zlib=[libm]).points(())


def test_a_library_with_a_zlib_of_its_own_is_refused(other: str) -> None:
    """Such as the extension module, into which one is built."""
    code = (
        "import sys\n"
        "from chunkwise.trials.zlibs import check_in_force\n"
        "check_in_force(*sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, other, str(_native.__file__)]
    environment = {**os.environ, **preloading(other)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "has a zlib of its own built in" in ran.stderr


def test_what_was_not_preloaded_is_not_in_force(other: str) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        check_in_force(other, str(_native.__file__))
    assert preloading(None) == {}


def test_a_list_of_preloaded_libraries_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/a.so:/b.so")
    assert preloading("/z.so") == {"LD_PRELOAD": "/z.so:/a.so:/b.so"}


def test_zlibs_of_the_machine_are_found(other: str, tmp_path: Path) -> None:
    library = find_library(None, str(tmp_path))
    assert check_zlib(other, "libhdf5", library) == library.zlib
    found = find_zlibs([other])
    # A version that is there already is not another one.
    assert found["default"] == library.zlib
    assert other not in found
    with pytest.raises(UsageError, match="cannot be loaded"):
        find_zlibs([loaded("libm.so")])
    with pytest.raises(UsageError, match="no such file"):
        find_zlibs(["/nowhere/libz.so"])


def test_a_study_takes_all_that_were_found(other: str) -> None:
    zlibs = {"default": "1.2.13", other: "1.3.1.zlib-ng"}
    for word, values in ((ALL, ("default", other)), (OTHERS, (other,))):
        space, reasons = expand(Space.of(reader=["libhdf5"], zlib=[word]), {}, zlibs)
        assert space is not None
        assert (space.axes["zlib"], reasons) == (values, [])
    alone = {"default": "1.2.13"}
    assert expand(Space.of(zlib=[OTHERS]), {}, alone)[0] is None
    space, reasons = expand(Space.of(zlib=[ALL]), {}, alone)
    assert space is not None
    assert space.axes["zlib"] == ("default",)
    assert "such as zlib-ng's" in reasons[0]
