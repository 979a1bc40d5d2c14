"""How do pieces of boxes get to the ranks that encode them, one at a time?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from chunkwise.grammar.boxes import Box
from chunkwise.mpi.waiting import wait_all

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm

Array = npt.NDArray[Any]
# Most bytes of a piece, unless it is part of a single chunk.
PIECE_NBYTES: Final = 16 << 20
# MPI counts in 32 bits.
_MOST_NBYTES: Final = 1 << 30
_TAG: Final = 17


def swap(
    comm: Comm,
    outgoing: Callable[[int], Iterator[Box]],
    incoming: Callable[[int], Iterator[Box]],
    give: Callable[[Box], Array],
    take: Callable[[Box, Array], None],
    dtype: np.dtype[Any],
) -> None:
    """Send pieces to their owners, and receive those of others (collective)."""
    # In turn k, each rank sends to the k-th after it, and receives from the k-th before it.  Both
    # know all pieces in their order, so that nothing but elements is sent, and one piece each way
    # is in memory.  A rank whose `take` fails receives what is left all the same, as others wait
    # for it to be received.
    failure: BaseException | None = None
    for turn in range(1, comm.size):
        to, by = (comm.rank + turn) % comm.size, (comm.rank - turn) % comm.size
        for sent, received in zip_longest(outgoing(to), incoming(by)):
            requests = [] if sent is None else _messages(comm, give(sent), to, sends=True)
            if received is not None:
                elements = np.empty(received.shape, dtype)
                wait_all(_messages(comm, elements, by, sends=False))
                if failure is None:
                    try:
                        take(received, elements)
                    except Exception as wrong:
                        failure = wrong
            wait_all(requests)
    if failure is not None:
        raise failure


def _messages(comm: Any, elements: Array, other: int, *, sends: bool) -> list[Any]:
    from mpi4py import MPI

    raw = elements.reshape(-1).view(np.uint8)
    begin = comm.Isend if sends else comm.Irecv
    parts = (raw[at : at + _MOST_NBYTES] for at in range(0, raw.size, _MOST_NBYTES))
    return [begin([part, MPI.BYTE], other, _TAG) for part in parts]
