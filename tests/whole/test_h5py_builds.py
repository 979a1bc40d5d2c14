"""Is the right libhdf5 found, however h5py was built and whatever else is loaded?"""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import LibraryError
from tests.support.h5pys import BUILDS, MPI, ROOT, H5py

PHIL = h5py._objects.phil
# Prints the version that h5py has, that of the library bound, and its path.
READ = """
import sys, h5py, numpy
import chunkwise
from chunkwise._lib import library
want = numpy.arange(10000, dtype="f4").reshape(100, 100)
with chunkwise.open(sys.argv[1]) as f:
    assert f["x"].explain()["path"] == "chunked", f["x"].explain()
    assert numpy.array_equal(f["x"][...], want)
    assert numpy.array_equal(f["x"][3:90:7, 5], want[3:90:7, 5])
with chunkwise.open(sys.argv[1], "r+") as f:
    assert f["x"].explain_write()["path"] == "chunked", f["x"].explain_write()
    f["x"][7:50] += 1
    want[7:50] += 1
with h5py.File(sys.argv[1]) as f:
    assert numpy.array_equal(f["x"][...], want)
print(h5py.version.hdf5_version, *library().version, library().path)
"""


# How a shared library comes to need less than it was linked with, as `patchelf --remove-needed`
# does it: the entry that names the needed library gets a number that the loader passes over.
# (ELF, 64 bits, little-endian.)
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
# Of those left to operating systems, and given to nothing.
_PASSED_OVER = 0x6000_F000


