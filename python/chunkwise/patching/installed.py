"""Is h5py patched, since when, and by whom?"""

from __future__ import annotations

import os
import warnings
from typing import TypedDict

from h5py._objects import phil

from chunkwise.patching import methods
from chunkwise.routing import bindings, reading
from chunkwise.settings import check_environment
from chunkwise.writing import at_once

# With 0, h5py does all writes.
WRITE_VARIABLE = "CHUNKWISE_WRITE"

# Who wants h5py patched: calls of patch_h5py, until unpatch_h5py; and `with` blocks.
_calls: set[Patch] = set()
_blocks: set[Patch] = set()
_installed: list[methods.Replacement] = []


class Patch:
    """What `patch_h5py` returns: in a ``with`` statement, h5py is patched for the block."""

    def __enter__(self) -> Patch:
        with phil:
            _calls.discard(self)
            _blocks.add(self)
            _install()
        return self

    def __exit__(self, *_: object) -> None:
        with phil:
            _blocks.discard(self)
            _remove_unless_wanted()


def patch_h5py() -> Patch:
    """Let the engine do this process's reads and writes of `h5py.Dataset`.

    Classes, results and exceptions stay h5py's; what the engine cannot read, h5py reads.  Chunks
    that one assignment covers completely are encoded on all threads, and are in the file when the
    call returns; h5py writes the rest.  If the environment variable ``CHUNKWISE_WRITE`` is 0, h5py
    writes everything.  Calling it again changes nothing.  With several ``with`` blocks, in any
    threads, the last to end removes the patch, unless it was also made without a block.

    Returns
    -------
    Patch
        For ``with chunkwise.patch_h5py(): ...``.

    Raises
    ------
    chunkwise.errors.UsageError
        When a variable ``CHUNKWISE_...`` has a wrong value.
    """
    check_environment()
    patch = Patch()
    with phil:
        _calls.add(patch)
        _install()
    return patch


def unpatch_h5py() -> None:
    """Undo `patch_h5py`, however often it was called; ``with`` blocks that run keep it.

    Lets go of everything that was kept for open files.  Does nothing if h5py is not patched.
    """
    with phil:
        _calls.clear()
        _remove_unless_wanted()


class Served(TypedDict):
    """Calls by who served them."""

    engine: int
    h5py: dict[str, int]  # Reasons, each with the number of calls left to h5py for it


class PatchStats(Served):
    """The reads of `h5py.Dataset` by who served them, and more."""

    patched: bool  # Whether h5py is patched now
    writes: Served  # Calls of which h5py has written a part count as the engine's


def patch_stats() -> PatchStats:
    """Count the reads and writes of `h5py.Dataset` by their path, since the process began.

    Returns
    -------
    PatchStats
        A dict: ``patched``, whether h5py is patched now; ``engine``, the number of calls that
        the engine served; ``h5py``, a dict of reasons, each with the number of calls left to
        h5py for it; ``writes``, a dict with the same two of what was written.
        ``chunkwise.wrap(dataset).explain()`` says more of one dataset.
    """
    return {
        "patched": bindings.active(),
        "engine": reading.counts.engine,
        "h5py": dict(reading.counts.h5py),
        "writes": {"engine": at_once.counts.engine, "h5py": dict(at_once.counts.h5py)},
    }


def _install() -> None:
    if not bindings.active():
        _installed[:] = methods.replacements(writes=os.environ.get(WRITE_VARIABLE, "1") != "0")
        for owner, name, replacement in _installed:
            setattr(owner, name, replacement)
        bindings.activate()


def _remove_unless_wanted() -> None:
    if _calls or _blocks or not bindings.active():
        return
    # What is still called, by threads or by others' patches, goes to h5py from here on.
    bindings.deactivate()
    for owner, name, replacement in _installed:
        if owner.__dict__.get(name) is replacement:
            setattr(owner, name, replacement.__wrapped__)
        else:
            warnings.warn(
                f"h5py.{owner.__name__}.{name} was replaced after chunkwise.patch_h5py() and "
                "is left as it is",
                RuntimeWarning,
                stacklevel=3,
            )
