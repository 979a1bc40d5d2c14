"""Can thousands of files be open, of which libhdf5 has only some?"""

import gc
import json
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import FileChangedError, UsageError
from chunkwise.files.identity import Identity
from chunkwise.handles import handle
from tests.support.processes import descriptors, python
from tests.support.reading import LEFT_TO_LIBHDF5, same
from tests.support.threads import run_in_threads

DATA = np.arange(6 * 8, dtype="i4").reshape(6, 8)
MOST, COUNT = 4, 20


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("originals")
    paths = [folder / f"{i}.h5" for i in range(COUNT)]
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as f:
            d = f.create_dataset("g/chunked", data=DATA + i, chunks=(4, 3), compression=1)
            d.attrs["units"], d.attrs["number"] = "K", i
            f["g"].attrs["about"] = f"group {i}"
            f["contiguous"] = DATA - i
            f.create_dataset("zfp", data=DATA * i, chunks=(4, 3), **LEFT_TO_LIBHDF5)
            f["words"] = [f"word {i}", "two"]
            f["soft"] = h5py.SoftLink("/g/chunked")
            f["named"] = np.dtype("f4")
            f[b"caf\xe9"] = i
    return paths


@pytest.fixture
def paths(tmp_path: Path, originals: list[Path]) -> list[Path]:
    return [Path(shutil.copy(path, tmp_path)) for path in originals]


@pytest.fixture
def files(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[chunkwise.File]]:
    gc.collect()
    monkeypatch.setattr(handle, "MOST", MOST)
    files = [chunkwise.open(path) for path in paths]
    yield files
    for file in files:
        file.close()


def parked(file: chunkwise.File) -> bool:
    return file._home.is_parked()


def park(file: chunkwise.File) -> None:
    file._home.park()
    assert parked(file)


def check(i: int, file: chunkwise.File) -> None:
    """Everything that can be asked of a file is what is in it."""
    chunked = file["g/chunked"]
    assert same(chunked[...], DATA + i)
    assert same(chunked[1::2, 3], (DATA + i)[1::2, 3])
    assert same(chunked[[0, 4]], (DATA + i)[[0, 4]])
    assert (chunked.shape, chunked.dtype, chunked.chunks) == (DATA.shape, DATA.dtype, (4, 3))
    assert (chunked.name, chunked.filters) == ("/g/chunked", "deflate:1")
    assert dict(chunked.attrs) == {"number": i, "units": "K"}
    assert same(file["contiguous"][2:, ::3], (DATA - i)[2:, ::3])
    assert same(file["zfp"][...], DATA * i)
    assert same(file["zfp"][[0, 4]], (DATA * i)[[0, 4]])
    assert same(file["zfp"].read(chunkwise.hyperslab((1, 0), (2, 8))), (DATA * i)[1:3])
    assert file["words"][0] == f"word {i}".encode()
    assert same(file["soft"][1], (DATA + i)[1])
    assert file["caf\udce9"][()] == i
    group = file["g"]
    assert (list(group), len(group), "chunked" in group) == (["chunked"], 1, True)
    assert dict(group.attrs) == {"about": f"group {i}"}
    assert len(list(file)) == len(file) == 7
    assert group["chunked"].explain()["path"] == "chunked"


def test_parked_files_are_as_open_ones(files: list[chunkwise.File]) -> None:
    for _ in range(2):
        for i, file in enumerate(files):
            check(i, file)
            assert sum(not parked(file) for file in files) <= MOST
    for i, file in reversed(list(enumerate(files))):
        check(i, file)


def test_parking_closes_the_file_in_libhdf5(
    paths: list[Path], files: list[chunkwise.File]
) -> None:
    assert [descriptors(path) for path in paths[:3]] == [0, 0, 0]
    assert files[0]["zfp"].shape == DATA.shape
    # One is libhdf5's, and one that of what the file's own bytes say.
    assert descriptors(paths[0]) == 2
    park(files[0])
    assert descriptors(paths[0]) == 0


