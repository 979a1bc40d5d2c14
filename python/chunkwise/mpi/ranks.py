"""What do the processes of an MPI program do together: wait, exchange, and fail?

`agree` and `on_first` make one rank's failure the failure of all, so that nobody waits for it;
`wait` sleeps between two looks.  `ALONE` is a communicator that works without mpi4py.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from chunkwise import system
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.names import printable_lines
from chunkwise.verdicts import Exit

if TYPE_CHECKING:
    from mpi4py import MPI

# Each at the begin of what MPI_Get_library_version says.
_VENDORS: Final = {
    "Open MPI": r"Open MPI v?(?P<version>[0-9.]+)",
    "Intel MPI": r"Intel\(R\) MPI Library (?P<version>[0-9.]+)",
    "MVAPICH": r"MVAPICH2? Version\s*:\s*(?P<version>[0-9.]+)",
    "Cray MPICH": r"(?:MPI VERSION\s*:\s*)?CRAY MPICH version (?P<version>[0-9.]+)",
    "MPICH": r"MPICH Version:\s*(?P<version>[0-9.]+)",
}


@dataclass(frozen=True)
class Library:
    """An MPI library."""

    name: str  # Such as ``Open MPI``; ``unknown`` where its text is not understood
    version: tuple[int, ...]  # Empty where its text is not understood
    text: str  # The first line of what it says of itself
    path: str = ""  # The file that was loaded; empty if it is not known

    @property
    def of_mpich(self) -> bool:
        """Whether it is MPICH or one made of it, which Open MPI's mpirun cannot start."""
        return self.name in ("MPICH", "Intel MPI", "MVAPICH", "Cray MPICH")

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}".strip()


def library_of(text: str, path: str = "") -> Library:
    """Understand what MPI_Get_library_version says.

    >>> str(library_of("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"))
    'Open MPI 4.1.4'
    """
    # MPICH puts tabs and a zero byte into it.
    line = " ".join(text.replace("\0", " ").strip().split("\n")[0].split())
    for name, pattern in _VENDORS.items():
        found = re.match(pattern, " ".join(text.replace("\0", " ").split()), re.IGNORECASE)
        if found:
            version = tuple(int(n) for n in found["version"].strip(".").split("."))
            return Library(name, version, line, path)
    return Library("unknown", (), line, path)


T = TypeVar("T")

_SHORTEST_S, _LONGEST_S = 50e-6, 1e-3
# MPI counts in 32 bits: exchanges go in pieces of this many bytes in all.
_MOST_NBYTES: Final = 1 << 30
# This much depends on the length of a message.
_INLINE_NBYTES: Final = 120


@dataclass(frozen=True)
class Alone:
    """A communicator of this one process, without MPI."""

    rank: int = 0
    size: int = 1


ALONE: Final = Alone()

# mpi4py's, or that of one process.
Comm: TypeAlias = "MPI.Comm | Alone"


# Buffers of a request that was left because of a signal: MPI may still write to them.
abandoned: list[Any] = []


class WaitedTooLongError(Exception):
    """The others did not come in time."""


def wait(request: MPI.Request, limit_s: float | None = None) -> Any:
    """Wait until a request is done, without using a core."""
    # Open MPI's own waiting looks without pause, and takes the core from a rank that works.
    until = None if limit_s is None else time.monotonic() + limit_s
    try:
        for pause in pauses():
            done, received = request.test()
            if done:
                return received
            if until is not None and time.monotonic() > until:
                raise WaitedTooLongError
            time.sleep(pause)
    except BaseException:
        abandoned.append(request)
        raise
    return None


def wait_all(requests: Sequence[MPI.Request]) -> None:
    """Wait for several requests of buffers, as `wait` does for one."""
    for request in requests:
        wait(request)


def pauses() -> Iterator[float]:
    """Give seconds to sleep between two looks, without end."""
    # The first looks only let another process run: neighbours are often nearly there.
    for _ in range(20):
        yield 0.0
    pause = _SHORTEST_S
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_S)


def barrier(comm: Comm) -> None:
    """Wait until all ranks are here, without using a core."""
    if not isinstance(comm, Alone) and comm.size > 1:
        wait(comm.Ibarrier())


