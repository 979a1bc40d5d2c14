"""Is there room on the disk for the result?"""

from __future__ import annotations

import shutil

from chunkwise.errors import CannotWriteError
from chunkwise.grammar import format_size
from chunkwise.names import printable
from chunkwise.repacking.plan import Plan
from chunkwise.repacking.target import Place


def check_room(place: Place, plan: Plan) -> str | None:
    """Compare what will be written with what is free.

    Returns
    -------
    str or None
        A warning where only an estimate says that there may be too little.

    Raises
    ------
    CannotWriteError
        Too little for what is known exactly: bytes copied as they are, and data without
        filters.
    """
    free = shutil.disk_usage(place.target.parent).free
    certain = sum(
        step.out_nbytes
        for step in plan.steps
        if step.action == "copied" or not step.wanted.pipeline.filters
    )
    expected = plan.out_nbytes
    said = f"{printable(place.said)}: {format_size(free)} are free on this disk"
    if certain > free:
        raise CannotWriteError(
            f"{said}, and at least {format_size(certain)} are needed; make room, or write "
            "elsewhere"
        )
    if expected > free:
        return f"{said}, and about {format_size(expected)} are expected to be needed"
    return None
