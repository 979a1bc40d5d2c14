"""Does the advice follow from the figures, and say so when there is nothing to fix?"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.measure import Target, explain
from chunkwise.measure.explain import Slow
from chunkwise.measure.planning import spell_out, trial_of
from chunkwise.measure.results import Advice, Cell, Results
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.geometry import line_axis
from chunkwise.model.readers import CHUNKWISE, reader
from chunkwise.patterns import Access
from chunkwise.remedy.tools import can_repack
from chunkwise.trials.trial import Measurement
from tests.support.golden import assert_golden

CUBE = Target(
    file="cube.h5",
    storage="cube.h5",
    dataset="/t",
    shape=(365, 600, 600),
    dtype="<f4",
    itemsize=4,
    comparable=True,
    chunks=(1, 600, 600),
    filters="shuffle+deflate:4",
    stored_nbytes=240_000_000,
    cache_nslots=8191,
    cache_nbytes=8 << 20,
    cache_w0=0.75,
)
CRIS = replace(CUBE, file="cris.h5", dataset="/ES", shape=(60, 30, 9, 717), chunks=(4, 30, 9, 717))
LONG = replace(CUBE, shape=(730, 600, 600))
LONG_LINE, LONG_ALL = Access("line", (730, 1, 1)), Access("all", (730, 600, 600))
STEP, LINE, ALL = (
    Access("step", (1, 600, 600)),
    Access("line", (365, 1, 1)),
    Access("all", (365, 600, 600)),
)
ROW, WHOLE = Access("row", (1, 1, 1, 717)), Access("all", (60, 30, 9, 717))


def cell(
    target: Target,
    access: Access,
    total_s: float | None,
    reader: str = "h5py",
    cache_nbytes: int = 8 << 20,
    first_s: float = 0.01,
    median_s: float | None = None,
    asked: int | None = None,
) -> Cell:
    trial = trial_of(target, access, reader, cache_nbytes=asked)
    measurement = Measurement(
        trial,
        "ok",
        operations=1,
        total_operations=access.walk(target.shape).operations,
        total_s=total_s,
        first_s=first_s,
        median_s=median_s,
        actual_cache_nslots=8191,
        actual_cache_nbytes=cache_nbytes,
    )
    return Cell(access, trial, (measurement,) * 3)


def advise(target: Target, *cells: Cell) -> Advice:
    advice = explain(Results(target, cells, 30.0, 1.0))
    assert advice is not None
    return advice


MIB = 1 << 20


def small(target: Target, access: Access, total_s: float) -> Cell:
    """Read with a chunk cache of 1 MiB, as libhdf5 has by default."""
    return cell(target, access, total_s, cache_nbytes=MIB)


def asked(target: Target, access: Access, total_s: float, nbytes: int) -> Cell:
    """Read with a chunk cache that was asked for."""
    return cell(target, access, total_s, cache_nbytes=nbytes, asked=nbytes)


THIN = replace(CUBE, shape=(200, 300, 400), chunks=(1, 300, 400))
THIN_LINE = Access("line", (200, 1, 1))
LISTED = replace(CUBE, shape=(2_000_000,), chunks=(100_000,))
CALLS = cell(LISTED, Access("step", (1,)), 50.0, median_s=2e-5)
DECODING = cell(LISTED, Access("step", (1,)), 50.0, median_s=2e-6)
LISTED_PART = cell(LISTED, Access("part", (20_000,)), 0.02)
LISTED_ALL = cell(LISTED, Access("all", (2_000_000,)), 0.03)
FEW = replace(CUBE, shape=(400, 36), chunks=(400, 36))
FEW_ROWS, FEW_ALL = Access("step", (1, 36)), Access("all", (400, 36))
FEW_CALLS = [cell(FEW, FEW_ROWS, 0.012, median_s=3e-5), cell(FEW, FEW_ALL, 0.0004)]
SCATTERED = replace(CUBE, shape=(30, 600, 600))
PLANES = replace(CUBE, chunks=(10, 20, 600))
PLAIN = replace(CRIS, filters="none")
LARGE = replace(LONG, shape=(2000, 2000, 2000), chunks=(1, 2000, 2000))
SLOW_ROWS, FAST_ALL = asked(CRIS, ROW, 345.0, MIB), asked(CRIS, WHOLE, 0.36, MIB)
FAST_ROWS = cell(CRIS, ROW, 0.3)
LATE = cell(CUBE, LINE, None)
POINTS = Access("points", (1, 1, 1), seed=0, limit=1000)
CROWDED = replace(CUBE, shape=(400, 100, 100), chunks=(1, 10, 10))
CROWDED_LINE = cell(CROWDED, Access("line", (400, 1, 1)), 600.0)
SEVEN_SLOTS = tuple(replace(one, actual_cache_nslots=7) for one in CROWDED_LINE.measurements)


Case = tuple[Target, list[Cell]]


def lines_through(target: Target) -> Case:
    return target, [cell(target, LONG_LINE, 1.2e6), cell(target, LONG_ALL, 3.5)]


def part(shape: tuple[int, ...], chunks: tuple[int, ...], block: tuple[int, ...]) -> Case:
    target = replace(CUBE, shape=shape, chunks=chunks, cache_nbytes=0)
    pairs = ((Access("part", block), 5.0), (Access("all", shape), 4.0))
    return target, [cell(target, access, total, cache_nbytes=1024) for access, total in pairs]


def unchunked(layout: str, *patterns: tuple[Access, float]) -> Case:
    target = replace(CUBE, chunks=None, filters="none", layout=layout)
    return target, [cell(target, access, total) for access, total in patterns]


# What was measured, by what is to be said of it.
CASES: dict[str, Case] = {
    # Paper 004, "Adjust Chunk Cache Size".
    "a chunk larger than the cache": (CRIS, [small(CRIS, ROW, 345.0), small(CRIS, WHOLE, 0.36)]),
    "30 chunks between two visits": (PLANES, [small(PLANES, STEP, 30.0), small(PLANES, ALL, 3.0)]),
    "lines that need another layout": lines_through(LONG),
    "slots that chunks share": (CROWDED, [replace(CROWDED_LINE, measurements=SEVEN_SLOTS)]),
    "reads in no order": (SCATTERED, [cell(SCATTERED, POINTS, 9.0), cell(SCATTERED, ALL, 0.3)]),
    "a small part of each chunk": part((1000, 1000), (1000, 100), (1, 10)),
    "a part of chunks along the way": part((112, 1000, 10), (112, 1, 10), (1, 1000, 10)),
    "many calls": (LISTED, [CALLS, LISTED_ALL]),
    "many calls, and a part": (LISTED, [CALLS, LISTED_PART, LISTED_ALL]),
    "not the calls, but decoding": (LISTED, [DECODING, LISTED_ALL]),
    "few calls": (FEW, FEW_CALLS),
    "few calls, faster by chunkwise": (
        FEW,
        [*FEW_CALLS, cell(FEW, FEW_ROWS, 0.004, "chunkwise-py")],
    ),
    "chunks without filters, not cached": (
        PLAIN,
        [small(PLAIN, Access("line", (60, 1, 1, 1)), 900.0), small(PLAIN, WHOLE, 0.02)],
    ),
    "patterns at the same cache": (CRIS, [FAST_ROWS, SLOW_ROWS, FAST_ALL]),
    "a cache that was asked for": (CRIS, [SLOW_ROWS, FAST_ALL]),
    "the cache that cured it": (
        CRIS,
        [SLOW_ROWS, asked(CRIS, ROW, 0.345, 3 * MIB), FAST_ROWS, FAST_ALL],
    ),
    "the default cache cured it": (CRIS, [SLOW_ROWS, FAST_ROWS, FAST_ALL]),
    "a measured cache before another layout": (
        CUBE,
        [
            asked(CUBE, LINE, 1000.0, MIB),
            asked(CUBE, LINE, 4.0, 1 << 30),
            asked(CUBE, ALL, 3.5, MIB),
        ],
    ),
    "a larger cache beside chunkwise": (
        CRIS,
        [
            small(CRIS, ROW, 345.0),
            cell(CRIS, ROW, 0.345, "chunkwise-py"),
            small(CRIS, WHOLE, 0.36),
        ],
    ),
    "a good layout": (
        CUBE,
        [
            *(cell(CUBE, STEP, 3.5), cell(CUBE, STEP, 0.8, "chunkwise-py")),
            *(cell(CUBE, ALL, 3.4), cell(CUBE, ALL, 0.8, "chunkwise-py")),
        ],
    ),
    "chunkwise is slower": (CUBE, [cell(CUBE, ALL, 1.0), cell(CUBE, ALL, 2.0, "chunkwise-py")]),
    "a loop in Rust beside one in Python": (
        CUBE,
        [cell(CUBE, ALL, 1.0), cell(CUBE, ALL, 0.1, "chunkwise")],
    ),
    **{
        f"{layout}, {number}": unchunked(layout, *((LINE, 400.0), (ALL, 0.2))[-number:])
        for layout in ("contiguous", "virtual", "external", "compact")
        for number in (1, 2)
    },
    "one pattern alone": (THIN, [cell(THIN, THIN_LINE, 600.0)]),
    "its chunks are held": (THIN, [cell(THIN, THIN_LINE, 0.5, cache_nbytes=128 * MIB)]),
    "one pattern with several caches": (
        THIN,
        [
            asked(THIN, THIN_LINE, 600.0, MIB),
            cell(THIN, THIN_LINE, 590.0),
            asked(THIN, THIN_LINE, 0.6, 128 * MIB),
        ],
    ),
    # Where the shapes do not say why.
    "a cache by itself": (THIN, [asked(THIN, STEP, 9.0, MIB), cell(THIN, STEP, 1.0)]),
    "a filter that h5repack may lack": lines_through(replace(LONG, filters="shuffle+zstd:3")),
    "a filter that nobody has": lines_through(replace(LONG, filters="filter-40000")),
    "a copy that outgrows the default cache": (
        LARGE,
        [
            cell(LARGE, Access("line", (2000, 1, 1)), 1e9),
            cell(LARGE, Access("all", (2000, 2000, 2000)), 3.5),
        ],
    ),
    "another dataset would be lost": lines_through(
        replace(LONG, file_filters=("none", "bitshuffle:lz4"))
    ),
    "a read that never came back": (
        CUBE,
        [replace(LATE, measurements=(replace(LATE.measurements[0], status="timeout"),))],
    ),
}


def test_what_is_said_of_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with_budget(monkeypatch, 512 * MIB)
    pages = []
    for name, (target, cells) in CASES.items():
        advice = advise(target, *cells)
        pages.append(f"{name}\n{advice.why}\n{advice.fix}\n{advice.effect}")
    assert_golden("bench-advice", *pages)


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        ((0.5,), "cannot be told"),  # twice as fast, but once
        ((0.3,), "measured: "),
        ((0.5, 0.51, 0.5), "measured: "),
        ((0.4, 1.3, 0.7), "cannot be told"),
        ((1.01, 1.0, 0.99), "makes little difference"),
        ((2.0, 2.1, 2.05), "is slower here"),
    ],
)
def test_the_judge_says_whether_chunkwise_is_faster(
    monkeypatch: pytest.MonkeyPatch, repeats: tuple[float, ...], said: str
) -> None:
    with_budget(monkeypatch, 512 * MIB)
    slow, fast = cell(CUBE, ALL, 1.0), cell(CUBE, ALL, 1.0, "chunkwise-py")
    times = tuple(replace(fast.measurements[0], total_s=total) for total in repeats)
    advice = advise(CUBE, slow, replace(fast, measurements=times))
    assert said in (advice.effect or "")
    assert (advice.fix is not None) == (said == "measured: ")


def test_lines_in_the_order_of_time_need_no_cache() -> None:
    """Maps one after the other: what a walk costs depends on its order."""
    shape, chunks = (100, 600, 600), (1, 600, 600)
    target = replace(CUBE, shape=shape, chunks=chunks)
    pixels = Access("pixels", (1, 1, 600))
    across = replace(pixels, order=(1, 2, 0))
    for access, decodes in ((pixels, 1), (across, 600)):
        one = cell(target, access, 1.0)
        assert Slow(Results(target, (one,), 30.0, 1.0), one).decodes == decodes


def with_budget(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    """Have chunkwise's own cache hold so many bytes."""
    given = replace(reader(CHUNKWISE), cache_nbytes=nbytes)
    monkeypatch.setattr("chunkwise.diagnosis.reads.reader", lambda _: given)


