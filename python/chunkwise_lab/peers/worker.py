"""How does one reader measure, alone in its process?

``python -m chunkwise_lab.peers.worker TASK ARGUMENTS`` prepares the task, says ``{"ready": {}}``,
``{"skipped": why}`` or ``{"failed": why}``, and answers each line on standard input with one
sample, ``{"value": seconds, "checksums": {"everything": crc}}``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise_lab.peers.task import EVERYTHING, CannotReadError, Sample


def checksum(data: npt.NDArray[Any] | int) -> int:
    """CRC-32 of an array's bytes in C order, in this machine's byte order."""
    if isinstance(data, int):
        return data
    plain = np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))
    return _native.crc32(plain)


def answer(sample: Sample) -> dict[str, Any]:
    """Return what a worker says of a sample, as JSON."""
    details = dict(sample.details)
    checksums = details.pop("checksums", {})
    if sample.data is not None:
        checksums = {EVERYTHING: checksum(sample.data)}
    return {"value": sample.value, "checksums": checksums, "details": details}


def main() -> None:
    """Prepare, and answer until there is nothing more to answer."""
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task, arguments = sys.argv[1], json.loads(sys.argv[2])
    # Ctrl-C ends the one who asks, and with it this.
    with contextlib.suppress(KeyboardInterrupt):
        _serve(answers, task, arguments)


def _serve(answers: IO[str], task: str, arguments: dict[str, Any]) -> None:
    def say(**details: Any) -> None:
        print(json.dumps(details), file=answers, flush=True)

    module, _, name = task.partition(":")
    try:
        prepare = getattr(importlib.import_module(f"chunkwise_lab.peers.{module}"), name)
        with contextlib.contextmanager(prepare)(**arguments) as measure:
            say(ready={})
            for _ in sys.stdin:
                say(**answer(measure()))
    except CannotReadError as why:
        say(skipped=str(why))
    except ChunkwiseError as why:
        say(failed=str(why))
    except KeyboardInterrupt:
        raise
    except BaseException as why:
        # Whatever it is, a panic in another library's Rust included, ends this one reader.
        traceback.print_exc()
        say(failed=f"{type(why).__name__}: {why}")


if __name__ == "__main__":
    main()
