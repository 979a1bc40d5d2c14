"""What does chunkwise do?  Three acts of a minute, on a file that is generated here.

1. What is wrong with this file?
2. The same program, with one line changed.
3. The file fixed, with proof.

The files stay in `demo-files/` below the current directory; data is used again next time.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise.errors import ChunkwiseError

FOLDER = Path("demo-files")
CUBE, FIXED = FOLDER / "cube.h5", FOLDER / "cube-fixed.h5"
# Ctrl-C may come before `main` is there to deal with it.
COMMAND = """
try:
    from chunkwise.cli import main
    main()
except KeyboardInterrupt:
    raise SystemExit(130)
"""


class CommandFailedError(Exception):
    """A command of ours ended with this exit code; it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def run(*arguments: str, ends: tuple[int, ...] = (0,)) -> None:
    """Run `chunkwise` with these arguments, and show the command as a user would type it."""
    print(f"$ {shlex.join(['chunkwise', *arguments])}", flush=True)
    with subprocess.Popen([sys.executable, "-c", COMMAND, *arguments]) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The terminal has interrupted it as well: let it tidy up.
            process.wait(60)
            raise
    if code not in ends:
        raise CommandFailedError(code)


def complete(path: Path) -> bool:
    """Whether a file is there that can be opened: `chunkwise sample` leaves no half ones."""
    if not path.exists():
        return False
    try:
        chunkwise.inspect(path, sample=False, metadata=False)
    except ChunkwiseError:
        return False
    return True


def heading(text: str) -> None:
    """Print what comes next."""
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def find() -> None:
    """Say what is wrong with a file: maps of each day, of which series are read."""
    heading("1. What is wrong with this file?")
    if not complete(CUBE):
        more = ["--force"] if CUBE.exists() else []
        run("sample", "cube", str(CUBE), "--shape", "120x300x300", *more)
    # It ends with 1, as a linter does: there are warnings.
    run("inspect", str(CUBE), "--access", "line:0", "--fail-on", "warning", ends=(0, 1))


def change() -> None:
    """Read the same by h5py, and by chunkwise."""
    heading("2. The same program, with one line changed")
    print(f'-   with h5py.File("{CUBE}") as f:')
    print(f'+   with chunkwise.open("{CUBE}") as f:')
    print('        series = [f["t2m"][:, row, 150] for row in range(0, 300, 15)]', flush=True)
    slow = timed("h5py", h5py.File)
    fast = timed("chunkwise", chunkwise.open)
    if not np.array_equal(slow, fast):
        raise ChunkwiseError("the values differ: please report this")
    print("The values are the same, to the bit.")


def timed(name: str, opener: Callable[[Path], h5py.File]) -> list[Any]:
    """Read the series, and say how long that took."""
    begun = time.monotonic()
    with opener(CUBE) as f:
        series = [f["t2m"][:, row, 150] for row in range(0, 300, 15)]
    print(f"{name}: {time.monotonic() - begun:.2f} s", flush=True)
    return series


def fix() -> None:
    """Write the file anew, in chunks for series."""
    heading("3. The file fixed, with proof")
    run("fix", str(CUBE), "-o", str(FIXED), "--access", "line:0", "--force")


def main() -> int:
    """Run the acts; every expected error is one line."""
    begun = time.monotonic()
    try:
        FOLDER.mkdir(exist_ok=True)
        find()
        change()
        fix()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("\ndemo: interrupted; finished files stay in demo-files/", file=sys.stderr)
        return 130
    except CommandFailedError as failed:
        return failed.code
    except (ChunkwiseError, OSError) as wrong:
        print(f"demo: {wrong}", file=sys.stderr)
        return 2
    print(f"\nDone in {time.monotonic() - begun:.0f} s. Now: chunkwise inspect YOUR_FILE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
