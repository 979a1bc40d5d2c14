"""Does patched h5py write what h5py writes, by the engine where a call covers chunks whole?"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.patching.program import line_about
from chunkwise.writing import at_once
from tests.support.patched import bound_always, engine_writes
from tests.support.processes import python, ran
from tests.support.threads import run_in_threads
from tests.support.tools import require_tool

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

NUMBERS = np.cumsum(np.random.default_rng(3).normal(size=(40, 50)), axis=1).astype("f4")
GZIP: dict[str, Any] = {"compression": "gzip", "shuffle": True}


@contextlib.contextmanager
def by_the_engine(calls: int = 1) -> Iterator[None]:
    """H5py is patched, and so many calls are the engine's."""
    before = engine_writes()
    with chunkwise.patch_h5py():
        yield
    assert engine_writes() == before + calls, chunkwise.patch_stats()["writes"]


def test_whole_datasets_are_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as f, by_the_engine(6):
        f.create_dataset("data", data=NUMBERS, chunks=(7, 11), **GZIP)
        f.create_dataset("shaped", (50, 40), data=NUMBERS, chunks=(7, 11), **GZIP)
        f.create_dataset("put", NUMBERS.shape, "f4", chunks=(7, 11), **GZIP)[...] = NUMBERS
        f.create_dataset("wide", NUMBERS.shape, "f8", chunks=(7, 11), **GZIP)[:] = NUMBERS
        f.create_dataset("filled", NUMBERS.shape, "i2", chunks=(7, 11), **GZIP)[()] = 7
        d = f.create_dataset("direct", NUMBERS.shape, "f4", chunks=(7, 11), **GZIP)
        d.write_direct(NUMBERS)
        # All of it is in the file: nothing waits.
        assert all(f[name].id.get_num_chunks() == 6 * 5 for name in ("data", "put", "direct"))
        assert (f["data"][...] == NUMBERS).all()
    with h5py.File(tmp_path / "x.h5") as f:
        for name in ("data", "put", "wide", "direct"):
            assert (f[name][...] == NUMBERS).all()
        assert (f["shaped"][...] == NUMBERS.reshape(50, 40)).all()
        assert (f["filled"][...] == 7).all()


@pytest.mark.parametrize("order", ["part whole", "whole part", "part whole part whole part"])
@pytest.mark.parametrize("cache_nbytes", [0, 1 << 20])
def test_of_what_libhdf5_has_in_its_cache_the_last_write_counts(
    tmp_path: Path, order: str, cache_nbytes: int
) -> None:
    """Chunks that libhdf5 holds, changed and not yet in the file, are written whole, and again."""
    model = np.zeros(NUMBERS.shape, "f4")
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=cache_nbytes) as f:
        d = f.create_dataset("x", NUMBERS.shape, "f4", chunks=(10, 10), **GZIP)
        # In the cache a second one is h5py's.
        calls = order.count("whole") if cache_nbytes == 0 else 1
        with by_the_engine(calls):
            for number, step in enumerate(order.split()):
                index = np.s_[12:14, 5:25] if step == "part" else np.s_[10:30]
                d[index] = model[index] = NUMBERS[index] + number
        assert (d[...] == model).all()
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["x"][...] == model).all()


def test_chunks_written_whole_are_the_engines_and_the_rest_is_h5pys(tmp_path: Path) -> None:
    asked: list[Any] = []
    with h5py.File(tmp_path / "x.h5", "w") as f, chunkwise.patch_h5py():
        d = f.create_dataset("x", (40, 50), "f4", chunks=(10, 20), **GZIP)

        def write(dataset: h5py.Dataset, index: Any, value: Any) -> None:
            asked.append((index, np.shape(value)))
            dataset[index] = value

        index = (slice(5, 40), slice(0, 45))
        assert at_once.put(d, index, NUMBERS[:35, :45], write)
        # Two slabs: above, and on the right; below and on the left chunks end with the box.
        assert [shape for _, shape in asked] == [(5, 45), (30, 5)]
        assert d.id.get_num_chunks() >= 6
        assert (d[5:40, :45] == NUMBERS[:35, :45]).all()
        assert (d[:5] == 0).all()
        assert (d[:, 45:] == 0).all()


def test_threads_that_append_lose_nothing(tmp_path: Path) -> None:
    """Also in the chunk at the edge, of which others write the part that was not there before."""
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as f, chunkwise.patch_h5py():
        d = f.create_dataset("x", (0, 50), "f4", chunks=(64, 10), maxshape=(None, 50), **GZIP)
        lock = threading.Lock()

        def work(number: int) -> None:
            for _ in range(12):
                with lock:
                    begin = d.shape[0]
                    d.resize(begin + 30, axis=0)
                # Whole, as far as the dataset went when this began.
                d[begin : begin + 30] = np.full((30, 50), number, "f4")

        run_in_threads([partial(work, number) for number in range(1, 5)])
        rows = d[...].reshape(-1, 30 * 50)
        assert sorted(rows[:, 0]) == sorted([1, 2, 3, 4] * 12)
        assert (rows == rows[:, :1]).all()


