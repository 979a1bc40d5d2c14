"""On which machine, with which versions, and when was this measured; and what went wrong?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from chunkwise.words import counted, joined
from chunkwise_lab.report.labels import Libraries, phrase
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.wording import differing

_VERSIONS: Final = (
    ("hdf5", "HDF5"),
    ("h5py", "h5py"),
    ("netcdf", "netCDF-C"),
    ("zlib", "zlib"),
    ("numpy", "NumPy"),
    ("python", "Python"),
    ("chunkwise", "chunkwise"),
)
# Under which heading `fallbacks` stand.
FALLBACK: Final = "Done by libhdf5 in chunkwise's place"
# More sentences of one kind are counted.
_MOST: Final = 6


def machine(values: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Name the machine and the versions."""
    cpus = [
        f"{text} processor{'' if text == '1' else 's'}" for text in values.get("cpu_count", ())
    ]
    parts = [*values.get("cpu", ()), *cpus, *values.get("machine", ()), *values.get("system", ())]
    versions = [f"{title} {joined(values[name])}" for name, title in _VERSIONS if values.get(name)]
    found = (("Machine", ", ".join(parts)), ("Versions", ", ".join(versions)))
    return tuple((title, text) for title, text in found if text)


def environment(records: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Collect from records what they say of machine and versions."""
    names = ("cpu", "cpu_count", "machine", "system", *(name for name, _ in _VERSIONS))
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for record in records:
        for name in names:
            if record.get(name) is not None:
                found[name][str(record[name])] = None
    return {name: list(texts) for name, texts in found.items()}


def problems(rows: Sequence[Row], libraries: Libraries) -> list[str]:
    """Say which rows have no figures, or not from all repeats, and why."""
    told: dict[str, list[str]] = {}
    for row, what in _named(rows, libraries):
        failed = [record for record in row.records if record["status"] != "ok"]
        if not failed or row.refused:
            continue
        if row.problem is None:
            what += f" ({len(failed)} of {counted(len(row.records), 'repeat')})"
        why = str(failed[0].get("error") or failed[0]["status"])
        # How many seconds it was given differs from trial to trial.
        why = "out of time" if failed[0]["status"] == "timeout" else why
        told.setdefault(why, []).append(what)
    return shortened(
        f"Failed, {why}: {'; '.join(shortened(several))}." for why, several in told.items()
    )


def fallbacks(rows: Sequence[Row], libraries: Libraries) -> list[str]:
    """Say which rows of chunkwise are libhdf5's, and why."""
    told: dict[str, list[str]] = {}
    for row, what in _named(rows, libraries):
        if row.fallback is not None:
            told.setdefault(row.fallback, []).append(what)
    return shortened(f"{_first(what)}: {why}." for why, what in told.items())


def _named(rows: Sequence[Row], libraries: Libraries) -> Iterator[tuple[Row, str]]:
    """Give each row with what tells it from the others."""
    names = differing([row.point for row in rows])
    for row in rows:
        yield row, phrase(row.point, names, libraries) or "all of it"


def _first(several: Sequence[str]) -> str:
    """Name the first of several rows, and count the others."""
    more = len(several) - 1
    return f"{several[0]} (and {counted(more, 'row')} more)" if more else several[0]


def shortened(sentences: Iterable[str]) -> list[str]:
    """Give the first sentences, each once, and count the others."""
    several = list(dict.fromkeys(sentences))
    more = len(several) - _MOST
    return several if more <= 1 else [*several[:_MOST], f"... and {more} more of this kind"]
