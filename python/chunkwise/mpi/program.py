"""How does a command run on many ranks as one program?"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from chunkwise.errors import UsageError
from chunkwise.mpi.ranks import ALONE, ExitMessage, ending, launched, message_of, under_mpi, world
from chunkwise.mpi.waiting import Comm

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

    def tell_once(error: BaseException) -> ExitMessage | None:
        text_and_code = message(error)
        if text_and_code is None:
            return message_of(error)
        if comm is ALONE and launched()[0]:
            # The launcher's first process says the same, and ends the others.
            time.sleep(_LATER_S)
        text, code = text_and_code
        return ExitMessage(text.rstrip("\n"), code)

    first = not (launched()[0] if comm is ALONE else comm.rank)
    with ending(comm, tell_once), contextlib.ExitStack() as held:
        if not first:
            nowhere = held.enter_context(Path(os.devnull).open("w"))
            held.enter_context(contextlib.redirect_stdout(nowhere))
        run()
