"""What if libhdf5 itself crashes on a damaged file?

Some damaged files end the process that opens them: libhdf5 follows a broken address and
the system stops it.  Nothing in that process can report it, so that work on files that
nobody vouches for is done in a child, which may crash alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import select
import signal
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn, TypeVar

import h5py

from chunkwise.errors import CorruptDataError

Result = TypeVar("Result")


def contained(work: Callable[[], Result], what: str, limit_s: float | None = None) -> Result:
    """Do some work in a child process, and return what it returns.

    Parameters
    ----------
    work
        What to do; its result, or the exception that it raises, must be picklable.
    what
        What is worked on, to begin the message with.
    limit_s
        Seconds after which the child is ended: libhdf5 searches some damaged files for
        ever.  None waits.

    Raises
    ------
    CorruptDataError
        The child was ended by a signal, as by a fault in libhdf5, or by the limit.
    Exception
        What `work` raises.
    KeyboardInterrupt
        Ctrl-C; the child is ended.
    """
    version = h5py.version.hdf5_version
    for output in (sys.stdout, sys.stderr):
        output.flush()
    reading, writing = os.pipe()
    # Ctrl-C reaches both; it must not find the child before that ignores it.
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with warnings.catch_warnings():
        # NumPy's idle threads are no concern: the child calls nothing that needs them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reading)
        _work_and_leave(work, writing)
    os.close(writing)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        with os.fdopen(reading, "rb", buffering=0) as stream:
            # An answer comes all at once, at the end.
            ready, _, _ = select.select([stream], [], [], limit_s)
            if not ready:
                raise CorruptDataError(
                    f"{what}: HDF5 {version} did not come to an end with it in {limit_s:,.0f} s: "
                    "the file is damaged, or very large; look at it alone"
                )
            answer = stream.readall()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not answer:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "no answer"
        raise CorruptDataError(
            f"{what}: HDF5 {version} crashed on it ({name}): the file is "
            "damaged; fetch it again or restore it"
        )
    done, outcome = pickle.loads(answer)
    if not done:
        raise outcome
    result: Result = outcome
    return result


def _work_and_leave(work: Callable[[], object], writing: int) -> NoReturn:
    """Work in the child, send the outcome, and end without any of the parent's clean-up."""
    # The parent decides what Ctrl-C means, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A crash is reported in one line, by the parent.
    faulthandler.disable()
    # Whatever ends the parent ends this process (prctl(2), PR_SET_PDEATHSIG; Linux only).
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    try:
        try:
            outcome: tuple[bool, object] = (True, work())
        except BaseException as error:
            outcome = (False, error)
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(outcome, stream, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)
