"""What do the processes of an MPI program do together, and how do they fail together?

Whoever works on many ranks meets two faults that end in a hang: a rank that fails while
the others wait for it, and waiting that burns the core which another rank needs.  So all
that ranks do together goes through here: `agree` and `on_first` make one rank's failure
the failure of all, and `wait` sleeps between two looks.

Every function takes an mpi4py communicator, or `ALONE`, for which mpi4py need not be
installed.  mpi4py is imported where it is used.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import secrets
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError
from chunkwise.names import printable_lines
from chunkwise.parallel.filesystems import FileSystem as FileSystem
from chunkwise.parallel.filesystems import filesystem_of as filesystem_of
from chunkwise.parallel.libraries import Library, library_of
from chunkwise.parallel.waiting import ALONE as ALONE
from chunkwise.parallel.waiting import Alone as Alone
from chunkwise.parallel.waiting import Comm as Comm
from chunkwise.parallel.waiting import abandoned, broadcast_bytes
from chunkwise.parallel.waiting import barrier as barrier
from chunkwise.parallel.waiting import broadcast as broadcast
from chunkwise.parallel.waiting import exchange as exchange
from chunkwise.parallel.waiting import wait as wait
from chunkwise.parallel.waiting import wait_all as wait_all

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

# What launchers tell the processes that they start: how many there are, and which one this is.
_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE")
_RANKS: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
_OTHERS: Final = ("PALS_RANKID", "PMI_CONTROL_PORT")

# So long a rank that failed alone waits for the others before it ends them.
PATIENCE_S: Final = 5.0


class OtherRankFailedError(ChunkwiseError):
    """Another rank failed at what all ranks did together.

    Attributes
    ----------
    rank : int
        The lowest rank that failed itself.
    kind : str
        The class of its exception.
    reason : str
        The message of its exception.
    """

    def __init__(self, rank: int, host: str, kind: str, reason: str) -> None:
        super().__init__(f"rank {rank} on {host} failed: {reason}")
        self.rank, self.host, self.kind, self.reason = rank, host, kind, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rank, self.host, self.kind, self.reason)


class Failure(NamedTuple):
    """One rank's failure, as the others are told of it."""

    rank: int
    host: str
    kind: str
    reason: str


def under_mpi() -> bool:
    """Whether a launcher of MPI (mpirun, mpiexec, srun --mpi=pmix) started this process."""
    return any(name in os.environ for name in (*_SIZES, *_RANKS, *_OTHERS))


def launched() -> tuple[int | None, int | None]:
    """Tell this process's rank and the number of ranks by the launcher's word, not by MPI's.

    Returns
    -------
    rank, size : int or None
        None where the launcher does not say.
    """
    return _number(_RANKS), _number(_SIZES)


def _number(names: Sequence[str]) -> int | None:
    texts = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isdigit()), None)


def world() -> MPI.Comm:
    """Initialise MPI, and return the communicator of all ranks.

    Raises
    ------
    UsageError
        Where mpi4py is missing, cannot load an MPI library, or loads another one than that
        whose launcher started this process.
    """
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            # Of the wrong library MPI_Init ends the process; so it is looked at before.
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


def host() -> str:
    """Name the machine that this process runs on."""
    return os.uname().nodename


def agree(comm: Comm, work: Callable[[], T]) -> T:
    """Do something on every rank, and fail on all if it fails on one (collective).

    `work` must not wait for another rank, unless by functions of this module.

    Parameters
    ----------
    comm : Comm
        Of the ranks that take part.
    work : callable
        What this rank does.

    Returns
    -------
    object
        What this rank's `work` returned.

    Raises
    ------
    BaseException
        What this rank's `work` raised, of whatever class.
    OtherRankFailedError
        Where this rank's went well, and another's did not.
    """
    with together(comm):
        return work()


@contextmanager
def together(comm: Comm) -> Iterator[None]:
    """Fail on all ranks at the end of the block, if it fails on one (collective)."""
    try:
        yield
    except BaseException as error:
        _settle(comm, error)
        raise
    _settle(comm, None)


