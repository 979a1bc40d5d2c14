"""Is the right libhdf5 found, the wrong one refused, and a vast chunk index affordable?"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import LibraryError
from tests.support.processes import python
from tests.support.versions import needs_chunk_iter

PHIL = h5py._objects.phil
SYSTEM = sorted(Path("/usr/lib").glob("*/libhdf5_serial.so.*"))
SOME = "kernel32.dll" if sys.platform == "win32" else "libm.so.6"
MiB = 1 << 20


def test_the_library_is_that_of_h5py() -> None:
    bound = library()
    assert bound is library()
    assert bound.version == h5py.version.hdf5_version_tuple
    assert Path(bound.path).is_file()
    assert Path(bound.path).name.startswith(("libhdf5", "hdf5"))
    assert h5py.version.hdf5_version in repr(bound)


@pytest.mark.skipif(not SYSTEM, reason="no libhdf5_serial in /usr/lib (Debian: libhdf5-103)")
def test_from_path_is_another_library() -> None:
    bound = _native.Library.from_path(str(SYSTEM[0]))
    assert bound.version >= (1, 10, 5)
    assert bound.path == str(SYSTEM[0])
    # Binding it changes nothing for h5py's own.
    space = h5s.create_simple((3, 5))
    again = _native.Library.from_handle((space.id, (3, 5)), [h5d.__file__], PHIL)
    assert (again.version, again.path) == (library().version, library().path)
    with tempfile.TemporaryFile() as stream, h5py.File(stream, "w") as f:
        f["x"] = [1, 2]
        assert f["x"][1] == 2


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (SOME, rf"{SOME} has no H5open: it is not libhdf5"),
        ("/no/such/libhdf5.so", "cannot open /no/such/libhdf5.so as a library: .*(such|found)"),
        (__file__, "cannot open .*test_binding.py as a library"),
        ("/tmp", "cannot open /tmp as a library"),
        ("nul\0byte", "cannot open"),
    ],
)
def test_what_is_not_libhdf5_is_refused(path: str, message: str) -> None:
    with pytest.raises(LibraryError, match=message):
        _native.Library.from_path(path)


FROM_PROCESS = """
import importlib.util, sys
for name in sys.argv[2:]:
    __import__(name)
spec = importlib.util.spec_from_file_location("chunkwise._native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
try:
    bound = native.Library.from_process()
    print("bound", *bound.version, bound.path)
except OSError as error:
    print(type(error).__name__, error)
"""


def from_process(*imports: str) -> str:
    """What from_process says where these modules are loaded, and chunkwise itself is not."""
    assert _native.__file__ is not None
    return python(FROM_PROCESS, _native.__file__, *imports)


def test_from_process_finds_the_only_one() -> None:
    major, minor, release = h5py.version.hdf5_version_tuple
    assert from_process("h5py").startswith(f"bound {major} {minor} {release} ")


def test_from_process_without_any() -> None:
    assert from_process() == "LibraryError no libhdf5 is loaded in this process"


def test_from_process_refuses_to_choose() -> None:
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("netCDF4 is not installed")
    found = python(
        "import h5py, netCDF4\n"
        "maps = {l.split()[-1] for l in open('/proc/self/maps') if 'libhdf5' in l}\n"
        "print(len([m for m in maps if '_hl' not in m]))"
    )
    if found == "1":
        pytest.skip("h5py and netCDF4 share one libhdf5 here")
    said = from_process("h5py", "netCDF4")
    assert said.startswith("LibraryError 2 copies of libhdf5 are loaded in this process (")
    assert "h5py" in said
    assert "netcdf4" in said.lower()


# Reads a dataset with a million chunks, or a sparse one in a vast grid, and says how
# much memory that took beyond what the process had when the file was open.
READ = """
import sys
import h5py, numpy as np, chunkwise
from chunkwise.trials.environment import peak_rss_nbytes as peak
with h5py.File(sys.argv[1]) as f:
    d = chunkwise.wrap(f["d"])
    chunkwise.settings().threads
    before = peak()
    {work}
    print(peak() - before)
"""
DENSE = """
    plan = d.explain()
    assert plan["path"] == "chunked", plan
    assert (plan["chunks"], plan["missing_chunks"]) == (1_000_000, 0), plan
    assert plan["stored_nbytes"] == plan["selected_nbytes"] == 4_000_000, plan
    whole = d[...]
    want = np.full(4_000_000, 9, "u1")
    want[123:456] = np.arange(333) % 200
    want[-5:] = 1
    assert np.array_equal(whole, want)
    assert d[2_000_001] == 9 and d[-1] == 1
    assert np.array_equal(d[100:3_999_999:777], want[100:3_999_999:777])
"""


@needs_chunk_iter
@pytest.mark.parametrize(
    ("libver", "unlimited"),
    [("earliest", False), ("latest", False), ("latest", True)],
    ids=["v1 B-tree", "implicit", "extensible array"],
)
@pytest.mark.slow
def test_a_million_chunks(tmp_path: Path, libver: str, unlimited: bool) -> None:
    path = tmp_path / "million.h5"
    # Early allocation, so that libhdf5 makes all chunks at once.
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4,))
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_value(np.array(9, "u1"))
    most = (h5s.UNLIMITED,) if unlimited else (4_000_000,)
    with h5py.File(path, "w", libver=libver) as f:
        space = h5s.create_simple((4_000_000,), most)
        d = h5py.Dataset(h5d.create(f.id, b"d", h5t.STD_U8LE, space, dcpl))
        d[123:456] = np.arange(333) % 200
        d[-5:] = 1
    used = int(python(READ.format(work=DENSE.strip()), str(path)))
    # 12 bytes a chunk, twice that while the index is made, and the results.
    assert used < 120 * MiB


SPARSE = """
    points = np.load(sys.argv[2])
    for i, j in points[::7].tolist():
        assert d[i, j] == 5 and d[i, j - 1 if j else 1] in (0, 5)
        box = np.s_[max(i - 12, 0) : i + 12, max(j - 12, 0) : j + 12]
        assert np.array_equal(d[box], f["d"][box])
        plan = d.explain(np.s_[i, j])
        assert (plan["path"], plan["chunks"], plan["missing_chunks"]) == ("chunked", 1, 0)
    assert d[:: 10**5, 5].shape == (100,)
"""
SPARSE_PLAN = """
    plan = d.explain()
    written = f["d"].id.get_num_chunks()
    assert (plan["chunks"], plan["missing_chunks"]) == (10**12, 10**12 - written), plan
    assert plan["stored_nbytes"] == f["d"].id.get_storage_size(), plan
    assert plan["decoded_nbytes"] == written * 400, plan
    rows = d.explain(np.s_[: 5 * 10**6])
    assert rows["chunks"] == 5 * 10**11 and rows["decoded_nbytes"] < plan["decoded_nbytes"]
"""


@pytest.mark.parametrize("work", [SPARSE, SPARSE_PLAN], ids=["read", "explain"])
def test_a_thousand_chunks_in_a_vast_grid(tmp_path: Path, work: str) -> None:
    """Time and memory follow what was written, never the size of the grid."""
    path, points = tmp_path / "sparse.h5", np.random.default_rng(0).integers(0, 10**7, (1000, 2))
    np.save(tmp_path / "points.npy", points)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (10**7, 10**7), "i4", chunks=(10, 10), compression=1)
        for i, j in points:
            d[i, j] = 5
    code = READ.format(work=work.strip())
    # The limit ends a loop over the grid, which would take days.
    used = int(python(code, str(path), str(tmp_path / "points.npy")))
    assert used < 60 * MiB
