"""How is a file copied with other chunks, filters or layout, and everything else unchanged?

===============  ==============================================================
`rules`          which datasets a rule means, and which rule applies
`facts`          what is in the source
`decide`         the new layout of a dataset; `trial`: whether HDF5 can make it
`plan`           what is done to each dataset, at what cost (`estimate`)
`newfile`        (the room) where the result is made, and how it comes into place
`run`, `work`    the run of one file; `folder`: of many
`records`        what was done, as plain records; `render`: for people
===============  ==============================================================

Only this room knows the order of things.  The engine decodes and encodes bytes, and
`chunkwise-repack` (Rust) copies data and objects.
"""

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
