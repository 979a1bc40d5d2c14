"""How is one file repacked, from the rules to the finished target?

open -> look -> plan -> claim the place -> write -> verify -> bring into place
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import h5py

from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise.opening import open_h5
from chunkwise.repacking.facts import look
from chunkwise.repacking.memory import default_budget
from chunkwise.repacking.moment import Moment, Watch
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Plan, make_plan
from chunkwise.repacking.records import Summary
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.space import check_room
from chunkwise.repacking.target import Place, claimed, publish
from chunkwise.repacking.work import carry_out

# Encoding so much anew takes a minute or so: losing it to a power cut or a kill hurts.
JOURNAL_FROM_NBYTES = 4 << 30


@dataclass(frozen=True)
class Job:
    """What is asked, of whatever file.

    Attributes
    ----------
    rules, options
        For the datasets, and for the file.
    access
        Access patterns for ``auto`` chunks.
    journal
        Whether encoded chunks are kept beside the target until it is done, so that a
        stopped run can go on.  None: where at least 4 GiB are to be encoded.
    resume
        Whether to go on from what a stopped run kept.
    strict
        Whether a rule that means no dataset of the file is an error.
    """

    rules: Rules = field(default_factory=Rules)
    options: Options = field(default_factory=Options)
    access: tuple[str, ...] = ()
    journal: bool | None = None
    resume: bool = False
    strict: bool = True

    def keeps_journal(self, plan: Plan) -> bool:
        """Tell whether encoded chunks of this plan are kept."""
        if self.journal is not None:
            return self.journal or self.resume
        return self.resume or plan.encoded_nbytes >= JOURNAL_FROM_NBYTES


@contextmanager
def planned(job: Job, source: str | Path) -> Iterator[tuple[h5py.File, Plan]]:
    """Open a source and plan its repack; the file is closed when the block ends.

    Raises
    ------
    ChunkwiseError
        A file that cannot be read, or rules that cannot be followed.
    """
    with open_h5(source) as file:
        budget = job.options.memory_nbytes or default_budget()
        plan = make_plan(look(file), job.rules, job.options, budget, job.access, strict=job.strict)
        yield file, plan


def run(job: Job, place: Place, watch: Watch) -> Summary:
    """Repack one file.

    Parameters
    ----------
    job
        What is asked.
    place
        Source and target, from `target.choose`.
    watch
        Told about progress; may raise to end the run.

    Raises
    ------
    ChunkwiseError
        Whatever is wrong; the source is untouched, and there is no target.
    """
    watch(Moment("planning"))
    with planned(job, place.source) as (file, plan):
        return run_plan(job, place, file, plan, watch)


def run_plan(job: Job, place: Place, file: h5py.File, plan: Plan, watch: Watch) -> Summary:
    """Carry out the plan of a file that is open; see `run`."""
    begin = time.monotonic()
    keeps = job.keeps_journal(plan)
    warning = check_room(place, plan, journal=keeps)
    before = place.source.stat().st_size
    with claimed(place, resume=job.resume, keep_journal=keeps):
        journal = _open_journal(place, _identity(job, place, plan)) if keeps else None
        results, warnings = carry_out(place, file, plan, job.options, journal, watch)
        watch(Moment("syncing"))
        publish(place)
    return Summary(
        source=str(place.source),
        target=place.said,
        source_nbytes=before,
        target_nbytes=place.target.stat().st_size,
        datasets=results,
        verified=job.options.verify,
        warnings=(*((warning,) if warning else ()), *warnings),
        elapsed_s=time.monotonic() - begin,
    )


def _identity(job: Job, place: Place, plan: Plan) -> bytes:
    """Tell one run from others: the source as it is, and what the encoded chunks depend on."""
    datasets = [
        (step.source.path, step.action, step.wanted.chunk, str(step.wanted.pipeline))
        for step in plan.steps
    ]
    said = json.dumps([asdict(place.identity), job.options.salvage, datasets])
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).digest()


def _open_journal(place: Place, identity: bytes) -> _native.Journal:
    raise ChunkwiseError(f"{place.journal} {identity!r}")
