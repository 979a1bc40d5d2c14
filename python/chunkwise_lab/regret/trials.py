"""What was measured in the saved studies, and what does the model count for each trial?"""

from __future__ import annotations

import gc
import gzip
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from chunkwise.advice.patterns import as_pattern
from chunkwise.grammar import format_shape
from chunkwise.measure.verdict import spread
from chunkwise.model.cost import Stored
from chunkwise.model.readers import CHUNKWISE, Reader
from chunkwise.model.seconds import terms
from chunkwise.model.traffic import Pattern, Traffic, contiguous_traffic, traffic
from chunkwise.patterns import count
from chunkwise.patterns.pattern import Access
from chunkwise.trials.readers import NATIVE
from chunkwise_lab.checkout import ROOT

STUDIES: Final = ROOT / "docs" / "studies"
# Properties that the model knows nothing of: trials that vary them are left out.
UNKNOWN: Final = (
    "sieve_nbytes", "conversion_nbytes", "metadata_block_nbytes", "small_data_block_nbytes",
    "alignment", "bounds", "alloc_time", "fill_time", "page_buffer_nbytes", "zlib_path",
)  # fmt: skip
# Under the same parameters other data, of which a study says so.
_OTHER_DATA: Final = ("data", "tile")


@dataclass(frozen=True)
class Filtered:
    """What passes filters in a trial."""

    codec: tuple[str, ...]  # The pipeline, the data and who runs it: what has a speed of its own
    chunks: float  # Chunks that pass, by the model, and the bytes of one
    nbytes: int
    # Chunks that did pass, and seconds that it took; None where it was not measured.
    measured_chunks: float | None
    measured_s: float | None


@dataclass(frozen=True)
class Trial:
    """One combination of parameters, with the median of its repeats."""

    study: str  # Of which study, whether it reads, who did, and its libhdf5
    operation: str
    reader: str
    library: str
    cold: bool  # Whether the bytes came from storage
    kinds: dict[str, str]  # By what errors are distinguished: storage, filter, pattern
    text: str  # The parameters, for people and all of them
    key: str
    counts: tuple[float, ...]  # The terms of the model (`seconds.RATES`)
    seeks: float  # Requests that cost a seek, and bytes, where the bytes come from storage
    fetched_nbytes: float
    abreast: float  # Chunks that may pass filters at the same time
    filtered: Filtered | None  # What passes filters; None without
    # Chunks that passed filters, as counted and by the model; decoded and encoded apart.
    chunks: tuple[tuple[float, float], ...]
    # Seconds, and how far repeats are from their median: of the farther half, the nearest.
    measured_s: float
    spread: float = 0.0
    repeats: int = 1  # How many there were

    @property
    def family(self) -> str:
        """Whose code moves the bytes."""
        return CHUNKWISE if self.reader in NATIVE else "libhdf5"

    @property
    def title(self) -> str:
        """What it is, in a line."""
        return f"{self.study}: {self.operation}, {self.text}, by {self.kinds['reader']}"


def trials(paths: Iterable[Path]) -> list[Trial]:
    """Read all trials that the model can speak about."""
    repeats: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            study = json.load(stream)
        for outcome in study["outcomes"].values():
            for record in outcome["records"]:
                if is_known(record):
                    key = key_of(study["study"], record)
                    repeats.setdefault(key, (study["study"], []))[1].append(record)
    # Selections are millions of numbers, and the collector would look at them over and over.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [trial(*several) for several in repeats.values()]
    finally:
        if collecting:
            gc.enable()


def is_known(record: dict[str, Any]) -> bool:
    """Return whether the model can speak about a trial."""
    if record.get("status") != "ok" or "block" not in record or not record.get("total_s"):
        return False
    if record.get("format", "netcdf4") != "netcdf4" or record.get("reopen"):
        return False
    return all(record.get(name) in (None, False) for name in UNKNOWN)


def key_of(study: str, record: dict[str, Any]) -> str:
    """Write all parameters of a trial: those of its repeats are the same."""
    point = record.get("point", {})
    return json.dumps(
        [study, record["operation"], record["reader"], str(record.get("hdf5") or ""),
         str(record.get("page_cache"))[:4], record["access"], record["block"],
         record.get("order"), record.get("chunks"), record["filters"], record["shape"],
         record.get("cache_nbytes"), record.get("cache_nslots"), record.get("cache_w0"),
         record.get("threads"), record.get("dataset"),
         [point.get(name) for name in _OTHER_DATA],
         record["operations"] if record.get("extrapolated") else None]
    )  # fmt: skip


def trial(study: str, repeats: Sequence[dict[str, Any]]) -> Trial:
    """Count what the repeats of a trial take by the model, once for all of them."""
    record = repeats[0]
    shape = tuple(record["shape"])
    chunks = record.get("chunks")
    itemsize, filters = int(record["itemsize"]), record["filters"]
    writing = record["operation"] == "write"
    total = record.get("operations" if record.get("extrapolated") else "total_operations")
    pattern = _pattern(_access(record), shape, writing, total)
    stored = Stored(shape, tuple(chunks or shape), itemsize, filters != "none")
    counts = _counts(stored, chunks is not None, pattern, _reader(record))
    nbytes = stored.chunk_nbytes
    whole = max(1, math.prod(shape) * itemsize)
    stored_nbytes = record.get("file_nbytes" if writing else "stored_nbytes") or whole
    ratio = min(2.0, stored_nbytes / whole)
    seconds = [_seconds(one) for one in repeats]
    median = spread(seconds).median
    return Trial(
        study, record["operation"], record["reader"], str(record.get("hdf5") or ""),
        record.get("page_cache") == "cold", _kinds(record, pattern),
        _text(record), key_of(study, record), terms(counts, nbytes * ratio),
        counts.seeks, counts.fetched_nbytes(nbytes * ratio), counts.abreast,
        _filtered(study, repeats, counts, nbytes, ratio), _chunks(record, counts), median,
        spread([abs(one / median - 1) for one in seconds]).median, len(repeats),
    )  # fmt: skip


