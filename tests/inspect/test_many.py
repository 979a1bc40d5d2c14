"""Is a file among many listed as it is alone, and as libhdf5 lists it?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise import _native
from chunkwise.errors import FileFormatError, UsageError
from chunkwise.files.contained import contained_each
from chunkwise.inspection import FileListing, many
from tests.support import make_bad, metadata_files
from tests.support.processes import ROOT

THREADS = (1, 2)


def alone(path: str) -> Any:
    """What the listing of a single file gives, without what is counted of chunks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return type(error)
    try:
        metadata = _native.Metadata.of_descriptor(descriptor)
        names = None if metadata is None else metadata.listing()
    finally:
        os.close(descriptor)
    if names is None:
        return None
    # A damaged index of chunks, which is not read, keeps the other from describing a dataset; what
    # libhdf5 says of it is compared below.
    is_left = any(at is not None and attributes is None for *_, at, attributes, _ in names)
    return ANY if is_left else list(map(in_short, names))


def in_short(name: _native.ListedName) -> _native.NameInShort:
    path, _, kind, target, _, attributes, stored = name
    shape, datatype, chunk = None, None, None
    if stored is not None:
        shape, datatype, chunk = stored["shape"], stored["datatype"], stored.get("chunk")
    return path, kind, attributes or (), shape, datatype, chunk, target


