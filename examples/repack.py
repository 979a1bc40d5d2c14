"""How long does h5repack take to give a dataset other chunks, compressed and not?"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from chunkwise.bench.target import Target, look
from chunkwise.errors import ChunkwiseError
from chunkwise.grammar import parse_shape

ROUNDS = 3


def measure(file: Path, dataset: str, chunk: str) -> dict[str, Any] | None:
    """Time h5repack, of the file as it is and of the same data not compressed, in turns.

    Returns
    -------
    dict or None
        The tool's ``version``, and median seconds: ``stored`` of the file as it is, ``none``
        of the file without filters.  None where the tool is not installed, fails, or gives
        something else: some builds leave out data and report success.
    """
    tool = shutil.which("h5repack")
    if tool is None:
        return None
    took: dict[str, list[float]] = {"stored": [], "none": []}
    # Beside the file, so that both are on one file system; what is left there is removed.
    with tempfile.TemporaryDirectory(prefix="repack-", dir=file.parent) as name:
        plain, made = Path(name) / "plain.h5", Path(name) / "made.h5"
        try:
            _run(tool, "-f", f"{dataset}:NONE", str(file), str(plain))
            for _ in range(ROUNDS):
                for filters, source in (("stored", file), ("none", plain)):
                    made.unlink(missing_ok=True)
                    begun = time.perf_counter()
                    _run(tool, "-l", f"{dataset}:CHUNK={chunk}", str(source), str(made))
                    took[filters].append(time.perf_counter() - begun)
                    if not _is_as_asked(look(made, dataset), look(source, dataset), chunk):
                        return None
            said = _run(tool, "--version")
        except (ChunkwiseError, OSError, subprocess.CalledProcessError):
            return None
    medians = {filters: statistics.median(seconds) for filters, seconds in took.items()}
    return {"version": said.split()[-1], **medians}


def _is_as_asked(made: Target, source: Target, chunk: str) -> bool:
    asked = parse_shape(chunk), source.filters, source.shape
    return (made.chunks, made.filters, made.shape) == asked and made.stored_nbytes > 0


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
