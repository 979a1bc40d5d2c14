"""Is the file system of a path found, and is it said where several hosts cannot write it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from chunkwise.mpi.filesystems import FileSystem, filesystem_of

MOUNTS = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /dev/shm rw shared:2 - tmpfs tmpfs rw
40 21 0:41 / /nfs rw,relatime shared:3 master:1 - nfs4 server:/export/a rw,vers=4.2
41 40 0:42 / /nfs/with\040space rw - lustre 10.0.0.1@tcp:/scratch rw
42 21 0:43 / /hidden rw - xfs /dev/sdb1 rw
43 21 0:44 / /hidden rw - beegfs beegfs_nodev rw
bad line
44 21 0:45 / /ssh rw - fuse.sshfs me@there: rw
45 21 0:46 / /odd rw - fuse.odd odd rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "writes"),
    [
        ("/", "ext4", "local"),
        ("/nfsother/x", "ext4", "local"),
        ("/nfs/not/yet/made.h5", "nfs4", "incoherent"),
        ("/nfs/with space/x", "lustre", "coherent"),
        ("/hidden/x", "beegfs", "coherent"),
        ("/ssh", "fuse.sshfs", "incoherent"),
        ("/odd/a/../b", "fuse.odd", "unknown"),
    ],
)
def test_the_nearest_mount_counts(path: str, kind: str, writes: str) -> None:
    found = filesystem_of(path, MOUNTS)
    assert (found.kind, found.writes) == (kind, writes)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/nfs")
    assert filesystem_of(tmp_path / "link" / "x", MOUNTS).source == "server:/export/a"


def test_nothing_is_known_without_the_kernels_word() -> None:
    assert filesystem_of("/x", "") == FileSystem("unknown", "/", "?")


def test_this_machines_root_is_known() -> None:
    assert filesystem_of("/").mount_point == "/"


@pytest.mark.parametrize(
    ("kind", "hosts", "word"),
    [
        ("nfs4", 1, "keep all ranks on one host"),
        ("nfs", 3, "run on 3 hosts"),
        ("ext4", 1, None),
        ("ext4", 2, "each of the 2 hosts has its own"),
        ("lustre", 2, None),
        ("fuse.odd", 1, None),
        ("fuse.odd", 2, "not known"),
    ],
)
def test_what_is_said_of_hosts(kind: str, hosts: int, word: str | None) -> None:
    text = FileSystem(kind, "/m", "s").warning(hosts)
    assert (text is None) == (word is None)
    assert word is None or word in str(text)
