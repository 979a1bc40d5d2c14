"""Who removes a file whose writers were killed?

A launcher that is told to end kills its processes after a while, whether they have ended or
not, and a rank that waits for others in HDF5 hears no signal.  So a small process outlives
rank 0, sees that it is gone, and removes its unfinished file.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

# It waits for a word, and the end of the program is none.
_WAIT = 'read -r word || rm -f -- "$@"'


@contextlib.contextmanager
def removed(paths: Sequence[str]) -> Iterator[None]:
    """Remove files at the end of the block, and also if the process does not get there."""
    full = [str(Path(path).absolute()) for path in paths]
    quiet = subprocess.DEVNULL
    try:
        watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT, "sh", *full],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            # Not of the group that the launcher kills.
            start_new_session=True,
        )
    except OSError:
        watcher = None
    try:
        yield
    finally:
        for path in full:
            with contextlib.suppress(OSError):
                Path(path).unlink()
        if watcher is not None and watcher.stdin is not None:
            with contextlib.suppress(OSError):
                watcher.stdin.write(b"removed\n")
                watcher.stdin.close()
            watcher.wait()