def test_swmr_and_file_objects_are_h5pys(tmp_path: Path) -> None:
    before = engine_writes()
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f, chunkwise.patch_h5py():
        d = f.create_dataset("x", NUMBERS.shape, "f4", chunks=(7, 11), **GZIP)
        d[...] = NUMBERS
        assert engine_writes() == before + 1
        f.swmr_mode = True
        d[...] = NUMBERS * 2
        assert engine_writes() == before + 1
        with h5py.File(tmp_path / "x.h5", swmr=True) as reader:
            d.flush()
            assert (reader["x"][...] == NUMBERS * 2).all()
    with (tmp_path / "y.h5").open("w+b") as raw, h5py.File(raw, "w") as f, chunkwise.patch_h5py():
        f.create_dataset("x", data=NUMBERS, chunks=(7, 11), **GZIP)
        assert (f["x"][...] == NUMBERS).all()
    assert engine_writes() == before + 1
    reasons = chunkwise.patch_stats()["writes"]["h5py"]
    assert reasons["the file is open for SWMR"] >= 1
    assert reasons["the file is open with the driver fileobj"] >= 1


def test_what_may_be_in_libhdf5s_cache_is_not_encoded_again_and_again(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=1 << 20) as f:
        d = f.create_dataset("x", NUMBERS.shape, "f4", chunks=(7, 11), **GZIP)
        with by_the_engine(1):
            for number in range(5):
                d[...] = NUMBERS + number
        assert (d[...] == NUMBERS + 4).all()
    with h5py.File(tmp_path / "x.h5", "r+", rdcc_nbytes=0) as f:
        d = f["x"]
        with by_the_engine(5):
            for number in range(5):
                d[...] = NUMBERS + number
        assert (d[...] == NUMBERS + 4).all()


def test_a_dataset_that_grows_row_by_row_is_left_alone(tmp_path: Path) -> None:
    """Each row would have its chunk, at the edge, encoded once more."""
    with h5py.File(tmp_path / "x.h5", "w") as f, by_the_engine(0):
        d = f.create_dataset("x", (0, 50), "f4", chunks=(16, 50), maxshape=(None, 50), **GZIP)
        for number, row in enumerate(NUMBERS[:10]):
            d.resize(number + 1, axis=0)
            d[number:] = row[None]
        assert (d[...] == NUMBERS[:10]).all()


def test_what_chunkwise_holds_is_in_the_file_first(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "x.h5", "w") as f, chunkwise.patch_h5py():
        ours = f.create_dataset("x", (40, 50), "f4", chunks=(10, 10), filters="deflate:1")
        ours[:, :5] = 3
        h5py.Dataset(ours.id)[...] = NUMBERS
        assert (ours[...] == NUMBERS).all()
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["x"][...] == NUMBERS).all()


