"""How is said in one sentence where the time of a walk went?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chunkwise.trials.breakdown import Breakdown
from chunkwise.trials.trial import Operation
from chunkwise.words import counted, format_ratio, format_seconds

# What filters do, which of its figures counts how often they did it, and what else takes time.
_WORDS: Final[Mapping[Operation, tuple[str, str, Mapping[str, str]]]] = {
    "read": (
        "decode",
        "chunk_loads",
        {
            "index_s": "list the chunk index",
            "storage_s": "read storage",
            "scatter_s": "copy elements to their places",
        },
    ),
    "write": (
        "encode",
        "chunks_encoded",
        {
            "scatter_s": "put elements into chunks",
            "storage_s": "write storage",
            "index_s": "keep the chunk index",
        },
    ),
}


def sentence(found: Breakdown, operation: Operation) -> str:
    """Say where the time of reads, or of writes, went."""
    values: Mapping[str, Any] = {**found}
    verb, count, phases = _WORDS[operation]
    chunks, seconds = values[count], found["filters_s"]
    known = {name: s for name, s in seconds.items() if s is not None}
    shared = bool(found["other_threads_s"])
    parts = []
    if known:
        what = f"{verb} chunks" if chunks is None else f"{verb} {counted(chunks, 'chunk')}"
        names = next(iter(known))
        if len(known) > 1:
            names = ", ".join(f"{name} {format_seconds(s)}" for name, s in known.items())
        notes = "; ".join(filter(None, (names, _often(found, operation, chunks))))
        parts.append(f"{format_seconds(sum(known.values()))} {what} ({notes})")
    rest = {} if shared else {"other_s": "are the rest"}
    for key, text in {**phases, **rest}.items():
        if values[key]:
            parts.append(f"{format_seconds(values[key])} {text}")
    took = format_seconds(found["elapsed_s"])
    if not parts:
        why = "what filters take is not known"
        if operation == "read" and not seconds:
            why = "the data is not filtered, and storage, copying and calls are not told apart"
        return f"Of {took} nothing is told: {why}."
    if not shared:
        return f"Of {took}, {', '.join(parts)}."
    waiting_s, other_s = (format_seconds(found[key] or 0.0) for key in ("waiting_s", "other_s"))
    thread = "reading" if operation == "read" else "writing"
    return (
        f"In {took}, with all threads added up, {', '.join(parts)}; "
        f"the {thread} thread waited {waiting_s} for the others, and {other_s} are the rest."
    )


def _often(found: Breakdown, operation: Operation, times: int | None) -> str | None:
    """Say how often chunks passed the filters, and what the cache had to do with it."""
    distinct, loads = found["chunks_touched"], found["chunk_loads"]
    if not times or not distinct or times < distinct:
        return None
    if times == distinct:
        return "each of them once"
    which = f"each of {distinct:,} chunks" if distinct > 1 else "the same chunk"
    often = f"{which} {format_ratio(times / distinct)}"
    if operation == "write":
        return f"{often}: {loads:,} were loaded again" if loads else often
    touches = found["chunk_touches"]
    if touches is None:
        return often
    if touches == times:
        return f"{often}: the chunk cache missed every time"
    return f"{often}: the chunk cache missed {times:,} of {counted(touches, 'time')}"
