"""Where did the time of a walk go, and what did the chunk cache do?

In libhdf5, each filter's calls are counted and timed (`_native.Library.tally`): that is exact.
Storage is estimated: stored bytes are read once more, and the mean is multiplied by the loads.
The rest is the index, copying and the calls.  chunkwise's engine measures itself; the seconds of
its threads are added up, and may exceed the time that passed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise.grammar.codecs import CODECS_BY_ID
from chunkwise.trials import pagecache

if TYPE_CHECKING:
    from chunkwise._native import WriteResult

# Bare reading is bounded by both.
MOST_BARE_CHUNKS: Final = 1000
MOST_BARE_SECONDS: Final = 0.5

Method = Literal[
    "measured",
    "filters measured, storage from bare reading",
    "filters measured, storage from bare writing",
    "measured, storage from bare writing",
]
FROM_BARE: Final[Method] = "filters measured, storage from bare reading"


class Breakdown(TypedDict):
    """Where a walk's seconds went; plain JSON values, None if not known."""

    # ``measured``: each figure by clocks around the work itself.  ``filters measured, storage from
    # bare reading``: `storage_s` is an estimate, and `other_s` what is left. Measured seconds are
    # those of all threads together.
    method: Method
    elapsed_s: float  # Seconds in the reads alone; of writes, those of all phases but the sync
    # Seconds listing the chunk index, or adding to it; None if that is part of `other_s`.
    index_s: float | None
    # Seconds reading stored bytes, at most what the filters leave of `elapsed_s`.
    storage_s: float | None
    # Seconds decoding, for each filter of the pipeline; of writes, encoding as well.
    filters_s: dict[str, float | None]
    # Seconds copying elements; None if in `other_s`, as for copies below 4 KiB.
    scatter_s: float | None
    # Seconds of the reading thread that no other figure accounts for, never below 0.
    other_s: float | None
    # Seconds that the reading thread waited for others; None if one reads alone.
    waiting_s: float | None
    # How much of the seconds above (index, storage, filters, scatter) other threads spent; None
    # likewise.  Without these, and with `waiting_s`, the seconds of the reading thread add up to
    # `elapsed_s`.
    other_threads_s: float | None
    # Stored chunks that the reads touched, each as often as a read touched it.
    chunk_touches: int | None
    # Chunks that were loaded and decoded: cache misses; in chunkwise also those ahead.
    chunk_loads: int | None
    chunk_hits: int | None  # How often it was found decoded
    chunks_touched: int | None  # How many different chunks those were
    chunks_encoded: int | None  # Of writes: how often one of them was encoded; None for reads


Tallies = dict[int, "_native.FilterTally"]
Way = Literal["encode", "decode"]
_UNKNOWN: Final = cast("Breakdown", dict.fromkeys(Breakdown.__annotations__))


