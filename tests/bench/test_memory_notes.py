"""Is peak memory told where trials differ in it, and only there?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chunkwise.benching import Results
from chunkwise.benching.memory import memory_notes
from chunkwise.benching.results import Cell
from tests.bench.test_explain import ALL, CUBE, LINE, STEP, cell

MIB = 1 << 20


def with_peak(one: Cell, peak_nbytes: int | None) -> Cell:
    point = {"reader": one.reader, "cache": "default", "access": one.access.name}
    measured = tuple(replace(m, peak_rss_nbytes=peak_nbytes) for m in one.measurements)
    return replace(one, measurements=measured, point=point)


def results(*peaks: tuple[object, str, int | None]) -> Results:
    cells = tuple(
        with_peak(cell(CUBE, access, 1.0, reader), peak)  # type: ignore[arg-type]
        for access, reader, peak in peaks
    )
    return Results(CUBE, cells, 30.0, 1.0)


def test_patterns_whose_trials_differ() -> None:
    found = memory_notes(
        results(
            (STEP, "h5py", 90 * MIB),
            (STEP, "chunkwise-py", 95 * MIB),
            (ALL, "h5py", 600 * MIB),
            (ALL, "chunkwise-py", 900 * MIB),
            (LINE, "h5py", 90 * MIB),
            (LINE, "chunkwise-py", 150 * MIB),
        )
    )
    assert [note.partition(":")[0] for note in found] == [
        "Peak memory of 'all'",
        "Peak memory of 'line'",
    ]
    assert "h5py 600.0 MiB and chunkwise" in found[0]
    assert "900.0 MiB." in found[0]
    assert found[-1].endswith("That of the whole process, Python and libraries included.")
    assert "whole process" not in found[0]


@pytest.mark.parametrize(
    "peaks",
    [
        (90 * MIB, 95 * MIB),  # what libraries differ by
        (900 * MIB, 950 * MIB),  # a little of much
        (20 * MIB, 30 * MIB),  # little
        (None, 950 * MIB),  # not told
        (None, None),
    ],
)
def test_what_is_not_worth_a_line(peaks: tuple[int | None, int | None]) -> None:
    assert memory_notes(results((ALL, "h5py", peaks[0]), (ALL, "chunkwise-py", peaks[1]))) == []
