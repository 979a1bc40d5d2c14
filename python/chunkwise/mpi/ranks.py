"""What do the processes of an MPI program do together, and how do they fail together?

Programs on many ranks have two faults that end in a hang: a rank fails while
the others wait for it, and waiting uses the core that another rank needs.  So everything
that ranks do together goes through here: `agree` and `on_first` (`failing.py`) make one rank's
failure the failure of all, and `wait` (`waiting.py`) sleeps between two looks.

Every function takes an mpi4py communicator, or `ALONE`, which works without
mpi4py.  mpi4py is imported where it is used.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from chunkwise import system
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.mpi.failing import Failure as Failure
from chunkwise.mpi.failing import OtherRankFailedError as OtherRankFailedError
from chunkwise.mpi.failing import agree as agree
from chunkwise.mpi.failing import failure_of as failure_of
from chunkwise.mpi.failing import host as host
from chunkwise.mpi.failing import on_first as on_first
from chunkwise.mpi.failing import together as together
from chunkwise.mpi.filesystems import FileSystem as FileSystem
from chunkwise.mpi.filesystems import filesystem_of as filesystem_of
from chunkwise.mpi.libraries import Library, library_of
from chunkwise.mpi.waiting import ALONE as ALONE
from chunkwise.mpi.waiting import Alone as Alone
from chunkwise.mpi.waiting import Comm as Comm
from chunkwise.mpi.waiting import abandoned
from chunkwise.mpi.waiting import barrier as barrier
from chunkwise.mpi.waiting import broadcast as broadcast
from chunkwise.mpi.waiting import exchange as exchange
from chunkwise.mpi.waiting import wait as wait
from chunkwise.mpi.waiting import wait_all as wait_all
from chunkwise.names import printable_lines
from chunkwise.verdicts import Exit

if TYPE_CHECKING:
    from mpi4py import MPI

# What launchers tell their processes: how many there are, and which one this is.
_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE")
_RANKS: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
_OTHERS: Final = ("PALS_RANKID", "PMI_CONTROL_PORT")

# A rank that failed alone waits this long for the others before it ends them.
PATIENCE_S: Final = 5.0


def under_mpi() -> bool:
    """Whether a launcher of MPI (mpirun, mpiexec, srun --mpi=pmix) started this process."""
    return any(name in os.environ for name in (*_SIZES, *_RANKS, *_OTHERS))


def launched() -> tuple[int | None, int | None]:
    """Return this process's rank and the number of ranks, as the launcher states them."""
    return _number(_RANKS), _number(_SIZES)


def _number(names: Sequence[str]) -> int | None:
    texts = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isdigit()), None)


def require_supported() -> None:
    """Raise UsageError where ranks cannot write together."""
    if not system.FORKS:
        raise UsageError("MPI is not supported on Windows: use one process, or Linux or macOS")


def world() -> MPI.Comm:
    """Initialise MPI, and return the communicator of all ranks."""
    require_supported()
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            # MPI_Init of the wrong library ends the process; so it is checked first.
            mpi4py.rc.initialize = False
            mpi4py.rc.finalize = True
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise UsageError("MPI needs mpi4py, which is not installed: pip install mpi4py") from None
    except (ImportError, RuntimeError, OSError) as wrong:
        reason = " ".join(str(wrong).split())
        raise UsageError(
            f"mpi4py cannot load MPI ({reason}): install an MPI library (Debian: openmpi-bin), "
            "or name its libmpi.so in MPI4PY_LIBMPI"
        ) from None
    library = library_of(MPI.Get_library_version())
    started_by_open_mpi = "OMPI_COMM_WORLD_SIZE" in os.environ
    if started_by_open_mpi and library.of_mpich:
        raise _other_launcher(library, "Open MPI's mpirun")
    if not MPI.Is_initialized():
        with warnings.catch_warnings():
            # mpi4py's own word about another launcher; ours names both.
            warnings.filterwarnings("ignore", "suspicious MPI execution environment")
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
    _, size = launched()
    if MPI.COMM_WORLD.Get_size() == 1 and size is not None and size > 1:
        by = "Open MPI's mpirun" if started_by_open_mpi else "the launcher (PMI)"
        raise _other_launcher(library, f"{by} with {size} processes, of which MPI sees one")
    return MPI.COMM_WORLD


