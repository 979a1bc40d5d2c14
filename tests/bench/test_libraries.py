"""Does a worker load the libhdf5 that was asked for, that one alone, and is a bad one refused?"""

import platform
import struct
import sys
import sysconfig
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.measure import libraries
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.measure.tables import cell_label
from chunkwise.trials.trial import Trial
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
