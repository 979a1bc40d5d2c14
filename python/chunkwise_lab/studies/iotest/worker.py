"""What does a rank do that a study has started?

``mpiexec -n N python -m chunkwise_lab.studies.iotest.worker PLAN OUT``: every rank reads the plan,
all measure, and rank 0 writes a point and its record as a line of JSON, as soon as it is known.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import ChunkwiseError
from chunkwise.mpi.ranks import OtherRankFailedError, abandoned, as_one_program
from chunkwise_lab.studies.iotest import creation, pitfalls, walking
from chunkwise_lab.studies.iotest.world import World, world

Record = tuple[dict[str, str], dict[str, Any]]
# Each gives what one round measures; every rank takes part.
Kind = Callable[[World, Mapping[str, Any], Path], Iterator[Record]]
KINDS: Final[Mapping[str, Kind]] = {
    "creation": creation.measure,
    "pitfalls": pitfalls.measure,
    "walk": walking.measure,
}


def work(plan: str, out: str) -> None:
    """Carry out a plan."""
    ranks = world(mpi_alone=True)
    said = json.loads(Path(plan).read_text("utf-8"))
    kind, folder = KINDS[said["settings"]["kind"]], Path(said["folder"])
    try:
        with Path(out).open("a", encoding="utf-8") as file:
            for _ in range(said["repeat"]):
                for point, record in kind(ranks, said["settings"], folder):
                    if ranks.rank == 0:
                        file.write(json.dumps([point, record]) + "\n")
                        file.flush()
    except BaseException as wrong:
        # It holds the files that are open: closing them, one rank would wait for the others.
        if ranks.size > 1:
            abandoned.append(wrong)
        raise


def _told(error: BaseException) -> tuple[str, int] | None:
    """Note the first error where the study looks: the launcher prints words of its own."""
    if not isinstance(error, ChunkwiseError):
        return None
    if not isinstance(error, OtherRankFailedError):
        with (
            contextlib.suppress(OSError),
            Path(f"{sys.argv[2]}.error").open("x", encoding="utf-8") as file,
        ):
            file.write(str(error))
    return f"chunkwise: {error}\n", 2


if __name__ == "__main__":
    as_one_program(lambda: work(*sys.argv[1:]), _told)
