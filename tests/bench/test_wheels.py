"""Is the libhdf5 of another version's wheel found, kept and named?  Without a network."""

import zipfile
from pathlib import Path

import h5py
import pytest

from chunkwise.errors import UsageError
from chunkwise.measure import wheels
from chunkwise_lab.studies.libraries import find, said_of

LIBRARIES = Path(h5py.__file__).parent.parent / "h5py.libs"


@pytest.fixture(autouse=True)
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


def test_what_pip_does_not_find_is_one_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"h5py==9\.9\.2: pip finds no wheel .*: \S"):
        wheels.library_of("h5py==9.9.2")
    assert not list((tmp_path / "cache/chunkwise/libraries").iterdir())


@pytest.mark.parametrize("text", ["h5py", "h5py==", "numpy==1.0", "h5py==../x", "h5py==1;ls"])
def test_only_versions_are_wheels(text: str) -> None:
    assert not wheels.is_wheel(text)
