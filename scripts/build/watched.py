"""How far is a build?  Runs a command, and shows for how long, and what cargo has compiled.

    python scripts/build/watched.py PYTHON -m pip install ...

pip shows nothing of a build while it runs.  On a terminal, one line is renewed each second;
elsewhere, one line says at the start that this takes minutes.  Ends as the command does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def compiled(since: float) -> int:
    """Count what was compiled since a time."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    made = target.glob("release/.fingerprint/*/invoked.timestamp")
    count = 0
    for path in made:
        try:
            count += path.stat().st_mtime >= since
        except FileNotFoundError:
            continue
    return count


def main() -> int:
    """Run the command."""
    begun = time.time()
    shown = sys.stderr.isatty()
    process = subprocess.Popen(sys.argv[1:])
    said = False
    while True:
        try:
            code = process.wait(1)
            break
        except subprocess.TimeoutExpired:
            # Of what is done in seconds, nothing is said.
            took = time.time() - begun
            count = compiled(begun)
            if shown:
                more = f", {count} crates compiled (it takes minutes)" if count else ""
                line = f"\rbuilding: {took:.0f} s{more}\x1b[K"
                print(line, end="", file=sys.stderr, flush=True)
            elif not said and count:
                print("building: two to six minutes on two cores", file=sys.stderr, flush=True)
            said = said or bool(count)
        except KeyboardInterrupt:
            # The terminal has interrupted the command as well.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            code = process.wait()
            break
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
