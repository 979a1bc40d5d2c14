"""Is a file that is written through netCDF-C, timed, the file that was asked for?"""

from __future__ import annotations

import ctypes.util
import importlib.util
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import netCDF4
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise._native import NetCdf, Walk
from chunkwise.errors import CannotWriteError, UsageError
from tests.support.processes import ran

if TYPE_CHECKING:
    from chunkwise._native import NetCdfWriteResult

Filters = tuple[tuple[int, tuple[int, ...]], ...]

DEFLATE, SHUFFLE, FLETCHER32, SZIP = 1, 2, 3, 4
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
NC_SZIP_NN = 32


def libraries() -> list[str]:
    """The libnetcdf of netCDF4's wheel, and the system's."""
    spec = importlib.util.find_spec("netCDF4")
    assert spec is not None
    assert spec.origin is not None
    beside = Path(spec.origin).parents[1] / "netcdf4.libs"
    found = [*map(str, sorted(beside.glob("libnetcdf-*.so*"))), ctypes.util.find_library("netcdf")]
    return [path for path in found if path]


LIBRARIES = libraries()
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="there is no libnetcdf")
each_library = pytest.mark.parametrize("library", LIBRARIES)


@dataclass(frozen=True)
class Case:
    """What is written, and how."""

    shape: tuple[int, ...] = (4, 6)
    block: tuple[int, ...] = (2, 4)
    dtype: str = "i4"
    big_endian: bool = False
    chunks: tuple[int, ...] | None = (2, 3)
    filters: Filters = ((DEFLATE, (4,)),)
    cache: tuple[int, int, float] | None = None
    order: tuple[int, ...] | None = None
    seed: int | None = None
    max_operations: int = 10**9
    variable: str = "/group/of groups/values"
    fill: bool = True
    data: npt.NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(len(self.shape))
        nbytes = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        data = rng.integers(0, 256, nbytes, dtype=np.uint8).view(self.dtype).reshape(self.shape)
        data.flags.writeable = False
        object.__setattr__(self, "data", data)

    def walk(self) -> Walk:
        if not self.shape:
            return Walk.listed((), [((), (), (), ())])
        return Walk(self.shape, self.block, order=self.order, seed=self.seed)

    def write(self, library: str, path: Path) -> NetCdfWriteResult:
        return NetCdf(library).write_walk(
            str(path),
            self.variable,
            self.dtype,
            self.big_endian,
            self.shape,
            self.chunks,
            self.filters,
            self.cache,
            self.data.reshape(-1).view(np.uint8),
            self.walk(),
            self.max_operations,
            np.inf,
            fill=self.fill,
        )

    def expected(self) -> npt.NDArray[Any]:
        """The values of the whole array: netCDF's fill value where nothing was written."""
        values = np.full(self.shape, netCDF4.default_fillvals[self.dtype], self.dtype)
        walk = self.walk()
        for number in range(min(walk.operations, self.max_operations)):
            start, _, _, block = walk[number]
            index = tuple(slice(s, s + b) for s, b in zip(start, block, strict=True))
            values[index] = self.data[index]
        return values


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 9), max_size=4).map(tuple))
    parts = st.tuples(*[st.integers(1, length) for length in shape])
    filters: Filters = ()
    chunks = draw(st.none() | parts) if shape else None
    if chunks is not None:
        # In the order in which netCDF-C puts them.
        if draw(st.booleans()):
            filters += ((FLETCHER32, ()),)
        if draw(st.booleans()):
            filters += ((SHUFFLE, ()),)
        if draw(st.booleans()):
            filters += ((DEFLATE, (draw(st.integers(0, 9)),)),)
    how = draw(st.sampled_from(["c", "axes", "random"])) if shape else "c"
    return Case(
        shape=shape,
        block=draw(parts),
        dtype=draw(st.sampled_from(DTYPES)),
        big_endian=draw(st.booleans()),
        chunks=chunks,
        filters=filters,
        cache=draw(st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9999), st.just(0.5))),
        order=tuple(draw(st.permutations(range(len(shape))))) if how == "axes" else None,
        seed=draw(st.integers(0, 2**64 - 1)) if how == "random" else None,
        max_operations=draw(st.integers(1, 50)),
        variable=draw(st.sampled_from(["values", "/axis0", "/a b/c/values"])),
    )


def filters_of(plist: h5py.h5p.PropDCID) -> list[int]:
    return [plist.get_filter(number)[0] for number in range(plist.get_nfilters())]


