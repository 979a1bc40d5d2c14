"""Which ranks are there, and how do they end when one of them fails?

The launcher's variables say whether this process is one of several before MPI is loaded, so
that an error which all ranks meet is printed by one.  An error that one rank meets ends all:
the others may wait for it in a call of HDF5, and would wait for ever.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError, WrongValueError
from chunkwise.names import printable, printable_lines
from chunkwise.words import counted

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

# What launchers tell the processes that they start.
_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE")
_RANKS: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
REMEDY: Final = (
    "run `make mpi` in chunkwise's sources and start .venv-mpi/bin/chunkwise, or build h5py for "
    "MPI (HDF5_MPI=ON CC=mpicc pip install --no-binary h5py --no-build-isolation h5py)"
)
# So long another rank waits before it tells an error that rank 0 may tell, too.
_MANNERS_S: Final = 0.5


def _number(names: tuple[str, ...]) -> int | None:
    texts = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isdigit()), None)


def launched() -> int | None:
    """Return how many processes the launcher started; None where there is no launcher of MPI."""
    return _number(_SIZES)


def launched_rank() -> int:
    """Return this process's rank by the launcher's word; 0 where there is none."""
    return _number(_RANKS) or 0


@dataclass(frozen=True)
class World:
    """All ranks, or this process alone.

    Attributes
    ----------
    comm : Comm or None
        None where MPI is not used.
    rank, size : int
    """

    comm: MPI.Comm | None = None
    rank: int = 0
    size: int = 1

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        if self.comm is not None:
            self.comm.Barrier()

    def gather(self, values: Any) -> list[Any]:
        """Return what every rank has, on rank 0; nothing on the others (collective)."""
        if self.comm is None:
            return [values]
        return self.comm.gather(values) or []

    def crowded(self) -> str:
        """Say how many ranks share how few processors; nothing where each has one (collective).

        A launcher may have bound each rank to one processor: those of the machine count.
        """
        here = (os.uname().nodename, os.cpu_count() or 1)
        everywhere = [here] if self.comm is None else self.comm.allgather(here)
        for machine in dict.fromkeys(everywhere):
            ranks, cpus = everywhere.count(machine), machine[1]
            if ranks > cpus:
                return f"{ranks} ranks on {counted(cpus, 'processor')}"
        return ""

    def on_first(self, work: Callable[[], T]) -> T:
        """Do something on rank 0; all return what it gave, or raise as it did (collective)."""
        result: Any = None
        error: ChunkwiseError | None = None
        if self.rank == 0:
            try:
                result = work()
            except ChunkwiseError as wrong:
                error = wrong
        if self.comm is not None:
            result, error = self.comm.bcast((result, error))
        if error is not None:
            raise error
        told: T = result
        return told

    def on_all(self, work: Callable[[], str]) -> None:
        """Fail on all ranks where one has a reason to (collective).

        Raises
        ------
        CannotWriteError
            With the reason of the lowest rank that has one.
        """
        reason = work()
        reasons = [reason] if self.comm is None else self.comm.allgather(reason)
        for rank, text in enumerate(reasons):
            if text:
                raise CannotWriteError(f"rank {rank}: {text}" if self.size > 1 else text)

    def check_shared(self, folder: str) -> None:
        """Make sure that all ranks see one folder, by a file that rank 0 makes there.

        Raises
        ------
        CannotWriteError
            Rank 0 cannot write there, or others do not see what it writes.
        """
        place = Path(folder)
        token = place / f".chunkwise-{self.on_first(lambda: secrets.token_hex(16))}"

        def make() -> None:
            try:
                os.close(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except OSError as error:
                raise CannotWriteError(
                    f"{printable(folder)}: cannot be written to: {error.strerror}"
                ) from None

        def look() -> str:
            # A network file system may show it only after a while.
            until = time.monotonic() + 2
            while not token.exists():
                if time.monotonic() > until:
                    return (
                        f"{printable(folder)} on {os.uname().nodename} is not the folder that "
                        "rank 0 writes to: name one that all ranks share"
                    )
                time.sleep(0.05)
            return ""

        self.on_first(make)
        try:
            self.on_all(look)
        finally:
            if self.rank == 0:
                with contextlib.suppress(OSError):
                    token.unlink()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """End all ranks where one fails in this block, as the others may wait for it.

        What it prints is one line, from rank 0 where that fails too.
        """
        try:
            yield
        except BaseException as wrong:
            if self.comm is None or self.size == 1:
                raise
            code = 1
            if isinstance(wrong, SystemExit) and isinstance(wrong.code, int):
                code = wrong.code
            elif isinstance(wrong, KeyboardInterrupt):
                code = 130
            if self.rank:
                time.sleep(_MANNERS_S)
            if code == 1:
                code = tell(wrong)
            self.comm.Abort(code)
            raise


def tell(wrong: BaseException) -> int:
    """Print an error on this process's own stderr, and return the code that it deserves."""
    known = isinstance(wrong, ChunkwiseError | OSError | RuntimeError | ValueError)
    reason = " ".join(str(wrong).split()) if known else repr(wrong)
    print(printable_lines(f"chunkwise: {reason}"), file=sys.__stderr__, flush=True)
    return 1 if isinstance(wrong, WrongValueError) else 2


def world(mpi_alone: bool = False) -> World:
    """Find the ranks, and initialise MPI where there are several.

    Parameters
    ----------
    mpi_alone : bool
        Whether MPI is needed in a single process, too.

    Raises
    ------
    UsageError
        h5py or mpi4py cannot do it, or they are of different MPI libraries.
    """
    size = launched()
    if (size is None or size == 1) and not mpi_alone:
        return World()
    what = f"{size} ranks" if size and size > 1 else "MPI-IO"
    try:
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise UsageError(f"{what} need mpi4py, which is not installed: {REMEDY}") from None
    except (ImportError, RuntimeError, OSError) as wrong:
        reason = " ".join(str(wrong).split())
        raise UsageError(f"mpi4py cannot load MPI: {reason}: {REMEDY}") from None
    comm = MPI.COMM_WORLD
    ours = MPI.Get_library_version().split(",")[0].split("\n")[0].strip("\0 ")
    if size is not None and comm.size != size:
        raise UsageError(
            f"the launcher started {size} processes, and mpi4py's MPI ({ours}) sees {comm.size}: "
            "they are of different MPI libraries; start it by the mpirun of that library"
        )
    import h5py

    if not h5py.get_config().mpi:
        raise UsageError(
            f"h5py {h5py.__version__} is built without MPI, and {what} cannot write one file by "
            f"it: {REMEDY}"
        )
    loaded = _libraries("libmpi")
    if len(loaded) > 1:
        raise UsageError(
            f"mpi4py and h5py's HDF5 {h5py.version.hdf5_version} are of different MPI libraries "
            f"({' and '.join(loaded)}): build h5py with the mpicc of {ours}"
        )
    return World(comm, comm.rank, comm.size)


def _libraries(begin: str) -> list[str]:
    """Return the shared libraries of this process whose names begin so, as its memory map says."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if line.count("/") > 1)
    return [path for path in paths if Path(path).name.startswith((f"{begin}.so", f"{begin}ch.so"))]


def quieten() -> None:
    """Let only rank 0 print; the others keep ``sys.__stderr__`` for errors of their own."""
    if launched_rank():
        # Open as long as the process is.
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
