"""Which layouts for a file's largest datasets are the fastest measured on this machine?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from chunkwise.advice.api import advise
from chunkwise.errors import ChunkwiseError
from chunkwise.inspection.facts import FileFacts
from chunkwise.model.layout import Layout
from chunkwise.names import printable
from chunkwise.patterns import StatedPattern

# Where the time of a file goes; each takes a share of the budget.
_MOST_DATASETS: Final = 4
_SMALL_NBYTES: Final = 1 << 20


def proved(
    facts: FileFacts,
    file: str,
    access: Sequence[StatedPattern],
    *,
    budget_s: float,
    readers: Sequence[str] = (),
    announce: Callable[[str], None],
) -> dict[str, Layout]:
    """Measure layouts for the largest datasets of a file."""
    found = [
        (one.dataset.logical_nbytes or 0, one.path)
        for one in facts.objects
        if one.dataset is not None and not one.dataset.is_scale and one.dataset.can_be_chunked
    ]
    largest = [path for nbytes, path in sorted(found, reverse=True) if nbytes >= _SMALL_NBYTES]
    layouts: dict[str, Layout] = {}
    end = time.monotonic() + budget_s
    chosen = largest[:_MOST_DATASETS]
    for number, path in enumerate(chosen):
        announce(f"measuring layouts of {printable(path)}")
        each_s = (end - time.monotonic()) / (len(chosen) - number)
        if each_s <= 0:
            break
        try:
            advice = advise(
                file,
                path,
                access,
                budget_s=each_s,
                reader=readers[0] if readers else None,
                progress=lambda step: announce(step.text),
            )
        except ChunkwiseError:
            # Patterns that do not fit it, data that shows nothing: it has what findings offer.
            continue
        if advice.verified:
            layouts[path] = advice.best
    return layouts
