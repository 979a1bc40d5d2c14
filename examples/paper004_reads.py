"""Which reads do the tables of paper 004 show, and how long do they take here?

The tables share most of them: each is a case, measured once, all of them in one run of
`chunkwise.bench`.  Other chunks and filters than the file's are written by that run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import repack

from chunkwise import bench
from chunkwise.bench.records import as_json
from chunkwise.bench.schedule import Step
from chunkwise.bench.space import Space

DATASET: Final = "/All_Data/CrIS-SDR_All/ES_ImaginaryLW"
CHUNK_NBYTES: Final = 4 * 30 * 9 * 717 * 4
ROWS, CHUNKS, ALL = "row=1x1x1x717", "chunk=4x30x9x717", "all"
SMALL_CHUNK: Final = "1x30x9x717"
DRIVERS: Final = ("libhdf5", "chunkwise")
# Far more than is needed on an idle machine: bench gives each trial an equal share, which
# has to be enough for all reads where nothing collapses.
SECONDS: Final = 75.0


@dataclass(frozen=True)
class Case:
    """One way of storing and reading the array, as values of bench's axes.

    Attributes
    ----------
    access, chunk, filter : str
        ``stored`` is deflate 6, in chunks of 4x30x9x717.
    cache : str
        Of libhdf5; chunkwise has its own.
    """

    access: str = ROWS
    chunk: str = "stored"
    filter: str = "stored"
    cache: str = "1MiB"

    def point(self, driver: str) -> dict[str, str]:
        """Return what is to be measured: a value for each axis."""
        return {
            "access": self.access,
            "chunk": self.chunk,
            "filter": self.filter,
            "driver": driver,
            "cache": self.cache if driver == "libhdf5" else "default",
        }

    def __str__(self) -> str:
        what = {ROWS: "rows", CHUNKS: "whole chunks", ALL: "everything in one read"}[self.access]
        stored = "compressed" if self.filter == "stored" else "not compressed"
        chunk = "" if self.chunk == "stored" else f", chunks of {self.chunk}"
        default = self.cache == "default"
        cache = "default cache" if default else f"cache {self.cache.replace('MiB', ' MB')}"
        return f"{what}, {stored}{chunk}, {cache}"


CASES: Final = {
    "row": Case(),
    "row_3mb": Case(cache="3MiB"),
    "chunk": Case(access=CHUNKS),
    "small": Case(chunk=SMALL_CHUNK),
    "plain_row": Case(filter="none"),
    "plain_row_3mb": Case(filter="none", cache="3MiB"),
    "plain_chunk": Case(access=CHUNKS, filter="none"),
    "plain_small": Case(chunk=SMALL_CHUNK, filter="none"),
    "row_default": Case(cache="default"),
    "all_default": Case(access=ALL, cache="default"),
}
# What h5repack does, by the filters of the file that is repacked.
REPACKS: Final = {"repack": "stored", "plain_repack": "none"}


@dataclass(frozen=True)
class Figure:
    """Seconds for the whole array by one driver.

    Attributes
    ----------
    total_s : float or None
        Median; None if there was no figure.
    estimated : bool
        Whether not every read was done.
    operations, total_operations : int
        Reads done at least, and reads that the pattern has.
    """

    total_s: float | None = None
    estimated: bool = False
    operations: int = 0
    total_operations: int = 0

    def __str__(self) -> str:
        return ("~" if self.estimated else "") + seconds(self.total_s)


class Report:
    """What was measured, by case.

    Parameters
    ----------
    document : dict
        As `measure` returns it.

    Raises
    ------
    KeyError, TypeError
        If it is something else.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        rows = {_key(row): row for row in document["summary"]}
        self._figures = {}
        for key, case in CASES.items():
            for driver in DRIVERS:
                row = rows[_key(case.point(driver))]
                self._figures[key, driver] = Figure(
                    row["total_s"],
                    row["extrapolated"],
                    row["operations"],
                    row["total_operations"] or 0,
                )
        repacked = document["repack"] or {}
        for key, filters in REPACKS.items():
            self._figures[key, "libhdf5"] = Figure(repacked.get(filters))
        self.repack_version: str | None = repacked.get("version")
        self.default_cache_nbytes: int = document["target"]["cache_nbytes"]
        self.mismatches: list[str] = document["mismatches"]
        # A trial that failed does not tell where.
        self.environment: dict[str, Any] = next(
            (record for record in document["records"] if record["status"] == "ok"), {}
        )

    def figure(self, key: str, driver: str = "libhdf5") -> Figure:
        """Return what a driver took; a figure without seconds for what it does not do."""
        return self._figures.get((key, driver), Figure())

    def ratio(self, slow: str, fast: str) -> float | None:
        """Return how many times as long libhdf5 took for one case as for another."""
        return _ratio(self.figure(slow), self.figure(fast))

    def speedup(self, key: str) -> float | None:
        """Return how many times as fast as libhdf5 chunkwise is."""
        return _ratio(self.figure(key), self.figure(key, "chunkwise"))

    def mark(self, key: str) -> str:
        """Return what stands before a ratio with a case in it, if that was estimated."""
        estimated = any(self.figure(key, driver).estimated for driver in DRIVERS)
        return "~" if estimated else ""


def _key(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Tell points apart; results have patterns by their names alone."""
    axes = ("access", "chunk", "filter", "driver", "cache")
    return tuple(point[axis].partition("=")[0] for axis in axes)


def _ratio(slow: Figure, fast: Figure) -> float | None:
    return slow.total_s / fast.total_s if slow.total_s and fast.total_s else None


def space() -> Space:
    """Return what is measured: each case by both drivers, and nothing else."""
    points = (case.point(driver) for case in CASES.values() for driver in DRIVERS)
    return Space(design="list", trials=tuple(points))


def measure(file: Path, progress: Callable[[Step], None] | None = None) -> dict[str, Any]:
    """Time all cases on the generated file, and h5repack.

    What has to be written lies beside the file for as long as this takes.

    Returns
    -------
    dict
        JSON values: the run as `chunkwise bench --json` prints it, and ``repack``
        (`repack.measure`).

    Raises
    ------
    chunkwise.errors.ChunkwiseError
        If the file is missing or is not what it should be.
    """
    if progress:
        progress(Step("repacking with h5repack"))
    repacked = repack.measure(file, DATASET, SMALL_CHUNK)
    results = bench.run(
        file, DATASET, space(), seconds=SECONDS, progress=progress, scratch=str(file.parent)
    )
    return {**as_json(results), "repack": repacked}


def seconds(value: float | None) -> str:
    """Write seconds with two digits, as the paper does: ``345``, ``0.37``, ``0.0054``."""
    if value is None:
        return "-"
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.{max(1, 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def times(value: float | None) -> str:
    """Write a ratio with two digits: ``1,600``, ``1.7``, ``0.94``."""
    if value is None or value <= 0:
        return "-"
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"
