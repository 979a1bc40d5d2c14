"""Which MPI, HDF5 and machine do the ranks of this program have?

A library is loaded and reports what it is, in a separate process: two builds in one may end it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import CannotWriteError
from chunkwise.memory import total_nbytes
from chunkwise.mpi.machine import patiently
from chunkwise.mpi.ranks import (
    Alone,
    Comm,
    Library,
    agreed,
    broadcast,
    exchange,
    host,
    library_of,
    under_mpi,
)

_LIMIT_S: Final = 60
_MCA_IO: Final = "OMPI_MCA_io"


@dataclass(frozen=True)
class Libraries:
    """What this Python loads."""

    mpi4py: str | None = None  # Its version; None if it is missing or cannot load MPI
    mpi: Library | None = None  # What mpi4py loads
    h5py: str | None = None  # Its version; None if it cannot be imported
    hdf5: tuple[int, ...] = ()  # Version of the HDF5 that h5py loads
    hdf5_path: str = ""  # Its file
    parallel: bool = False  # Whether h5py and its HDF5 were built for MPI
    hdf5_mpi: Library | None = None  # The MPI that this HDF5 needs; None if it needs none
    # Why mpi4py, or h5py, cannot be loaded; empty if it can.
    mpi4py_trouble: str = ""
    h5py_trouble: str = ""

    @property
    def trouble(self) -> tuple[str, ...]:
        """What could not be loaded, and why."""
        return tuple(filter(None, (self.mpi4py_trouble, self.h5py_trouble)))

    @property
    def same_mpi(self) -> bool:
        """Whether HDF5 and mpi4py load the same MPI; True where HDF5 needs none."""
        if self.mpi is None or self.hdf5_mpi is None:
            return True
        return (self.mpi.name, self.mpi.version) == (self.hdf5_mpi.name, self.hdf5_mpi.version)


# Run by itself: mpi4py and then h5py; and h5py's libmpi by what HDF5 needs, not what is there.
_LOOK: Final = r"""
import ctypes, json, sys
from importlib import metadata

def mapped(*names):
    with open("/proc/self/maps") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) > 5}
    return sorted(f for f in files if f.rpartition("/")[2].startswith(names) and ".so" in f)

MPIS = ("libmpi.so", "libmpi-", "libmpich", "libmpi_", "libmvapich")

def says(path):
    try:
        library = ctypes.CDLL(path)
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
        library.MPI_Get_library_version(text, ctypes.byref(length))
        return [text.raw[: length.value].decode("ascii", "replace"), path]
    except (OSError, AttributeError):
        return None

found = {"trouble": ""}
which = sys.argv[1]
if which == "mpi4py":
    try:
        import mpi4py
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        from mpi4py import MPI
        found["mpi4py"] = mpi4py.__version__
        paths = mapped(*MPIS)
        found["mpi"] = [MPI.Get_library_version(), paths[0] if paths else ""]
    except ModuleNotFoundError as wrong:
        found["trouble"] = "mpi4py is not installed"
    except Exception as wrong:
        found["trouble"] = f"mpi4py cannot load MPI: {wrong}"
else:
    try:
        found["h5py"] = metadata.version("h5py")
        import mpi4py
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    except Exception:
        pass
    try:
        import h5py
        found["h5py"] = h5py.__version__
        found["hdf5"] = list(h5py.version.hdf5_version_tuple)
        found["parallel"] = bool(h5py.get_config().mpi)
    except Exception as wrong:
        found["trouble"] = f"h5py cannot be imported: {wrong}"
    found["hdf5_path"] = next(iter(mapped("libhdf5")), "")
    # mpi4py may have loaded another one as well: what HDF5 was linked with counts.
    found["mpis"] = [one for one in map(says, mapped(*MPIS)) if one]
