"""What others plant at the names that a repack uses is neither followed nor removed."""

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.newfile.claim import claimed
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import Place, choose
from chunkwise.repacking.folder import FINISHED, survey, work_of
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job
from tests.support.repacking import require_equal

MARK = b"chunkwise repack 0123456789abcdef\n"
as_root = pytest.mark.skipif(system.user() != 0, reason="only root gives files to others")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "archive" / "in.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(10,), compression=1)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir(mode=0o700)
    for name in ("thesis.tex", "lock", "journal"):
        (folder / name).write_bytes(b"precious")
    return folder


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def planted_folder(path: Path, mode: int, *names: str) -> None:
    path.mkdir(mode=0o700)
    for name in names:
        (path / name).write_bytes(MARK if name == "lock" else b"precious")
    path.chmod(mode)


PLANTINGS: dict[str, Callable[[Path, Path], None]] = {
    "link to a folder": lambda path, victim: path.symlink_to(victim),
    "link to a file": lambda path, victim: path.symlink_to(victim / "thesis.tex"),
    "link to nothing": lambda path, victim: path.symlink_to(victim / "new"),
    "pipe": lambda path, _: os.mkfifo(path),
    "file": lambda path, _: path.touch(),
    "open to others": lambda path, _: planted_folder(path, 0o777, "lock"),
    "with other files": lambda path, _: planted_folder(path, 0o700, "lock", "thesis.tex"),
    "without a lock": lambda path, _: planted_folder(path, 0o700, "journal"),
}


@pytest.mark.parametrize("what", PLANTINGS)
@pytest.mark.parametrize("resume", [False, True])
def test_what_has_the_work_folders_name_stays(
    source: Path, victim: Path, shared: Path, what: str, resume: bool
) -> None:
    planted = shared / ".out.h5.repack"
    PLANTINGS[what](planted, victim)
    before = planted.lstat()
    inside = content(planted) if planted.is_dir() else None
    with pytest.raises(UsageError, match=r"\.repack.* it was left as it is: move it away"):
        chunkwise.repack(source, shared / "out.h5", resume=resume)
    assert [path.name for path in shared.iterdir()] == [".out.h5.repack"]
    assert planted.lstat().st_ino == before.st_ino
    assert inside is None or content(planted) == inside
    assert set(content(victim).values()) == {b"precious"}
    # In place the same names are used, beside the source.
    planted.rename(source.with_name(".in.h5.repack"))
    with pytest.raises(UsageError, match="it was left as it is"):
        chunkwise.repack(source, in_place=True, chunk="x:100", resume=resume)
    assert set(content(victim).values()) == {b"precious"}


@as_root
def test_a_folder_of_another_user_is_not_used(source: Path, shared: Path) -> None:
    planted = shared / ".out.h5.repack"
    planted_folder(planted, 0o700, "lock")
    os.chown(planted, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to another user"):
        chunkwise.repack(source, shared / "out.h5")
    os.chown(planted, 0, 0)
    os.chown(planted / "lock", 65534, 65534)
    with pytest.raises(UsageError, match="not its own"):
        chunkwise.repack(source, shared / "out.h5")
    assert content(planted) == {"lock": MARK}


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_has_the_partial_files_name_stays(
    source: Path, victim: Path, shared: Path, kind: str
) -> None:
    place = choose(source, shared / "out.h5", in_place=False, force=False)
    planted_folder(place.folder, 0o700, "lock")
    name = shared / ".out.h5.0123456789abcdef.partial"
    if kind == "link":
        name.symlink_to(victim / "thesis.tex")
    elif kind == "pipe":
        os.mkfifo(name)
    else:
        name.mkdir()
    before = name.lstat()
    with pytest.raises(UsageError, match="is not the file that an earlier run left"):
        chunkwise.repack(source, shared / "out.h5")
    assert name.lstat().st_mode == before.st_mode
    assert (victim / "thesis.tex").read_bytes() == b"precious"


def publish_replaced(place: Place, plant: Callable[[Path], None]) -> None:
    with claimed(place, resume=False) as claim:
        os.close(claim.make_partial())
        claim.partial.unlink()
        plant(claim.partial)
        publish(claim)


def test_a_partial_file_that_is_replaced_meanwhile_is_not_brought_into_place(
    source: Path, victim: Path, shared: Path
) -> None:
    place = choose(source, shared / "out.h5", in_place=False, force=False)
    mode = stat.S_IMODE((victim / "thesis.tex").stat().st_mode)
    for plant in (os.symlink, os.link):
        with pytest.raises((CannotWriteError, UsageError)):
            publish_replaced(place, partial(plant, victim / "thesis.tex"))
        for left in shared.glob(".*.partial"):
            left.unlink()
    assert not (shared / "out.h5").exists()
    assert (victim / "thesis.tex").read_bytes() == b"precious"
    assert stat.S_IMODE((victim / "thesis.tex").stat().st_mode) == mode


def test_a_work_folder_that_is_swapped_for_a_link_meanwhile(
    source: Path, victim: Path, shared: Path
) -> None:
    def swap(moment: Moment) -> None:
        folder = shared / ".out.h5.repack"
        if moment.phase == "copying" and not folder.is_symlink():
            folder.rename(shared / "moved")
            folder.symlink_to(victim)

    chunkwise.repack(source, shared / "out.h5", chunk="x:100", progress=swap)
    require_equal(source, shared / "out.h5")
    assert set(content(victim).values()) == {b"precious"}


@as_root
def test_a_link_of_another_user_is_not_followed_where_others_may_write(
    source: Path, victim: Path, shared: Path
) -> None:
    shared.chmod(0o1777)
    link = shared / "out.h5"
    link.symlink_to(victim / "thesis.tex")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(UsageError, match="a link that another user has made"):
        chunkwise.repack(source, link, force=True)
    assert (victim / "thesis.tex").read_bytes() == b"precious"


def test_what_gets_the_manifests_name_meanwhile_stays(source: Path, shared: Path) -> None:
    def plant(_: Moment) -> None:
        (shared / FINISHED).write_bytes(b"precious")

    batch = gather([str(source.parent)], shared)
    work = work_of(Job(Rules.of("x:100", None)), "copy")
    with pytest.raises(UsageError, match="not the list of results"):
        list(survey(batch, work, force=False, watch=lambda *_: plant))
    assert (shared / FINISHED).read_bytes() == b"precious"


@pytest.mark.parametrize("in_place", [False, True])
def test_a_name_that_is_not_given_is_noticed(
    source: Path, shared: Path, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a file system says that it has linked or renamed, and has not."""
    kept = source.read_bytes()
    monkeypatch.setattr(os, "link", lambda *_, **__: None)
    monkeypatch.setattr(os, "replace", lambda *_, **__: None)
    target = None if in_place else shared / "out.h5"
    with pytest.raises(CannotWriteError, match="did not give the new file this name"):
        chunkwise.repack(source, target, in_place=in_place, chunk="x:100")
    assert source.read_bytes() == kept
    assert not list(shared.iterdir())
