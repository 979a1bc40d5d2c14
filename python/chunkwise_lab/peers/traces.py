"""Does `chunkwise trace` find what is wrong with a program's reads, and does its remedy help?"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from chunkwise.measure.process import finished
from chunkwise.running.trace import Trace, under_run
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, tool

CHUNKWISE: Final = (sys.executable, "-m", "chunkwise")


def traced(way: str, file: str, dataset: str, program: Sequence[str]) -> Task:
    """Run a program ``alone``, under ``run``, or alone on the ``repacked`` file."""
    words = [sys.executable if word == "python" else word for word in program]
    words[0] = tool(words[0])
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as name:
        folder = Path(name)
        told: dict[str, Any] = {}
        if way != "run":
            values = _traced(words, file, dataset, folder, "--observe-only")
            found = values["found"] or {"line": ""}
            promised_s = under_run(Trace.of(values).datasets[0], 2)
            told = {"found": found, "promised_s": promised_s}
        if way == "repacked":
            # As a user pastes it; lines of a program are not for a shell.
            line = shlex.split(found["line"]) if found["line"].startswith("chunkwise ") else []
            if line[1:2] != ["repack"]:
                raise CannotReadError("nothing says to repack the file")
            _finished([*CHUNKWISE, *line[1:]], folder)
            file = str(folder / line[-1])

        def measure() -> Sample:
            how = () if way == "run" else ("--observe-only",)
            trace = Trace.of(_traced(words, file, dataset, folder, *how))
            reads = [one for one in trace.datasets if one.operation == "read"]
            nbytes = sum(one.nbytes for one in reads)
            return Sample(sum(one.seconds for one in reads), nbytes, told)

        yield measure


def _traced(
    words: Sequence[str], file: str, dataset: str, folder: Path, *options: str
) -> dict[str, Any]:
    record, out = folder / "trace.json", folder / "out.nc"
    out.unlink(missing_ok=True)
    program = [word.format(file=file, dataset=dataset, out=out) for word in words]
    _finished([*CHUNKWISE, "trace", "-o", str(record), *options, "--", *program], folder)
    values: dict[str, Any] = json.loads(record.read_text())
    return values


def _finished(command: Sequence[str], folder: Path) -> None:
    done = finished(command, folder=folder)
    if done.returncode:
        raise RuntimeError(f"{command[0]} {done.how}")