def _other_launcher(library: Library, launcher: str) -> UsageError:
    return UsageError(
        f"mpi4py loads {library}, but this process was started by {launcher}: start it with the "
        f"mpirun or mpiexec of {library.name}, or name the libmpi.so of the other in "
        "MPI4PY_LIBMPI; `chunkwise mpi-check` shows which library is loaded"
    )


def of_many_ranks() -> Comm:
    """Return the communicator of all ranks, or `ALONE` if there is one process."""
    if not under_mpi() or launched()[1] == 1:
        return ALONE
    return world()


class ExitMessage(NamedTuple):
    """An error on the command line: a text, and the code that the process ends with."""

    text: str
    code: int


def message_of(error: BaseException) -> ExitMessage | None:
    """Return the message of an expected error; None for one that needs a traceback."""
    if isinstance(error, SystemExit):
        code = error.code
        if isinstance(code, str):
            return ExitMessage(code, 1)
        return ExitMessage("", code if isinstance(code, int) else 0)
    if isinstance(error, KeyboardInterrupt):
        return ExitMessage("chunkwise: interrupted", Exit.INTERRUPTED)
    if isinstance(error, ChunkwiseError):
        return ExitMessage(f"chunkwise: {error}", error.exit_code)
    return None


@contextmanager
def ending(
    comm: Comm,
    message_of: Callable[[BaseException], ExitMessage | None] = message_of,
    patience_s: float = PATIENCE_S,
) -> Iterator[None]:
    """End a program of many ranks together: one message, one code, no hang (collective).

    At the end of the block each rank tells the others whether it failed.  Where one did, the
    lowest rank that failed itself prints its error, and all raise SystemExit, so that MPI is
    finalised as usual.  A rank that failed, and waits longer than `patience_s` for the others,
    ends them: they wait for it where it will not come.
    """
    # Messages here must not count as answers to what a rank left unfinished.
    apart = comm
    if not isinstance(comm, Alone):
        try:
            apart, request = comm.Idup()
            wait(request)
        except BaseException:
            _abort(comm, Exit.INTERRUPTED)
            raise
    message: ExitMessage | None = None
    error: BaseException | None = None
    try:
        yield
    except BaseException as wrong:
        error = wrong
        message = message_of(wrong) or ExitMessage(
            "".join(traceback.format_exception(wrong)).rstrip(), Exit.FAILED
        )
    failed = message is not None and message.code != 0
    itself = failed and not isinstance(error, OtherRankFailedError)
    mine = (message.code if message is not None else 0, itself)
    try:
        codes = exchange(apart, mine, patience_s if failed else None)
        first = next((rank for rank, (_, own) in enumerate(codes) if own), None)
        if first is None:
            first = next((rank for rank, (code, _) in enumerate(codes) if code), None)
        if first is not None and apart.rank == first and message is not None:
            _print(message.text)
        # A launcher ends all ranks as soon as one has ended with an error.
        left = any(exchange(apart, bool(abandoned)))
    except BaseException:
        # The others do not come, or the user is tired of waiting for them.
        if message is not None:
            _print(message.text)
        _abort(comm, mine[0] or Exit.INTERRUPTED)
        raise
    code = mine[0] if first is None else codes[first][0]
    if left:
        _abort(comm, code)
    if message is not None or code:
        sys.exit(code)


def _print(text: str) -> None:
    if text:
        sys.stdout.flush()
        print(printable_lines(text), file=sys.stderr, flush=True)


def _abort(comm: Comm, code: int) -> None:
    """End all ranks at once; MPI cannot be finalised any more."""
    if not isinstance(comm, Alone):
        sys.stdout.flush()
        comm.Abort(code)