def measured_lines(target: Target) -> list[Cell]:
    return [
        cell(target, LONG_LINE, 1000.0, first_s=3.0),
        cell(target, LONG_LINE, 1.0, "chunkwise-py", first_s=1.0),
        cell(target, LONG_ALL, 3.5),
    ]


def test_what_was_measured_to_help_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with_budget(monkeypatch, 730 * LONG.chunk_nbytes)
    advice = advise(LONG, *measured_lines(LONG))
    assert advice.fix == 'chunkwise.open("cube.h5")["/t"]'
    assert "1,000 times" in (advice.effect or "")
    assert "the first one 3.00 times" in (advice.effect or "")


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_chunkwise_is_no_remedy_where_its_cache_loses_the_same_chunks(
    monkeypatch: pytest.MonkeyPatch, copies: bool, measured: bool
) -> None:
    """A line needs 730 chunks, which come back with the next one."""
    if not copies:
        monkeypatch.setattr(sys.modules[explain.__module__], "_repack", lambda *_: None)
    cells = [one for one in measured_lines(LONG) if measured or one.reader == "h5py"]
    for held, kept in ((730, True), (400, False)):
        with_budget(monkeypatch, held * LONG.chunk_nbytes)
        fix = advise(LONG, *cells).fix or ""
        # Unmeasured, it is offered only in the place of a copy that cannot be.
        assert fix.startswith("chunkwise.open(") == (kept and (measured or not copies))


