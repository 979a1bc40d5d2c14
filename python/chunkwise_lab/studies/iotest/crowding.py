"""Which rows were measured with more ranks than processors?"""

from __future__ import annotations

from collections.abc import Sequence

from chunkwise.words import joined
from chunkwise_lab.studies.results import Row


def oversubscribed(rows: Sequence[Row], cpu_count: object) -> str:
    """Say which rows show no scaling; nothing if there are none."""
    crowded = [row.point for row in rows if row.point.get("oversubscribed") == "yes"]
    numbers = sorted({point["ranks"] for point in crowded if "ranks" in point}, key=len)
    if not numbers:
        return ""
    return (
        f"{joined(numbers)} ranks on {cpu_count} processors: oversubscribed, they take turns. "
        "These times say nothing about scaling, and no claim about time is judged by them."
    )
