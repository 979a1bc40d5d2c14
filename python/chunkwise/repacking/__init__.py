"""How is a file copied with other chunks, filters or layout, and everything else unchanged?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.repacking.api import plan_repack, repack
    from chunkwise.repacking.plan import Plan
    from chunkwise.repacking.progress import Moment
    from chunkwise.repacking.records import Summary

__all__ = ["Moment", "Plan", "Summary", "plan_repack", "repack"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Moment": "chunkwise.repacking.progress",
        "Plan": "chunkwise.repacking.plan",
        "Summary": "chunkwise.repacking.records",
        "plan_repack": "chunkwise.repacking.api",
        "repack": "chunkwise.repacking.api",
    },
)
