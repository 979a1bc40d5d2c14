"""How are findings, promises, changes and measurements shown to a person, in 80 columns?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chunkwise.fixing.choose import ASKED_FOR, Change
from chunkwise.fixing.records import FindingRecord, Fixed, Gain
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.promise import WITHIN
from chunkwise.measure.verdict import Spread
from chunkwise.model.layout import AS_IT_IS, FileLayout
from chunkwise.model.readability import FORMAT_OF_LOW
from chunkwise.names import printable
from chunkwise.repacking.folder import FileResult
from chunkwise.repacking.render import file_line as repacked_line
from chunkwise.repacking.render import shortened, verified_words
from chunkwise.words import counted, format_seconds, format_speed, wrapped

# A file of thousands is for --json.
_SHOWN = 20
_PATH_WIDTH = 24


def lines(fixed: Fixed) -> Iterator[str]:
    """Print what became of one file."""
    if fixed.outcome == "nothing to mend":
        yield from wrapped(f"{printable(fixed.source)}: {_nothing(fixed)}")
        yield from _taken_for(fixed)
        yield from _left(fixed.left, "No layout mends")
        return
    planned = fixed.outcome == "planned"
    arrow = "" if fixed.target is None else f" -> {printable(fixed.target)}"
    if fixed.target == fixed.source:
        arrow = ", in place"
    note = "  (dry run: nothing is written)" if planned else ""
    yield f"{printable(fixed.source)}{arrow}{note}"
    yield from _taken_for(fixed)
    yield ""
    yield from _changes(fixed)
    yield ""
    yield from _gains(fixed)
    yield from _sizes(fixed, planned)
    yield from _left(fixed.left, "Will be left" if planned else "Left")


def file_line(result: FileResult) -> str:
    """Print one file among many as one line."""
    fixed = result.summary
    if result.outcome == "failed" or not isinstance(fixed, Fixed):
        return repacked_line(result)
    codes = [code for change in fixed.changes for code in change.why] + list(fixed.why)
    said = ", ".join(dict.fromkeys(codes))
    sizes = ""
    if result.outcome == "fixed":
        before, after = result.source_nbytes or 0, result.target_nbytes or 0
        sizes = f"  {format_size(before)} -> {format_size(after)}"
    left = "" if not fixed.left else f"; left: {', '.join({one.code: 0 for one in fixed.left})}"
    mended = f"  ({said}{left})" if said else f"  (nothing to mend{left})"
    return f"{result.outcome:11} {printable(result.source)}{sizes}{mended}"


def _taken_for(fixed: Fixed) -> Iterator[str]:
    for said in fixed.taken_for:
        yield from wrapped(said)


def _nothing(fixed: Fixed) -> str:
    if not fixed.left:
        return "nothing to mend; it was left as it is"
    if any(one.is_offer for one in fixed.left):
        return "nothing that costs every way of reading it; it was left as it is"
    return "nothing that another layout mends; it was left as it is"


# --- what changes ----------------------------------------------------------------------


def _changes(fixed: Fixed) -> Iterator[str]:
    for change in fixed.changes[:_SHOWN]:
        yield from wrapped(f"{printable(change.path)}  ({', '.join(change.why)})")
        yield from _change(change)
    if len(fixed.changes) > _SHOWN:
        yield f"and {len(fixed.changes) - _SHOWN:,} more datasets (--json lists all)"
    if fixed.why:
        yield from wrapped(f"the file as a whole  ({', '.join(fixed.why)})")
        yield f"    {_of_file(fixed.layout or AS_IT_IS)}"


def _of_file(layout: FileLayout) -> str:
    said = []
    if layout.merge:
        said.append("virtual and external data become the file's own")
    if layout.low is not None:
        said.append(f"objects in the format of HDF5 {FORMAT_OF_LOW}")
    if layout.page_nbytes is not None:
        said.append(f"paged file space, pages of {format_size(layout.page_nbytes)}")
    if layout.metadata_block_nbytes is not None:
        said.append(f"metadata in blocks of {format_size(layout.metadata_block_nbytes)}")
    return "; ".join(said) or "copied, without the space that nothing uses, chunks in order"


def _change(change: Change) -> Iterator[str]:
    if change.chunk is not None:
        before = "contiguous"
        if change.chunk_before is not None:
            before = format_shape(change.chunk_before)
        yield f"    chunk    {before} -> {format_shape(change.chunk)}"
    if change.filters is not None:
        same = " (encoded again)" if change.filters == change.filters_before else ""
        yield f"    filters  {change.filters_before} -> {change.filters}{same}"


# --- what it gains ---------------------------------------------------------------------


def _gains(fixed: Fixed) -> Iterator[str]:
    if not fixed.gains:
        return
    measured = any(gain.times is not None for gain in fixed.gains)
    all_gains = fixed.gains
    if measured:
        all_gains = tuple(gain for gain in fixed.gains if gain.times is not None)
    shown = all_gains[:_SHOWN]
    names = [
        shortened(gain.path, _PATH_WIDTH) + "*" * (gain.cache_nbytes is not None) for gain in shown
    ]
    patterns = [f"{gain.pattern} {format_shape(gain.block)}" for gain in shown]
    patterns = [
        one if len(one) <= _PATH_WIDTH else shortened(one, _PATH_WIDTH) for one in patterns
    ]
    wide, wider = max(map(len, names)), max(map(len, patterns))
    what = "One read" if all(gain.of_one_read for gain in shown) else "The whole dataset read"
    who = f"{what} by {fixed.reader}, from memory"
    yield f"{who}, as measured:" if measured else f"{who}, by the model:"
    header = "before     after  times as fast"
    header += "  (promised)" if measured else ""
    yield f"  {'':{wide}}  {'':{wider}}  {header:>}"
    for gain, name, pattern in zip(shown, names, patterns, strict=True):
        yield f"  {name:{wide}}  {pattern:{wider}}  {_figures(gain, measured)}".rstrip()
    if len(all_gains) > _SHOWN:
        yield f"  and {len(all_gains) - _SHOWN:,} more (--json lists all)"
    caches = sorted({gain.cache_nbytes for gain in shown if gain.cache_nbytes is not None})
    if caches:
        marked = " and ".join(map(format_size, caches))
        said = f"* with a chunk cache of {marked}, that of the readers whom findings are about"
        yield from wrapped(said, "  ")
    if measured:
        yield from _how(fixed)
    if any(gain.promised_times is not None for gain in shown):
        said = f"the model, which is mostly right within a factor of {WITHIN:g}"
        yield from wrapped(f"promised by {said}" if measured else f"by {said}", "  ")
    unmeasured = sum(gain.times is None and gain.reason is None for gain in fixed.gains)
    if measured and unmeasured:
        said = (
            f"{counted(unmeasured, 'more pattern')} not measured, which the model promises less of"
        )
        yield from wrapped(f"{said}; a longer --budget measures more", "  ")
    for gain in fixed.gains:
        if gain.reason is not None:
            said = f"{printable(gain.path)} {gain.pattern} was not measured: {gain.reason}"
            yield from wrapped(said, "  ")
    yield ""


def _figures(gain: Gain, measured: bool) -> str:
    if not measured:
        times = gain.promised_times
        said = "not known" if times is None else f"about {format_speed(times)}"
        before, after = _about(gain.promised_before_s), _about(gain.promised_after_s)
        return f"{before:>9} {after:>9}  {said}"
    promised = "" if gain.promised_times is None else f"({format_speed(gain.promised_times)})"
    before, after = _median(gain.before, gain.estimated), _median(gain.after, gain.estimated)
    lowest, highest = gain.lowest_times, gain.highest_times
    spread = ""
    if gain.repeats > 1 and lowest is not None and highest is not None:
        spread = f" [{format_speed(lowest)}, {format_speed(highest)}]"
    spread += " ?" * (gain.verdict == "cannot tell")
    speed = "-" if gain.times is None else format_speed(gain.times)
    return f"{before:>9} {after:>9}  {speed + spread:13}  {promised}"


def _about(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _median(found: Spread | None, estimated: bool) -> str:
    if found is None:
        return "-"
    return f"{'~' if estimated else ''}{format_seconds(found.median)}"


def _how(fixed: Fixed) -> Iterator[str]:
    repeats = [gain.repeats for gain in fixed.gains if gain.repeats]
    turns = "in turns" if fixed.in_turns else "before, and then after"
    said = f"medians of {min(repeats)}, measured {turns}; in brackets the least and the most"
    if any(gain.estimated for gain in fixed.gains):
        said += "; ~ is estimated from a part"
    if any(gain.verdict == "cannot tell" for gain in fixed.gains):
        said += "; ? cannot tell: repeats are too few, or differ by as much"
    yield from wrapped(said, "  ")


# --- the file --------------------------------------------------------------------------


def _sizes(fixed: Fixed, planned: bool) -> Iterator[str]:
    before, after = fixed.source_nbytes, fixed.target_nbytes
    if planned:
        took = "" if fixed.expected_s is None else f", in about {format_seconds(fixed.expected_s)}"
        if after is not None:
            yield (
                f"{format_size(before)} now; about {format_size(after)} of data would be "
                f"written{took}"
            )
        return
    verified = ""
    if fixed.repacked is not None:
        verified = f"; {verified_words(fixed.repacked)}"
        took = f" in {format_seconds(fixed.repacked.elapsed_s)}"
    yield f"{format_size(before)} -> {format_size(after or 0)}{took}{verified}"
    one, other = fixed.metadata_before, fixed.metadata_after
    if one is not None and other is not None and one != other:
        yield (
            f"opening and listing: {counted(one.requests, 'request')} -> {other.requests:,}, "
            f"in {counted(one.blocks, 'block')} of 1 MiB -> {other.blocks:,}"
        )
    yield (
        f"{counted(len(fixed.findings), 'finding')} before, {len(fixed.left):,} after; "
        f"{format_seconds(fixed.elapsed_s)} in all"
    )
    if fixed.repacked is not None:
        for sentence in fixed.repacked.readers:
            yield from wrapped(f"readers: {sentence}")
        for warning in fixed.repacked.warnings:
            yield from wrapped(f"warning: {warning}")


def _left(left: Sequence[FindingRecord], word: str) -> Iterator[str]:
    counts = Counter((one.is_offer, one.code) for one in left)
    for (is_offer, code), number in sorted(counts.items()):
        first = next(one for one in left if (one.is_offer, one.code) == (is_offer, code))
        word = "Left for you to decide" if is_offer else word
        where = "the file" if first.path is None else printable(first.path)
        more = f" and {number - 1:,} more" if number > 1 else ""
        hint = "; --merge makes it the file's own data" if code == ASKED_FOR else ""
        yield from wrapped(f"{word}: {first.severity} {code}, {where}{more}{hint}")