def test_the_copy_suits_the_patterns_of_the_run() -> None:
    row = Access("row", (1, 1, 600))
    advice = advise(LONG, cell(LONG, LONG_LINE, 1.2e6), cell(LONG, row, 3.5))
    stated = default_chunk(LONG.shape, 4, access=[LONG_LINE.block, row.block])
    assert f"--chunk /t:{'x'.join(map(str, stated))} " in (advice.fix or "")
    # What bench measures by itself is stated by nobody.
    advice = advise(LONG, cell(LONG, LONG_LINE, 1.2e6), cell(LONG, LONG_ALL, 3.5))
    assert f"--chunk /t:{'x'.join(map(str, default_chunk(LONG.shape, 4)))} " in (advice.fix or "")


@pytest.mark.parametrize(("chunks", "slots"), [(1, 521), (30, 3001), (10**6, 10**7 + 19)])
def test_hash_slots(chunks: int, slots: int) -> None:
    assert hash_slots(chunks) == slots


@pytest.mark.parametrize(
    ("filters", "stock"),
    [("none", True), ("shuffle+deflate:4+fletcher32", True), ("lzf", False), ("szip:nn:8", True)],
)
def test_what_h5repack_has_in_every_build(filters: str, stock: bool) -> None:
    assert can_repack(filters) is stock


