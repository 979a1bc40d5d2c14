"""Files are opened and made as h5py does, and nothing is lost by a call that fails."""

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5f

import chunkwise
from chunkwise.errors import (
    AlreadyExistsError,
    BusyError,
    CannotWriteError,
    ChunkwiseError,
    FileFormatError,
    UsageError,
)
from tests.support.processes import Program
from tests.support.threads import run_in_threads


@pytest.fixture
def existing(tmp_path: Path) -> Path:
    path = tmp_path / "there.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(5)
    return path


def message(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_the_mode_is_for_reading_unless_said(existing: Path) -> None:
    with chunkwise.open(existing) as file:
        assert file.mode == "r"
        with pytest.raises(UsageError, match=r"reading only; open it with .*'r\+'"):
            file.create_group("g")
        with pytest.raises((KeyError, OSError, RuntimeError)):
            file.attrs["n"] = 1


@pytest.mark.parametrize("mode", ["x", "w-"])
def test_a_file_that_exists_is_not_made_again(existing: Path, mode: Any) -> None:
    before = existing.read_bytes()
    with pytest.raises(AlreadyExistsError, match="mode 'w' replaces it") as error:
        chunkwise.open(existing, mode)
    assert isinstance(error.value, FileExistsError)
    assert str(existing) in message(error)
    assert existing.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "mode", "kind", "said"),
    [
        ("no/folder/x.h5", "w", CannotWriteError, "there is no folder"),
        ("there.h5/x.h5", "w", CannotWriteError, "is no folder"),
        ("folder", "w", CannotWriteError, "is a folder"),
        ("folder", "r+", CannotWriteError, "is a folder"),
        ("pipe", "w", CannotWriteError, "not a regular file"),
        ("text.txt", "a", FileFormatError, "not an HDF5 file"),
        ("none.h5", "r+", FileFormatError, "no such file"),
        ("there.h5", "rw", UsageError, r"is none of r, r\+, a, w, w-, x"),
    ],
)
def test_what_cannot_be_opened_is_one_line_and_stays(
    existing: Path, name: str, mode: Any, kind: type[Exception], said: str
) -> None:
    folder = existing.parent
    (folder / "folder").mkdir()
    (folder / "text.txt").write_text("words")
    if name == "pipe":
        os.mkfifo(folder / name)
    with pytest.raises(kind, match=said) as error:
        chunkwise.open(folder / name, mode)
    assert isinstance(error.value, ChunkwiseError)
    assert str(Path(name)) in message(error)
    assert (folder / "text.txt").read_text() == "words"


def test_an_option_that_h5py_lacks_is_named_and_no_file_is_made(tmp_path: Path) -> None:
    for options in ({"blocksize": 7}, {"libver": "oldest"}, {"fs_strategy": "sheets"}):
        with pytest.raises(UsageError, match=next(iter(options))) as error:
            chunkwise.open(tmp_path / "x.h5", "w", **options)
        message(error)
    with pytest.raises(UsageError, match="userblock"):
        chunkwise.open(
            tmp_path / "x.h5", "w", userblock_size=512, fs_strategy="page", fs_page_size=4096
        )
    assert not list(tmp_path.iterdir())


# h5py's "w" empties such a file before it fails.
@pytest.mark.parametrize("mode", ["w", "r+", "a"])
def test_a_file_that_another_program_has_open_is_left_alone(existing: Path, mode: Any) -> None:
    program = f"import h5py; f = h5py.File({str(existing)!r}, 'r'); print(flush=True); input()"
    with Program(program) as other:
        other.hear()
        with pytest.raises(BusyError, match="open elsewhere") as error:
            chunkwise.open(existing, mode)
        other.tell()
    message(error)
    with h5py.File(existing) as file:
        assert file["x"][4] == 4


def test_a_file_that_this_program_has_open_is_left_alone(existing: Path) -> None:
    with h5py.File(existing, locking=False), pytest.raises(CannotWriteError) as error:
        chunkwise.open(existing, "w", locking=False)
    assert "close it first" in message(error)
    with chunkwise.open(existing), pytest.raises(BusyError, match="open elsewhere"):
        chunkwise.open(existing, "w")
    assert list(chunkwise.open(existing)) == ["x"]


def test_no_permission_is_said(existing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CannotWriteError, match="permission denied; see `ls -l`"):
        chunkwise.open(existing, "w")
    monkeypatch.undo()
    monkeypatch.setattr(h5f, "create", refuse)
    with pytest.raises(CannotWriteError, match="name a folder in which you may write"):
        chunkwise.open(existing.with_name("new.h5"), "w")


def leave(path: Path, error: BaseException) -> None:
    """Write, and leave the block with an error."""
    with chunkwise.open(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), filters="deflate:1")
        raise error


def test_a_failure_to_close_is_told_beside_what_went_wrong_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    file = chunkwise.open(tmp_path / "x.h5", "w")
    file["x"] = 1
    with pytest.raises(CannotWriteError, match="disk is full"):
        file.close()
    with pytest.warns(RuntimeWarning, match="disk is full"), pytest.raises(ZeroDivisionError):
        leave(tmp_path / "y.h5", ZeroDivisionError())
    # Closed all the same.
    assert h5py.File(tmp_path / "x.h5", "r+")["x"][()] == 1


def test_flush_and_close_wait_for_storage_unless_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    path = tmp_path / "x.h5"
    file = chunkwise.open(path, "w")
    file["x"] = np.arange(10)
    file.flush()
    assert synced == [str(path), str(tmp_path)]
    copy = tmp_path / "copy.h5"
    shutil.copy(path, copy)  # What was flushed is there.
    with h5py.File(copy) as reader:
        assert reader["x"][9] == 9
    file.close()
    assert synced == [str(path), str(tmp_path)] * 2
    with chunkwise.open(path, "a", sync=False) as file:
        file["y"] = 1
    assert len(synced) == 4


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    file = chunkwise.open(tmp_path / "x.h5", "w")
    file.close()
    file.close()
    for use in (file.flush, lambda: file.create_group("g"), lambda: file.__delitem__("g")):
        with pytest.raises(UsageError, match="closed"):
            use()


def test_flushing_while_others_write_waits_for_nobody_who_waits(tmp_path: Path) -> None:
    """A file is flushed by one thread under h5py's lock, which a writing one needs."""
    path = tmp_path / "x.h5"
    with chunkwise.open(path, "w", sync=False) as file:
        options: dict[str, Any] = {"chunks": (7, 50), "filters": "deflate:1"}
        sets = [file.create_dataset(f"d{n}", (200, 50), "i4", **options) for n in range(3)]

        def write(first: int) -> None:
            for row in range(first, 200, 4):
                for d in sets:
                    d[row] = row
                if row % 10 == first:
                    file.flush()
                    sets[first % 3].flush()

        run_in_threads([partial(write, n) for n in range(4)])
    with h5py.File(path) as read:
        for n in range(3):
            assert (read[f"d{n}"][...] == np.arange(200)[:, None]).all()
