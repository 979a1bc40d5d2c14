"""What becomes of a run where one of its calls that change files goes wrong?

`sabotage.c` is loaded into the run with LD_PRELOAD, counts the calls that change files under a
folder, and lets those go wrong that a `Plan` names.  A run without faults says how many there are::

    clean = run(command, folder)
    for call in clean.calls:
        done = run(command, folder, Plan(call.number, "enospc..."))

Calls of several threads or processes are counted together, so a number may be another call in the
next run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).with_suffix(".c")
#: Those that can be counted, each with its relatives (``pwrite64``, ``renameat2``, ``linkat``).
CALLS: Final = (
    *("pwrite", "write", "pwritev", "writev", "copy_file_range", "sendfile"),
    *("fsync", "fdatasync", "close", "ftruncate", "fallocate", "rename", "link", "unlink"),
)
#: Those that hand over bytes.
WITH_DATA: Final = frozenset({"pwrite", "write", "pwritev", "writev"})


@dataclass(frozen=True)
class Plan:
    """Which calls go wrong, and how."""

    number: int = 0
    """The first, from 1 on; 0 for none."""
    faults: str = "pass"
    """One for each call from there on: see `sabotage.c`, as in ``short,enospc...``."""
    calls: tuple[str, ...] = CALLS
    """The calls that are counted."""


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


def variables(plan: Plan, under: Path, log: Path) -> dict[str, str]:
    """Give the variables under which a process is sabotaged, and make its log."""
    state = log.with_suffix(".state")
    state.write_bytes(bytes(8))
    log.write_text("")
    others = os.environ.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{others} {shim()}".strip(),
        "SABOTAGE_UNDER": str(under.resolve()),
        "SABOTAGE_CALLS": ",".join(plan.calls),
        "SABOTAGE_NUMBER": str(plan.number),
        "SABOTAGE_FAULT": plan.faults,
        "SABOTAGE_STATE": str(state),
        "SABOTAGE_LOG": str(log),
    }


def run(
    command: Sequence[object],
    under: Path,
    plan: Plan | None = None,
    *,
    timeout_s: float = 120.0,
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run a command whose calls for files under a folder are counted, and go wrong as planned."""
    with tempfile.TemporaryDirectory(prefix="chunkwise-sabotage-") as kept:
        log = Path(kept) / "calls"
        added = variables(plan or Plan(), under, log)
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **(environment or {}), **added},
            cwd=under,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr, tuple(sorted(_logged(log))))


def _logged(log: Path) -> Iterator[Call]:
    for line in log.read_text(errors="replace").splitlines():
        number, process, name, nbytes, fault, path = line.split(" ", 5)
        yield Call(int(number), int(process), name, int(nbytes), fault, path)