def test_nothing_measured_nothing_said() -> None:
    assert explain(Results(CUBE, (cell(CUBE, ALL, 1.0, "chunkwise"),), 30.0, 1.0)) is None


def test_line_axis() -> None:
    assert line_axis((365, 600, 600), (365, 1, 1)) == 0
    assert line_axis((365, 600, 600), (1, 600, 1)) == 1
    assert line_axis((1, 50), (1, 10)) == 1


def test_a_speed_is_an_estimate_when_either_time_is() -> None:
    slow, fast = cell(CUBE, LINE, 3600.0), cell(CUBE, LINE, 2.0, "chunkwise-py")
    bounded = replace(slow, measurements=(replace(slow.measurements[0], extrapolated=True),))
    for base, estimated in ((slow, False), (bounded, True)):
        results = Results(CUBE, (base, fast), 30.0, 1.0)
        assert results.speed(fast) == 1800
        assert results.speed_is_estimated(fast) is estimated
        assert results.summary()[1]["speed_is_estimated"] is estimated


# What a speed is compared with ----------------------------------------------------------------


def test_a_pattern_is_compared_with_itself(tmp_path: Path) -> None:
    """Writes are not measured by reads, nor one pattern by another."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((40, 30), "i4"), chunks=(10, 30), compression=1)
    target = look(path, "x")
    space = Space.of(operation=["read", "write"], access=["all", "line:0"], reader=["libhdf5"])
    cells = []
    for one in spell_out(target, space).planned:
        trial = trial_of(target, one.access, **one.parameters)
        measured = Measurement(trial, "ok", total_s=3.0 if one.operation == "write" else 1.0)
        cells.append(Cell(one.access, trial, (measured,), one.point))
    results = Results(target, tuple(cells), 30.0, 1.0)
    assert [results.speed(cell) for cell in results.cells] == [1.0] * 4


def test_a_real_run_says_what_was_varied(tmp_path: Path) -> None:
    path = tmp_path / "slow.h5"
    data = np.random.default_rng(1).integers(0, 99, (60, 100, 100), "i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(60, 100, 100), compression=1)
    space = Space.of(
        access=["row=1x1x100"], reader=["libhdf5"], cache=["1MiB", "64MiB"], w0=["0.75", "0"]
    )
    results = measure.run(path, "x", space, repeat=3, seconds=8)
    assert results.cells[0].extrapolated

    found = json.loads(json.dumps(results.as_dict(), allow_nan=False))
    assert found["varied"] == ["cache", "w0"]
    assert [row["cache"] for row in found["summary"]] == ["1MiB", "1MiB", "64MiB", "64MiB"]
