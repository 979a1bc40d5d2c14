"""Do h5py's own tests come out patched, on our files and under `run`, as they do plain?"""

from pathlib import Path

import pytest

from chunkwise.running import environment
from tests.support.suites import finish, start

# On chunkwise's files these fail, and why that is meant.
ON_PURPOSE = {
    "test_dataset.py::TestRepr::test_repr_anonymous": "it says what it is",
    "test_dataset.py::TestRepr::test_repr_basic": "it says what it is",
    "test_dataset.py::TestRepr::test_repr_closed": "it says what it is",
    "test_dataset.py::TestCreateShape::test_no_dtype": "single precision needs no warning",
    "test_dataset.py::TestCreateCompressionNumber::test_compression_number_invalid": (
        "the message is in our words"
    ),
    "test_dataset_getitem.py::Test1DFloat::test_indexlist_monotonic_negative": "it is taken",
    "test_dataset_getitem.py::Test1DFloat::test_indexlist_nonmonotonic": "it is taken",
    "test_dataset_getitem.py::Test1DFloat::test_indexlist_repeated": "it is taken",
    "test_dataset_getitem.py::Test1DFloat::test_slice_backwards": "it is taken",
    "test_file.py::TestFileLocking::test_unsupported_locking": "that there is no file comes first",
    "test_vds/test_lowlevel_vds.py::test_virtual_prefix": "its file keeps the dataset open",
    "test_file2.py::TestDealloc::test_autoclose": "a group keeps its file's identifier",
    "test_file2.py::TestFileObj::test_exception_writeonly": "the error names the dataset, too",
    "test_file2.py::TestFileObj::test_exception_write": (
        "closing says that a flush has failed: HDF5 2.0 flushes nothing after it"
    ),
}


@pytest.mark.slow
def test_h5pys_own_tests_have_the_same_outcomes(tmp_path: Path) -> None:
    ways = {"plain": [], "patched": ["--patched"], "face": ["--face"]}
    runs = {way: start(tmp_path / way, "h5py", *options) for way, options in ways.items()}
    report = tmp_path / "report"
    under = environment.LIBRARY.is_file()
    if under:
        # Small arrays, too, are read and written by the engine.
        given = environment.variables(report=str(report)) | {"CHUNKWISE_WRITE_LEAST": "1"}
        runs["run"] = start(tmp_path / "run", "h5py", **given)
    records = {way: finish(run, tmp_path / way) for way, run in runs.items()}
    plain, patched, face = (records[way]["outcomes"] for way in ways)
    if under:
        assert records["run"]["outcomes"] == plain
        assert "by chunkwise" in report.read_text()
    assert sum(outcome == "passed" for outcome in plain.values()) > 500
    assert patched == plain
    differs = {test for test in plain if face.get(test) != plain[test]}
    assert differs - set(ON_PURPOSE) == set()
    assert set(face) == set(plain)
    # Most of h5py's tests read what they have just written, in a file that is still open.
    stats = records["patched"]["stats"]
    assert stats["engine"] > 20
    assert sum(stats["h5py"].values()) > 100
    assert stats["writes"]["engine"] > 5
