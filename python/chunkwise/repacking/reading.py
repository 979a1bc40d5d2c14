"""What does the new file need from its readers that the old one did not?"""

from __future__ import annotations

from typing import Final

import h5py
from h5py import h5f

from chunkwise.model.readability import Needs, losses, require, sentences
from chunkwise.names import printable
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Plan

_OF_SUPERBLOCK: Final = {0: "1.6", 1: "1.6", 2: "1.8", 3: "1.10"}
# The oldest libhdf5 that reads what a lower bound makes.
_OF_BOUND: Final = {
    "earliest": "1.6",
    "v108": "1.8",
    "v110": "1.10",
    "v112": "1.12",
    "v114": "1.12",
    "v200": "2.0",
    "latest": "2.0",
}


def needs(file: h5py.File, plan: Plan, options: Options) -> tuple[Needs, Needs]:
    """Return what a file needs from its readers, and what its copy will need."""
    fcpl = file.id.get_create_plist()
    paged = fcpl.get_file_space_strategy()[0] == h5f.FSPACE_STRATEGY_PAGE
    version = fcpl.get_version()[0]
    oldest = _OF_SUPERBLOCK.get(version, "1.10")
    before = Needs(
        frozenset(one.name for step in plan.steps for one in step.source.pipeline.filters),
        oldest,
        any(step.source.layout == "virtual" for step in plan.steps),
        paged,
    )
    after = Needs(
        frozenset(one.name for step in plan.steps for one in step.wanted.pipeline.filters),
        oldest if options.low is None else _OF_BOUND[options.low],
        any(step.source.layout == "virtual" and not step.wanted.merged for step in plan.steps),
        paged or options.page_nbytes is not None,
    )
    return before, after


def who_loses(file: h5py.File, plan: Plan, options: Options) -> tuple[str, ...]:
    """Say which programs read less of the copy, a sentence for each reason."""
    return tuple(sentences(losses(*needs(file, plan, options))))


def require_readable(file: h5py.File, plan: Plan, options: Options) -> None:
    """Refuse a plan if one of the stated readers would read less of the result."""
    if options.readers:
        require(options.readers, *needs(file, plan, options), printable(str(file.filename)))
