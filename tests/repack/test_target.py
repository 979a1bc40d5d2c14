"""Where a result is made, and how it comes into place."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise import system
from chunkwise.errors import CannotWriteError, FileFormatError, UsageError
from chunkwise.newfile import claim as claiming
from chunkwise.newfile.claim import BEFORE, Claim, claimed
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import Place, choose


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
    return path


def place_of(source: Path, target: Path | None = None, force: bool = False) -> Place:
    return choose(source, target, in_place=target is None, force=force)


def interrupted(place: Place, *, resume: bool, content: bytes = b"half") -> None:
    with contextlib.suppress(KeyboardInterrupt), claimed(place, resume=resume) as claim:
        fill(claim, content)
        with os.fdopen(claim.make("journal"), "wb") as journal:
            journal.write(content)
        raise KeyboardInterrupt


def fill(claim: Claim, content: bytes) -> None:
    with os.fdopen(claim.make_partial(), "wb") as stream:
        stream.write(content)


def put(place: Place) -> None:
    with claimed(place, resume=False) as claim:
        fill(claim, b"new")
        publish(claim)


def left_by(claim: Claim) -> tuple[bytes, bytes]:
    journal, partial = ((claim.place.folder / name).read_bytes() for name in BEFORE)
    return journal, partial


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_result_appears_when_it_is_published(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    with claimed(place, resume=False) as claim:
        fill(claim, b"new")
        assert names(tmp_path) == {"in.h5", ".out.h5.repack", claim.partial.name}
        publish(claim)
    assert names(tmp_path) == {"in.h5", "out.h5"}
    assert (tmp_path / "out.h5").read_bytes() == b"new"


@pytest.mark.parametrize("force", [False, True])
def test_a_target_that_appears_meanwhile(source: Path, tmp_path: Path, force: bool) -> None:
    out = tmp_path / "out.h5"
    place = place_of(source, out, force)
    with contextlib.ExitStack() as expected:
        if not force:
            expected.enter_context(pytest.raises(UsageError, match="meanwhile"))
        with claimed(place, resume=False) as claim:
            fill(claim, b"new")
            out.write_bytes(b"another's")
            publish(claim)
    assert names(tmp_path) == {"in.h5", "out.h5"}
    assert out.read_bytes() == (b"new" if force else b"another's")


def test_a_write_protected_file_is_replaced_if_forced(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def access(path: Path, mode: int) -> bool:
        return path != source or not mode & os.W_OK  # Root may write to all.

    monkeypatch.setattr(os, "access", access)
    with pytest.raises(CannotWriteError, match="force"):
        place_of(source)
    assert place_of(source, force=True).in_place


def test_nothing_stays_of_a_run_that_failed(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    interrupted(place, resume=False)
    assert names(tmp_path) == {"in.h5"}


def test_what_was_done_stays_for_the_next_run(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    interrupted(place, resume=True)
    assert names(place.folder) == {"lock", "journal"}
    assert len(list(tmp_path.glob(".out.h5.*.partial"))) == 1
    with claimed(place, resume=True) as claim:
        assert claim.resumed
        assert left_by(claim) == (b"half", b"half")
        assert not claim.partial.exists()
    assert names(tmp_path) == {"in.h5"}


def test_of_two_stopped_runs_the_one_that_did_more_counts(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    for journal, is_left in ((b"12", b"12"), (b"1", b"12"), (b"123", b"123"), (b"", b"123")):
        interrupted(place, resume=True, content=journal)
        with contextlib.suppress(KeyboardInterrupt), claimed(place, resume=True) as claim:
            assert left_by(claim) == (is_left, is_left)
            # What it goes on from stays.
            raise KeyboardInterrupt


def test_what_a_killed_run_left_is_removed(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    interrupted(place, resume=True)
    with claimed(place, resume=False) as claim:
        assert not claim.resumed
        assert names(place.folder) == {"lock"}
        assert not claim.partial.exists()
    assert names(tmp_path) == {"in.h5"}


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_in_place_stays_when_the_run_dies_there(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    target = tmp_path / "out.h5"
    with monkeypatch.context() as killed:
        # As one that was killed after the target had its name, and the partial file its own.
        killed.setattr(Claim, "give_back", lambda _: None)
        with claimed(place_of(source, target), resume=True) as claim:
            fill(claim, b"whole")
            os.link(claim.partial, target)
    interrupted(place_of(source, target, force=True), resume=resume)
    assert target.read_bytes() == b"whole"
    with claimed(place_of(source, target, force=True), resume=False):
        pass
    assert target.read_bytes() == b"whole"
    assert names(tmp_path) == {"in.h5", "out.h5"}


@pytest.mark.parametrize("begun", [b"", b"chunkwise", b"chunkwise repack 0123"])
def test_what_a_run_left_that_was_killed_as_it_began(
    source: Path, tmp_path: Path, begun: bytes
) -> None:
    place = place_of(source, tmp_path / "out.h5")
    place.folder.mkdir(mode=0o700)
    if begun:
        (place.folder / "lock").write_bytes(begun)
    put(place)
    assert names(tmp_path) == {"in.h5", "out.h5"}


def test_two_runs_do_not_write_the_same_target(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    with claimed(place, resume=False) as claim:
        fill(claim, b"mine")
        with (
            pytest.raises(CannotWriteError, match="another run is writing it"),
            claimed(place, resume=False),
        ):
            pass
        assert claim.partial.read_bytes() == b"mine"


def test_a_lock_whose_file_is_gone_is_no_lock(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / "out.h5")
    place.folder.mkdir(mode=0o700)
    with (place.folder / "lock").open("w") as old:
        system.lock(old.fileno())
        (place.folder / "lock").unlink()
        with claimed(place, resume=False):
            assert names(place.folder) == {"lock"}


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_a_new_file_has_the_sources_permissions(source: Path, tmp_path: Path, mode: int) -> None:
    source.chmod(mode)
    put(place_of(source, tmp_path / "out.h5"))
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "out.h5").stat().st_mode) == mode & ~umask


def test_in_place_the_permissions_stay_and_the_time_is_new(source: Path) -> None:
    source.chmod(0o640)
    os.utime(source, (1e9, 1e9))
    put(place_of(source))
    assert source.read_bytes() == b"new"
    assert stat.S_IMODE(source.stat().st_mode) == 0o640
    assert source.stat().st_mtime > 1e9 + 1


def test_a_link_is_followed_and_stays(source: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.h5"
    link.symlink_to(tmp_path / "there" / "out.h5")
    put(place_of(source, link))
    assert link.is_symlink()
    assert (tmp_path / "there" / "out.h5").read_bytes() == b"new"
    in_place = tmp_path / "me.h5"
    in_place.symlink_to(source)
    assert place_of(in_place).target == source.resolve()


def test_targets_that_cannot_be(source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.h5").write_bytes(b"other")
    (tmp_path / "hard.h5").hardlink_to(source)
    (tmp_path / "soft.h5").symlink_to(source)
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "in.h5": "is the source itself; --in-place",
        "hard.h5": "is the source itself",
        "soft.h5": "is the source itself",
        "folder": "is a folder",
        "other.h5": "exists already; --force",
        "none/out.h5": "there is no folder",
        "pipe": "is not a regular file",
    }
    for name, said in cases.items():
        with pytest.raises(UsageError, match=said):
            place_of(source, tmp_path / name)
    for name in ("in.h5", "hard.h5", "soft.h5"):
        with pytest.raises(UsageError, match="is the source itself"):
            place_of(source, tmp_path / name, force=True)
    with pytest.raises(UsageError, match="has 2 names"):
        place_of(source)
    assert place_of(source, force=True).in_place
    assert place_of(source, tmp_path / "other.h5", force=True).target.name == "other.h5"
    with pytest.raises(FileFormatError, match="no such file"):
        place_of(tmp_path / "missing.h5", tmp_path / "out.h5")


def test_long_names_have_room(source: Path, tmp_path: Path) -> None:
    place = place_of(source, tmp_path / ("x" * 250 + ".h5"))
    other = place_of(source, tmp_path / ("x" * 249 + "y.h5"))
    assert place.folder != other.folder
    put(place)
    assert place.target.read_bytes() == b"new"


@pytest.mark.skipif(system.user() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(CannotWriteError, match="cannot be written to"):
        place_of(source, folder / "out.h5")


def test_a_file_in_place_is_there_whatever_its_folder_says(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every file system can bring names to disk."""
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no such operation")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    put(place_of(source))
    assert source.read_bytes() == b"new"
    assert names(tmp_path) == {"in.h5"}