print(json.dumps(found))
"""


def look_at_libraries(python: str = sys.executable) -> Libraries:
    """Load mpi4py and h5py, each in a process of its own, and ask what they load."""
    mpi4py, h5py = _look(python, "mpi4py"), _look(python, "h5py")
    mpi = library_of(*mpi4py["mpi"]) if "mpi" in mpi4py else None
    needed = _needed_mpi(h5py.get("hdf5_path", "")) if h5py.get("parallel") else None
    theirs = [library_of(*one) for one in h5py.get("mpis", [])]
    hdf5_mpi = None
    if h5py.get("parallel") and theirs:
        # The one whose file has the name that HDF5 was linked with.
        hdf5_mpi = next((one for one in theirs if needed and needed in one.path), theirs[0])
    return Libraries(
        mpi4py.get("mpi4py"),
        mpi,
        h5py.get("h5py"),
        tuple(h5py.get("hdf5", ())),
        h5py.get("hdf5_path", ""),
        bool(h5py.get("parallel")),
        hdf5_mpi,
        mpi4py["trouble"],
        h5py["trouble"],
    )


def _look(python: str, which: str) -> dict[str, Any]:
    # Without the launcher's variables: this process is none of its ranks.
    known = ("OMPI_COMM", "OMPI_MCA_ess", "OMPI_MCA_orte", "PMI", "PRTE", "MPI_LOCAL", "HYDRA")
    variables = {name: text for name, text in os.environ.items() if not name.startswith(known)}
    try:
        done = subprocess.run(
            [python, "-c", _LOOK, which],
            env=variables,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"trouble": f"{which} is not loaded within {_LIMIT_S} s"}
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        return {"trouble": f"{which} ends the process that loads it: {lines[-1]}"}
    return found


def _needed_mpi(path: str) -> str | None:
    """Name the libmpi that a shared library was linked with, such as ``libmpi.so.40``."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    found = re.search(rb"\0(libmpi(?:ch|_cray\w*)?\.so[.0-9]*)\0", content)
    return found[1].decode() if found else None


@dataclass(frozen=True)
class Rank:
    """Where one rank runs."""

    rank: int  # Its number
    host: str  # Its machine
    cores: tuple[int, ...]  # The cores that it may use
    memory_nbytes: int | None  # What its machine, or its control group, has in all
    version: str


@dataclass(frozen=True)
class Ranks:
    """Where all ranks run."""

    launcher: str  # What started them, as far as its variables say
    # ``single``, ``funneled``, ``serialized``, ``multiple``, or empty without MPI.
    thread_level: str
    ranks: tuple[Rank, ...]  # By rank

    @property
    def hosts(self) -> tuple[str, ...]:
        """Machines, each once, in the order of ranks."""
        return tuple(dict.fromkeys(one.host for one in self.ranks))

    @property
    def n_cores(self) -> int:
        """Cores of all machines that some rank may use."""
        return len({(one.host, core) for one in self.ranks for core in one.cores})

    @property
    def memory_a_rank(self) -> int | None:
        """Bytes of the rank with the least, if each machine shares evenly."""
        shares = [
            one.memory_nbytes // sum(other.host == one.host for other in self.ranks)
            for one in self.ranks
            if one.memory_nbytes is not None
        ]
        return min(shares, default=None)


def look_at_ranks(comm: Comm) -> Ranks:
    """Ask each rank where it runs (collective)."""
    from chunkwise._native import __version__

    mine = Rank(
        comm.rank,
        host(),
        tuple(sorted(os.sched_getaffinity(0))),
        total_nbytes(),
        f"Python {sys.version.split()[0]}, chunkwise {__version__}",
    )
    return Ranks(launcher(), _thread_level(comm), tuple(exchange(comm, mine)))


def launcher() -> str:
    """Name what started this process, by the variables that it set."""
    known = os.environ
    batch = " in a Slurm job" if "SLURM_JOB_ID" in known else ""
    if "PRTE_LAUNCHED" in known or known.get("PMIX_NAMESPACE", "").startswith("prterun"):
        return f"mpirun of Open MPI 5 (prterun){batch}"
    if "OMPI_COMM_WORLD_SIZE" in known:
        return f"mpirun of Open MPI{batch}"
    if "MV2_COMM_WORLD_SIZE" in known:
        return f"mpirun of MVAPICH{batch}"
    if "SLURM_PROCID" in known and under_mpi():
        return "srun"
    if "PMI_RANK" in known:
        return f"mpiexec of MPICH (Hydra) or alike{batch}"
    if under_mpi():
        return f"a launcher with PMIx{batch}"
    return "srun without MPI" if srun_tasks() else "none"


def srun_tasks() -> int:
    """Count the tasks that srun started without connecting them by MPI; 0 if it did not."""
    if under_mpi() or "SLURM_STEP_ID" not in os.environ:
        return 0
    text = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    return int(text) if text.isdigit() and int(text) > 1 else 0


def _thread_level(comm: Comm) -> str:
    if isinstance(comm, Alone):
        return ""
    from mpi4py import MPI

    names = {
        MPI.THREAD_SINGLE: "single",
        MPI.THREAD_FUNNELED: "funneled",
        MPI.THREAD_SERIALIZED: "serialized",
        MPI.THREAD_MULTIPLE: "multiple",
    }
    return names.get(MPI.Query_thread(), "")