def forget_needed(library: Path, begin: str) -> list[str]:
    """Take out what `library` needs and whose name begins so; gives the names."""
    image = bytearray(library.read_bytes())
    assert image[:6] == b"\x7fELF\x02\x01", library
    (offset,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    headers = [struct.unpack_from("<IIQQQQ", image, offset + n * size) for n in range(count)]
    loads = [
        (at, address, nbytes) for kind, _, at, address, _, nbytes in headers if kind == _PT_LOAD
    ]
    (dynamic,) = (at for kind, _, at, *_ in headers if kind == _PT_DYNAMIC)
    entries = []
    for at in range(dynamic, len(image), 16):
        tag, value = struct.unpack_from("<QQ", image, at)
        if tag == _DT_NULL:
            break
        entries.append((at, tag, value))
    (table,) = (value for _, tag, value in entries if tag == _DT_STRTAB)
    names = next(at + table - first for at, first, n in loads if first <= table < first + n)
    forgotten = []
    for at, tag, value in entries:
        if tag == _DT_NEEDED:
            start = names + value
            name = image[start : image.index(0, start)].decode()
            if name.startswith(begin):
                struct.pack_into("<Q", image, at, _PASSED_OVER)
                forgotten.append(name)
    library.write_bytes(image)
    return forgotten


def write(path: Path) -> Path:
    with h5py.File(path, "w", libver=("earliest", "v110")) as f:
        data = np.arange(10000, dtype="f4").reshape(100, 100)
        f.create_dataset("x", data=data, chunks=(30, 30), compression=4, shuffle=True)
    return path


def check(said: str) -> str:
    """Compare the versions; gives the library's path."""
    hdf5, *version, path = said.strip().splitlines()[-1].split(maxsplit=4)
    assert hdf5.split("-")[0] == ".".join(version)
    assert "libhdf5" in Path(path).name
    return path


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_other_builds_of_h5py_read_and_write(build: H5py, tmp_path: Path) -> None:
    check(build.run("-c", READ, write(tmp_path / "x.h5")))


PARALLEL = """
import sys, h5py
from mpi4py import MPI
import chunkwise
assert h5py.get_config().mpi
with h5py.File(sys.argv[1], "r", driver="mpio", comm=MPI.COMM_WORLD) as f:
    d = chunkwise.wrap(f["x"])
    assert d[3, 5] == 305, d[3, 5]
    print(d.explain()["path"], d.explain()["reason"])
"""


def test_a_file_opened_by_mpi_is_read_by_libhdf5(tmp_path: Path) -> None:
    said = MPI.run("-c", PARALLEL, write(tmp_path / "x.h5"))
    assert said.startswith("libhdf5 "), said
    assert "driver" in said


@pytest.fixture(scope="module")
def unlinked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this h5py, of whose modules `defs` alone names libhdf5 as needed."""
    site = tmp_path_factory.mktemp("site")
    installed = Path(h5py.__file__).parent
    leave_out = shutil.ignore_patterns("tests", "__pycache__")
    shutil.copytree(installed, site / "h5py", ignore=leave_out)
    libraries = installed.parent / "h5py.libs"
    if not libraries.is_dir():
        pytest.skip("h5py was not installed from PyPI's wheel")
    shutil.copytree(libraries, site / "h5py.libs")
    modules = list((site / "h5py").glob("*.so"))
    assert len(modules) > 20
    for module in modules:
        if not module.name.startswith("defs."):
            assert forget_needed(module, "libhdf5"), module
    return site


def run(site: Path, code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        # Before what is installed.
        env={"PYTHONPATH": f"{site}:{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Loads libraries for all to see, in time for modules that do not say which they need.
FOR_ALL = """
import ctypes, sys
from pathlib import Path
for path in sys.argv[2:]:
    # Libraries of older wheels do not say where to find what they need themselves.
    for needed in ("libaec-*", "libsz-*"):
        for beside in Path(path).parent.glob(needed):
            ctypes.CDLL(str(beside))
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
"""


def copies(site: Path) -> tuple[Path, Path]:
    """The copies of libhdf5, and of its high-level interface, which needs it."""
    (library,) = (site / "h5py.libs").glob("libhdf5-*")
    (high_level,) = (site / "h5py.libs").glob("libhdf5_hl-*")
    return library, high_level


def test_a_module_that_names_no_libhdf5(unlinked: Path, tmp_path: Path) -> None:
    ours = copies(unlinked)
    found = check(run(unlinked, FOR_ALL + READ, write(tmp_path / "x.h5"), *ours))
    assert Path(found).samefile(ours[0])


def test_no_module_names_libhdf5(unlinked: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(unlinked, site)
    (defs,) = (site / "h5py").glob("defs.*.so")
    assert forget_needed(defs, "libhdf5")
    ours = copies(site)
    found = check(run(site, FOR_ALL + READ, write(tmp_path / "x.h5"), *ours))
    assert Path(found).samefile(ours[0])


def netcdf_libhdf5() -> Path:
    """The libhdf5 of netCDF4's wheel, which is another than h5py's."""
    folder = Path(netCDF4.__file__).parent.parent / "netcdf4.libs"
    found = sorted(folder.glob("libhdf5-*"))
    if not found:
        pytest.skip("netCDF4 was not installed from PyPI's wheel")
    return found[0]


@pytest.mark.parametrize("imports", ["netCDF4, h5py", "h5py, netCDF4"])
def test_two_libraries_in_one_process(imports: str, unlinked: Path, tmp_path: Path) -> None:
    """Also where the first module asked leads to neither."""
    netcdf_libhdf5()
    ours = copies(unlinked)
    code = f"{FOR_ALL}import {imports}\n{READ}"
    found = check(run(unlinked, code, write(tmp_path / "x.h5"), *ours))
    assert Path(found).samefile(ours[0])


def test_the_library_that_takes_the_place_of_h5pys_own(unlinked: Path, tmp_path: Path) -> None:
    """What is loaded for all to see comes before what a module names."""
    ours = copies(unlinked)
    # The wheel itself, which names one of its own; another copy is what it calls.
    found = check(run(tmp_path, FOR_ALL + READ, write(tmp_path / "x.h5"), *ours))
    assert Path(found).samefile(ours[0])


def test_what_was_tried_is_said() -> None:
    space = h5py.h5s.create_simple((3, 5))
    modules = [h5py.h5d.__file__, _native.__file__ or "", "/no/such/module.so"]
    with pytest.raises(LibraryError) as refused:
        _native.Library.from_handle((space.id, (3, 6)), modules, PHIL)
    said = str(refused.value)
    assert said.startswith("cannot find the libhdf5 that h5py calls: install another build")
    assert f"{library().path} is libhdf5 {h5py.version.hdf5_version}, but another one" in said
    assert f"{_native.__file__} leads to no H5open" in said
    assert "/no/such/module.so: " in said
    # netCDF4's, which nobody named.
    assert said.count("but another one") >= 2
    assert "more libraries of this process" in said
    # And found where it is the right one, although no module leads to it.
    found = _native.Library.from_handle((space.id, (3, 5)), [], PHIL)
    assert found.path == library().path
