"""Which figures can be drawn and compared, and how do they follow from a trial's record?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Literal

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One quantity."""

    name: str
    title: str  # For an axis of a plot or the head of a table
    unit: str  # ``s``, ``MB/s``, ``MB``, ``bytes``, ``times``, ``%`` or empty; MB are 10^6 bytes
    better: Literal["lower", "higher", "neither"]  # ``lower``, ``higher``, or ``neither``
    of: Callable[[Record], float | None]  # Takes a record, returns the value or None


def _total(record: Record, *names: str) -> float | None:
    """Add up seconds; None if one is missing."""
    return _sum(record.get(name) for name in names)


def _sum(parts: Iterable[float | None]) -> float | None:
    """Add up; None if one is missing."""
    known = tuple(parts)
    return None if None in known else float(sum(map(float, known)))  # type: ignore[arg-type]


def _nbytes(record: Record) -> float:
    return float(prod(record["shape"]) * record["itemsize"])


def _rate(*names: str) -> Callable[[Record], float | None]:
    """MB/s: bytes that the completed operations selected, divided by the sum of these seconds."""

    def of(record: Record) -> float | None:
        seconds, nbytes = _total(record, *names), record.get("selected_nbytes")
        return None if not seconds or nbytes is None else nbytes / 1e6 / seconds

    return of


def _of(name: str) -> Callable[[Record], float | None]:
    def of(record: Record) -> float | None:
        value = record.get(name)
        return None if value is None else float(value)

    return of


def _whole(name: str) -> Callable[[Record], float | None]:
    """A figure of the operations done, for all there are."""

    def of(record: Record) -> float | None:
        value, done = record.get(name), record.get("operations")
        return float(value) * record["total_operations"] / done if done and value else value

    return of


def _put_off(record: Record, name: str) -> float | None:
    """A part of flush and close, for all there is: as the trial estimates both together."""
    value, both = record.get(name), _total(record, "flush_s", "close_s")
    put_off_s = record.get("put_off_s")
    return float(value) * put_off_s / both if value and both and put_off_s else value


def _until_synced(record: Record, *parts: float | None) -> float | None:
    """Add up seconds and those of the sync, of as many bytes as there are in all."""
    return _sum((*parts, _whole("sync_s")(record)))


def _opening(record: Record) -> float | None:
    """Seconds to open: once, or for every operation."""
    return _whole("open_s")(record) if record.get("reopen") else _of("open_s")(record)


def _opened(record: Record) -> float | None:
    """Paper 003's clock; if each operation opens the file, its total includes that."""
    return _total(record, *(("total_s",) if record.get("reopen") else ("total_s", "open_s")))


def _selected_mb(record: Record) -> float | None:
    nbytes = _whole("selected_nbytes")(record)
    return None if nbytes is None else nbytes / 1e6


def _file_nbytes(record: Record) -> float | None:
    """Bytes of a file that was written to its end: what a bounded trial leaves is a part."""
    nbytes = record.get("file_nbytes")
    return None if nbytes is None or record.get("extrapolated") else float(nbytes)


def _ratio(record: Record) -> float | None:
    """Raw bytes by the file's; of reads, by the stored ones."""
    written = record.get("file_nbytes") is not None
    stored = _file_nbytes(record) if written else record.get("stored_nbytes")
    return _nbytes(record) / stored if stored else None


_ALL: Final = (
    Figure("total_s", "seconds for all of it", "s", "lower", _of("total_s")),
    Figure("first_s", "seconds of the first operation", "s", "lower", _of("first_s")),
    Figure(
        "write_s", "seconds to create, write and close", "s", "lower",
        lambda r: _total(r, "create_s", "written_s", "put_off_s"),
    ),
    Figure(
        "synced_s", "seconds until it was on storage", "s", "lower",
        lambda r: _until_synced(r, _total(r, "create_s", "written_s", "put_off_s")),
    ),
    Figure(
        "calls_synced_s", "seconds of the calls, until it was on storage", "s", "lower",
        lambda r: _until_synced(r, r.get("written_s"), _put_off(r, "flush_s")),
    ),
    Figure("rate", "MB/s of the calls alone", "MB/s", "higher", _rate("elapsed_s")),
    Figure(
        "rate_closed", "MB/s with the close", "MB/s", "higher",
        _rate("elapsed_s", "flush_s", "close_s"),
    ),
    Figure(
        "rate_synced", "MB/s until it was on storage", "MB/s", "higher",
        _rate("elapsed_s", "flush_s", "sync_s"),
    ),
    Figure("file_nbytes", "bytes of the file", "bytes", "lower", _file_nbytes),
    Figure("stored_nbytes", "bytes stored", "bytes", "lower", _of("stored_nbytes")),
    Figure("ratio", "compression ratio", "times", "higher", _ratio),
    Figure("peak_rss_nbytes", "peak memory", "bytes", "lower", _of("peak_rss_nbytes")),
    Figure("chunk_loads", "chunks loaded", "", "lower", _whole("time_chunk_loads")),
    Figure("open_s", "seconds to open", "s", "lower", _opening),
    Figure("select_s", "seconds to select", "s", "lower", _whole("select_s")),
    Figure("read_s", "seconds to read", "s", "lower", _whole("read_s")),
    Figure("opened_s", "seconds to open, select and read", "s", "lower", _opened),
    Figure("selected_mb", "MB selected", "MB", "neither", _selected_mb),
    Figure("share", "share of the time", "%", "neither", _of("share")),
    Figure("made_s", "seconds to make datasets", "s", "lower", _of("made_s")),
    Figure(
        "empty_nbytes", "bytes of the file before any data", "bytes", "lower", _of("empty_nbytes")
    ),
    Figure("efficiency", "weak efficiency", "%", "higher", _of("efficiency")),
    Figure("written_nbytes", "bytes written", "bytes", "lower", _of("written_nbytes")),
    Figure("storage_s", "seconds of storage", "s", "lower", _of("storage_s")),
    Figure("requests", "requests", "", "lower", _of("requests")),
    Figure("moved_nbytes", "bytes moved", "bytes", "lower", _of("moved_nbytes")),
    Figure("pays_below", "bandwidth below which it pays", "MB/s", "higher", _of("pays_below")),
    Figure("read_calls", "calls that read", "", "lower", _of("read_calls")),
    Figure("read_nbytes", "bytes read", "bytes", "lower", _of("read_nbytes")),
    Figure("value", "value", "", "neither", _of("value")),
)  # fmt: skip

FIGURES: Final[dict[str, Figure]] = {figure.name: figure for figure in _ALL}