def on_first(comm: Comm, work: Callable[[], T]) -> T:
    """Do something on rank 0, and give all ranks what it returned (collective).

    Raises
    ------
    BaseException
        On rank 0: what `work` raised.
    OtherRankFailedError
        On the others, then.
    """
    if isinstance(comm, Alone) or comm.size == 1:
        return work()
    if comm.rank:
        told = pickle.loads(broadcast_bytes(comm, b"", 0))
        if isinstance(told, Failure):
            raise _agreed(OtherRankFailedError(*told), told.rank)
        result: T = told[0]
        return result
    try:
        result = work()
        data = pickle.dumps((result,), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        broadcast_bytes(comm, pickle.dumps(failure_of(comm, error)), 0)
        raise _agreed(error, failure_of(comm, error).rank) from None
    broadcast_bytes(comm, data, 0)
    return result


def _settle(comm: Comm, error: BaseException | None) -> None:
    """Tell the others of this rank's outcome, and raise where another one failed."""
    mine = None if error is None else failure_of(comm, error)
    told = [one for one in exchange(comm, mine) if one is not None]
    if not told:
        return
    # A rank that only passes on the failure of another names that one.
    first = min(told)
    if error is None:
        raise _agreed(OtherRankFailedError(*first), first.rank)
    _agreed(error, first.rank)


def failure_of(comm: Comm, error: BaseException) -> Failure:
    """Put this rank's failure, or another's that it passes on, into plain words."""
    if isinstance(error, OtherRankFailedError):
        return Failure(error.rank, error.host, error.kind, error.reason)
    reason = str(error) or type(error).__name__
    if not isinstance(error, ChunkwiseError) and str(error):
        reason = f"{type(error).__name__}: {reason}"
    return Failure(comm.rank, host(), type(error).__name__, reason)


_Error = TypeVar("_Error", bound=BaseException)


def _agreed(error: _Error, first: int) -> _Error:
    """Note in an error that all ranks raise one now, and which rank's is the first."""
    error.__dict__["chunkwise_first_rank"] = first
    return error


class Told(NamedTuple):
    """An error as the command line tells it: a text, and the code that the process ends with."""

    text: str
    code: int


def tell(error: BaseException) -> Told | None:
    """Tell an error that was to be expected; None for one that needs a traceback."""
    if isinstance(error, SystemExit):
        code = error.code
        if isinstance(code, str):
            return Told(code, 1)
        return Told("", code if isinstance(code, int) else 0)
    if isinstance(error, KeyboardInterrupt):
        return Told("chunkwise: interrupted", 130)
    if isinstance(error, ChunkwiseError):
        return Told(f"chunkwise: {error}", 2)
    return None


@contextmanager
def ending(
    comm: Comm,
    tell: Callable[[BaseException], Told | None] = tell,
    patience_s: float = PATIENCE_S,
) -> Iterator[None]:
    """End a program of many ranks together: one message, one code, no hang (collective).

    At the end of the block each rank tells the others whether it failed.  Where one did, the
    lowest rank that failed itself prints its error, and all raise SystemExit, so that MPI is
    finalised as usual.  A rank that failed, and waits longer than `patience_s` for the others,
    ends them: they wait for it where it will not come.

    Parameters
    ----------
    comm : Comm
        Of all ranks of the program.
    tell : callable
        How an error is told; None for one that needs a traceback, whose code is 2.
    patience_s : float
        Seconds.

    Raises
    ------
    SystemExit
        Where a rank failed, on all ranks, with the code of the lowest that did.
    """
    # What is told here must not be taken for an answer to what a rank left unfinished.
    apart = comm
    if not isinstance(comm, Alone):
        try:
            apart, request = comm.Idup()
            wait(request)
        except BaseException:
            _abort(comm, 130)
            raise
    told: Told | None = None
    error: BaseException | None = None
    try:
        yield
    except BaseException as wrong:
        error = wrong
        told = tell(wrong) or Told("".join(traceback.format_exception(wrong)).rstrip(), 2)
    failed = told is not None and told.code != 0
    itself = failed and not isinstance(error, OtherRankFailedError)
    mine = (told.code if told is not None else 0, itself)
    try:
        codes = exchange(apart, mine, patience_s if failed else None)
        first = next((rank for rank, (_, own) in enumerate(codes) if own), None)
        if first is None:
            first = next((rank for rank, (code, _) in enumerate(codes) if code), None)
        if first is not None and apart.rank == first and told is not None:
            _print(told.text)
        # A launcher ends all ranks as soon as one has ended with an error.
        left = any(exchange(apart, bool(abandoned)))
    except BaseException:
        # The others do not come, or the user is tired of waiting for them.
        if told is not None:
            _print(told.text)
        _abort(comm, mine[0] or 130)
        raise
    code = mine[0] if first is None else codes[first][0]
    if left:
        _abort(comm, code)
    if told is not None or code:
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


def require_shared_folder(comm: Comm, folder: str | os.PathLike[str]) -> None:
    """Make sure that all ranks see one folder, by a file that rank 0 makes there (collective).

    Parameters
    ----------
    comm : Comm
        Of the ranks that will use the folder.
    folder : path-like
        A folder that exists.

    Raises
    ------
    CannotWriteError
        On all ranks: where rank 0 cannot write there, or others do not see what it writes.
    """
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
                reason = _attempt(lambda: _find(token, content))
        seen = exchange(comm, (reason, host()))
    finally:
        if comm.rank == 0:
            with contextlib.suppress(OSError):
                token.unlink()
    if seen[0][0] is not None:
        raise _agreed(
            CannotWriteError(f"{place}: rank 0 on {seen[0][1]} cannot write there: {seen[0][0]}"),
            0,
        )
    blind = [rank for rank, (reason, _) in enumerate(seen) if reason is not None]
    if blind:
        hosts = sorted({seen[rank][1] for rank in blind})
        raise _agreed(
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


def _find(token: Path, content: str, patience_s: float = 2.0) -> None:
    """Read the token; a network file system may show it only after a while."""
    until = time.monotonic() + patience_s
    while True:
        try:
            number = os.open(token, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(number) as file:
                if file.read() == content:
                    return
            wrong = OSError(errno.EIO, "the file there is another one")
        except OSError as error:
            wrong = error
        if time.monotonic() > until:
            raise wrong
        time.sleep(0.05)


def _listed(ranks: Sequence[int]) -> str:
    """Name ranks: ``rank 1``, ``ranks 1, 2, 3 ... (100 of them)``."""
    few = ", ".join(map(str, ranks[:4]))
    more = f" ... ({len(ranks)} of them)" if len(ranks) > 4 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {few}{more}"
