"""Do tables tell peak memory and sizes of files where trials differ in them, and only there?"""

from dataclasses import replace

import pytest
from rich.console import Console

from chunkwise.measure import Results, tables
from chunkwise.measure.results import Cell
from chunkwise.measure.tables import FILE, MEMORY, further, notes, tables_of, value
from chunkwise.trials.trial import Operation
from tests.bench.test_explain import ALL, CUBE, STEP, cell

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


def printed(found: Results) -> list[str]:
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        for part in tables_of(found, found.cells):
            console.print(part, highlight=False, markup=False)
    return captured.get().splitlines()


def test_memory_is_a_column_where_the_trials_of_a_pattern_differ() -> None:
    found = results(
        (STEP, "h5py", 90 * MIB),
        (STEP, "chunkwise-py", 95 * MIB),
        (ALL, "h5py", 600 * MIB),
        (ALL, "chunkwise-py", 900 * MIB),
    )
    assert further(found, found.cells) == (MEMORY,)
    assert further(found, found.cells[:2]) == ()  # of 'step' alone
    assert [value(one, MEMORY) for one in found.cells] == [
        "90 MiB", "95 MiB", "600 MiB", "900 MiB",
    ]  # fmt: skip
    lines = printed(found)
    assert lines[0].endswith(MEMORY)
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in "".join(lines)
    assert "whole process" in notes((MEMORY,))[0]


@pytest.mark.parametrize(
    "name", ["h5py", "chunkwise-py", "a libhdf5 of a long name, cache 16 MiB"]
)
@pytest.mark.parametrize("operation", ["read", "write"])
def test_all_columns_fit_in_80(
    name: str, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "cell_label", lambda *_: name)
    found = results((ALL, "h5py", 600 * MIB), (ALL, "chunkwise-py", 1900 * MIB))
    found = replace(
        found,
        cells=tuple(written(one, operation, 100 + 90 * n) for n, one in enumerate(found.cells)),
    )
    more = {"read": (MEMORY,), "write": (MEMORY, FILE)}[operation]
    assert further(found, found.cells) == more
    lines = printed(found)
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in "".join(lines)
    for column in more:
        assert any(column in line for line in lines)


def written(one: Cell, operation: Operation, nbytes: int) -> Cell:
    measured = tuple(replace(m, file_nbytes=nbytes << 20) for m in one.measurements)
    return replace(one, trial=replace(one.trial, operation=operation), measurements=measured)


def test_files_of_one_size_are_no_column() -> None:
    found = results((ALL, "h5py", 1), (ALL, "chunkwise-py", 1))
    cells = tuple(written(one, "write", 100) for one in found.cells)
    assert further(replace(found, cells=cells), cells) == ()


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
def test_what_is_not_worth_a_column(peaks: tuple[int | None, int | None]) -> None:
    found = results((ALL, "h5py", peaks[0]), (ALL, "chunkwise-py", peaks[1]))
    assert further(found, found.cells) == ()
