"""Where did the time of writing go, and how often was a chunk encoded?

It covers everything that a library may do with its data: creating the dataset
(which may allocate and fill space), the writes, the flush and the close.  In libhdf5
the filters' calls are counted and timed as for reads
(`chunkwise.trials.breakdown`).  The time of storage is estimated: bytes of the new file
are written once more, bare, to another one.  chunkwise's engine measures itself.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chunkwise import _native
from chunkwise.trials.breakdown import (
    MOST_BARE_CHUNKS,
    MOST_BARE_SECONDS,
    Breakdown,
    Method,
    Watch,
    by_library,
    unskipped_calls,
)

if TYPE_CHECKING:
    from chunkwise._native import WriteResult

FROM_BARE: Final[Method] = "filters measured, storage from bare writing"

# The engine measures what it does, and how long it hands chunks over; what of that is
# storage is an estimate.
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
    """Tell where the time of writes went that were watched."""
    touches, distinct = table.touches(walk, result["operations"]) if table else (None, None)
    phases = (result["create_s"], result["elapsed_s"], result["flush_s"], result["close_s"])
    elapsed_s = sum(phases)
    # Data without chunks is written in blocks, as far as they can lie together.
    block = min(result["selected_nbytes"] / max(1, result["operations"]), _MOST_PIECE_NBYTES)

    def storage_s(encoded: int | None) -> float | None:
        """Estimate what storage took for chunks that were encoded so often.

        Where nobody knows how often, each byte counts once.
        """
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
        found = by_library(FROM_BARE, elapsed_s, filters_s, storage_s(encoded))
    return {
        **found,
        "chunk_touches": touches,
        "chunk_loads": loads,
        "chunks_touched": distinct,
        "chunks_encoded": encoded,
    }


def bare_seconds(path: str, piece_nbytes: int) -> float | None:
    """Write a file's bytes once more, bare, in pieces to a new file beside it.

    At most `MOST_BARE_CHUNKS` pieces, until `MOST_BARE_SECONDS` are over.
    """
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
