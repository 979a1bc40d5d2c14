"""How are attacks run for minutes or hours?  In child processes, in turns, until time is up."""

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.attack import load, names

# One child makes as many attempts as fit into this, so that none starves the others.
TURN_S = 20.0
# An attempt that takes longer hangs.
HANG_S = 120.0


def main() -> int:
    """Run attacks; the number of attempts with findings is the exit code (at most 99)."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(names())}; default: all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all together")
    parser.add_argument("--seed", type=int, default=None, help="the first (default: the time)")
    parser.add_argument("--count", type=int, default=None, help="so many attempts of each")
    parser.add_argument("--here", type=float, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = options.name or names()
    if options.here is not None:
        return _turn(chosen[0], options.seed, options.count, options.here)
    if options.seed is not None and options.count is None:
        options.count = 1
    first = int(time.time()) if options.seed is None else options.seed
    return _campaign(chosen, first, options.count, options.seconds)


def _campaign(chosen: list[str], first: int, count: int | None, seconds: float) -> int:
    seeds = dict.fromkeys(chosen, first)
    end = time.monotonic() + seconds
    findings: list[str] = []
    while time.monotonic() < end and seeds:
        for name in list(seeds):
            left = None if count is None else first + count - seeds[name]
            turn_s = min(TURN_S, max(end - time.monotonic(), 0.1))
            done, found = _child(name, seeds[name], left, turn_s)
            seeds[name] += done
            if found is not None:
                findings.append(f"{name} --seed {seeds[name] - 1}")
                print(f"\n{found}\n  again: python -m tests.attack {findings[-1]}", flush=True)
            if count is not None and seeds[name] >= first + count:
                print(f"{name}: {count} attempts", flush=True)
                del seeds[name]
    for name, seed in seeds.items():
        print(f"{name}: {seed - first} attempts from seed {first}")
    print(f"{len(findings)} findings", *findings, sep="\n  ")
    return min(len(findings), 99)


def _child(name: str, seed: int, count: int | None, turn_s: float) -> tuple[int, str | None]:
    """One turn in a child: attempts made, the last of which has found something or not."""
    command = [sys.executable, "-m", "tests.attack", name, "--seed", str(seed)]
    command += ["--here", str(turn_s)] + ([] if count is None else ["--count", str(count)])
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            code = child.wait(turn_s + HANG_S)
            ending = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            code, ending = -1, f"did not come back within {turn_s + HANG_S:.0f} s"
        finally:
            if child.poll() is None:
                child.kill()
        out.seek(0)
        lines = out.read().splitlines()
    begun = sum(line.startswith("attempt ") for line in lines)
    if code == 0:
        return begun, None
    told = "\n".join(line for line in lines if not line.startswith("attempt "))
    return max(begun, 1), f"{name} {ending}:\n{told[-6000:]}"


def _turn(name: str, seed: int, count: int | None, turn_s: float) -> int:
    attack = load(name)
    end = time.monotonic() + turn_s
    made = 0
    while (count is None or made < count) and (made == 0 or time.monotonic() < end):
        print(f"attempt {seed + made}", flush=True)
        with tempfile.TemporaryDirectory(prefix="chunkwise-attack-") as folder:
            try:
                attack.attempt(seed + made, Path(folder))
            except Exception:
                traceback.print_exc(file=sys.stdout)
                return 1
        made += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
