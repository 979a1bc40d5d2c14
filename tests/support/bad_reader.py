"""Reads damaged files, each in a child that may crash: a JSON line for each.

    python -m tests.support.bad_reader FILE...

First through chunkwise, then in another child through h5py; memory and processor time are limited.
"""

import json
import os
import signal
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401
import numpy as np

import chunkwise
from tests.support.processes import ran

MEMORY_NBYTES = 2 << 30
TIME_S = 30
# Of a dataset that is too large to be read whole.
PARTS: dict[str, Any] = {"two-to-the-40-chunks.h5": np.s_[2**39 - 1 : 2**39 + 1]}


def by_chunkwise(path: str) -> Any:
    with chunkwise.open(path) as f:
        d = f["d"]
        assert isinstance(d, chunkwise.Dataset)
        d.explain()
        return d[PARTS.get(Path(path).name, ...)]


# libhdf5 inflates a gigabyte in full, and doubles its memory on the way.
THEIR_MEMORY_NBYTES = 4 << 30


def by_h5py(path: str) -> Any:
    with h5py.File(path) as f:
        return f["d"][PARTS.get(Path(path).name, ...)]


def outcome(read: Any, path: str) -> dict[str, Any]:
    warned: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            got = read(path)
        found: dict[str, Any] = {
            "read": f"{got.dtype.str} {got.shape} {zlib.crc32(got.tobytes())}"
        }
    except Exception as error:
        classes = [c.__name__ for c in type(error).__mro__]
        found = {"error": str(error), "classes": classes}
    found["warned"] = [str(each.message) for each in warned]
    import resource  # Windows has none.

    found["peak_nbytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def in_child(read: Any, path: str, most_nbytes: int = MEMORY_NBYTES) -> dict[str, Any]:
    """What `outcome` says, or the signal that ended it."""
    import resource

    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_PROF, TIME_S)
        resource.setrlimit(resource.RLIMIT_AS, (most_nbytes, most_nbytes))
        os.write(send, json.dumps(outcome(read, path)).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as stream:
        said = stream.read()
    status = os.waitpid(pid, 0)[1]
    found: dict[str, Any] = json.loads(said) if said else {"died": os.WTERMSIG(status)}
    return found


def main() -> None:
    # What a first read has to find out about libhdf5, children need not find out again.
    with tempfile.TemporaryDirectory() as folder:
        sound = str(Path(folder, "sound.h5"))
        with h5py.File(sound, "w") as f:
            f["d"] = 1
        by_chunkwise(sound)
    for path in sys.argv[1:]:
        found = {"file": path, "ours": in_child(by_chunkwise, path)}
        found["theirs"] = in_child(by_h5py, path, THEIR_MEMORY_NBYTES)
        print(json.dumps(found))


def outcomes(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Run this program; what it says of each file, in their order."""
    done = ran(
        [sys.executable, "-m", "tests.support.bad_reader", *map(str, paths)],
        cwd=Path(__file__).parents[2],
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    # libhdf5's plugins print lines of their own.
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main()
