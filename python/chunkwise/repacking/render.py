"""How are a plan and its result shown on a terminal?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chunkwise.grammar import format_shape, format_size
from chunkwise.names import printable
from chunkwise.patterns import interpretations
from chunkwise.repacking.plan import Plan, Step, budget_note
from chunkwise.repacking.records import DatasetResult, Missing, Summary, storage_of
from chunkwise.words import counted, format_seconds, wrapped

if TYPE_CHECKING:
    from chunkwise.repacking.folder import FileResult

# Changes shown in full; a plan of thousands is for --json.
_SHOWN = 40
_LONG_PATH = 60
_LEFT_SHOWN = 8
# Of one kind of loss.
_LOST_SHOWN = 100
_STORED = ("stored_nbytes_before", "expected_stored_nbytes")
_KEPT = {
    "copied": "copied as they are stored",
    "by libhdf5": "written by libhdf5 (variable length or references)",
    "kept": "kept (no data, a few bytes, or data elsewhere)",
}


def plan_lines(source: str, target: str, plan: Plan) -> Iterator[str]:
    """Print a plan: what changes, what does not, and its cost."""
    yield f"{printable(source)} -> {printable(target)}  (dry run: nothing is written)"
    chosen = ((one.source.path, one.source.nbytes, one.wanted.taken_for) for one in plan.steps)
    for said in interpretations(chosen):
        yield from wrapped(said)
    changed = [step for step in plan.steps if step.changes]
    for step in changed[:_SHOWN]:
        yield ""
        yield from _step_lines(step)
    if len(changed) > _SHOWN:
        yield ""
        yield f"and {len(changed) - _SHOWN:,} more (--json lists all)"
    yield ""
    yield from _kept_lines(plan)
    yield from left_lines([(step.source.path, step.wanted.left) for step in plan.steps])
    yield from _readers(plan.readers)
    yield from _total_lines(plan, len(changed))


def _step_lines(step: Step) -> Iterator[str]:
    source, wanted = step.source, step.wanted
    others = ", ".join(printable(name) for name in source.names[1:])
    yield printable(source.path) + (f" (also {others})" if others else "")
    before, after = (
        storage_of(source, source.chunk),
        storage_of(source, wanted.chunk, wanted.merged),
    )
    yield from _change("chunk", before, after)
    if wanted.why:
        yield from wrapped(f"because  {wanted.why}", "    ")
    yield from _change("filters", str(source.pipeline), str(wanted.pipeline))
    if step.lossy:
        yield f"             {step.bound}"
    about = "about " if wanted.pipeline.filters else ""
    out = format_size(step.out_nbytes)
    yield f"    stored   {format_size(source.stored_nbytes)} -> {about}{out}"
    if step.action == "copied":
        return
    if step.action == "by libhdf5":
        yield f"    work     by libhdf5, on one thread; about {format_seconds(step.expected_s)}"
        return
    if step.decodes > step.chunks:
        decoded = f"decoded {step.decodes / step.chunks:.1f} times each"
    else:
        decoded = "each read once"
    chunks = f"{counted(step.chunks, 'chunk')}, {decoded}; " if source.chunk else ""
    yield (
        f"    work     {chunks}{format_size(step.memory_nbytes)} of memory; "
        f"about {format_seconds(step.expected_s)}"
    )


def _change(label: str, before: str, after: str) -> Iterator[str]:
    if before == after:
        yield f"    {label:8} {before}, as it is"
    elif len(before) + len(after) < 60:
        yield f"    {label:8} {before} -> {after}"
    else:
        yield f"    {label:8} {before}"
        yield f"          -> {after}"


def _kept_lines(plan: Plan) -> Iterator[str]:
    kept: Counter[str] = Counter(step.action for step in plan.steps if not step.changes)
    for action, words in _KEPT.items():
        if kept[action]:
            yield f"{counted(kept[action], 'dataset')} {words}"


def left_lines(left: Sequence[tuple[str, tuple[str, ...]]], indent: str = "") -> Iterator[str]:
    """Say for which datasets a rule by pattern had to be skipped, and why."""
    reasons = [(path, reason) for path, reasons in left for reason in reasons]
    for path, reason in reasons[:_LEFT_SHOWN]:
        yield from wrapped(f"left as it is: {shortened(path)} {reason}", indent)
    if len(reasons) > _LEFT_SHOWN:
        yield f"{indent}left as they are: {len(reasons) - _LEFT_SHOWN:,} more, for such reasons"


def _readers(sentences: Sequence[str], indent: str = "") -> Iterator[str]:
    """Say which programs read less of the result."""
    for sentence in sentences:
        yield from wrapped(f"readers: {sentence}", indent)


def _total_lines(plan: Plan, changed: int) -> Iterator[str]:
    note = budget_note(plan)
    if note is not None:
        yield from wrapped(f"note: {note}")
    yield ""
    if not changed:
        yield "no dataset changes; the file would be written anew as it is"
    count = len(plan.steps)
    yield (
        f"{changed:,} of {counted(count, 'dataset')} change; "
        f"{format_size(plan.in_nbytes)} stored now, about {format_size(plan.out_nbytes)} expected"
    )
    yield (
        f"{format_size(plan.needed_nbytes)} of {format_size(plan.memory_nbytes)} of memory, "
        f"{counted(plan.threads, 'thread')}, about {format_seconds(plan.expected_s)}"
    )


# --- outcomes --------------------------------------------------------------------------


def summary_lines(summary: Summary) -> Iterator[str]:
    """Print what was done to one file."""
    if summary.left:
        yield f"{printable(summary.target)}: already has this layout, and was left as it is"
        yield from left_lines([(one.path, one.left) for one in summary.datasets], "  ")
        return
    changed = [one for one in summary.datasets if _changed(one)]
    count = len(summary.datasets)
    rate = sum(one.nbytes for one in summary.datasets) / max(summary.elapsed_s, 1e-9)
    if changed:
        what = f"{len(changed):,} of {counted(count, 'dataset')} changed"
    else:
        what = "no dataset changed; written anew as it was"
    yield f"{printable(summary.target)}: {what}"
    yield (
        f"  {format_size(summary.source_nbytes)} -> {format_size(summary.target_nbytes)} in "
        f"{format_seconds(summary.elapsed_s)} ({format_size(round(rate))}/s of data); "
        f"{verified_words(summary)}"
    )
    for said in interpretations((one.path, one.nbytes, one.taken_for) for one in summary.datasets):
        yield from wrapped(said, "  ")
    encoders = Counter(one.encoder for one in changed if one.encoder)
    for encoder, number in encoders.most_common(3):
        first = next(one.path for one in changed if one.encoder == encoder)
        yield f"  {f'{number:,} datasets' if number > 1 else printable(first)}: {encoder}"
    merged = [one for one in changed if one.chunk_before == "virtual" and one.why]
    for one in merged[:_LEFT_SHOWN]:
        how = f"chunks {one.chunk}, filters {one.filters}: {one.why}"
        yield from wrapped(f"{printable(one.path)}: {how}", "  ")
    replayed = sum(one.replayed for one in summary.datasets)
    if replayed:
        yield f"  {counted(replayed, 'chunk')} encoded by the run that was stopped"
    slow = [one for one in changed if one.through_libhdf5 and one.chunk != "contiguous"]
    for one in slow[:_LEFT_SHOWN]:
        reason = f"{printable(one.path)}: through libhdf5, in one thread: {one.through_libhdf5}"
        yield from wrapped(reason, "  ")
    if len(slow) > _LEFT_SHOWN:
        more = counted(len(slow) - _LEFT_SHOWN, "more dataset")
        yield f"  {more} through libhdf5, in one thread"
    yield from left_lines([(one.path, one.left) for one in summary.datasets], "  ")
    for one in summary.datasets:
        for origin, reason in one.lost_chunks[:_LOST_SHOWN]:
            at = ", ".join(map(str, origin))
            yield from wrapped(f"LOST: {printable(one.path)}, chunk at ({at}): {reason}", "  ")
        if len(one.lost_chunks) > _LOST_SHOWN:
            more = counted(len(one.lost_chunks) - _LOST_SHOWN, "more chunk")
            yield f"  LOST: {more} of the same dataset"
    for line in _missing_lines(summary.missing):
        yield from wrapped(f"LOST: {line}", "  ")
    yield from _readers(summary.readers, "  ")
    for warning in summary.warnings:
        yield from wrapped(f"warning: {warning}", "  ")


def _missing_lines(missing: Sequence[Missing]) -> Iterator[str]:
    """Say what could not be read of a damaged source."""
    for one in missing[:_LOST_SHOWN]:
        where = printable(one.path)
        if one.attribute is not None:
            where += f"@{printable(one.attribute)}"
        if one.start is not None and one.shape is not None:
            where += f" {list(one.start)}, {format_shape(one.shape) or 1} elements"
        yield f"{where}: {printable(one.reason)}"
    if len(missing) > _LOST_SHOWN:
        yield f"{counted(len(missing) - _LOST_SHOWN, 'further part')} (--json has all)"


def shortened(path: str, most: int = _LONG_PATH) -> str:
    """Give a path in at most `most` characters, without its middle if need be."""
    shown = printable(path)
    part = (min(most, 43) - 3) // 2
    return shown if len(shown) <= most else f"{shown[:part]}...{shown[-part:]}"


def verified_words(summary: Summary) -> str:
    """Say whether the result was compared with the source, and how long that took."""
    if summary.proof is None:
        return "not verified"
    share = summary.proof.elapsed_s / max(summary.elapsed_s, 1e-9)
    return f"verified against the source ({share:.0%} of the time)"


def _changed(one: DatasetResult) -> bool:
    before = (one.chunk_before, one.filters_before)
    return one.action == "rechunked" or before != (one.chunk, one.filters)


def file_line(result: FileResult) -> str:
    """Print one file among many as one line."""
    if result.outcome in ("failed", "later"):
        return f"{result.outcome.upper():7} {printable(result.source)}: {result.reason}"
    sizes = ""
    if isinstance(result.summary, dict):
        sizes = f"  {_planned(result.summary)}"
    if result.outcome == "repacked":
        before, after = result.source_nbytes or 0, result.target_nbytes or 0
        sizes = f"  {format_size(before)} -> {format_size(after)}"
    return f"{result.outcome:11} {printable(result.source)}{sizes}"


def _planned(record: dict[str, Any]) -> str:
    """Say what would be done to one of many files, given its plan as JSON has it."""
    changed = sum(one["changes"] for one in record["datasets"])
    if not changed:
        return "no dataset changes"
    now, then = (format_size(record[key]) for key in _STORED)
    count = counted(len(record["datasets"]), "dataset")
    return f"{changed:,} of {count} change; {now} -> about {then}"


def _readers_of(result: FileResult) -> tuple[str, ...]:
    """Say which programs read less of one file among many."""
    if isinstance(result.summary, dict):
        return tuple(result.summary["readers"])
    # What `fix` did has in it what `repack` did for it.
    summary = getattr(result.summary, "repacked", result.summary)
    return tuple(getattr(summary, "readers", ()))


def batch_lines(results: Sequence[FileResult], elapsed_s: float) -> Iterator[str]:
    """Print the summary of many files."""
    counts = Counter(result.outcome for result in results)
    said = ", ".join(f"{number:,} {outcome}" for outcome, number in counts.most_common())
    done = [result for result in results if result.outcome in ("repacked", "fixed")]
    before = sum(result.source_nbytes or 0 for result in done)
    after = sum(result.target_nbytes or 0 for result in done)
    yield f"{counted(len(results), 'file')}: {said or 'nothing done'}"
    if done:
        yield f"{format_size(before)} -> {format_size(after)} in {format_seconds(elapsed_s)}"
    plans = [result.summary for result in results if isinstance(result.summary, dict)]
    if plans:
        now, then = (sum(one[key] for one in plans) for key in _STORED)
        yield (
            f"{format_size(now)} stored now, about {format_size(then)} expected "
            "(dry run: nothing is written)"
        )
    losses = Counter(said for result in results for said in _readers_of(result))
    for said, number in losses.most_common():
        yield from wrapped(f"readers of {counted(number, 'file')}: {said}")