def test_what_replaces_anothers_file_has_its_group(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root alone gives files away; whoever is in a group gives files to that."""
    given: list[tuple[int, int]] = []

    def chown(_: int, owner: int, group: int) -> None:
        if owner != -1:
            raise PermissionError(errno.EPERM, "not permitted")
        given.append((owner, group))

    monkeypatch.setattr(os, "fchown", chown)
    put(place_of(source))
    assert given == [(-1, source.stat().st_gid)]


def test_a_run_that_ends_as_another_begins_is_no_reason_to_fail(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removes the work folder that the other one has just opened."""
    place, check = place_of(source), claiming._require_own_names
    place.folder.mkdir(mode=0o700)

    def ended(*given: Any) -> None:
        check(*given)
        monkeypatch.undo()
        place.folder.rmdir()

    monkeypatch.setattr(claiming, "_require_own_names", ended)
    put(place)
    assert source.read_bytes() == b"new"
    assert names(tmp_path) == {"in.h5"}


def test_a_half_written_file_is_closed_to_others_from_the_first_moment(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    create = h5py.h5f.create

    def created(path: bytes, *given: Any, **more: Any) -> Any:
        made = create(path, *given, **more)
        if path.endswith(b".partial"):
            modes.append(stat.S_IMODE(os.stat(path).st_mode))  # noqa: PTH116
        return made

    monkeypatch.setattr(h5py.h5f, "create", created)
    umask = os.umask(0)
    try:
        chunkwise.repack(source, tmp_path / "out.h5")
    finally:
        os.umask(umask)
    assert modes == [0o600]