class Watch:
    """What filters do for a walk, from right before it on."""

    def __init__(self, library: _native.Library | None, filters: Sequence[int]) -> None:
        self.library = library
        self._filters = tuple(dict.fromkeys(filters))
        if library is None:
            _native.set_profiling(True)
        self._before = self._after = self._look()

    def _look(self) -> tuple[Tallies, dict[str, tuple[float, float]], int]:
        tallies = {} if self.library is None else self.library.tally(self._filters)
        return tallies, _native.profile(), _native.cache_stats()["decoded"]

    def stop(self) -> None:
        """Leave out what follows."""
        self._after = self._look()
        if self.library is None:
            _native.set_profiling(False)

    def finish(
        self,
        table: _native.ChunkTable | None,
        walk: _native.Walk,
        operations: int,
        elapsed_s: float,
        cold_file: str | None = None,
    ) -> Breakdown:
        """Stop, and return where the time of reads went."""
        self.stop()
        touches, distinct = table.touches(walk, operations) if table else (None, None)
        if self.library is None:
            found = self.by_engine("measured", elapsed_s)
            # Bytes that are stored as they are do not go through the cache.
            loads = self._after[2] - self._before[2] if self._filters else None
        else:
            filters_s, calls = self.by_filter("decode")
            loads = unskipped_calls(table, calls["decode"])
            bare_s = _bare_seconds(table, walk, operations, loads, distinct, cold_file)
            found = by_library(FROM_BARE, elapsed_s, filters_s, bare_s)
        hits = None if touches is None or loads is None else max(0, touches - loads)
        return {
            **found,
            "chunk_touches": touches,
            "chunk_loads": loads,
            "chunk_hits": hits,
            "chunks_touched": distinct,
        }

    def by_filter(self, *ways: Way) -> tuple[dict[str, float | None], dict[Way, dict[int, int]]]:
        """Return each filter's seconds, both ways together, and its calls."""
        before, after = self._before[0], self._after[0]
        noted = [n for n in self._filters if n in before and n in after]
        calls = {way: {n: after[n][way][0] - before[n][way][0] for n in noted} for way in ways}
        seconds = {n: sum(after[n][way][1] - before[n][way][1] for way in ways) for n in noted}
        return {_name_of(n, after): seconds.get(n) for n in self._filters}, calls

    def by_engine(self, method: Method, elapsed_s: float) -> Breakdown:
        """Return what the engine measured; `index_s` with what handing chunks over took."""
        before, after = self._before[1], self._after[1]
        own, pool = (
            {phase: after[phase][who] - before[phase][who] for phase in after} for who in (0, 1)
        )
        waiting_s, _ = own.pop("waiting"), pool.pop("waiting")
        both = {phase: own[phase] + pool[phase] for phase in own}
        return {
            **_UNKNOWN,
            "method": method,
            "elapsed_s": elapsed_s,
            "index_s": both["index"] + both["commit"],
            "storage_s": both["storage"],
            "filters_s": {name: _of_engine(both, name) for name in self._names},
            "scatter_s": both["scatter"],
            "other_s": max(0.0, elapsed_s - sum(own.values()) - waiting_s),
            "waiting_s": waiting_s,
            "other_threads_s": sum(pool.values()),
        }

    @property
    def _names(self) -> list[str]:
        # The engine's names for filters are the grammar's.
        return [_name_of(number, {}) for number in self._filters]


def _of_engine(phases: Mapping[str, float], name: str) -> float | None:
    """Add up a filter's seconds, both ways."""
    found = [phases[key] for key in (name, f"encode {name}") if key in phases]
    return sum(found) if found else None


def unskipped_calls(table: _native.ChunkTable | None, calls: Mapping[int, int]) -> int | None:
    """Return the calls of a filter that no chunk skips; None if no such one was counted."""
    always = table.always_applied if table else []
    return next((calls[n] for n in always if n in calls), None)


def by_library(
    method: Method, elapsed_s: float, filters_s: dict[str, float | None], bare_s: float | None
) -> Breakdown:
    """Say what filters, and storage alone, leave of the time; chunks are not known yet."""
    known = [seconds for seconds in filters_s.values() if seconds is not None]
    left_s = max(0.0, elapsed_s - sum(known))
    storage_s = None if bare_s is None else min(bare_s, left_s)
    complete = storage_s is not None and len(known) == len(filters_s)
    return {
        **_UNKNOWN,
        "method": method,
        "elapsed_s": elapsed_s,
        "storage_s": storage_s,
        "filters_s": filters_s,
        "other_s": left_s - storage_s if complete and storage_s is not None else None,
    }


def _bare_seconds(
    table: _native.ChunkTable | None,
    walk: _native.Walk,
    operations: int,
    loads: int | None,
    distinct: int | None,
    cold_file: str | None,
) -> float | None:
    """Seconds that storage alone takes to give the bytes of all chunks loaded."""
    if table is None or loads is None:
        return None
    if not loads:
        return 0.0

    def mean_s() -> float | None:
        bare = table.bare_reads(walk, operations, MOST_BARE_CHUNKS, MOST_BARE_SECONDS)
        return bare[2] / bare[0] if bare and bare[0] else None

    try:
        cold_s, first = None, 0
        if cold_file is not None:
            # Only the first load of each chunk found it not in memory.
            pagecache.drop(cold_file)
            cold_s, first = mean_s(), min(loads, loads if distinct is None else distinct)
        warm_s = mean_s()
    except (ChunkwiseError, OSError):
        return None
    if warm_s is None:
        return None
    return (loads - first) * warm_s + first * (cold_s or 0.0)


