"""What is printed about verified files, in 80 columns?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from chunkwise.grammar import format_size
from chunkwise.names import printable
from chunkwise.verdicts import FileVerdict
from chunkwise.verifying.records import Damage, Verified
from chunkwise.words import counted, format_seconds, wrapped

# How much is listed for one file; ``--json`` has all of it.
_MOST_LINES: Final = 100
_NAMES: Final = {FileVerdict.LOOSE: "loose end", FileVerdict.SOUND: "note"} | {
    one: str(one) for one in (FileVerdict.UNJUDGED, FileVerdict.BUSY, FileVerdict.FAILED)
}
_MANY: Final = {FileVerdict.UNJUDGED: "that cannot be judged here", FileVerdict.FAILED: "not read"}


def file_lines(verified: Verified) -> Iterator[str]:
    """Say the result for one file."""
    damaged = verified.damage_count
    heading = f"{printable(verified.path)}: "
    heading += str(verified.verdict)
    if damaged:
        heading += f": {counted(damaged, 'finding')}"
        if verified.datasets:
            of = counted(verified.datasets, "dataset")
            heading += f"; whole: {verified.whole_datasets:,} of {of}"
    yield from wrapped(heading, hanging="  ")
    for damage in verified.damages[:_MOST_LINES]:
        yield from wrapped(damage_text(damage), "  ")
    if damaged > _MOST_LINES:
        yield f"  ... and {counted(damaged - _MOST_LINES, 'further finding')} (--json has more)"
    if verified.far is not None:
        yield from wrapped(verified.far.words, "  ")
    for note in verified.notes:
        where = "" if note.path is None else f"{printable(note.path)}: "
        kind = _NAMES.get(note.verdict, "note")
        yield from wrapped(f"{kind}: {where}{printable(note.reason)}", "  ")


def damage_text(damage: Damage) -> str:
    """Say what is wrong: dataset, position, address, size, and what it is."""
    words = [] if damage.path is None else [printable(damage.path)]
    if damage.origin is not None:
        words.append(f"[{', '.join(map(str, damage.origin))}]")
    if damage.address is not None:
        words.append(f"{counted(damage.nbytes or 0, 'byte')} at {damage.address}")
    where = " ".join(words)
    said = f"{damage.kind}: {printable(damage.reason)}"
    return f"{where}: {said}" if where else said


def says_anything(verified: Verified, *, alone: bool) -> bool:
    """Return whether there is anything to say of a file: not of a sound one among many."""
    return alone or verified.verdict != "sound" or bool(verified.notes)


def summary_lines(files: Sequence[Verified], elapsed_s: float, known: int) -> Iterator[str]:
    """Add up files; `known` of them were verified by an earlier run."""
    counts = Counter(one.verdict for one in files)
    if len(files) != 1:
        parts = [f"{counted(len(files), 'file')}: {counts[FileVerdict.SOUND]:,} sound"]
        # Sound ones with loose ends are named so, with a comma of their own.
        if counts[FileVerdict.LOOSE]:
            parts.append(f"{counts[FileVerdict.LOOSE]:,} sound with loose ends")
        others = (FileVerdict.DAMAGED, FileVerdict.FAILED, FileVerdict.UNJUDGED, FileVerdict.BUSY)
        parts += [f"{counts[one]:,} {_MANY.get(one, one)}" for one in others if counts[one]]
        if known:
            parts.append(f"{known:,} of them known before")
        yield ", ".join(parts)
    stored = sum(one.stored_nbytes for one in files)
    figures = (
        counted(sum(one.datasets for one in files), "dataset"),
        counted(sum(one.chunks for one in files), "chunk"),
        counted(sum(one.attributes for one in files), "attribute"),
    )
    took = ""
    if not known and elapsed_s > 0:
        rate = f", {format_size(round(stored / elapsed_s))}/s" if stored else ""
        took = f" in {format_seconds(elapsed_s)}{rate}"
    said = f"{', '.join(figures)}: {format_size(stored)} of data{took}"
    yield from wrapped(said, hanging="  ")
