"""How far is a build?  Shows on the terminal for how long, and what cargo has compiled.

pip shows nothing of what a build prints, so the terminal is written to, not this process's output.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = "two to six minutes on two cores"


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


@contextmanager
def shown() -> Iterator[None]:
    """Say at the start how long the build takes, and each second how far it is."""
    said = f"building chunkwise: {LONG}, less if it was built here before"
    try:
        terminal = os.open("/dev/tty", os.O_WRONLY)
    except OSError:
        print(said, file=sys.stderr, flush=True)
        yield
        return
    begun, ended = time.time(), threading.Event()

    def say(text: str) -> None:
        os.write(terminal, text.encode())

    def show() -> None:
        while not ended.wait(1):
            say(f"\r  {time.time() - begun:.0f} s, {compiled(begun)} crates compiled\x1b[K")

    say(f"\n{said}\n")
    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        say("\r\x1b[K")
        os.close(terminal)