def _name_of(number: int, tallied: Tallies) -> str:
    """Name a filter as the grammar does, else as libhdf5 does."""
    if number in CODECS_BY_ID:
        return CODECS_BY_ID[number].name
    return tallied[number]["name"] if number in tallied else f"filter-{number}"


FROM_BARE_WRITING: Final[Method] = "filters measured, storage from bare writing"

# The engine measures itself; the part of fetching that is storage is an estimate.
OF_ENGINE: Final[Method] = "measured, storage from bare writing"
# Data without chunks is written bare in pieces of at most this many bytes.
_MOST_PIECE_NBYTES: Final = 1 << 20


def taken_apart(
    watch: Watch,
    result: WriteResult,  # What the reader measured
    walk: _native.Walk,  # What was written
    path: str,  # The file that was made
    stored_nbytes: int,  # Bytes that the dataset's elements take in it
    # Its chunks; None if there are none, or they cannot be listed.
    table: _native.ChunkTable | None,
) -> Breakdown:
    """Return where the time of writes went that were watched."""
    touches, distinct = table.touches(walk, result["operations"]) if table else (None, None)
    phases = (result["create_s"], result["elapsed_s"], result["flush_s"], result["close_s"])
    elapsed_s = sum(phases)
    # Data without chunks is written in blocks, as far as they can lie together.
    block = min(result["selected_nbytes"] / max(1, result["operations"]), _MOST_PIECE_NBYTES)

    def storage_s(encoded: int | None) -> float | None:
        """Estimate what storage took for chunks that were encoded so often."""
        each = stored_nbytes / distinct if distinct else block
        per_byte_s = bare_seconds(path, max(1, round(each)))
        often = encoded / distinct if distinct and encoded is not None else 1
        return None if per_byte_s is None else stored_nbytes * often * per_byte_s

    if watch.library is None:
        found = watch.by_engine(OF_ENGINE, elapsed_s)
        of_engine: dict[str, Any] = {**result}
        encoded, loads = of_engine["encoded_chunks"], of_engine["read_back_chunks"]
        # Handing a chunk over is writing its bytes, and entering it into the chunk index.
        commit_s, read_s = found["index_s"] or 0.0, found["storage_s"] or 0.0
        bare_s = storage_s(encoded)
        written_s = None if bare_s is None else min(bare_s, commit_s)
        found["index_s"] = None if written_s is None else commit_s - written_s
        found["storage_s"] = None if written_s is None else written_s + read_s
    else:
        filters_s, calls = watch.by_filter("encode", "decode")
        encoded, loads = (unskipped_calls(table, calls[way]) for way in ("encode", "decode"))
        found = by_library(FROM_BARE_WRITING, elapsed_s, filters_s, storage_s(encoded))
    return {
        **found,
        "chunk_touches": touches,
        "chunk_loads": loads,
        "chunks_touched": distinct,
        "chunks_encoded": encoded,
    }


def bare_seconds(path: str, piece_nbytes: int) -> float | None:
    """Write a file's bytes once more, bare, in pieces to a new file beside it."""
    other = Path(f"{path}.bare")
    spent_s, nbytes = 0.0, 0
    try:
        with Path(path).open("rb") as stream, other.open("xb") as bare:
            for _ in range(MOST_BARE_CHUNKS):
                piece = stream.read(piece_nbytes)
                if not piece or spent_s >= MOST_BARE_SECONDS:
                    break
                begun = time.perf_counter()
                os.write(bare.fileno(), piece)
                spent_s += time.perf_counter() - begun
                nbytes += len(piece)
    except OSError:
        return None
    finally:
        other.unlink(missing_ok=True)
    return spent_s / nbytes if nbytes else None