def test_data_is_read_without_opening_the_file_in_libhdf5(files: list[chunkwise.File]) -> None:
    file = files[0]
    d, group = file["g/chunked"], file["g"]
    assert d[0, 1] == 1
    park(file)
    assert d[3, 1] == 25
    assert same(d.read(), DATA)
    assert d.shape == DATA.shape
    assert file["g/chunked"] is d
    assert file.filename.endswith("0.h5")
    assert parked(file)
    assert group["chunked"] is not None
    assert parked(file)


def test_few_files_are_never_parked(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(handle, "MOST", MOST)
    files = [chunkwise.open(path) for path in paths[:MOST]]
    for i, file in enumerate(files):
        check(i, file)
    assert not any(map(parked, files))


def test_what_is_in_use_is_not_parked(files: list[chunkwise.File]) -> None:
    names = iter(files[0])
    assert next(names)
    for file in files[1:]:
        assert len(file) == 7
    assert not parked(files[0])
    assert len(list(names)) == 6
    del names
    for file in files[1:]:
        assert len(file) == 7
    assert parked(files[0])


@pytest.mark.parametrize("name", ["g/chunked", "g", None])
def test_what_h5py_has_is_not_parked(files: list[chunkwise.File], name: str | None) -> None:
    ours = files[0] if name is None else files[0][name]
    theirs = ours.h5py.parent
    for i, file in enumerate(files):
        check(i, file)
    assert theirs
    files[0].close()
    assert not theirs


def test_the_same_file_twice(paths: list[Path], files: list[chunkwise.File]) -> None:
    with chunkwise.open(paths[0]) as again, h5py.File(paths[0]) as theirs:
        for one, other in ((again, files[0]), (files[0], again)):
            check(0, one)
            park(other)
            check(0, one)
        assert theirs["g/chunked"][0, 1] == 1
    check(0, files[0])


def test_a_file_with_links_to_others_is_not_parked(
    tmp_path: Path, files: list[chunkwise.File]
) -> None:
    with h5py.File(tmp_path / "links.h5", "w") as f:
        f["elsewhere"] = h5py.ExternalLink("3.h5", "/g")
        f["there"] = h5py.ExternalLink("4.h5", "/contiguous")
        f["g/chunked"] = DATA + 100
    with chunkwise.open(tmp_path / "links.h5") as file:
        group = file["elsewhere"]
        for _ in range(2):
            assert group["chunked"][0, 1] == 4
            assert file["there"][0, 1] == -3
            assert file["g/chunked"][0, 1] == 101
            assert group.attrs["about"] == "group 3"
            for other in files:
                assert len(other) == 7
            assert not parked(file)
        assert group.name == "/g"


def test_a_closed_file_says_so_parked_or_not(files: list[chunkwise.File]) -> None:
    for file in files[:2]:
        d, group = file["g/chunked"], file["g"]
        if file is files[0]:
            park(file)
        file.close()
        looks: list[Any] = [
            lambda d=d: d[0],
            lambda d=d: d.read(),
            lambda file=file: file["zfp"],
            lambda group=group: group["chunked"],
            lambda group=group: list(group),
        ]
        for look in looks:
            with pytest.raises(UsageError, match="closed"):
                look()
        # As h5py says it.
        for theirs in (lambda d=d: d.attrs["units"], lambda group=group: dict(group.attrs)):
            with pytest.raises((KeyError, ValueError), match=r"identifier|location|group ID"):
                theirs()
        assert not any(map(bool, (d, group, file)))
        assert "Closed" in repr(d)
        assert "Closed" in repr(group)


@pytest.mark.parametrize("also", [None, "file id", "id", "h5py", "attrs", "space"])
def test_closing_is_as_h5pys_whoever_else_has_something(
    paths: list[Path], also: str | None
) -> None:
    file = chunkwise.open(paths[0])
    group, chunked, words = file["g"], file["g/chunked"], file["words"]
    assert same(chunked[1], DATA[1])
    ways: dict[str | None, Callable[[], Any]] = {
        None: lambda: None,
        "file id": lambda: file.id,
        "id": lambda: words.id,
        "h5py": lambda: chunked.h5py,
        "attrs": lambda: chunked.attrs,
        "space": lambda: chunked.id.get_space(),
    }
    kept = ways[also]()
    file.close()
    assert not any((file, group, chunked, words))
    assert not any(one.id.valid for one in (file, group, chunked, words))
    for one in (chunked, words):
        with pytest.raises((UsageError, ValueError)):
            one[()]
    if also in ("file id", "id"):
        assert kept.id == 0
    if also == "h5py":
        assert not kept
    # libhdf5 has closed it.
    with h5py.File(paths[0], "r+") as again:
        again["g/chunked"][0] = 7
    with chunkwise.open(paths[0]) as again:
        assert np.all(again["g/chunked"][0] == 7)


def test_files_that_are_let_go_are_closed(paths: list[Path], files: list[chunkwise.File]) -> None:
    check(0, files[0])
    assert descriptors(paths[0]) == 2
    kept = files[0]["g/chunked"]
    files[0] = files[1]
    assert kept[0, 1] == 1
    assert descriptors(paths[0]) == 2
    del kept
    assert descriptors(paths[0]) == 0


CHANGES = {
    "rewritten": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "touched": lambda path: os.utime(path, ns=(0, 0)),
    "replaced": lambda path: (path.rename(f"{path}.old"), path.write_bytes(b"other")),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_parked_file_that_was_changed(
    paths: list[Path], files: list[chunkwise.File], change: Any
) -> None:
    file = files[0]
    known, unread = file["g/chunked"], file["contiguous"]
    assert known[0, 1] == 1
    park(file)
    change(paths[0])
    for look in (lambda: known[0], lambda: unread[0], lambda: known.attrs["units"], file.keys):
        with pytest.raises(
            FileChangedError, match=r"0\.h5: the file (was changed|cannot be found)"
        ):
            list(look())
    file.close()
    with pytest.raises(UsageError, match="closed"):
        known[0]


def rewrite(path: Path, new: bytes) -> None:
    """Other bytes under the old time, as by ``rsync --inplace -t``."""
    before = path.stat()
    # The system's clock for files goes in steps.
    time.sleep(0.02)
    with path.open("r+b") as stream:
        stream.write(new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("chmod", [False, True])
def test_a_parked_file_rewritten_under_its_old_time(
    tmp_path: Path, large: bool, chmod: bool
) -> None:
    rows = 3000 if large else 60
    paths = [tmp_path / "old.h5", tmp_path / "new.h5"]
    for value, path in enumerate(paths):
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=np.full((rows, 100), value, "i4"), chunks=(10, 100))
    with chunkwise.open(paths[0]) as file:
        d: Any = file["d"]
        assert d[5, 3] == 0
        park(file)
        rewrite(paths[0], paths[1].read_bytes())
        if chmod:
            paths[0].chmod(0o640)
        for look in (lambda: d[5, 3], lambda: d[50, 3], lambda: d.attrs.keys(), file.keys):
            with pytest.raises(FileChangedError, match=r"old\.h5: the file was changed"):
                list(look())


def link_and_unlink(path: Path) -> None:
    os.link(path, f"{path}.link")
    Path(f"{path}.link").unlink()


MERE_CHANGES = {
    "permissions": lambda path: path.chmod(0o600),
    "a link": lambda path: os.link(path, f"{path}.link"),
    "a link and back": link_and_unlink,
    "a name and back": lambda path: path.rename(f"{path}.moved").rename(path),
}


@pytest.mark.parametrize("change", MERE_CHANGES.values(), ids=MERE_CHANGES.keys())
def test_a_parked_file_of_the_same_bytes_is_the_same(
    paths: list[Path], files: list[chunkwise.File], change: Any
) -> None:
    file = files[0]
    for _ in range(2):
        known = file["g/chunked"]
        assert known[0, 1] == 1
        park(file)
        time.sleep(0.02)
        change(paths[0])
        assert parked(file)
        Path(f"{paths[0]}.link").unlink(missing_ok=True)
        check(0, file)


def test_a_large_file_without_a_reason_for_its_time_of_change(tmp_path: Path) -> None:
    """Not all of it can be looked at."""
    path = tmp_path / "large.h5"
    with h5py.File(path, "w") as f:
        f["d"] = np.zeros(200_000)
    with chunkwise.open(path) as file:
        d = file["d"]
        park(file)
        time.sleep(0.02)
        path.chmod(0o600)
        assert d[5] == 0
        park(file)
        time.sleep(0.02)
        link_and_unlink(path)
        with pytest.raises(FileChangedError):
            d[5]


def test_a_file_that_was_changed_while_it_was_open_is_not_parked(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as f:
        f["d"] = DATA
    with chunkwise.open(path) as file:
        time.sleep(0.02)
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        file._home.park()
        assert not parked(file)
        assert same(file["d"][...], DATA)


def test_other_bytes_under_all_the_old_times(
    paths: list[Path], files: list[chunkwise.File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a system keeps no time of its own, the bytes tell when the file is opened again."""
    file = files[0]
    assert file["g/chunked"][0, 1] == 1
    park(file)
    rewrite(paths[0], paths[0].read_bytes().replace(b"group 0", b"group X"))
    now = Identity.of(paths[0].stat())
    monkeypatch.setattr(file._home, "_identity", now)
    with pytest.raises(FileChangedError, match=r"0\.h5: the file was changed"):
        list(file.keys())


def test_a_path_is_one_from_where_it_was_opened(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths[0].parent)
    with chunkwise.open("0.h5") as file:
        monkeypatch.chdir("/")
        park(file)
        check(0, file)


def test_a_file_that_this_process_writes_is_not_parked(
    paths: list[Path], files: list[chunkwise.File]
) -> None:
    files.pop(0).close()
    with h5py.File(paths[0], "r+") as writer, chunkwise.open(paths[0]) as file:
        d = file["g/chunked"]
        for value in (50, 51):
            for other in files:
                assert len(other) == 7
            writer["g/chunked"][0, 1] = value
            writer.flush()
            assert d[0, 1] == value


@pytest.mark.slow
def test_threads_share_few_open_files(files: list[chunkwise.File]) -> None:
    def ask(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, COUNT, 12):
            check(int(i), files[i])

    run_in_threads([partial(ask, seed) for seed in range(8)])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_opens_parked_files(files: list[chunkwise.File]) -> None:
    for i, file in enumerate(files[:6]):
        check(i, file)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for i, file in enumerate(files):
                check(i, file)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for i, file in enumerate(files):
        check(i, file)


def test_the_limit_of_descriptors_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in ((1024, 256), (256, 64), (2, 1), (resource.RLIM_INFINITY, 256)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert handle.most_open() == most


def test_many_files_in_little_memory(tmp_path: Path) -> None:
    """Of 4,400 files when asked to: ``CHUNKWISE_MANY_FILES=4400``."""
    count = int(os.environ.get("CHUNKWISE_MANY_FILES", "250"))
    limit = 128 if count <= 1000 else 1024
    program = "from tests.support.observe_many_files import main; main()"
    record = json.loads(python(program, tmp_path, count, limit))
    print(record)
    assert record["descriptors"] <= limit // 2
    assert record["peak_rss_nbytes"] < 1 << 30
    # A MiB for each that libhdf5 has open, 64 KiB of decoded chunks, and little more.
    assert record["grown_nbytes"] < (limit // 4 << 20) + count * (80 << 10) + (16 << 20)


def test_a_file_that_was_closed_is_open_for_nobody(paths: list[Path]) -> None:
    with chunkwise.open(paths[0]) as file:
        found = [file["g/chunked"], file["contiguous"], file["g"]]
        assert same(found[0][2:5], DATA[2:5])
        assert same(found[1][...], DATA)
    # Windows removes no file that is open; its objects may still be kept.
    assert (bool(found[0]), descriptors(paths[0])) == (False, 0)
