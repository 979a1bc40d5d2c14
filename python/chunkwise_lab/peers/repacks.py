"""How long does a program take that writes a file anew, and how much memory?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from chunkwise.measure.process import finished
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, made_anew, tool


def run(
    argv: Sequence[str],
    file: str,
    dataset: str,
    target: str,
    unit: str = "seconds",
    keep: bool = False,
) -> Task:
    """Run a program that makes `target` of `file`; seconds, or the most memory it had."""
    files = {"{in}": file, "{out}": target}
    command = [tool(argv[0]), *(files.get(word, word) for word in argv[1:])]

    def write() -> dict[str, int]:
        done = finished(command, watches_memory=True)
        if done.returncode:
            raise RuntimeError(f"{command[0]} {done.how}")
        return {"memory_nbytes": done.memory_nbytes}

    def measure() -> Sample:
        made = made_anew(Path(target), dataset, write, keep)
        return made if unit == "seconds" else replace(made, value=made.told["memory_nbytes"])

    yield measure


def size(target: str) -> Task:
    """Bytes of a file that another comparison's reader has made; it goes with this."""
    path = Path(target)
    if not path.exists():
        raise CannotReadError("there is no file: the comparison before this one makes it")
    nbytes = path.stat().st_size
    path.unlink()
    yield lambda: Sample(float(nbytes))