def test_virtual_datasets_and_h5dump_see_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f, by_the_engine():
        d = f.create_dataset("x", NUMBERS.shape, "i4", chunks=(7, 11), fletcher32=True, **GZIP)
        layout = h5py.VirtualLayout(NUMBERS.shape, "i4")
        layout[...] = h5py.VirtualSource(d)
        virtual = f.create_virtual_dataset("v", layout)
        d[...] = NUMBERS.astype("i4")
        assert (virtual[...] == NUMBERS.astype("i4")).all()
    dumped = tmp_path / "dumped"
    command = [require_tool("h5dump"), "-d", "/x", "-b", "LE", "-o", str(dumped), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    assert dumped.read_bytes() == NUMBERS.astype("<i4").tobytes()


@pytest.mark.slow
def test_files_are_no_larger_than_zlibs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    shape = (16, 128, 256)
    fields = {
        "smooth": np.cumsum(rng.normal(size=shape) * 0.01, axis=2).astype("f4").round(2),
        "counts": rng.poisson(3, shape).astype("i4"),
        "noise": rng.normal(size=shape).astype("f4"),
    }
    for name, field in fields.items():
        for options in (GZIP, {"compression": 9}, {"compression": 1, "shuffle": True}):
            sizes = []
            for patched in (False, True):
                path = tmp_path / f"{patched}.h5"
                patch = by_the_engine() if patched else contextlib.nullcontext()
                with h5py.File(path, "w") as f, patch:
                    f.create_dataset("x", data=field, chunks=(8, 64, 64), **options)
                sizes.append(path.stat().st_size)
            assert sizes[1] <= 1.01 * sizes[0], (name, options, sizes)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHUNKWISE_WRITE", "0")
    original = h5py.Dataset.__setitem__
    with chunkwise.patch_h5py(), h5py.File(tmp_path / "x.h5", "w") as f:
        assert h5py.Dataset.__setitem__ is original
        before = engine_writes()
        f.create_dataset("x", data=NUMBERS, chunks=(7, 11), **GZIP)
        assert engine_writes() == before


def test_a_full_disk_is_h5pys_error(tmp_path: Path) -> None:
    program = """if True:
        import resource, signal, sys, h5py, numpy as np, chunkwise
        from chunkwise.writing import at_once
        if sys.argv[2] == "1":
            chunkwise.patch_h5py()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        noise = np.random.default_rng(1).integers(0, 255, (64, 1 << 16), "u1")
        f = h5py.File(sys.argv[1], "w", rdcc_nbytes=0)
        d = f.create_dataset("x", noise.shape, "u1", chunks=(4, 1 << 16), compression=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        try:
            d[...] = noise
        except Exception as error:
            print(type(error).__name__, str(error)[:40])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        d[...] = noise
        f.close()
        print(bool((h5py.File(sys.argv[1])["x"][...] == noise).all()))
    """
    plain, patched = (python(program, tmp_path / which, which) for which in "01")
    assert patched == plain
    assert plain.startswith("OSError")


def test_what_a_program_hears_that_only_writes() -> None:
    stats = {"engine": 0, "h5py": {}, "writes": {"engine": 3, "h5py": {"x": 1}}}
    assert line_about(stats, ["netCDF4"]) is None
    stats = {"engine": 0, "h5py": {"a reason": 2}, "writes": {"engine": 1, "h5py": {}}}
    assert line_about(stats, []) is None


# Libraries --------------------------------------------------------------------------


def contents(path: Path) -> dict[str, Any]:
    """All that h5py tells of a file's objects."""
    found: dict[str, Any] = {}

    def note(name: str, one: Any) -> None:
        attributes = {key: repr(value) for key, value in one.attrs.items()}
        found[name] = [attributes]
        if isinstance(one, h5py.Dataset):
            values = one[()]
            raw = repr(values) if one.dtype.hasobject else np.asarray(values).tobytes()
            found[name] += [one.dtype, one.shape, one.maxshape, one.chunks, one.compression, raw]

    with h5py.File(path) as f:
        f.visititems(note)
    return found


def same_files(folder: Path, write: Callable[[Path], None], calls: int = 1) -> None:
    """Write one file plain and one patched, at least so many calls by the engine."""
    paths = [folder / "plain", folder / "patched"]
    write(paths[0])
    before = engine_writes()
    with chunkwise.patch_h5py():
        write(paths[1])
    assert engine_writes() >= before + calls, chunkwise.patch_stats()["writes"]
    assert contents(paths[0]) == contents(paths[1])


def test_xarray_writes_the_same(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    field = xarray.Dataset(
        {
            "t": (("y", "x"), NUMBERS, {"units": "K"}),
            "packed": (("y", "x"), NUMBERS.astype("f8")),
            "flag": (("y", "x"), NUMBERS > 0),
            "when": (("y",), np.arange(40).astype("M8[D]").astype("M8[ns]")),
        },
        {"x": np.arange(50.0), "y": np.arange(40)},
    )
    packing = {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}
    encoding: dict[str, dict[str, Any]] = {
        name: {"zlib": True, "complevel": 4, "chunksizes": (13, 11)}
        for name in ("t", "packed", "flag")
    }
    encoding["packed"] |= packing

    def write(path: Path) -> None:
        field.to_netcdf(path, engine="h5netcdf", encoding=encoding)

    same_files(tmp_path, write, 3)

    def append(path: Path) -> None:
        field.to_netcdf(path, engine="h5netcdf", encoding=encoding, unlimited_dims=["y"])

    (tmp_path / "unlimited").mkdir()
    same_files(tmp_path / "unlimited", append)


def test_xarray_writes_dasks_arrays(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    pytest.importorskip("dask.array")
    field = xarray.Dataset({"t": (("y", "x"), NUMBERS)}).chunk({"y": 10, "x": 20})
    encoding = {"t": {"zlib": True, "chunksizes": (10, 10)}}
    same_files(
        tmp_path, lambda path: field.to_netcdf(path, engine="h5netcdf", encoding=encoding), 12
    )


def test_anndata_writes_the_same(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    scipy = pytest.importorskip("scipy.sparse")
    counts = np.random.default_rng(1).poisson(0.5, (300, 40)).astype("f4")
    cells = anndata.AnnData(counts, layers={"sparse": scipy.csr_matrix(counts)})

    def write(path: Path) -> None:
        cells.write_h5ad(path, compression="gzip")

    same_files(tmp_path, write, 3)


def test_a_program_is_run_with_writes_patched(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import atexit, h5py, numpy as np\n"
        "with h5py.File('x.h5', 'w') as f:\n"
        "    f.create_dataset('x', data=np.arange(1 << 18), chunks=(1 << 14,), compression=1)\n"
        "import chunkwise\n"
        "print(chunkwise.patch_stats()['writes'])\n"
    )
    for write, engine in (("1", 1), ("0", 0)):
        done = ran(
            [sys.executable, "-m", "chunkwise", script.name],
            cwd=tmp_path,
            env=os.environ | {"CHUNKWISE_WRITE": write},
            check=True,
        )
        assert f"'engine': {engine}," in done.stdout
        with h5py.File(tmp_path / "x.h5") as f:
            assert (f["x"][...] == np.arange(1 << 18)).all()
