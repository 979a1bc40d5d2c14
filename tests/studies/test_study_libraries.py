"""Are libhdf5s found by their build, each once, and those that cannot be loaded passed over?"""

from pathlib import Path

import h5py
import pytest

from chunkwise.errors import UsageError
from chunkwise_lab.studies import libraries
from tests.bench.test_libraries import second_library


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
    monkeypatch.setattr(libraries, "_ROOTS", (str(tmp_path / "lib"),))
    found = libraries.find()
    own = found["default"]
    assert (own.version, own.build) == (h5py.version.hdf5_version, "h5py's")
    assert found[str(by_name)].build == "Open MPI"
    assert str(broken) not in found
    # The same file by another name is the same library.
    assert sum(Path(value).resolve() == Path(real).resolve() for value in found) == 1
    with pytest.raises(UsageError, match="cannot be used"):
        libraries.find([str(broken)])
