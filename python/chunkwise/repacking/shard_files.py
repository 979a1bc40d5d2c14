"""Which files beside the target are a run's shards, and when do they stay?

They are made in a folder beside the target, ``out.nc.shards``, with their final names:
``0001-TOKEN.h5``.  The token is that of the run's lock, so a file that is replaced never leads to
the data of the file that replaces it.  Nothing leads to shards until the target has its name.

Shards of a token whose partial file is gone belong to a finished target, and stay.  So the partial
file is made before them, and removed after them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.repacking.target import Place

_NAME: Final = re.compile(r"(\d{4})-([0-9a-f]{16})\.h5")
_SAFELY: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass
class ShardFiles:
    """The shards of one run."""

    place: Place  # The target
    parent: int  # Descriptor of its folder
    token: str  # What their names have in them
    owner: int  # Number of the user whose files are made here
    count: int = 0  # How many this run has made; 0 if it divides nothing
    _made: dict[int, os.stat_result] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that they are in."""
        return self.place.target.with_name(f"{self.place.short_name}.shards")

    def name(self, number: int) -> str:
        """Return a shard's name in the folder; the first is number 1."""
        return f"{number:04}-{self.token}.h5"

    def path(self, number: int) -> Path:
        """Path of a shard."""
        return self.folder / self.name(number)

    def paths(self) -> list[Path]:
        """Paths of those that this run has made."""
        return [self.path(number) for number in range(1, self.count + 1)]

    def relative(self, number: int) -> str:
        """Name of a shard from where the target is."""
        return f"{self.folder.name}/{self.name(number)}"

    def make(self, count: int) -> None:
        """Make so many files, without anything in them."""
        # By the umask: users who may read the target must reach its shards.
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.folder.name, dir_fd=self.parent)
        folder = self._open()
        if folder < 0:
            raise UsageError(
                f"{printable(self.place.said)}: {printable(str(self.folder))} is no folder, or "
                "belongs to another user; the shards would be in it: move it away, or choose "
                "another target"
            )
        try:
            for number in range(1, count + 1):
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFELY
                descriptor = os.open(self.name(number), flags, 0o600, dir_fd=folder)
                self._made[number] = os.fstat(descriptor)
                os.close(descriptor)
                self.count = number
        finally:
            os.close(folder)

    def finish(self, mode: int, owner: os.stat_result | None) -> None:
        """Set their permissions and owner, if known, and sync them to disk."""
        if not self.count:
            return
        folder = os.open(
            self.folder.name, os.O_RDONLY | os.O_DIRECTORY | _SAFELY, dir_fd=self.parent
        )
        try:
            for number, made in self._made.items():
                descriptor = os.open(self.name(number), os.O_RDWR | _SAFELY, dir_fd=folder)
                try:
                    if not os.path.samestat(os.fstat(descriptor), made):
                        raise FileNotFoundError("a shard was replaced by another program")
                    if owner is not None:
                        give_to(descriptor, owner)
                    os.fchmod(descriptor, mode)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            os.fsync(folder)
            # The folder itself, before the target leads there.
            os.fsync(self.parent)
        finally:
            os.close(folder)

    def sizes(self) -> list[tuple[str, int]]:
        """Relative name and bytes of each."""
        return [
            (self.relative(number), self.path(number).stat().st_size)
            for number in range(1, self.count + 1)
        ]

    def put_aside(self, folder: int, before: str) -> None:
        """Rename what a stopped run of this token left, as `before` says, into a folder."""
        mine = self._open()
        if mine < 0:
            return
        try:
            for number, name in self._left(mine):
                os.replace(name, before.format(number), src_dir_fd=mine, dst_dir_fd=folder)
        finally:
            os.close(mine)

    def clean(self) -> None:
        """Remove those of this token, and the folder if nothing else is in it."""
        mine = self._open()
        if mine < 0:
            return
        try:
            for _, name in self._left(mine):
                os.unlink(name, dir_fd=mine)
        finally:
            os.close(mine)
        with contextlib.suppress(OSError):
            os.rmdir(self.folder.name, dir_fd=self.parent)

    def others(self) -> list[Path]:
        """Those of other tokens: of a target that was replaced, removed or renamed."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            names = sorted(entry.name for entry in entries)
            parts = ((name, _NAME.fullmatch(name)) for name in names)
            return [self.folder / name for name, one in parts if one and one[2] != self.token]
        return []

    def _open(self) -> int:
        """Open the folder; -1 if there is none, or only another user's."""
        flags = os.O_RDONLY | os.O_DIRECTORY | _SAFELY
        try:
            folder = os.open(self.folder.name, flags, dir_fd=self.parent)
        except OSError:
            return -1
        if os.fstat(folder).st_uid != self.owner:
            os.close(folder)
            return -1
        return folder

    def _left(self, folder: int) -> list[tuple[int, str]]:
        """Number and name of each file of this token, as far as it is this user's."""
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                one = _NAME.fullmatch(entry.name)
                if one is None or one[2] != self.token:
                    continue
                there = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISREG(there.st_mode):
                    found.append((int(one[1]), entry.name))
        return sorted(found)


def give_to(descriptor: int, owner: os.stat_result) -> None:
    """Give an open file the owner and the group of another one, as far as the system lets it."""
    try:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    except PermissionError:
        # Root alone gives files away; to a group of one's own anybody does.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, owner.st_gid)
