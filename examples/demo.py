"""What does chunkwise do?  The main job, on files that are generated here.

First a newcomer's own file: `inspect`, then plain `bench`.  Then the case study of
paper 004, with today's figures beside the published ones.  The files stay in
`demo-files/` below the current directory and are used again next time.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import table8
from rich.console import Console

from chunkwise.bench.render import WIDTH
from chunkwise.cli.progress import showing
from chunkwise.errors import ChunkwiseError
from chunkwise.inspect import inspect

FOLDER = Path("demo-files")
# Ctrl-C may come before `main` is there to deal with it.
COMMAND = """
try:
    from chunkwise.cli import main
    main()
except KeyboardInterrupt:
    raise SystemExit(130)
"""
CUBE = FOLDER / "cube.h5"
# The files, by the arguments with which `chunkwise sample` makes them.
SAMPLES: dict[Path, tuple[str, ...]] = {
    CUBE: ("cube", "--shape", "120x300x300"),
    FOLDER / table8.COMPRESSED: ("cris",),
    FOLDER / table8.PLAIN: ("cris", "--filter", "none"),
    FOLDER / table8.SMALL: ("cris", "--chunk", "1x30x9x717"),
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
    """Measure paper 004's reads, and save and print the table."""
    heading("2. A published case: 345 seconds, or 0.37 for the same bytes")
    print(
        "The HDF Group's paper 'Improving I/O Performance When Working with HDF5\n"
        "Compressed Datasets' reads satellite data, a 60x30x9x717 array, in several\n"
        "ways (Table 8). The same here, today, with generated data like it."
    )
    for path in list(SAMPLES)[1:]:
        sample(path)
    print("\nMeasuring; for one part of the table at the prompt, and what to do about it:")
    print(
        f"$ chunkwise bench {FOLDER / table8.COMPRESSED} \\\n"
        f"      {table8.DATASET} \\\n"
        f"      --access {table8.ROW} --cache 1MiB,3MiB,default --driver libhdf5,chunkwise\n",
        flush=True,
    )
    with showing(Console(stderr=True)) as progress:
        found = table8.measure(FOLDER, progress)
    saved = FOLDER / "table8.json"
    saved.write_text(table8.to_json(found), encoding="utf-8")
    table8.show(found, Console(width=None if sys.stdout.isatty() else WIDTH))
    print(f"\nEvery measurement is in {saved}.")
    if found.mismatches:
        raise CommandFailedError(1)


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