def exchange(comm: Comm, value: T, limit_s: float | None = None) -> list[T]:
    """Give each rank the values of all, by rank (collective)."""
    if isinstance(comm, Alone) or comm.size == 1:
        return [value]
    from mpi4py import MPI

    mine = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    # First the length and what fits behind it, which is all of most messages.
    head = len(mine).to_bytes(8, "little") + mine[:_INLINE_NBYTES]
    sent = bytearray(head.ljust(8 + _INLINE_NBYTES, b"\0"))
    heads = bytearray(len(sent) * comm.size)
    wait(comm.Iallgather([sent, MPI.BYTE], [heads, MPI.BYTE]), limit_s)
    each = [heads[at : at + len(sent)] for at in range(0, len(heads), len(sent))]
    counts = [int.from_bytes(one[:8], "little") for one in each]
    parts = [one[8 : 8 + count] for one, count in zip(each, counts, strict=True)]
    share = max(1, _MOST_NBYTES // comm.size)
    for begin in range(_INLINE_NBYTES, max(counts), share):
        sizes = [max(0, min(share, count - begin)) for count in counts]
        received = bytearray(sum(sizes))
        more = mine[begin : begin + share]
        wait(comm.Iallgatherv([more, MPI.BYTE], [received, sizes, MPI.BYTE]))
        at = 0
        for part, size in zip(parts, sizes, strict=True):
            part += received[at : at + size]
            at += size
    return [pickle.loads(part) for part in parts]


def broadcast(comm: Comm, value: T, root: int = 0) -> T:
    """Give each rank the value of one (collective); the others' `value` is not looked at."""
    if isinstance(comm, Alone) or comm.size == 1:
        return value
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if comm.rank == root else b""
    received = broadcast_bytes(comm, data, root)
    return value if comm.rank == root else pickle.loads(received)


def broadcast_bytes(comm: MPI.Comm, data: bytes, root: int) -> bytearray:
    """Give each rank the bytes of one (collective)."""
    from mpi4py import MPI

    length = memoryview(bytearray(8)).cast("q")
    length[0] = len(data)
    wait(comm.Ibcast([length, MPI.INT64_T], root))
    held = bytearray(data) if comm.rank == root else bytearray(length[0])
    for begin in range(0, length[0], _MOST_NBYTES):
        part = memoryview(held)[begin : begin + _MOST_NBYTES]
        wait(comm.Ibcast([part, MPI.BYTE], root))
    return held


class OtherRankFailedError(ChunkwiseError):
    """Another rank failed at what all ranks did together."""

    def __init__(self, rank: int, host: str, kind: str, reason: str) -> None:
        super().__init__(f"rank {rank} on {host} failed: {reason}")
        self.rank, self.host, self.kind, self.reason = rank, host, kind, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rank, self.host, self.kind, self.reason)


class Failure(NamedTuple):
    """One rank's failure, as the others learn it."""

    rank: int
    host: str
    kind: str
    reason: str


def host() -> str:
    """Name the machine that this process runs on."""
    return os.uname().nodename


def agree(comm: Comm, work: Callable[[], T]) -> T:
    """Do something on every rank, and fail on all if it fails on one (collective)."""
    # `work` must not wait for another rank, unless by functions of this module.
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
    """Do something on rank 0, and give all ranks what it returned (collective)."""
    if isinstance(comm, Alone) or comm.size == 1:
        return work()
    if comm.rank:
        received = pickle.loads(broadcast_bytes(comm, b"", 0))
        if isinstance(received, Failure):
            raise agreed(OtherRankFailedError(*received), received.rank)
        result: T = received[0]
        return result
    try:
        result = work()
        data = pickle.dumps((result,), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        broadcast_bytes(comm, pickle.dumps(failure_of(comm, error)), 0)
        raise agreed(error, failure_of(comm, error).rank) from None
    broadcast_bytes(comm, data, 0)
    return result


def _settle(comm: Comm, error: BaseException | None) -> None:
    """Send this rank's outcome to the others, and raise if another one failed."""
    mine = None if error is None else failure_of(comm, error)
    failures = [one for one in exchange(comm, mine) if one is not None]
    if not failures:
        return
    # A rank that only passes on the failure of another names that one.
    first = min(failures)
    if error is None:
        raise agreed(OtherRankFailedError(*first), first.rank)
    agreed(error, first.rank)


def failure_of(comm: Comm, error: BaseException) -> Failure:
    """Put this rank's failure, or another's that it passes on, into plain words."""
    if isinstance(error, OtherRankFailedError):
        return Failure(error.rank, error.host, error.kind, error.reason)
    reason = str(error) or type(error).__name__
    if not isinstance(error, ChunkwiseError) and str(error):
        reason = f"{type(error).__name__}: {reason}"
    return Failure(comm.rank, host(), type(error).__name__, reason)


_Error = TypeVar("_Error", bound=BaseException)


def agreed(error: _Error, first: int) -> _Error:
    """Note in an error that all ranks raise one now, and which rank's is the first."""
    error.__dict__["chunkwise_first_rank"] = first
    return error


# What launchers give their processes: how many there are, and which one this is.
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
            # mpi4py warns of another launcher; our message names both.
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
    """End a program of many ranks together: one message, one code, no hang (collective)."""
    # At the end of the block the ranks exchange whether they failed.  Where one did, the
    # lowest rank that failed itself prints its error, and all raise SystemExit, so that MPI is
    # finalised as usual.  A rank that failed, and waits longer than `patience_s` for the others,
    # ends them: they wait for it where it will not come.
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


# A launcher ends the other processes within this time after one has ended with an error.
_LATER_S = 2.0


def as_one_program(
    run: Callable[[], object], message: Callable[[BaseException], tuple[str, int] | None]
) -> None:
    """Run a program's main function on all ranks; they fail and end together (collective)."""
    # What ranks other than the first print to standard output goes nowhere.
    comm: Comm = ALONE
    try:
        if under_mpi():
            comm = world()
    except UsageError:
        # Without MPI, each process is alone, and says so if it needs MPI.
        pass

    def report_once(error: BaseException) -> ExitMessage | None:
        text_and_code = message(error)
        if text_and_code is None:
            return message_of(error)
        if comm is ALONE and launched()[0]:
            # The launcher's first process says the same, and ends the others.
            time.sleep(_LATER_S)
        text, code = text_and_code
        return ExitMessage(text.rstrip("\n"), code)

    first = not (launched()[0] if comm is ALONE else comm.rank)
    with ending(comm, report_once), contextlib.ExitStack() as held:
        if not first:
            nowhere = held.enter_context(Path(os.devnull).open("w"))
            held.enter_context(contextlib.redirect_stdout(nowhere))
        run()
