"""Which ranks are there, and can they write one file with h5py?"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from chunkwise.errors import UsageError
from chunkwise.mpi import ranks
from chunkwise.words import counted

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

REMEDY: Final = (
    "run `make mpi` in chunkwise's sources and start .venv-mpi/bin/chunkwise, or build h5py for "
    "MPI (HDF5_MPI=ON CC=mpicc pip install --no-binary h5py --no-build-isolation h5py)"
)
# What MPI libraries call themselves: Open MPI's and MPICH's.
_LIBRARIES: Final = ("libmpi.so", "libmpich.so")


@dataclass(frozen=True)
class World:
    """All ranks, or this process alone."""

    comm: MPI.Comm | None = None  # None if MPI is not used
    rank: int = 0
    size: int = 1

    @property
    def together(self) -> ranks.Comm:
        """As functions of `chunkwise.mpi.ranks` take it."""
        return ranks.ALONE if self.comm is None else self.comm

    def barrier(self) -> None:
        """Wait until all ranks are here, as fast as MPI can."""
        if self.comm is not None:
            self.comm.Barrier()

    def gather(self, values: T) -> list[T]:
        """Return what every rank has, on rank 0; nothing on the others (collective)."""
        if self.comm is None:
            return [values]
        return self.comm.gather(values) or []

    def on_first(self, work: Callable[[], T]) -> T:
        """Do something on rank 0, and give all ranks what it returned (collective)."""
        return ranks.on_first(self.together, work)

    def crowded(self) -> str:
        """Say how many ranks share how few processors; nothing if each has one (collective)."""
        everywhere = ranks.exchange(self.together, (os.uname().nodename, os.cpu_count() or 1))
        for machine in dict.fromkeys(everywhere):
            here, cpus = everywhere.count(machine), machine[1]
            if here > cpus:
                return f"{here} ranks on {counted(cpus, 'processor')}"
        return ""


def world(mpi_alone: bool = False) -> World:
    """Find the ranks, and initialise MPI if there are several."""
    _, size = ranks.launched()
    if (size is None or size == 1) and not mpi_alone:
        return World()
    require_mpi(f"{size} ranks" if size and size > 1 else "MPI-IO")
    comm: Any = ranks.world()
    import h5py

    loaded = _loaded()
    if len(loaded) > 1:
        raise UsageError(
            f"mpi4py and h5py's HDF5 {h5py.version.hdf5_version} load different MPI libraries "
            f"({' and '.join(loaded)}): build h5py with the mpicc of mpirun's MPI; "
            "`chunkwise mpi-check` says more"
        )
    return World(comm, comm.rank, comm.size)


def require_mpi(what: str) -> None:
    """Make sure that mpi4py is there, and h5py is built for MPI."""
    if importlib.util.find_spec("mpi4py") is None:
        raise UsageError(f"for {what}, mpi4py is needed, which is not installed: {REMEDY}")
    # Before h5py: built for MPI, it initialises MPI as it is imported, if nobody has.
    ranks.world()
    import h5py

    if not h5py.get_config().mpi:
        raise UsageError(
            f"for {what}, an h5py for MPI is needed, and h5py {h5py.__version__} here is built "
            f"without: {REMEDY}"
        )


def _loaded() -> list[str]:
    """Return the MPI libraries of this process, as its memory map names them."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[-1] for line in lines)
    return [path for path in paths if Path(path).name.startswith(_LIBRARIES)]
