"""Is the source intact, and no damaged target there, whenever a repack is killed?"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.support.repacking import command, require_equal, write_example

RULES = ("--chunk", "cube:40x16x16", "--filter", "shuffle+deflate:6")


def kill_once(source: Path, target: Path, after_s: float, *options: str) -> str:
    """Start a repack, kill it, and check what is there; give what became of it."""
    before = source.read_bytes()
    words = [sys.executable, "-m", "chunkwise", "repack", str(source), str(target), *RULES]
    run = subprocess.Popen([*words, *options], stdout=subprocess.DEVNULL)
    try:
        run.wait(after_s)
        outcome = f"ended ({run.returncode})"
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
        run.wait()
        outcome = "killed"
    assert source.read_bytes() == before
    if target.exists():
        require_equal(source, target)
        target.unlink()
        return f"{outcome}, complete"
    assert outcome == "killed", f"{outcome} and there is no target"
    return "killed, no target"


def kill_many(folder: Path, times: int, *, scale: int, seed: int = 0) -> Counter[str]:
    """Kill so many runs at random moments of their life; give how often what happened.

    Runs that end before they are killed come on top, and are counted as well.
    """
    source, target = write_example(folder / "in.h5", scale=scale), folder / "out.h5"
    begin = time.monotonic()
    done = command(source, target, *RULES)
    assert done.returncode == 0, done.stderr
    takes_s = time.monotonic() - begin
    target.unlink()
    moments = random.Random(seed)
    outcomes: Counter[str] = Counter()
    number = killed = 0
    while killed < times:
        # Importing takes most of a short run; killing that tests nothing.
        after_s = takes_s * moments.uniform(0.4, 1.0)
        resume = ["--resume"] if number % 2 else []
        outcome = kill_once(source, target, after_s, *resume)
        outcomes[outcome] += 1
        number, killed = number + 1, killed + outcome.startswith("killed")
    done = command(source, target, *RULES, "--resume")
    assert done.returncode == 0, done.stderr
    require_equal(source, target)
    assert {path.name for path in folder.iterdir()} == {"in.h5", "out.h5"}
    return outcomes