@dataclass(frozen=True)
class Component:
    """What does MPI-IO in the MPI that mpi4py loads."""

    name: str  # ``ompio``, ``romio``, or ``unknown``
    why: str  # How that is known


def mpi_io_component(comm: Comm, library: Library, folder: Path, kind: str) -> Component:
    """Find which component of MPI opens files in a folder."""
    if library.name != "Open MPI":
        if not isinstance(comm, Alone) and any(h.startswith("romio_") for h in _hints(folder)):
            return Component("romio", "it takes ROMIO's hints")
        if library.name == "unknown":
            return Component("unknown", "this MPI library is not known")
        return Component("romio", f"{library.name} has no other")
    chosen = os.environ.get(_MCA_IO, "").strip()
    if chosen:
        names = [name.strip() for name in chosen.lstrip("^").split(",")]
        ompio = ("ompio" in names) != chosen.startswith("^")
        return Component("ompio" if ompio else "romio", f"OMPI_MCA_io={chosen}")
    if kind == "lustre" and library.version < (4, 1):
        return Component("romio", "the default on Lustre before Open MPI 4.1")
    if library.version < (2,):
        return Component("romio", "the default before Open MPI 2")
    return Component("ompio", "the default of Open MPI; OMPI_MCA_io is not set")


def _hints(folder: Path) -> list[str]:
    """Open a file that is removed as it is closed, and list the hints that MPI-IO took."""
    from mpi4py import MPI

    mode = MPI.MODE_CREATE | MPI.MODE_RDWR
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".chunkwise-") as place:
            file = MPI.File.Open(MPI.COMM_SELF, str(Path(place) / "hints"), mode)
            info = file.Get_info()
            names = [info.Get_nthkey(number) for number in range(info.Get_nkeys())]
            info.Free()
            file.Close()
    except (MPI.Exception, OSError):
        return []
    return names


def as_record(one: Any) -> dict[str, Any]:
    """Make plain values of a record, for JSON, with what it computes."""
    record = asdict(one)
    for name in vars(type(one)):
        if isinstance(vars(type(one))[name], property):
            record[name] = getattr(one, name)
    assert {field.name for field in fields(one)} <= record.keys()
    return record


def require_shared_folder(comm: Comm, folder: str | os.PathLike[str]) -> None:
    """Make sure that all ranks see one folder, by a file that rank 0 makes there (collective)."""
    place = Path(folder)
    # A name and a content that nobody can know before, so that no other file is taken for it.
    name, content = broadcast(comm, (f".chunkwise-{secrets.token_hex(16)}", secrets.token_hex(16)))
    token = place / name
    try:
        if comm.rank == 0:
            reason = _attempt(lambda: _make(token, content))
            broadcast(comm, reason)
        else:
            reason = broadcast(comm, None)
            if reason is None:
                # A network file system may show it only after a while.
                reason = _attempt(lambda: patiently(lambda: _find(token, content), OSError))
        seen = exchange(comm, (reason, host()))
    finally:
        if comm.rank == 0:
            with contextlib.suppress(OSError):
                token.unlink()
    if seen[0][0] is not None:
        raise agreed(
            CannotWriteError(f"{place}: rank 0 on {seen[0][1]} cannot write there: {seen[0][0]}"),
            0,
        )
    blind = [rank for rank, (reason, _) in enumerate(seen) if reason is not None]
    if blind:
        hosts = sorted({seen[rank][1] for rank in blind})
        raise agreed(
            CannotWriteError(
                f"{place}: {_listed(blind)} on {', '.join(hosts[:4])}"
                f"{' ...' if len(hosts) > 4 else ''} does not see what rank 0 on {seen[0][1]} "
                f"writes there ({seen[blind[0]][0]}): name a folder that all hosts share"
            ),
            0,
        )


def _attempt(work: Callable[[], None]) -> str | None:
    try:
        work()
    except OSError as wrong:
        return wrong.strerror or str(wrong)
    return None


def _make(token: Path, content: str) -> None:
    # A new file, and never what a link leads to.
    number = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(number)


def _find(token: Path, content: str) -> None:
    """Read the token."""
    with os.fdopen(os.open(token, os.O_RDONLY | os.O_NOFOLLOW)) as file:
        if file.read() != content:
            raise OSError(errno.EIO, "the file there is another one")


def _listed(ranks: Sequence[int]) -> str:
    """Name ranks: ``rank 1``, ``ranks 1, 2, 3 ... (100 of them)``."""
    few = ", ".join(map(str, ranks[:4]))
    more = f" ... ({len(ranks)} of them)" if len(ranks) > 4 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {few}{more}"
