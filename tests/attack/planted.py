"""Whatever is planted at the names that a repack uses, nothing but its own changes.

Links, folders, pipes and files, of this user and of another one, are planted before and while a
repack runs: at its work folder and what is in that, its partial file, its list of results, the
target and the folders on the way there.  What the links lead to must stay as it was, what was
planted must still be there, and a result that is there is right.
"""

import contextlib
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

import chunkwise
from chunkwise.errors import ChunkwiseError
from chunkwise.repacking.folder import UNCHANGED, check, survey, work_of
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job

SHORT = 40

_NOBODY = 65534
_INSIDE = ("lock", "journal", "before.journal", "before.h5", "other", "sub")
_MARK = b"chunkwise repack 0123456789abcdef\n"


def attempt(seed: int, folder: Path) -> None:
    """One repack among plantings."""
    pick = random.Random(seed)
    data = np.arange(4000, dtype="i4").reshape(40, 100) % (seed % 7 + 2)
    source = folder / "archive" / "sub" / "out.h5"
    source.parent.mkdir(parents=True)
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=data, chunks=(1, 100), compression=1)
        if pick.random() < 0.5:
            file["y"] = data
    victim = _victim(folder)
    shared = folder / "shared"
    (shared / "sub").mkdir(parents=True)
    if pick.random() < 0.5:
        shared.chmod(0o1777)
    kind = pick.choice(["file", "file", "in place", "many"])
    target = source if kind == "in place" else shared / "sub" / "out.h5"
    planter = _Planter(pick, target, victim, shared, is_named=kind == "file")
    for _ in range(pick.randrange(1, 4)):
        planter.plant()
    planter.like_own.clear()
    planter.judge()
    before, content = _seen(victim), source.read_bytes()
    planted = dict(planter.planted)

    def watch(moment: Moment) -> None:
        # From here on the run has its names, and knows what it makes.
        planter.is_claimed = moment.phase != "planning"
        if pick.random() < 0.5:
            planter.plant()
            planted.update(planter.planted)

    done = _run(pick, kind, source, shared, target, watch)
    assert _seen(victim) == before, f"what lies elsewhere has changed ({kind})"
    for path, kept in planted.items():
        if path not in (target, shared / "sub") and path not in planter.like_own:
            assert _look(path) == kept, f"{path}: what was planted there has changed ({kind})"
    if kind != "in place":
        assert source.read_bytes() == content, "the source has changed"
    if done and kind != "many":
        with h5py.File(target) as file:
            assert np.array_equal(file["x"][...], data), "the result is wrong"


def _run(
    pick: random.Random,
    kind: str,
    source: Path,
    shared: Path,
    target: Path,
    watch: Callable[[Moment], None],
) -> bool:
    """Repack; tells whether it said that all went well."""
    resume, force = pick.random() < 0.4, pick.random() < 0.5
    rules = pick.choice(["10x100", "1x100"])
    try:
        if kind != "many":
            out = None if kind == "in place" else target
            chunkwise.repack(
                source,
                out,
                chunk={"x": rules},
                in_place=out is None,
                force=force,
                resume=resume,
                progress=watch,
            )
            return True
        batch = gather([str(source.parents[1])], shared)
        job = Job(Rules.of(f"x:{rules}", None), resume=resume)
        work = work_of(job, pick.choice(UNCHANGED))
        check(batch, work, force=force)
        results = survey(batch, work, force=force, watch=lambda *_: watch)
        return all(result.outcome != "failed" for result in results)
    except ChunkwiseError:
        return False


def _victim(folder: Path) -> Path:
    victim = folder / "victim"
    (victim / "deep").mkdir(parents=True)
    for name in ("thesis.tex", *_INSIDE[:4], "deep/notes"):
        (victim / name).write_bytes(b"precious " + name.encode())
    shutil.copy(victim / "thesis.tex", victim / "out.h5")
    (victim / "mark").mkdir(mode=0o700)
    (victim / "mark" / "lock").write_bytes(_MARK)
    (victim / "mark" / "journal").write_bytes(b"precious")
    return victim


def _seen(folder: Path) -> dict[str, object]:
    return {str(path.relative_to(folder)): _look(path) for path in sorted(folder.rglob("*"))}