@each_library
@settings(max_examples=75, deadline=None)
@given(case=cases())
@pytest.mark.slow
def test_the_file_holds_what_was_given(library: str, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.nc"
        result = case.write(library, path)
        assert result["operations"] == min(case.walk().operations, case.max_operations)
        for part in ("create_s", "elapsed_s", "flush_s", "close_s", "sync_s"):
            assert result[part] >= 0.0
        if case.chunks is None:
            assert result["chunk_cache"] is None
        elif case.cache is not None:
            assert result["chunk_cache"] == case.cache

        expected = case.expected()
        with h5py.File(path) as file:
            dataset = file[case.variable]
            order = ">" if case.big_endian else "<"
            assert dataset.dtype == np.dtype(order + case.dtype)
            assert (dataset.shape, dataset.chunks) == (case.shape, case.chunks)
            plist = dataset.id.get_create_plist()
            assert filters_of(plist) == [number for number, _ in case.filters]
            for number, (filter_id, options) in enumerate(case.filters):
                if filter_id == DEFLATE:
                    assert plist.get_filter(number)[2] == options
            assert dataset[()].astype(case.dtype).tobytes() == expected.tobytes()
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            values = np.asarray(file[case.variable][...])
            assert values.astype(case.dtype).tobytes() == expected.tobytes()
        # Read as it was written, it gives the same bytes in the same order.
        variable = NetCdf(library).open(str(path), case.variable, None)
        read = variable.walk(case.walk(), result["operations"], np.inf)
        assert read["checksums"] == result["checksums"]


@each_library
@pytest.mark.parametrize("before", [(), ((SHUFFLE, ()),)], ids=["alone", "shuffled"])
def test_szip_is_applied(library: str, before: Filters, tmp_path: Path) -> None:
    # Chunks are written once: libhdf5 forgets that szip gave one up where it had not before,
    # and both took the same space.
    filters: Filters = (*before, (SZIP, (NC_SZIP_NN, 2)))
    case = Case(filters=filters, block=(2, 6))
    case.write(library, tmp_path / "szip.nc")
    with h5py.File(tmp_path / "szip.nc") as file:
        dataset = file[case.variable]
        assert filters_of(dataset.id.get_create_plist()) == [number for number, _ in filters]
        assert np.array_equal(dataset[()], case.data)


@each_library
def test_without_filling_nothing_is_filled(library: str, tmp_path: Path) -> None:
    for fill, expected in [(True, h5py.h5d.FILL_TIME_IFSET), (False, h5py.h5d.FILL_TIME_NEVER)]:
        path = tmp_path / f"{fill}.nc"
        Case(fill=fill).write(library, path)
        with h5py.File(path) as file:
            plist = file[Case().variable].id.get_create_plist()
            assert plist.get_fill_time() == expected


@each_library
@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case(filters=((DEFLATE, (4,)), (SHUFFLE, ()))), "would become shuffle+deflate"),
        (Case(filters=((SHUFFLE, ()), (DEFLATE, (4,)), (FLETCHER32, ()))), "would become"),
        (Case(filters=((FLETCHER32, ()), (SZIP, (NC_SZIP_NN, 2)))), "cannot be read"),
        (Case(filters=((65000, ()),)), "HDF5_PLUGIN_PATH"),
        (Case(filters=((DEFLATE, (11,)),)), "a level from 0 to 9"),
        (Case(chunks=None), "deflate needs chunks"),
        (Case(chunks=(2, 7)), "do not fit its shape"),
        (Case(variable="/group/"), "it has no name"),
        (Case(cache=(10, 10, 1.5)), "w0 of its chunk cache"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_made_is_one_error(
    library: str, case: Case, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "refused.nc"
    with pytest.raises(UsageError) as caught:
        case.write(library, path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: variable {case.variable}: ")
    assert "\n" not in str(caught.value)
    assert not path.exists()


@each_library
def test_types_that_are_no_numbers_are_refused(library: str, tmp_path: Path) -> None:
    # Long doubles and complex numbers, which netCDF-C does not know.
    for dtype in ["f2", "f16", "c8", "S1", "<i4"]:
        data, walk = np.zeros(1, np.uint8), Walk((1,), (1,))
        with pytest.raises(UsageError, match="netCDF-C stores i1"):
            NetCdf(library).write_walk(
                str(tmp_path / "type.nc"), "values", dtype, False, (1,), None, [], None,
                data, walk, 1, 1.0,
            )  # fmt: skip
    assert not list(tmp_path.iterdir())


@each_library
def test_data_that_are_not_plain_bytes_are_refused(library: str, tmp_path: Path) -> None:
    def write(data: npt.NDArray[Any]) -> None:
        NetCdf(library).write_walk(
            str(tmp_path / "data.nc"), "values", "u1", False, (4,), None, [], None,
            data, Walk((4,), (4,)), 1, 1.0,
        )  # fmt: skip

    with pytest.raises(TypeError):
        write(np.zeros(4, np.int8))
    with pytest.raises(TypeError):
        write(np.zeros((2, 2), np.uint8))
    with pytest.raises(UsageError, match="not contiguous"):
        write(np.zeros(8, np.uint8)[::2])
    with pytest.raises(UsageError, match=r"3 bytes, not \[4\] elements"):
        write(np.zeros(3, np.uint8))
    assert not list(tmp_path.iterdir())


@each_library
def test_a_file_that_exists_is_left_alone(library: str, tmp_path: Path) -> None:
    path = tmp_path / "precious.nc"
    path.write_text("precious")
    with pytest.raises(CannotWriteError, match="File exists"):
        Case().write(library, path)
    assert path.read_text() == "precious"


@each_library
def test_a_folder_that_is_missing_is_named_as_the_reason(library: str, tmp_path: Path) -> None:
    with pytest.raises(CannotWriteError, match="No such file or directory"):
        Case().write(library, tmp_path / "missing" / "any.nc")
    assert not list(tmp_path.iterdir())


def run(script: str, *arguments: str, before: Sequence[str] = ()) -> str:
    """Run a script in a process of its own, and give what it prints."""
    child = ran([*before, sys.executable, "-c", textwrap.dedent(script), *arguments], timeout=120)
    assert child.returncode == 0, child.stderr
    return child.stdout


FULL_DISK = """
    import os, resource, sys
    import numpy as np
    from chunkwise._native import NetCdf, Walk
    from chunkwise.errors import CannotWriteError

    library, path, limit, filled, cached = sys.argv[1:]
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    data = np.random.default_rng(0).integers(0, 256, 1_000_000, dtype=np.uint8)
    chunks, cache = ((10, 10_000), (100, int(cached), 0.5)) if cached else (None, None)
    try:
        NetCdf(library).write_walk(
            path, "values", "u1", False, (100, 10_000), chunks, [], cache, data,
            Walk((100, 10_000), (7, 10_000)), 1000, 100.0, fill=bool(filled),
        )
    except CannotWriteError as wrong:
        print(wrong)
    left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")[:-1]]
    print(os.listdir(os.path.dirname(path)), any(path in name for name in left), flush=True)
    if limit:
        # A file that cannot grow cannot be closed, on which libhdf5 1.10 crashes at the end.
        os._exit(0)
"""
each_way = pytest.mark.parametrize(
    ("cached", "filled"), [("", ""), ("0", "filled"), ("200000", ""), ("4000000", "filled")]
)


@each_library
@each_way
@pytest.mark.parametrize("limit", [0, 1000, 100_000, 999_999])
def test_a_file_that_cannot_grow_is_one_error_and_leaves_none(
    library: str, limit: int, cached: str, filled: str, tmp_path: Path
) -> None:
    path = tmp_path / "full.nc"
    said, left = run(FULL_DISK, library, str(path), str(limit), filled, cached).splitlines()
    assert said.startswith(f"{path}: variable values: ")
    assert "File too large" in said
    assert left.startswith("[] ")


FAILING_FILTER = """
    import os, sys
    import numpy as np
    from chunkwise._native import NetCdf, Walk
    from chunkwise.errors import CannotWriteError

    library, path = sys.argv[1:]
    # The decimal digits of floats to be kept, of integers.
    try:
        NetCdf(library).write_walk(
            path, "values", "i4", False, (4,), (4,), [(6, (0, 1))], None,
            np.zeros(16, np.uint8), Walk((4,), (4,)), 1, 1.0,
        )
    except CannotWriteError as wrong:
        print(wrong)
    print(os.path.exists(path))
"""


@each_library
def test_a_filter_that_fails_is_one_error_or_is_left_out(library: str, tmp_path: Path) -> None:
    *said, is_there = run(FAILING_FILTER, library, str(tmp_path / "any.nc")).splitlines()
    assert len(said) == (is_there == "False")
    # netCDF-C 4.9.0 makes filters mandatory, 4.9.3 optional.
    assert all("a filter may have failed" in line for line in said)


PLUGINS = """
    import os, sys
    import h5py, hdf5plugin
    os.environ["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGIN_PATH
    import numpy as np
    from chunkwise._native import NetCdf, Walk

    library, folder = sys.argv[1:]
    data = np.arange(2400, dtype="i4").reshape(40, 60)
    for number, options in [(307, (9,)), (32004, (0,)), (32015, (3,))]:
        for before in [[], [(3, ())], [(2, ())], [(3, ()), (2, ())]]:
            path = f"{folder}/{number}-{len(before)}-{before and before[0][0]}.nc"
            pipeline = [*before, (number, options)]
            NetCdf(library).write_walk(
                path, "values", "i4", False, data.shape, (20, 20), pipeline, None,
                data.reshape(-1).view(np.uint8), Walk(data.shape, (7, 60)), 100, 100.0,
            )
            with h5py.File(path) as file:
                plist = file["values"].id.get_create_plist()
                stored = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
                assert stored == [number for number, _ in pipeline]
                assert plist.get_filter(len(before))[2][:1] == options
                assert np.array_equal(file["values"][()], data)
            print(path)
"""


@each_library
def test_plugins_write_what_they_read(library: str, tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin")
    assert len(run(PLUGINS, library, str(tmp_path)).splitlines()) == 12
