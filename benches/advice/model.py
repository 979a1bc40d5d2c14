"""How far are the model's seconds from what was measured in the studies?

The trials of saved studies (docs/studies) are the measurements.  The rates of the machine that
made them, and of its codecs on that data, are fitted to one half of the trials, drawn by their
parameters; the other half, which the fit has not seen, is predicted.  Repeats of a trial are one
measurement, their median.

python -m advice model                    # in benches/; `make bench ONLY=model`
python -m advice model ../docs/studies/cris-paper.json.gz
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from chunkwise.access import count
from chunkwise.access.pattern import Access
from chunkwise.advise.cost import Stored
from chunkwise.advise.readers import CHUNKWISE, Reader
from chunkwise.advise.seconds import fitted_columns, terms
from chunkwise.advise.traffic import Traffic, contiguous_traffic, traffic
from chunkwise.advising.patterns import as_pattern
from chunkwise.benching.older import renewed
from chunkwise.trials.readers import NATIVE

ROOT: Final = Path(__file__).resolve().parents[2]
STUDIES: Final = ROOT / "docs" / "studies"
# Properties that the model knows nothing of: trials that vary them are left out.
UNKNOWN: Final = (
    "sieve_nbytes", "conversion_nbytes", "metadata_block_nbytes", "small_data_block_nbytes",
    "alignment", "bounds", "alloc_time", "fill_time", "page_buffer_nbytes", "zlib_path",
)  # fmt: skip
# A half needs so many trials to be fitted.
_FEWEST: Final = 8
_CLAIMED: Final = {"read": (0.15, 0.40), "write": (0.20, 0.50)}


@dataclass(frozen=True)
class Row:
    """One combination of parameters, with the median of its repeats.

    Attributes
    ----------
    study, operation
        Of which study, and whether it reads.
    group
        What has rates of its own: reader, library and where the bytes came from.
    key
        The parameters, as text.
    counts
        The terms of the model.
    codecs
        Bytes and chunks that pass each filter pipeline on each data, by what each is.
    measured_s
        Seconds.
    """

    study: str
    operation: str
    group: tuple[str, ...]
    key: str
    counts: tuple[float, ...]
    codecs: dict[str, float]
    measured_s: float

    @property
    def is_fitted(self) -> bool:
        """Whether it belongs to the half that the rates are fitted to."""
        return zlib.crc32(self.key.encode()) % 2 == 0


def rows(paths: Iterable[Path]) -> list[Row]:
    """Read all trials that the model can speak about."""
    found: dict[str, list[tuple[Row, float]]] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            study = json.load(stream)
        for outcome in study["outcomes"].values():
            for record in outcome["records"]:
                row = _row(study["study"], renewed(record))
                if row is not None:
                    found.setdefault(row.key, []).append((row, row.measured_s))
    return [
        Row(
            first.study, first.operation, first.group, first.key, first.counts, first.codecs,
            statistics.median(seconds for _, seconds in several),
        )
        for several in found.values()
        for first, _ in several[:1]
    ]  # fmt: skip


def _row(study: str, record: dict[str, Any]) -> Row | None:
    known = record.get("status") == "ok" and "block" in record and record.get("total_s")
    if not known or record.get("format", "netcdf4") != "netcdf4" or record.get("reopen"):
        return None
    if any(record.get(name) not in (None, False) for name in UNKNOWN):
        return None
    shape = tuple(record["shape"])
    chunks = record.get("chunks")
    itemsize, filters = int(record["itemsize"]), record["filters"]
    writing = record["operation"] == "write"
    pattern = replace(as_pattern(_access(record), shape), writes=writing)
    total = record.get("total_operations")
    if pattern.selections is None and total and total < count(shape, pattern.block):
        pattern = replace(pattern, operations=total)
    reader = _reader(record)
    if chunks is None:
        counts = contiguous_traffic(shape, itemsize, pattern, reader)
        nbytes = math.prod(shape) * itemsize
    else:
        stored = Stored(shape, tuple(chunks), itemsize, filters != "none")
        counts = traffic(stored, pattern, reader)
        nbytes = stored.chunk_nbytes
    whole = max(1, math.prod(shape) * itemsize)
    stored_nbytes = record.get("file_nbytes" if writing else "stored_nbytes") or whole
    ratio = min(2.0, stored_nbytes / whole)
    library = str(record.get("hdf5") or "")
    group = (record["operation"], record["reader"], library, str(record.get("page_cache"))[:4])
    seconds = float(record["total_s"])
    key = json.dumps(
        [study, *group, record["access"], record["block"], record.get("order"), chunks, filters,
         shape, record.get("cache_nbytes"), record.get("cache_nslots"), record.get("cache_w0"),
         record.get("threads"), record.get("dataset")]
    )  # fmt: skip
    return Row(
        study, record["operation"], group, key, terms(counts, nbytes * ratio),
        _codecs(study, record, counts, nbytes, ratio), seconds,
    )  # fmt: skip


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
    return Reader(
        record["reader"], "", 1 << 20 if nbytes is None else int(nbytes),
        521 if nslots is None else int(nslots), 0.75 if w0 is None else float(w0),
    )  # fmt: skip


def _codecs(
    study: str, record: dict[str, Any], counts: Traffic, nbytes: int, ratio: float
) -> dict[str, float]:
    """Count bytes and chunks for each pipeline on each data, which the fit finds the speed of."""
    if record["filters"] == "none":
        return {}
    # Data that compresses otherwise is other data, whatever it is called.
    alike = round(2 * math.log2(max(ratio, 1e-6)))
    name = f"{study} {record.get('dataset')} {record['filters']} {alike}"
    found = {f"{name}: bytes": counts.loads * nbytes, f"{name}: chunks": counts.loads}
    if counts.partial:
        found[f"{name}: bytes back"] = counts.partial * nbytes
    return found


@dataclass(frozen=True)
class Error:
    """How far predictions are off.

    Attributes
    ----------
    name
        Of which trials.
    predicted, fitted
        How many were predicted, and fitted to.
    median, high
        Of |predicted / measured - 1|: the middle, and what nine in ten are below.
    """

    name: str
    predicted: int
    fitted: int
    median: float
    high: float


def errors(found: Sequence[Row]) -> list[Error]:
    """Fit one half, predict the other, and sum up by study and operation."""
    off: dict[str, list[float]] = {}
    fitted_to: dict[str, int] = {}
    for group in sorted({row.group for row in found}):
        mine = [row for row in found if row.group == group]
        half, other = ([r for r in mine if r.is_fitted is side] for side in (True, False))
        if len(half) < _FEWEST or not other:
            continue
        columns = sorted({name for row in half for name in row.codecs})
        rates = fitted_columns(_matrix(half, columns), np.array([r.measured_s for r in half]))
        # Of a codec that the half has not seen, nobody knows the speed.
        able = [row for row in other if set(row.codecs) <= set(columns)]
        predicted = _matrix(able, columns) @ rates if able else []
        for row, seconds in zip(able, predicted, strict=True):
            for name in (f"{row.operation}s", f"{row.study}, {row.operation}s"):
                off.setdefault(name, []).append(abs(seconds / row.measured_s - 1))
        for row in half:
            for name in (f"{row.operation}s", f"{row.study}, {row.operation}s"):
                fitted_to[name] = fitted_to.get(name, 0) + 1
    return [
        Error(
            name, len(values), fitted_to.get(name, 0), float(np.median(values)),
            float(np.quantile(values, 0.9)),
        )
        for name, values in sorted(off.items(), key=lambda one: ("," in one[0], one[0]))
    ]  # fmt: skip


def _matrix(found: Sequence[Row], columns: Sequence[str]) -> Any:
    return np.array([[*row.counts, *(row.codecs.get(c, 0.0) for c in columns)] for row in found])


def lines(found: Sequence[Error]) -> Iterator[str]:
    """Write a table, and beside it what is claimed."""
    yield f"{'trials':28} {'predicted':>9} {'fitted':>7} {'median':>7} {'9 of 10':>8}  claimed"
    for one in found:
        claimed = _CLAIMED.get(one.name.removesuffix("s"), None)
        told = "" if claimed is None else f"{claimed[0]:.0%} and {claimed[1]:.0%}"
        yield (
            f"{one.name:28} {one.predicted:9,} {one.fitted:7,} {one.median:7.0%} "
            f"{one.high:8.0%}  {told}"
        )