def _look(path: Path) -> object:
    """Return all that a program could have changed."""
    try:
        found = path.lstat()
    except OSError:
        return None
    kept: object = None
    if stat.S_ISLNK(found.st_mode):
        kept = path.readlink()
    elif stat.S_ISREG(found.st_mode):
        kept = path.read_bytes()
    elif stat.S_ISDIR(found.st_mode):
        kept = sorted(one.name for one in path.iterdir())
    times = None if stat.S_ISDIR(found.st_mode) else found.st_mtime_ns
    return found.st_mode, found.st_uid, found.st_gid, found.st_ino, times, kept


class _Planter:
    """Plants things at names that are free."""

    def __init__(
        self, pick: random.Random, target: Path, victim: Path, shared: Path, *, is_named: bool
    ) -> None:
        # A link that the user names as the target, or on the way there, is followed.
        self.followed = (target, shared / "sub") if is_named else ()
        self.pick, self.victim, self.shared, self.target = pick, victim, shared, target
        self.planted: dict[Path, object] = {}
        # What looks in every way like what an earlier run of this user's has left, when the run
        # begins: nothing tells that it is not.
        self.like_own: set[Path] = set()
        self.is_claimed = False

    def plant(self) -> None:
        """Plant something somewhere, if that is possible."""
        path = self._place()
        with contextlib.suppress(OSError):
            if path == self.shared / "sub" and path.is_dir() and not path.is_symlink():
                path.rmdir()
            if not os.path.lexists(path) and path.parent.is_dir():
                self._make(path)
                self.planted[path] = _look(path)
                if path.parent in self.planted:
                    self.planted[path.parent] = _look(path.parent)
                self.judge()

    def judge(self) -> None:
        """Add what looks like an earlier run's now."""
        own = self.target.with_name(f".{self.target.name}.repack")
        is_closed = own.is_dir() and not own.is_symlink() and not own.stat().st_mode & 0o077
        if not self.is_claimed and is_closed and own.stat().st_uid == os.geteuid():
            inside = {path.name: path.lstat() for path in own.iterdir()}
            names = set(inside) <= set(_INSIDE[:4]) and ("lock" in inside or not inside)
            files = all(stat.S_ISREG(one.st_mode) for one in inside.values())
            if names and files and all(one.st_nlink == 1 for one in inside.values()):
                left = own.with_name(f".{self.target.name}.{_MARK[-17:-1].decode()}.partial")
                self.like_own |= {own, left, *(own / name for name in inside)}
        listed = self.shared / ".chunkwise-repack.jsonl"
        is_file = listed.is_file() and not listed.is_symlink()
        if is_file and listed.read_bytes() in (b"", b'{"job": "x"}\n'):
            self.like_own.add(listed)

    def _place(self) -> Path:
        beside = self.target.with_name
        places = [beside(f".{self.target.name}.repack")] * 4
        places += [beside(f".{self.target.name}.partial"), self.target, self.shared / "sub"]
        places += [self.shared / ".chunkwise-repack.jsonl"] * 2
        places += [beside(f".{self.target.name}.0123456789abcdef.partial")]
        places += list(self.target.parent.glob(".*.partial"))
        own = beside(f".{self.target.name}.repack")
        if own.is_dir() and not own.is_symlink():
            places += [own / self.pick.choice(_INSIDE)] * 3
        return self.pick.choice(places)

    def _make(self, path: Path) -> None:
        kinds = ["file", "hard link", "folder", "marked", "pipe", "another's"]
        if path not in self.followed:
            kinds += ["folder link", "file link", "nowhere"]
        kind = self.pick.choice(kinds)
        if kind == "folder link":
            path.symlink_to(self.pick.choice([self.victim, self.victim / "mark"]))
        elif kind == "file link":
            path.symlink_to(self.victim / self.pick.choice(["thesis.tex", "lock", "out.h5"]))
        elif kind == "nowhere":
            path.symlink_to(self.victim / "new")
        elif kind == "file":
            path.write_bytes(self.pick.choice([b"", b"mine", _MARK, b'{"job": "x"}\n']))
        elif kind == "hard link":
            os.link(self.victim / "thesis.tex", path)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir(mode=self.pick.choice([0o700, 0o755, 0o777]))
            if kind == "marked":
                (path / "lock").write_bytes(_MARK)
                (path / "thesis.tex").write_bytes(b"precious")
            elif kind == "another's" and os.geteuid() == 0:
                (path / "lock").write_bytes(_MARK)
                os.chown(path, _NOBODY, _NOBODY)
