"""Do all ranks see one folder?"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from chunkwise.errors import CannotWriteError
from chunkwise.mpi.machine import patiently
from chunkwise.mpi.ranks import Comm, agreed, broadcast, exchange, host


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
