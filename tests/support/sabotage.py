"""What becomes of a run where one of its calls that change files goes wrong?

`sabotage.c` is loaded into the run with LD_PRELOAD, counts the calls that change files under a
folder, and lets those go wrong that a `Plan` names.  A run without faults says how many there
are::

    with Server(module, folder) as server:
        for call in server.run(function, folder).calls:
            done = server.run(function, folder, Plan(call.number, "enospc..."))

Calls of several threads or processes are counted together, so a number may be another call in the
next run.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).with_suffix(".c")
#: Those that can be counted, each with its relatives (``pwrite64``, ``renameat2``, ``linkat``), in
#: the order of `sabotage.c`.
CALLS: Final = (
    *("pwrite", "write", "pwritev", "writev", "fsync", "fdatasync", "close", "ftruncate"),
    *("fallocate", "copy_file_range", "sendfile", "rename", "link", "unlink"),
)
#: What each of them does: see `sabotage.c`, whose order this is.
FAULTS: Final = ("pass", "flip", "drop", "short", "enospc", "eio", "late", "kill")
#: Those that hand over bytes.
WITH_DATA: Final = frozenset({"pwrite", "write", "pwritev", "writev"})


@dataclass(frozen=True)
class Plan:
    """Which calls go wrong, and how."""

    number: int = 0
    """The first, from 1 on; 0 for none."""
    faults: str = "pass"
    """One for each call from there on, and ``...`` if the last holds for all others too."""

    @property
    def state(self) -> bytes:
        """The `struct state` of this plan before the first call."""
        faults = [FAULTS.index(name) for name in self.faults.removesuffix("...").split(",")]
        lasting = self.faults.endswith("...")
        every = (1 << len(CALLS)) - 1
        return struct.pack("QQIBB34s", 0, self.number, every, lasting, len(faults), bytes(faults))


@dataclass(frozen=True, order=True)
class Call:
    """A call that was counted."""

    number: int
    process: int
    name: str
    nbytes: int
    fault: str
    path: str


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    code: int
    """The exit code, or minus the signal."""
    out: str
    err: str
    calls: tuple[Call, ...]
    """In the order of their numbers."""

    @property
    def struck(self) -> tuple[Call, ...]:
        """The calls that went wrong."""
        return tuple(call for call in self.calls if call.fault != "pass")

    @property
    def crashed(self) -> bool:
        """Whether a signal has ended it, or an abort of a process that a shell started."""
        return self.code < 0 or self.code >= 128


def some(calls: Sequence[Call], most: int = 7) -> Sequence[Call]:
    """Choose calls that go wrong, evenly; all of them with CHUNKWISE_EVERY_CALL=1."""
    if os.environ.get("CHUNKWISE_EVERY_CALL"):
        return calls
    return calls[:: -(-len(calls) // most) or 1]


@cache
def shim() -> Path:
    """Give the library, built once for the process; skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="chunkwise-sabotage-"))
    library = folder / "sabotage.so"
    words = [compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    words += ["-U_FORTIFY_SOURCE", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


def variables(under: Path, state: Path, log: Path) -> dict[str, str]:
    """Give the variables under which a process is sabotaged; both files must be there."""
    others = os.environ.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{others} {shim()}".strip(),
        "SABOTAGE_UNDER": str(under.resolve()),
        "SABOTAGE_STATE": str(state),
        "SABOTAGE_LOG": str(log),
    }


class Server:
    """Runs a function of a module again and again, each time in a process forked from one.

    That spares the imports, which take longer than most runs.
    """

    def __init__(self, module: str, under: Path) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="chunkwise-sabotage-")
        self._folder = Path(self._kept.name)
        self._state, self._log = self._folder / "state", self._folder / "log"
        self._state.write_bytes(Plan().state)
        self._log.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.sabotaged", module, str(self._folder)],
            env={**os.environ, **variables(under, self._state, self._log)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, function: str, folder: Path, plan: Plan | None = None) -> Done:
        """Run a function in a folder, with calls that go wrong as planned."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._state.open("r+b") as stream:
            stream.write((plan or Plan()).state)
        os.truncate(self._log, 0)
        self._process.stdin.write(f"{function} {folder}\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        texts = [(self._folder / name).read_text(errors="replace") for name in ("out", "err")]
        return Done(code, texts[0], texts[1], _logged(self._log))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._kept.cleanup()


def _logged(log: Path) -> tuple[Call, ...]:
    calls = []
    for line in log.read_text(errors="replace").splitlines():
        number, process, name, nbytes, fault, path = line.split(" ", 5)
        calls.append(Call(int(number), int(process), name, int(nbytes), fault, path))
    return tuple(sorted(calls))
