"""Does a worker load the libhdf5 and zlib that were asked for, and are bad ones refused?"""

import os
import platform
import shutil
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import _native, measure
from chunkwise.errors import UsageError
from chunkwise.measure import libraries, wheels
from chunkwise.measure.libraries import check_zlib
from chunkwise.measure.libraries import find as find_library
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.measure.tables import cell_label
from chunkwise.trials.trial import Trial
from chunkwise.trials.zlibs import check_in_force, preloading
from chunkwise_lab.studies import libraries as of_studies
from chunkwise_lab.studies.libraries import ALL, expand, find, find_zlibs, said_of
from chunkwise_lab.studies.study import OTHERS
from tests.support.processes import ran

DEBIAN = Path(f"/usr/lib/{platform.machine()}-linux-gnu/libhdf5_serial.so.103")


def second_library() -> str:
    """Give the path of a libhdf5 that is not h5py's."""
    if DEBIAN.exists():
        return str(DEBIAN)
    wheel = Path(sysconfig.get_path("platlib")) / "netCDF4.libs"
    for folder in (wheel, wheel.with_name("netcdf4.libs")):
        found = sorted(folder.glob("libhdf5-*.so*"))
        if found:
            return str(found[0])
    pytest.skip(f"there is no second libhdf5: neither {DEBIAN} nor one in netCDF4's wheel")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        data = np.arange(12 * 10).reshape(12, 10).astype(">i4")
        f.create_dataset("x", data=data, chunks=(4, 10), compression=1, shuffle=True)
    return path


