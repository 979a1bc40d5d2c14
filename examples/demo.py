"""What does chunkwise do?  The main job, on files that are generated here.

First a newcomer's own file: `inspect`, then plain `bench`.  Then the case study of
paper 004, Tables 1 to 8, with today's figures beside the published ones, and what still
holds of it.  The files stay in `demo-files/` below the current directory; data is used again
next time.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from chunkwise import inspect
from chunkwise.errors import ChunkwiseError

FOLDER = Path("demo-files")
# Ctrl-C may come before `main` is there to deal with it.
COMMAND = """
try:
    from chunkwise.cli import main
    main()
except KeyboardInterrupt:
    raise SystemExit(130)
"""
CUBE, CRIS = FOLDER / "cube.h5", FOLDER / "cris.h5"
STUDY = FOLDER / "study"
# The files, by the arguments with which `chunkwise sample` makes them.
SAMPLES: dict[Path, tuple[str, ...]] = {
    CUBE: ("cube", "--shape", "120x300x300"),
    CRIS: ("cris",),
}


class CommandFailedError(Exception):
    """A command of ours ended with this exit code; it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def run(*arguments: str) -> None:
    """Run `chunkwise` with these arguments, and show the command as a user would type it."""
    print(f"\n$ {shlex.join(['chunkwise', *arguments])}", flush=True)
    with subprocess.Popen([sys.executable, "-c", COMMAND, *arguments]) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The terminal has interrupted it as well: let it tidy up.
            process.wait(5)
            raise
    if code != 0:
        raise CommandFailedError(code)


def sample(path: Path) -> None:
    """Generate a file, unless it is there from an earlier run."""
    name, *options = SAMPLES[path]
    if complete(path):
        print(f"({path} is there from an earlier run)")
    else:
        run("sample", name, str(path), *options, *(["--force"] if path.exists() else []))


def complete(path: Path) -> bool:
    """Whether a file is there that can be opened: `chunkwise sample` leaves no half ones."""
    if not path.exists():
        return False
    try:
        inspect(path, sample=False, metadata=False)
    except ChunkwiseError:
        return False
    return True


def heading(text: str) -> None:
    """Print what comes next."""
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def newcomer() -> None:
    """Look at one file, and time it."""
    heading("1. A file of your own: what is in it, and how fast can it be read?")
    sample(CUBE)
    run("inspect", str(CUBE))
    run("bench", str(CUBE))


def paper() -> None:
    """Run paper 004's study, which prints its tables and what still holds."""
    heading("2. A published case: 345 seconds, or 0.37 for the same bytes")
    print(
        "The HDF Group's paper 'Improving I/O Performance When Working with HDF5\n"
        "Compressed Datasets' reads satellite data, a 60x30x9x717 array, in several\n"
        "ways. Its Tables 1 to 8 here, today, with generated data like it."
    )
    # For what the README does with it; the study makes its own data, and removes it.
    sample(CRIS)
    # What an earlier demo has measured is measured again.
    shutil.rmtree(STUDY, ignore_errors=True)
    run("study", "cris", "-o", str(STUDY))
    print("\nTo see one of the paper's tables again:")
    print(f"$ chunkwise study cris -o {STUDY} --show --table 'Table 8'")
    print("\nThe same questions, asked of a dataset of yours:")
    print("$ chunkwise study cris --file YOUR_FILE --dataset PATH")


def main() -> int:
    """Run both parts; every expected error is one line."""
    begun = time.monotonic()
    try:
        FOLDER.mkdir(exist_ok=True)
        newcomer()
        paper()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("\ndemo: interrupted; finished files stay in demo-files/", file=sys.stderr)
        return 130
    except CommandFailedError as failed:
        return failed.code
    except (ChunkwiseError, OSError) as wrong:
        print(f"demo: {wrong}", file=sys.stderr)
        return 2
    print(f"Done in {time.monotonic() - begun:.0f} s. Now: chunkwise bench YOUR_FILE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
