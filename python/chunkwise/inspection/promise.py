"""How long will a pattern take before and after, by the model?

The model of `chunkwise.advise`, with the walk followed chunk by chunk through libhdf5's cache, for
h5py on bytes in memory.  The sample that inspect took shows how fast chunks decode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chunkwise.inspection.facts import DatasetFacts
from chunkwise.model.cost import Stored
from chunkwise.model.followed import MOST_STEPS, loads_of_walk
from chunkwise.model.nominal import DECODED_NBYTES_PER_S
from chunkwise.model.readers import Reader, this_process
from chunkwise.model.seconds import Codec, Machine, Rates, Speed, parts
from chunkwise.model.traffic import Pattern, traffic
from chunkwise.remedy.tools import names

# Promises and measurements mostly differ by less (`make bench ONLY=fix`).
WITHIN: Final = 2.0
# What reading takes h5py from memory: a read (10 us), and a chunk that is not cached.
_RATES: Final = Rates(
    call_s=1e-5,
    touch_s=1e-6,
    crowd_s=1e-7,
    load_s=4e-6,
    piece_s=2.3e-7,
    run_s=4e-9,
    copy_s=2e-10,
    fetch_s=1e-10,
    irregular_s=2e-8,
)
# A byte that is fetched and copied, as a sample's are.
_MOVED_BYTE_S: Final = _RATES.fetch_s + _RATES.copy_s
_MACHINE: Final = Machine({"libhdf5": _RATES}, {})
# To begin with a chunk: zlib clears its tables, others have none.
_INFLATE_START_S: Final = 4e-5
_START_S: Final = 2e-6
# The time of smaller chunks is mostly the call, not their bytes: assume a byte's usual time.
_LEAST_RATED_NBYTES: Final = 4096
_INFLATED_BYTE_S: Final = 1.2e-8
_BYTE_S: Final = 4e-9
# At least this share of a chunk's time is for its bytes.
_LEAST_SHARE: Final = 0.2


def promised_s(
    facts: DatasetFacts,
    pattern: Pattern,
    *,
    chunk: tuple[int, ...] | None,
    filters: str,
    reader: Reader | None = None,  # Whose chunk cache; None for that of this process
    most_steps: int = MOST_STEPS,  # As `loads_of_walk` has it
) -> float | None:
    """Predict the seconds of all reads of a pattern, by h5py from memory."""
    shape = facts.shape
    if not shape or pattern.flat:
        return None
    one = reader or this_process()
    machine = _MACHINE
    stored = Stored.of(shape, chunk, facts.itemsize, filtered=filters != "none")
    found = traffic(stored, pattern, one)
    if chunk is None:
        if found.pieces_nbytes <= found.selected_nbytes:
            # A sample has long runs.  Sieve buffers full of what nobody wants take longer.
            machine = _as_sampled(facts)
        codec = Codec("none")
    else:
        speed = _speed(facts, filters)
        if speed is None:
            return None
        in_order = not pattern.scattered and pattern.selections is None
        if found.loads and in_order and pattern.operations is None:
            loads = loads_of_walk(
                stored, pattern.block, one, order=pattern.order, most_steps=most_steps
            )
            found = replace(found, loads=loads)
        # Of the chunks, some hold data.
        held = facts.chunks.allocated / facts.chunks.grid if facts.chunks else 1.0
        found = replace(found, loads=found.loads * held)
        codec = Codec(filters, (((), _ratio(facts, filters)),), {"libhdf5": speed})
    return sum(parts(found, stored.chunks, facts.itemsize, codec, machine, "libhdf5").values())


def _as_sampled(facts: DatasetFacts) -> Machine:
    """Take the rate of bytes from a sample of contiguous data, if that says more."""
    sample = facts.sample
    if facts.chunks is not None or sample is None or sample.raw_nbytes < _LEAST_RATED_NBYTES:
        return _MACHINE
    # What the sample took is for both: fetching a byte, and copying it to the program.
    part = min(1.0, sample.read_s / sample.raw_nbytes / _MOVED_BYTE_S)
    rates = replace(_RATES, fetch_s=part * _RATES.fetch_s, copy_s=part * _RATES.copy_s)
    return Machine({"libhdf5": rates}, {})


def _ratio(facts: DatasetFacts, filters: str) -> float:
    sample = facts.sample
    if filters == "none" or sample is None or not sample.raw_nbytes:
        return 1.0
    return sample.stored_nbytes / sample.raw_nbytes


def _speed(facts: DatasetFacts, filters: str) -> Speed | None:
    """Return how fast chunks decode under a pipeline, by the sample if it shows that."""
    if filters == "none":
        return Speed()
    wanted, own = (names(text) - {"shuffle"} for text in (filters, facts.filters))
    start_s = _INFLATE_START_S if "deflate" in wanted else _START_S
    if wanted != own:
        return Speed(start_s, 1 / DECODED_NBYTES_PER_S)
    # Shuffle adds little to the time of compressors.
    sample = facts.sample
    if sample is None or sample.read_s <= 0:
        return None
    each_s, nbytes = sample.read_s / sample.chunks, sample.raw_nbytes / sample.chunks
    # Moving its bytes is counted apart.
    each_s = max(each_s - nbytes * _MOVED_BYTE_S, _LEAST_SHARE * each_s)
    byte_s = max(each_s - start_s, _LEAST_SHARE * each_s) / nbytes
    if nbytes < _LEAST_RATED_NBYTES:
        byte_s = min(byte_s, _INFLATED_BYTE_S if "deflate" in wanted else _BYTE_S)
    # A chunk like those of the sample takes what they took.
    return Speed(each_s - nbytes * byte_s, byte_s)
