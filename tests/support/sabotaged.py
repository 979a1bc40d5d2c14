"""How does a function run again and again without its imports?  In a child forked for each run.

    python -m tests.support.sabotaged MODULE FOLDER

reads lines of a function and the folder that it works in; for each it prints the exit code of
the child, or minus its signal. What the child prints is then in FOLDER/out and FOLDER/err.
"""

import faulthandler
import gc
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

# A minute is what a busy machine may take.
HANG_S = 240


def main() -> int:
    """Serve until the input ends; a child returns from here, and ends as any program does."""
    module, kept = importlib.import_module(sys.argv[1]), Path(sys.argv[2])
    # Children neither go through what was imported nor copy it.
    gc.freeze()
    for line in sys.stdin:
        name, folder = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            return _work(module, name, Path(folder), kept)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def _work(module: object, name: str, folder: Path, kept: Path) -> int:
    # What hangs says where, and ends by a signal.
    faulthandler.dump_traceback_later(HANG_S - 5)
    signal.alarm(HANG_S)
    for number, stream in ((1, "out"), (2, "err")):
        opened = os.open(kept / stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    try:
        return int(getattr(module, name)(folder) or 0)
    except Exception:  # As a program would end that does not expect it.
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main())