def refusal(asked: str, folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        libraries.find(asked, str(folder))
    said = str(caught.value)
    assert "\n" not in said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("operation", ["read", "write"])
def test_all_libraries_give_the_same_bytes(file: Path, operation: str) -> None:
    path = second_library()
    readers = ["libhdf5", "chunkwise", "h5py"] if operation == "read" else ["libhdf5", "h5py"]
    space = Space.of(
        operation=[operation], access=["3x4"], reader=readers,
        libhdf5=["default", path, sys.executable],
    )  # fmt: skip
    results = measure.run(file, "x", space, repeat=1)
    assert [cell.problem for cell in results.cells] == [None] * len(results.cells)
    assert results.mismatches == []
    # h5py brings its own, so that a path makes no difference to it.
    assert results.compared == 3 * len(readers) - 1
    versions = {
        (c.reader, c.point["libhdf5"]): c.measurements[0].environment["hdf5"]
        for c in results.cells
    }
    other = libraries.find(path, str(file.parent)).version
    assert versions["libhdf5", path] == other
    assert versions["libhdf5", "default"] == h5py.version.hdf5_version
    assert versions["h5py", sys.executable] == h5py.version.hdf5_version


@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_worker_has_one_libhdf5(file: Path, tmp_path: Path, operation: str) -> None:
    path = second_library()
    maps = tmp_path / "maps"
    # The worker itself, looking at what it has loaded when all is measured.
    work = (
        "import json, sys; from pathlib import Path\n"
        "from chunkwise.trials import worker\n"
        "from chunkwise.trials.trial import Trial\n"
        "trial = Trial.from_json(json.load(sys.stdin)); values = worker.measure(trial)\n"
        f"Path({str(maps)!r}).write_text(Path('/proc/self/maps').read_text())\n"
        "json.dump(values, sys.stdout)\n"
    )
    data = np.arange(12 * 10).astype(">i4")
    data.tofile(tmp_path / "elements")
    trial = Trial(
        str(file), "x", "all", (12, 10), "libhdf5", libhdf5=path, shape=(12, 10), itemsize=4,
        dtype=">i4", native_order=False, storage=str(file), timeout_s=60.0, chunks=(4, 10),
        data=str(tmp_path / "elements"), scratch=str(tmp_path), filter_ids=(2, 1),
        operation="write" if operation == "write" else "read",
    )  # fmt: skip
    found = measure_in_worker(trial, (sys.executable, "-c", work))
    assert found.status == "ok", found.error
    mapped = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    loaded = {Path(name) for name in mapped if Path(name).name.startswith("libhdf5")}
    assert loaded == {Path(path).resolve()}


def test_a_relative_path_means_the_file_here(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path(second_library())
    monkeypatch.chdir(library.parent)
    space = Space.of(
        access=["all"], reader=["libhdf5"], libhdf5=[library.name, f"./{library.name}"]
    )
    (cell,) = measure.run(file, "x", space, repeat=1).cells  # two spellings of one library
    assert cell.problem is None
    assert cell.trial.libhdf5 == str(library)


def test_libraries_of_one_version_are_told_apart(file: Path) -> None:
    space = Space.of(access=["all"], reader=["h5py"], libhdf5=["default", sys.executable])
    results = measure.run(file, "x", space, repeat=1)
    version = h5py.version.hdf5_version
    assert [cell_label(results, cell) for cell in results.cells] == [
        f"h5py, {version} (default)",
        f"h5py, {version} ({sys.executable})",
    ]


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(str(tmp_path / "libhdf5.so"), tmp_path)


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no library")
    folder = tmp_path / "folder.so"
    folder.mkdir()
    for path in (text, folder):
        assert "cannot be used: cannot open" in refusal(str(path), tmp_path)


def test_another_library_is_refused(tmp_path: Path) -> None:
    mapped = Path("/proc/self/maps").read_text().splitlines()
    names = {line.split()[-1] for line in mapped if "libz" in line and ".so" in line}
    if not names:
        pytest.skip("no libz is loaded that could be given for an HDF5")
    assert "it is not libhdf5 1.10.5 or later" in refusal(sorted(names)[0], tmp_path)


def test_another_architecture_is_named(tmp_path: Path) -> None:
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    if head[:4] != b"\x7fELF":
        pytest.skip("this system's programs are not ELF")
    (machine,) = struct.unpack_from("<H", head, 18)
    struct.pack_into("<H", head, 18, 183 if machine != 183 else 62)  # AArch64, or x86-64
    path = tmp_path / "libhdf5.so"
    path.write_bytes(head)
    assert "built for another architecture" in refusal(str(path), tmp_path)


def test_what_is_no_python_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    for path in (plain, tmp_path):
        assert refusal(str(path), tmp_path).endswith("cannot be used: Permission denied")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    assert refusal(str(silent), tmp_path).endswith("it says nothing")


def test_a_python_without_h5py_says_so(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    assert "No module named" in refusal(str(bare), tmp_path)


def test_what_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_PATIENCE_S", 0.5)
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 30\n")
    hanging.chmod(0o755)
    said = refusal(str(hanging), tmp_path)
    assert said.endswith("cannot be used: it gave no answer within 0.5 s")


def test_plugins_are_found_after_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hdf5plugin")
    monkeypatch.delenv("HDF5_PLUGIN_PATH", raising=False)
    ours = libraries.plugins()["HDF5_PLUGIN_PATH"]
    assert list(Path(ours).glob("*.so"))
    monkeypatch.setenv("HDF5_PLUGIN_PATH", "/their/filters")
    assert libraries.plugins() == {"HDF5_PLUGIN_PATH": f"/their/filters:{ours}"}
    # This tells HDF5 to load none.
    monkeypatch.setenv("HDF5_PLUGIN_PATH", "::")
    assert libraries.plugins() == {}


def test_a_run_that_is_refused_leaves_nothing(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    done = ran(
        [
            *(sys.executable, "-c", "from chunkwise.cli import main; main()", "bench"),
            *(str(file), "x", "--reader", "libhdf5", "--libhdf5", str(file)),
        ],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []
    assert done.stdout == ""


# --- another zlib ------------------------------------------------------------------------


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


# --- libhdf5 of another version's wheel, without a network -------------------------------


LIBRARIES = Path(h5py.__file__).parent.parent / "h5py.libs"


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip find what lies in a folder, and nothing else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make_wheel(folder: Path) -> Path:
    """Make a wheel of h5py 9.9.1 for one old Python, with the libraries of the one installed."""
    wheel = folder / "h5py-9.9.1-cp37-cp37m-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in LIBRARIES.iterdir():
            archive.write(path, f"h5py.libs/{path.name}")
        archive.writestr("h5py/__init__.py", "")
        about = "Metadata-Version: 2.1\nName: h5py\nVersion: 9.9.1\n"
        archive.writestr("h5py-9.9.1.dist-info/METADATA", about)
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp37-cp37m-manylinux2014_x86_64\n"
        archive.writestr("h5py-9.9.1.dist-info/WHEEL", tag)
    return wheel


@pytest.mark.skipif(not LIBRARIES.is_dir(), reason="this h5py is no wheel for Linux")
@pytest.mark.usefixtures("offline")
def test_the_library_of_a_wheel_is_kept_and_named(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    path = wheels.library_of("h5py==9.9.1")
    assert Path(path).parent == tmp_path / "cache/chunkwise/libraries/h5py-9.9.1"
    assert said_of(path) == "h5py 9.9.1's wheel"
    assert sorted(p.name for p in Path(path).parent.iterdir()) == sorted(
        p.name for p in LIBRARIES.iterdir()
    )
    wheel.unlink()
    assert wheels.library_of("h5py==9.9.1") == path
    found = find(["h5py==9.9.1"])[path]
    assert str(found) == f"HDF5 {h5py.version.hdf5_version} (h5py 9.9.1's wheel)"


@pytest.mark.usefixtures("offline")
def test_what_pip_does_not_find_is_one_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"h5py==9\.9\.2: pip finds no wheel .*: \S"):
        wheels.library_of("h5py==9.9.2")
    assert not list((tmp_path / "cache/chunkwise/libraries").iterdir())


@pytest.mark.parametrize("text", ["h5py", "h5py==", "numpy==1.0", "h5py==../x", "h5py==1;ls"])
def test_only_versions_are_wheels(text: str) -> None:
    assert not wheels.is_wheel(text)


# --- those that studies find -------------------------------------------------------------


def test_builds_are_named_and_what_does_not_load_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib" / "some-linux-gnu"
    (folder / "hdf5" / "mpich").mkdir(parents=True)
    real = second_library()
    by_name = folder / "libhdf5_openmpi.so.103"
    by_name.symlink_to(real)
    (folder / "libhdf5_openmpi.so.103.3.0").symlink_to(real)
    broken = folder / "hdf5" / "mpich" / "libhdf5.so"
    broken.write_text("no library")
    monkeypatch.setattr(of_studies, "_ROOTS", (str(tmp_path / "lib"),))
    found = of_studies.find()
    own = found["default"]
    assert (own.version, own.build) == (h5py.version.hdf5_version, "h5py's")
    assert found[str(by_name)].build == "Open MPI"
    assert str(broken) not in found
    # The same file by another name is the same library.
    assert sum(Path(value).resolve() == Path(real).resolve() for value in found) == 1
    with pytest.raises(UsageError, match="cannot be used"):
        of_studies.find([str(broken)])
