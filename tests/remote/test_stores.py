"""Are files read from all that fsspec opens, and from file objects, as they are on disk?"""

import gc
import gzip
import io
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import FileChangedError, RemoteError, UsageError
from chunkwise.remote import source
from chunkwise.remote.blocks import Blocks
from tests.support.patched import bound_always, engine_reads, left_to_h5py
from tests.support.web import VALUES, serving

fsspec = pytest.importorskip("fsspec")

assert bound_always


def check(file: Any) -> None:
    assert file["word"].asstr()[()] == "word"
    for name in ("x", "plain"):
        assert file[name].explain()["reason"] is None
        np.testing.assert_array_equal(file[name][...], VALUES)
        np.testing.assert_array_equal(file[name][3:20:5, 7, ::9], VALUES[3:20:5, 7, ::9])


@pytest.fixture
def memory(content: bytes) -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/chunkwise/a.h5", content)
    yield "memory://chunkwise/a.h5"
    fs.rm("/chunkwise", recursive=True)


def test_urls_of_stores(memory: str, path: Path, content: bytes, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("in/a.h5", content)
    for url in (
        memory,
        f"file://{path}",
        f"zip://in/a.h5::file://{archive}",
        f"simplecache::{memory}",
    ):
        with chunkwise.open(url) as file:
            check(file)


def test_caches_of_the_web(content: bytes, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    with serving({"/a.h5": content}) as server:
        for kind in ("simplecache", "filecache", "blockcache"):
            options = {kind: {"cache_storage": str(tmp_path / kind)}}
            url = f"{kind}::{server.url}/a.h5"
            with chunkwise.open(url, storage_options=options) as file:
                check(file)


def test_an_object_of_any_store_that_has_changed(memory: str, content: bytes) -> None:
    with chunkwise.open(memory) as file:
        _ = file["plain"][0]
        fsspec.filesystem("memory").pipe_file("/chunkwise/a.h5", content[:-1] + b"x")
        with pytest.raises(FileChangedError, match=r"memory://.*: the object has changed"):
            file["x"][...]


@pytest.mark.usefixtures("memory")
def test_directories_and_what_is_not_there() -> None:
    for url, said in (
        ("memory://chunkwise", "is a directory"),
        ("memory://chunkwise/b.h5", "no such object"),
    ):
        with pytest.raises(RemoteError, match=said):
            chunkwise.open(url)
    with pytest.raises(OSError, match=r"not there\.h5|No such file|no such file"):
        chunkwise.open("file:///not there.h5")


def test_file_objects(path: Path, content: bytes, tmp_path: Path) -> None:
    packed = tmp_path / "a.h5.gz"
    packed.write_bytes(gzip.compress(content, 1))
    with (
        path.open("rb") as buffered,
        path.open("rb", buffering=0) as raw,
        gzip.open(packed) as unpacked,
        fsspec.open(str(path)) as local,
        fsspec.open(str(packed), compression="gzip") as through_fsspec,
    ):
        for given in (buffered, raw, unpacked, local, through_fsspec, io.BytesIO(content)):
            with chunkwise.open(given) as file:
                check(file)
            # It is its owner's still.
            assert given.seek(0) == 0
            assert given.read(4) == content[:4]


def test_a_file_object_of_the_web(content: bytes) -> None:
    pytest.importorskip("aiohttp")
    with serving({"/a.h5": content}) as server, fsspec.open(f"{server.url}/a.h5") as given:
        before = given.tell()
        with chunkwise.open(given) as file:
            check(file)
        assert given.tell() == before


def test_what_is_no_file_object() -> None:
    class Odd:
        def read(self) -> bytes:
            return b""

    with pytest.raises(UsageError, match="is no file object that can be read"):
        chunkwise.open(Odd())


@pytest.mark.usefixtures("bound_always")
def test_patched_h5py_reads_file_objects(path: Path, content: bytes, memory: str) -> None:
    pytest.importorskip("aiohttp")
    with (
        serving({"/a.h5": content}) as server,
        chunkwise.patch_h5py(),
        path.open("rb") as buffered,
        fsspec.open(f"{server.url}/a.h5") as of_the_web,
    ):
        for given in (buffered, of_the_web, io.BytesIO(content)):
            with h5py.File(given) as file:
                for name in ("x", "plain"):
                    before = engine_reads()
                    np.testing.assert_array_equal(file[name][...], VALUES)
                    assert engine_reads() == before + 1
        # Whose bytes libhdf5 and the engine cannot read side by side.
        with fsspec.open(memory) as given, h5py.File(given) as file:
            before = engine_reads()
            np.testing.assert_array_equal(file["x"][...], VALUES)
            assert engine_reads() == before
            assert any("sec2" in why for why in left_to_h5py())


def test_garbage_of_h5py_does_not_stop_a_read(content: bytes) -> None:
    """The collector may run in fsspec's thread, which must not wait for h5py's lock then."""
    pytest.importorskip("aiohttp")
    from fsspec.asyn import get_loop

    before = gc.get_threshold()
    done, collected = threading.Event(), []

    def collect() -> None:
        # As Python does it by itself, now and then.
        if gc.isenabled():
            collected.append(gc.collect())

    def collecting(_: Any) -> bool:
        get_loop().call_soon_threadsafe(collect)
        time.sleep(0.02)
        return False

    def read(url: str) -> None:
        for _ in range(3):
            # The first is read by libhdf5, the second by the engine.
            for name, index in (("word", ()), ("x", slice(3, 9))):
                with chunkwise.open(url) as file, h5py._objects.phil:
                    circle: list[Any] = [h5py.h5s.create_simple((3,))]
                    circle.append(circle)
                    del circle
                    file[name][index]
            chunkwise.cache_clear()
        done.set()

    with serving({"/a.h5": content}, fails=collecting) as server:
        gc.collect()
        gc.set_threshold(1_000_000)
        try:
            thread = threading.Thread(target=read, args=(f"{server.url}/a.h5",), daemon=True)
            thread.start()
            assert done.wait(120)
        finally:
            gc.set_threshold(*before)
    assert gc.isenabled()


def test_xarray_opens_urls(memory: str, content: bytes) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xr.open_dataset(memory, engine="chunkwise") as found:
        np.testing.assert_array_equal(found["x"][3:5].values, VALUES[3:5])
    pytest.importorskip("aiohttp")
    with serving({"/a.nc": content}) as server:
        url = f"{server.url}/a.nc"
        options = {"headers": {"X-A": "b"}}
        with xr.open_dataset(url, engine="chunkwise", storage_options=options) as found:
            np.testing.assert_array_equal(found["x"][3:5].values, VALUES[3:5])
        assert all(headers.get("X-A") == "b" for headers in server.headers)


def test_a_virtual_dataset_of_a_file_object_is_read_by_libhdf5() -> None:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_dataset("source", data=VALUES, chunks=(1, 100, 100), compression=1)
        layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
        layout[:] = h5py.VirtualSource(".", "source", VALUES.shape)
        file.create_virtual_dataset("virtual", layout)
    with h5py.File(stream) as theirs, chunkwise.open(stream) as ours:
        assert ours["source"].explain()["path"] == "chunked"
        assert (ours["virtual"][...] == theirs["virtual"][...]).all()
        plan: Any = ours["virtual"].explain()
        assert plan["path"] == "libhdf5"
        assert "lies in" in plan["reason"]


def test_a_sidecar_is_for_paths_and_urls(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="by path or URL"):
        chunkwise.open(io.BytesIO(), index=True)
    with pytest.raises(UsageError, match="by path or URL"):
        chunkwise.open(f"simplecache::file://{path}", index=tmp_path / "there.cwi")


@pytest.mark.usefixtures("bound_always")
def test_a_file_object_that_was_written_anew_is_read_anew() -> None:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_dataset("x", data=np.zeros((8, 100), "i4"), chunks=(1, 100))
    with chunkwise.patch_h5py():
        for number in range(3):
            with h5py.File(stream) as file:
                before = engine_reads()
                assert (file["x"][...] == number).all()
                assert engine_reads() == before + 1
            # In the same place, and with as many bytes.
            with h5py.File(stream, "r+") as file:
                file["x"][...] = number + 1


def test_closed_files_leave_no_source(memory: str) -> None:
    gc.collect()
    before = len(source._sources)
    for _ in range(3):
        with chunkwise.open(memory) as file:
            # The storage belongs to the engine meanwhile, too.
            binding = file["x"]
            gc.collect()
            np.testing.assert_array_equal(binding[3:20], VALUES[3:20])
        del file, binding
    chunkwise.cache_clear()
    gc.collect()
    assert len(source._sources) == before


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3 << 20), st.integers(1, 300_000)), max_size=9
    ),
    st.sampled_from([0.0, 0.002, 0.05]),
    st.sampled_from([1000, 900_000, (3 << 20) + 5]),
)
def test_blocks_give_the_bytes_that_the_file_has(
    asked: list[tuple[bool, int, int]], latency_s: float, size: int
) -> None:
    content = np.random.default_rng(size).bytes(size)
    fetched: list[tuple[int, int]] = []

    def fetch(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        assert all(0 <= start < stop <= size for start, stop in ranges)
        fetched.extend(ranges)
        return [content[start:stop] for start, stop in ranges]

    blocks = Blocks(size, content[:2000], fetch, latency_s)
    blocks.look_around(latency_s > 0)
    for expects, start, nbytes in asked:
        start %= size
        stop = min(start + nbytes, size)
        if expects:
            blocks.expect([(start, stop), (start // 2, start // 2 + 1)])
            before = len(fetched)
            if stop - start <= 64 << 10:
                assert blocks.held(start, stop) == content[start:stop]
                assert len(fetched) == before
        assert blocks.held(start, stop) in (None, content[start:stop])
        assert blocks.read(start, stop) == content[start:stop]
