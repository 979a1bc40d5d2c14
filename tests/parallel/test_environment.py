"""Is it known which MPI and HDF5 there are, and where the ranks run?"""

import os
from pathlib import Path

import pytest

from chunkwise.memory import total_nbytes
from chunkwise.mpi.filesystems import FileSystem, filesystem_of
from chunkwise.mpi.ranks import ALONE, Library, library_of
from chunkwise_lab.mpi_check.environment import (
    Libraries,
    Rank,
    Ranks,
    look_at_libraries,
    look_at_ranks,
    mpi_io_component,
    srun_tasks,
)
from tests.support.h5pys import MPI as H5PY_WITH_MPI
from tests.support.h5pys import is_there
from tests.support.mpi import needs_mpi


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI", (4, 1, 4)),
        ("Open MPI v5.0.11, package: Open MPI user@host", "Open MPI", (5, 0, 11)),
        ("MPICH Version:\t4.2.3\nMPICH Release date:\tx\0", "MPICH", (4, 2, 3)),
        ("Intel(R) MPI Library 2021.13 for Linux* OS\n", "Intel MPI", (2021, 13)),
        ("MVAPICH2 Version      :\t2.3.7\n", "MVAPICH", (2, 3, 7)),
        ("MVAPICH Version:\t3.0\n", "MVAPICH", (3, 0)),
        (
            "MPI VERSION    : CRAY MPICH version 8.1.28.2 (ANL base 3.4a2)\n",
            "Cray MPICH",
            (8, 1, 28, 2),
        ),
        ("Fantasy MPI 1", "unknown", ()),
    ],
)
def test_a_library_is_known_by_its_own_words(
    text: str, name: str, version: tuple[int, ...]
) -> None:
    found = library_of(text, "/lib/libmpi.so.40")
    assert (found.name, found.version, found.path) == (name, version, "/lib/libmpi.so.40")
    assert found.of_mpich == (name not in ("Open MPI", "unknown"))


@needs_mpi
def test_this_environment_is_looked_at() -> None:
    found = look_at_libraries()
    assert found.trouble == ()
    assert found.mpi is not None
    assert found.mpi.version
    assert found.hdf5 >= (1, 10)
    assert found.same_mpi


def test_an_h5py_for_mpi_names_its_mpi() -> None:
    if not is_there(H5PY_WITH_MPI):
        pytest.skip("no h5py for MPI (make h5pys)")
    found = look_at_libraries(str(H5PY_WITH_MPI.python))
    assert found.parallel
    assert found.hdf5_mpi is not None
    assert found.hdf5_mpi.name == "Open MPI"
    assert found.same_mpi


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'Illegal instruction' >&2\nexit 132\n")
    python.chmod(0o755)
    found = look_at_libraries(str(python))
    assert found.mpi is None
    assert found.h5py is None
    assert [text.split(":")[1].strip() for text in found.trouble] == ["Illegal instruction"] * 2


def test_two_builds_of_mpi_are_told_apart() -> None:
    ours = library_of("Open MPI v4.1.4, x", "/a/libmpi.so.40")
    theirs = library_of("MPICH Version: 4.0", "/b/libmpi.so.12")
    assert not Libraries(mpi=ours, parallel=True, hdf5_mpi=theirs).same_mpi
    assert Libraries(mpi=ours, parallel=True, hdf5_mpi=ours).same_mpi
    assert Libraries(mpi=ours).same_mpi


def test_one_process_is_one_rank() -> None:
    found = look_at_ranks(ALONE)
    assert found.hosts == (os.uname().nodename,)
    assert found.n_cores == len(os.sched_getaffinity(0))
    assert found.ranks[0].version.startswith("Python 3.")


def test_cores_and_memory_are_counted_by_host() -> None:
    found = Ranks(
        "mpirun",
        "multiple",
        (
            Rank(0, "a", (0, 1), 8000, "v"),
            Rank(1, "a", (0, 1), 8000, "v"),
            Rank(2, "b", (0,), 3000, "v"),
        ),
    )
    assert found.hosts == ("a", "b")
    assert found.n_cores == 3
    assert found.memory_a_rank == 3000


@pytest.mark.parametrize(
    ("asked", "name", "version", "kind", "expected"),
    [
        ("", "Open MPI", (4, 1, 4), "ext4", "ompio"),
        ("", "Open MPI", (4, 0, 5), "lustre", "romio"),
        ("", "Open MPI", (4, 1, 0), "lustre", "ompio"),
        ("", "Open MPI", (1, 10), "ext4", "romio"),
        ("romio321", "Open MPI", (4, 1, 4), "ext4", "romio"),
        ("^ompio", "Open MPI", (4, 1, 4), "ext4", "romio"),
        ("^romio321", "Open MPI", (4, 1, 4), "ext4", "ompio"),
        ("ompio", "Open MPI", (4, 0, 5), "lustre", "ompio"),
        ("", "MPICH", (4, 0), "ext4", "romio"),
        ("", "unknown", (), "ext4", "unknown"),
    ],
)
def test_the_component_for_mpi_io(
    asked: str,
    name: str,
    version: tuple[int, ...],
    kind: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("OMPI_MCA_io", asked)
    library = Library(name, version, "")
    assert mpi_io_component(ALONE, library, tmp_path, kind).name == expected


def test_srun_without_mpi_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    assert srun_tasks() == 4
    monkeypatch.setenv("PMIX_RANK", "0")
    assert srun_tasks() == 0


def test_memory_is_that_of_the_tightest_group(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (cgroup / "job" / "step").mkdir(parents=True)
    assert total_nbytes(proc, cgroup) is None
    (proc / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 10 kB\n")
    assert total_nbytes(proc, cgroup) == 1000 << 10
    (proc / "self" / "cgroup").write_text("0::/job/step\n")
    (cgroup / "job" / "memory.max").write_text("4096\n")
    (cgroup / "job" / "step" / "memory.max").write_text("max\n")
    assert total_nbytes(proc, cgroup) == 4096
    # Version 1.
    (cgroup / "memory" / "a").mkdir(parents=True)
    (cgroup / "memory" / "a" / "memory.limit_in_bytes").write_text("2048\n")
    (proc / "self" / "cgroup").write_text("4:memory:/a\n1:cpu:/\n")
    assert total_nbytes(proc, cgroup) == 2048


# File systems ---------------------------------------------------------------------------------

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
