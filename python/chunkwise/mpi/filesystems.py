"""Which file system holds a path, and may ranks on several hosts write to one file there?"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Writes = Literal["coherent", "incoherent", "local", "unknown"]

_KINDS: Final[dict[Writes, str]] = {
    # All see what one host writes, as if there were one host.
    "coherent": "lustre gpfs beegfs fhgfs ceph fuse.ceph fuse.ceph-fuse pvfs2 orangefs wekafs "
    "panfs gfs2 ocfs2 yrfs quobyte fuse.quobyte",
    # Each host keeps pages of its own, or writes whole objects.
    "incoherent": "nfs nfs4 cifs smb3 smbfs afs 9p virtiofs fuse.sshfs glusterfs fuse.glusterfs "
    "fuse.juicefs fuse.s3fs fuse.goofys fuse.geesefs fuse.mount-s3 fuse.gcsfuse fuse.blobfuse "
    "fuse.blobfuse2 fuse.rclone fuse.dfuse ncpfs coda",
    # One host's own.
    "local": "ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs tmpfs ramfs overlay aufs squashfs "
    "vfat exfat ntfs ntfs3 fuseblk bcachefs rootfs devtmpfs nilfs2",
}
_WRITES: Final = {kind: writes for writes, kinds in _KINDS.items() for kind in kinds.split()}


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system."""

    kind: str  # Its type, as the kernel names it, such as ``ext4``, ``nfs4`` or ``fuse.sshfs``
    mount_point: str  # Where it is mounted
    source: str  # What is mounted: a device, or a server and its folder

    @property
    def writes(self) -> Writes:
        """Whether all hosts see the writes of each: `local` where only one host has it."""
        return _WRITES.get(self.kind, "unknown")

    def warning(self, hosts: int = 1) -> str | None:
        """Say what is wrong with writing one file here from ranks on several hosts."""
        where = f"{self.mount_point} is {self.kind} ({self.source})"
        parallel = "write to a parallel file system (Lustre, GPFS, BeeGFS, CephFS)"
        if self.writes == "incoherent":
            lost = (
                "each host keeps pages of its own: where two hosts write parts of one page, "
                "one of them can be lost"
            )
            if hosts == 1:
                return f"{where}: {lost}; keep all ranks on one host, or {parallel}"
            return f"{where}, and the ranks run on {hosts} hosts: {lost}; {parallel}"
        if hosts > 1 and self.writes == "local":
            return f"{where}: each of the {hosts} hosts has its own; {parallel}"
        if hosts > 1 and self.writes == "unknown":
            return (
                f"{where}: not known whether several hosts can write one file there; "
                "ask who runs it whether its writes are coherent (POSIX)"
            )
        return None


def filesystem_of(path: str | os.PathLike[str], mounts: str | None = None) -> FileSystem:
    """Find the file system that holds a path, or will hold it once it is made."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
        except OSError:
            mounts = ""
    wanted = Path(os.path.realpath(path))
    found, depth = FileSystem("unknown", "/", "?"), -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kinds) < 2:
            continue
        point = Path(_unescaped(fields[4]))
        # If two are at one place, the later one hides the other.
        if len(point.parts) >= depth and wanted.is_relative_to(point):
            found = FileSystem(kinds[0], str(point), _unescaped(kinds[1]))
            depth = len(point.parts)
    return found


def _unescaped(field: str) -> str:
    """Undo the kernel's escapes of spaces, tabs, newlines and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)
