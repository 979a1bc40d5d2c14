"""How often would chunks be loaded with one rule for slots of the chunk cache, and with another?

A probe, of arithmetic alone.  libhdf5 keeps one chunk for each slot of a hash table.  Paper 004
gives a chunk's slot as ``cindex mod nslots``; libhdf5's source has another rule
(`chunkwise.model.chunk_cache`).  The probe counts what reading column by column would load with
both, so that the loads of real libraries can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from chunkwise.measure.target import look
from chunkwise.model import chunk_cache

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

# A slot for each chunk of a grid, in C order, by the number of slots.
Hash = Callable[[Sequence[int], int], list[int]]


def predict(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Predict the loads of a walk by columns over the one dataset of a run, of two dimensions.

    The study's file says ``nslots``: a list of numbers as text.  Points have ``by`` and
    ``nslots``; records ``time_chunk_loads``, as those of trials.
    """
    file, dataset, _ = next(iter(context.data.values()))
    target = look(file, dataset)
    grid = [-(-n // c) for n, c in zip(target.shape, target.chunks or target.shape, strict=True)]
    columns = [i // (target.chunks or target.shape)[1] for i in range(target.shape[1])]
    for nslots in context.settings["nslots"]:
        for by, slots in HASHES.items():
            count = loads(slots(grid, int(nslots)), grid, columns)
            yield (
                {"by": by, "nslots": str(nslots)},
                [{"status": "ok", "time_chunk_loads": count}],
            )


def loads(slots: Sequence[int], grid: Sequence[int], columns: Sequence[int]) -> int:
    """Count the chunks loaded if each slot holds one chunk, and there is room for all."""
    holder: dict[int, int] = {}
    count = 0
    for column in columns:
        for chunk in range(column, prod(grid), grid[1]):
            count += holder.get(slots[chunk]) != chunk
            holder[slots[chunk]] = chunk
    return count


def _of_the_paper(grid: Sequence[int], nslots: int) -> list[int]:
    return [chunk % nslots for chunk in range(prod(grid))]


def _of_the_library(grid: Sequence[int], nslots: int) -> list[int]:
    return [int(slot) for slot in chunk_cache.slots(grid, [0] * len(grid), grid, nslots)]


HASHES: Final[dict[str, Hash]] = {
    "paper's formula": _of_the_paper,
    "libhdf5's source": _of_the_library,
}
