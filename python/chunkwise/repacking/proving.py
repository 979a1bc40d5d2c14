"""What must be proved of a result, and how does a run prove it?

`chunkwise.proof` compares it with the source.  Here is what may differ by the plan, and the
manifest of values that a user requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h5py

from chunkwise.errors import UsageError, WrongValueError
from chunkwise.files.durable import require_free
from chunkwise.files.opening import open_h5
from chunkwise.manifest import manifest as manifests
from chunkwise.manifest.summing import sum_values
from chunkwise.names import printable
from chunkwise.newfile.claim import Claim
from chunkwise.proof.compare import Sharing, prove
from chunkwise.proof.records import Allowed, Proved
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Plan
from chunkwise.repacking.progress import Teller, Watch
from chunkwise.settings import settings
from chunkwise.verifying.api import expected_of
from chunkwise.words import counted

# Most bytes of decoded chunks that are kept while a result is compared with its source.
_CACHE_NBYTES: Final = 256 << 20


@dataclass(frozen=True)
class Proof:
    """Manifests that a run compares with, or writes."""

    manifest: str | None = None  # A manifest that has the result's values; None for none
    write_manifest: str | None = None  # Where one is written of them; None for nowhere
    force: bool = False  # Whether a manifest that exists is replaced

    @property
    def exists(self) -> bool:
        """Whether there is any."""
        return self.manifest is not None or self.write_manifest is not None

    def require_possible(self, options: Options) -> None:
        """Refuse what cannot be proved, before anything is done."""
        if not self.exists:
            return
        for said, given in (
            ("--salvage", options.salvage),
            ("--verify none", options.verify == "none" and self.write_manifest is not None),
        ):
            if given:
                raise UsageError(
                    f"a manifest and {said}: give one of them; `chunkwise verify` writes and "
                    "compares manifests of files that are there"
                )
        if self.manifest is not None:
            manifests.read(self.manifest)
        if self.write_manifest is not None:
            require_free(self.write_manifest, force=self.force)


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


def summed(proof: Proof, made: Path, said: str, nbytes: int, watch: Watch) -> Callable[[], None]:
    """Compare the result with a manifest, and prepare the one to be written."""
    if not proof.exists:
        return lambda: None
    with open_h5(made) as file:
        sums = sum_values(file, Teller(watch, "verifying", nbytes).more)
    if proof.manifest is not None:
        expected = expected_of(manifests.read(proof.manifest), said, proof.manifest)
        _require_none(manifests.differences(expected, sums), said)
    target = proof.write_manifest
    if target is None:
        return lambda: None
    return lambda: manifests.write(target, {Path(said).name: sums}, force=proof.force)


def _require_none(differences: Iterable[tuple[str, str]], said: str) -> None:
    found = list(differences)
    if not found:
        return
    path, reason = found[0]
    more = f", and {counted(len(found) - 1, 'other difference')}" if len(found) > 1 else ""
    raise WrongValueError(
        f"{printable(said)}: is not what the manifest has: '{printable(path)}': "
        f"{printable(reason)}{more}; the result was dropped, the source is untouched"
    )


def beating(watch: Watch, plan: Plan) -> Callable[[int], None]:
    """Return what turns the bytes that were compared into moments of the run."""
    total = (
        step.source.stored_nbytes if step.action == "copied" else step.source.nbytes
        for step in plan.steps
    )
    return Teller(watch, "verifying", sum(total)).more