# Trials by other programs, and of other chunks, come to the same selections.
@lru_cache(maxsize=256)
def _pattern(access: Access, shape: tuple[int, ...], writing: bool, total: int | None) -> Pattern:
    """Return what was run: of a trial that was bounded, the selections that it came to."""
    pattern = replace(as_pattern(access, shape), writes=writing)
    if pattern.selections is not None:
        whole = len(pattern.selections) == pattern.operations
        if whole and total:
            pattern = replace(pattern, selections=pattern.selections[:total], operations=total)
    elif total and total < count(shape, pattern.block):
        pattern = replace(pattern, operations=total)
    return pattern


@lru_cache(maxsize=1024)
def _counts(stored: Stored, chunked: bool, pattern: Pattern, reader: Reader) -> Traffic:
    if chunked:
        return traffic(stored, pattern, reader)
    return contiguous_traffic(stored.shape, stored.itemsize, pattern, reader)


def _seconds(record: dict[str, Any]) -> float:
    """Return the seconds of what was run: what the rest would have taken was not measured."""
    if not record.get("extrapolated"):
        return float(record["total_s"])
    seconds = float(record["elapsed_s"])
    if record["operation"] == "write":
        seconds += sum(record.get(part) or 0.0 for part in ("create_s", "flush_s", "close_s"))
    return seconds


def _kinds(record: dict[str, Any], pattern: Pattern) -> dict[str, str]:
    if pattern.selections is not None:
        walk = "unions"
    elif pattern.scattered:
        walk = "random blocks"
    else:
        whole = tuple(pattern.block) == tuple(record["shape"])
        walk = "one call for all" if whole else "blocks in order"
    cold = {"cold": "cold", "warm": "warm"}.get(str(record.get("page_cache")), "as it was")
    return {
        "reader": f"{record['reader']} {record.get('hdf5') or ''}".strip(),
        "layout": "contiguous" if record.get("chunks") is None else "chunked",
        "filter": record["filters"].partition(":")[0],
        "walk": walk,
        "page cache": cold,
    }


def _text(record: dict[str, Any]) -> str:
    chunks = record.get("chunks")
    layout = "contiguous" if chunks is None else f"{format_shape(chunks)} {record['filters']}"
    return f"{format_shape(record['block'])} of {format_shape(record['shape'])} in {layout}"


def _access(record: dict[str, Any]) -> Access:
    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    names = ("block", "order", "seed", "limit", "slabs", "cells")
    values = {name: frozen(record.get(name)) for name in names}
    return Access(record["access"], **values)


def _reader(record: dict[str, Any]) -> Reader:
    if record["reader"] in NATIVE:
        return Reader(CHUNKWISE, CHUNKWISE, 1 << 30, None, None)
    nbytes = record.get("actual_cache_nbytes")
    nslots = record.get("actual_cache_nslots")
    w0 = record.get("actual_cache_w0")
    # To the model all programs with libhdf5 are the same, but for their caches.
    return Reader(
        "libhdf5", "", 1 << 20 if nbytes is None else int(nbytes),
        521 if nslots is None else int(nslots), 0.75 if w0 is None else float(w0),
    )  # fmt: skip


def _chunks(record: dict[str, Any], counts: Traffic) -> tuple[tuple[float, float], ...]:
    """Pair what a counting filter saw with what the model says; libhdf5's alone are counted so."""
    if record["reader"] in NATIVE or record["filters"] == "none":
        return ()
    writing = record["operation"] == "write"
    pairs = (
        ("time_chunk_loads", counts.partial if writing else counts.loads),
        ("time_chunks_encoded", counts.loads if writing else 0.0),
    )
    found = [(record.get(name), mine) for name, mine in pairs]
    return tuple((float(seen), float(mine)) for seen, mine in found if seen is not None)


def _filtered(
    study: str, repeats: Sequence[dict[str, Any]], counts: Traffic, nbytes: int, ratio: float
) -> Filtered | None:
    """Count chunks for each pipeline on each data, by whose code it runs."""
    record = repeats[0]
    if record["filters"] == "none":
        return None
    # Data that compresses otherwise is other data, whatever it is called.
    alike = round(2 * math.log2(max(ratio, 1e-6)))
    family = CHUNKWISE if record["reader"] in NATIVE else "libhdf5"
    codec = (
        study, record["operation"], str(record.get("dataset")),
        *(str(record.get("point", {}).get(name)) for name in _OTHER_DATA),
        record["filters"], str(alike), family,
    )  # fmt: skip
    passed = [_passed(one) for one in repeats]
    known = sorted((seconds, chunks) for chunks, seconds in passed if seconds is not None)
    measured_s, chunks = known[len(known) // 2] if known else (None, passed[0][0])
    return Filtered(codec, counts.loads + counts.partial, nbytes, chunks, measured_s)


def _passed(record: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return the chunks that passed filters, and the seconds that they took, where it is known."""
    spent = [s for s in (record.get("time_filters_s") or {}).values() if s is not None]
    passed = [record.get(n) for n in ("time_chunk_loads", "time_chunks_encoded")]
    known = sum(n for n in passed if n)
    return known or None, sum(spent) if spent and known else None