def together(paths: Sequence[str], threads: int) -> list[Any]:
    found = _native.Listings(paths, threads, list)
    return [type(one) if isinstance(one, OSError) else one for one in found]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Sound files, damaged ones, and what is none."""
    folder = tmp_path_factory.mktemp("many")
    paths = [metadata_files.write(folder, name) for name in metadata_files.NAMES]
    content = paths[0].read_bytes()
    for number in range(12):
        paths.append(folder / f"cut {number}.h5")
        paths[-1].write_bytes(content[: len(content) * number // 12])
    for number in range(12):
        paths.append(folder / f"changed {number}.h5")
        changed = bytearray(content)
        changed[number * len(content) // 12] ^= 0x55
        paths[-1].write_bytes(changed)
    paths += sorted(make_bad.FOLDER.glob("*.h5"))
    paths += sorted((ROOT / "fuzz" / "corpus" / "listing").iterdir())
    others = [folder / name for name in ("empty.h5", "text.h5", "missing.h5", "folder.h5")]
    others[0].touch()
    others[1].write_text("no HDF5 file")
    others[3].mkdir()
    return [*map(str, (*paths, *others)), "missing as well.h5"]


@pytest.mark.parametrize("threads", THREADS)
def test_each_file_is_listed_as_alone(files: list[str], threads: int) -> None:
    expected = list(map(alone, files))
    assert together(files, threads) == expected
    # There is something of everything.
    assert sum(isinstance(one, list) for one in expected) > 30
    assert sum(one is None for one in expected) > 10
    assert sum(one is FileNotFoundError for one in expected) == 2


@given(data=st.data(), threads=st.sampled_from(THREADS))
def test_any_files_in_any_order(files: list[str], data: st.DataObject, threads: int) -> None:
    chosen = data.draw(st.lists(st.sampled_from(files), max_size=40))
    assert together(chosen, threads) == list(map(alone, chosen))


def test_more_files_than_are_listed_at_once(files: list[str]) -> None:
    paths = [files[number * 7 % len(files)] for number in range(1000)]
    expected = dict(zip(files, map(alone, files), strict=True))
    assert together(paths, 2) == [expected[path] for path in paths]


def test_files_of_many_names_come_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "links.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(30_000):
            file[f"{number}"] = h5py.SoftLink("/x")
    # All of them would be more names than are held at a time.
    lens = [len(one) for one in together([str(path)] * 5, 2)]
    assert lens == [30_001] * 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    assert together([str(tmp_path / "pipe.h5")], 2) == [None]


def test_paths_are_those_of_the_system(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.h5")
    try:
        with h5py.File(path, "w") as file:
            file["x"] = 1
    except OSError:
        pytest.skip("this file system wants UTF-8")
    (found,) = together([str(path)], 1)
    assert [name for name, *_ in found] == ["/", "/x"]
    assert together(["a\0b"], 1) == [OSError]


@pytest.mark.skipif(os.name == "nt", reason="libhdf5 locks no files there")
def test_a_file_that_somebody_writes_is_left_to_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
        assert together([str(path)], 1) == [None]
        (found,) = chunkwise.list_many([path])
        # It is this process that writes, which libhdf5 knows.
        assert [one.path for one in found.objects] == ["/", "/x"]
    with h5py.File(path):
        assert together([str(path)], 1) == [alone(str(path))]


def by_libhdf5(path: str) -> FileListing:
    return many._by_libhdf5(path)


def outcomes(work: Any, paths: Sequence[str]) -> list[Any]:
    """What comes of files, on some of which libhdf5 crashes."""
    found = contained_each([(partial(work, path), path) for path in paths], 2, 60)
    return [
        type(one.error) if one.result is None else (one.result[:2], type(one.result.error))
        for one in found
    ]


def test_objects_are_those_of_libhdf5(files: list[str]) -> None:
    def listed(path: str) -> FileListing:
        (found,) = chunkwise.list_many([path])
        return found

    assert outcomes(listed, files) == outcomes(by_libhdf5, files)


def test_an_error_does_not_lose_the_others(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.h5", "missing.h5", "empty.h5", "b.nc")]
    for path in (paths[0], paths[3]):
        with h5py.File(path, "w") as file:
            file.attrs["title"] = file.attrs["a"] = path.name
            one = file.create_dataset("g/x", (4, 6), "f4", chunks=(2, 3))
            one.attrs["units"] = "m"
            file["g/again"], file["soft"] = one, h5py.SoftLink("/g/x")
            file["text"] = "a"
    paths[2].touch()
    first, missing, empty, last = chunkwise.list_many(paths)
    assert first.objects == last.objects
    assert [tuple(one) for one in first.objects] == [
        ("/", "group", ("a", "title"), None, None, None, None),
        ("/g", "group", (), None, None, None, None),
        ("/g/again", "dataset", ("units",), (4, 6), np.dtype("f4"), (2, 3), None),
        ("/g/x", "hard_link", (), None, None, None, "/g/again"),
        ("/soft", "soft_link", (), None, None, None, "/g/x"),
        ("/text", "dataset", (), (), np.dtype("O"), None, None),
    ]
    assert h5py.check_string_dtype(first.objects[-1].dtype) is not None
    assert (missing.objects, empty.objects) == ((), ())
    assert isinstance(missing.error, FileFormatError)
    assert isinstance(empty.error, FileFormatError)
    assert [found.path for found in (first, missing, empty, last)] == list(map(str, paths))
    assert list(chunkwise.list_many([])) == []
    with pytest.raises(UsageError, match=r"a\.h5: list_many takes a list of files"):
        chunkwise.list_many(paths[0])  # type: ignore[arg-type]


ENDLESS = """
import sys
from chunkwise import _native
paths = [sys.argv[1]] * 1_000_000
try:
    print("listing", flush=True)
    # No line of Python runs between two files.
    max(_native.Listings(paths, 2, list), key=id)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
    command = [sys.executable, "-c", ENDLESS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listing\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert output == "interrupted\n"


def test_an_error_of_what_makes_objects_is_raised_and_the_next_file_follows(
    files: list[str],
) -> None:
    calls = 0

    def made(_: list[_native.NameInShort]) -> int:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise LookupError(calls)
        return calls

    listings = _native.Listings(files * 5, 2, made)
    found: list[Any] = []
    failed: list[int] = []
    while True:
        try:
            found.append(next(listings))
        except LookupError as error:
            failed.append(error.args[0])
        except StopIteration:
            break
    # An error is raised at once, before what was made already.
    made_of = [one for one in found if isinstance(one, int)]
    assert (sorted(made_of), sorted([*made_of, *failed])) == (made_of, list(range(1, calls + 1)))
    assert failed == list(range(3, calls + 1, 3))
    assert len(found) + len(failed) == 5 * len(files)


def test_several_threads_of_python_list_at_the_same_time(files: list[str]) -> None:
    expected = list(map(alone, files))
    found: list[Any] = [None] * 4

    def work(number: int) -> None:
        found[number] = together(files, 2)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * len(found)
