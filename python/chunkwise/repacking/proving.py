"""How does a run prove its result, and what may differ by the plan?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import h5py

from chunkwise.newfile.claim import Claim
from chunkwise.proof.compare import Sharing, prove
from chunkwise.proof.records import Allowed, Proved
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Plan
from chunkwise.repacking.progress import Teller, Watch
from chunkwise.settings import settings

# Most bytes of decoded chunks that are kept while a result is compared with its source.
_CACHE_NBYTES: Final = 256 << 20


def compared(
    source: h5py.File,
    claim: Claim,
    plan: Plan,
    options: Options,
    tell: Callable[[int], None],
    sharing: Sharing | None,
    missing: Sequence[str],  # What salvage could not read
) -> Proved | None:
    """Prove that the closed partial file is what its source is; None if nobody wants a proof."""
    # There is none either where reading the source crashes libhdf5 (``options.avoid``).
    if options.verify == "none" or any(options.avoid):
        return None
    bounds = {step.source.path: step.bound for step in plan.steps if step.lossy}
    moved = frozenset(step.source.path for step in plan.steps if step.wanted.merged)
    # Chunks that reach into several boxes are kept; both together stay within the budget.
    kept = min(settings().cache_nbytes, _CACHE_NBYTES, plan.memory_nbytes // 4)
    with settings(cache_nbytes=kept):
        return prove(
            source,
            claim.partial,
            claim.place.said,
            allowed=Allowed(bounds, moved, options.salvage, frozenset(missing)),
            memory_nbytes=plan.memory_nbytes // 2,
            tell=tell,
            sharing=sharing,
        )


def beating(watch: Watch, plan: Plan) -> Callable[[int], None]:
    """Return what turns the bytes that were compared into moments of the run."""
    total = (
        step.source.stored_nbytes if step.action == "copied" else step.source.nbytes
        for step in plan.steps
    )
    return Teller(watch, "verifying", sum(total)).more
