"""What did a repack do?  Plain records, for `--json` and for the last lines on a terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from chunkwise.grammar import format_shape
from chunkwise.proof.records import Proved
from chunkwise.repacking.facts import SourceDataset
from chunkwise.repacking.plan import Action, Plan, Step

FORMAT = "chunkwise-repack"
VERSION = 1


@dataclass(frozen=True)
class DatasetResult:
    """One dataset of the result."""

    path: str  # Its first path
    action: Action  # As in the plan
    chunk: str  # What it has now: a shape, or the layout of data that are not chunked
    filters: str
    chunk_before: str  # What it had
    filters_before: str
    nbytes: int  # Bytes of all elements
    stored_nbytes_before: int  # Bytes in the files
    stored_nbytes: int
    chunks: int = 0  # Chunks written (pieces, without chunks), and chunks of the source decoded
    decodes: int = 0
    replayed: int = 0  # Chunks that a stopped run had encoded
    # Which encoder took the place of zlib, and how its size compares; None: as stated.
    encoder: str | None = None
    # Why libhdf5 read or wrote the data, in one thread; None: the engine did.
    through_libhdf5: str | None = None
    # With ``salvage``: origins of chunks that could not be read, each with the reason.
    lost_chunks: tuple[tuple[tuple[int, ...], str], ...] = ()
    left: tuple[str, ...] = ()  # Why rules that mean it by a pattern do not apply to it
    elapsed_s: float = 0.0  # Seconds it took, without verification
    why: str = ""  # Why it has these chunks, where no rule says so
    # What each pattern was taken for that they were chosen for; empty without any
    taken_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Something that cannot be read of a damaged source, and is not in the copy."""

    path: str  # The object's path
    reason: str  # What is wrong
    attribute: str | None = None  # Which attribute of it; None for another part
    # Where a box of elements with the fill value begins, and its shape; None for others.
    start: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Summary:
    """A finished repack of one file.

    Attributes
    ----------
    source, target
        Paths as given.
    source_nbytes, target_nbytes
        Sizes of the files.
    datasets
        One for each.
    verified
        ``proof`` or ``none``.
    warnings
        What was kept in another form.
    elapsed_s
        Seconds in all.
    left
        Whether the file needed no change, and nothing was written (in place).
    readers
        Which programs read less of the result than of the source, a sentence for each reason.
    missing
        With ``salvage``: what could not be read, besides the chunks of `datasets`.
    proof
        What was compared with the source, and found the same; None if nothing was.
    """

    source: str
    target: str
    source_nbytes: int
    target_nbytes: int
    datasets: tuple[DatasetResult, ...]
    verified: str
    warnings: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    left: bool = False
    readers: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    proof: Proved | None = None

    @property
    def lost(self) -> int:
        """How many chunks, and other parts, were lost."""
        chunks = sum(len(dataset.lost_chunks) for dataset in self.datasets)
        return chunks + len(self.missing)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}


def storage_of(source: SourceDataset, chunk: tuple[int, ...] | None, merged: bool = False) -> str:
    """Name how data are stored: a chunk shape or a layout."""
    if chunk is not None:
        return format_shape(chunk)
    if source.layout == "chunked" or merged:
        return "contiguous"
    return source.layout


def _of_step(step: Step) -> dict[str, Any]:
    """Say what a plan, and its result, have of a dataset."""
    source, wanted = step.source, step.wanted
    return {
        "path": source.path,
        "action": step.action,
        "chunk": storage_of(source, wanted.chunk, wanted.merged),
        "filters": str(wanted.pipeline),
        "chunk_before": storage_of(source, source.chunk),
        "filters_before": str(source.pipeline),
        "nbytes": source.nbytes,
        "stored_nbytes_before": source.stored_nbytes,
        "left": wanted.left,
        "taken_for": wanted.taken_for,
    }


def result_of(step: Step, taken_nbytes: int) -> DatasetResult:
    """Return the result for a dataset: what the plan says, and its stored bytes."""
    return DatasetResult(**_of_step(step), stored_nbytes=taken_nbytes, why=step.wanted.why)


def planned_record(step: Step) -> dict[str, Any]:
    """Give a step of a plan as JSON has it."""
    return {
        **_of_step(step),
        "changes": step.changes,
        "shape": step.source.shape,
        "expected_stored_nbytes": step.out_nbytes,
        "memory_nbytes": step.memory_nbytes,
        "chunks": step.chunks,
        "decodes": step.decodes,
        "expected_s": step.expected_s,
    }


def plan_record(source: str, target: str, plan: Plan) -> dict[str, Any]:
    """Give a plan as JSON has it."""
    return {
        "format": f"{FORMAT}-plan",
        "version": VERSION,
        "source": source,
        "target": target,
        "memory_budget_nbytes": plan.memory_nbytes,
        "memory_nbytes": plan.needed_nbytes,
        "threads": plan.threads,
        "stored_nbytes_before": plan.in_nbytes,
        "expected_stored_nbytes": plan.out_nbytes,
        "expected_s": plan.expected_s,
        "readers": plan.readers,
        "datasets": [planned_record(step) for step in plan.steps],
    }
