"""Does the advice follow from the figures, and say so when there is nothing to fix?"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from chunkwise.measure import Results, Target, explain
from chunkwise.measure.explain import _decodes
from chunkwise.measure.planning import trial_of
from chunkwise.measure.results import Advice, Cell
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.geometry import line_axis
from chunkwise.model.readers import CHUNKWISE, reader
from chunkwise.patterns import Access
from chunkwise.remedy.tools import can_repack
from chunkwise.trials.trial import Measurement

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
    total_s: float,
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
    return Cell(access, trial, (measurement,))


def advise(target: Target, *cells: Cell) -> Advice:
    advice = explain(Results(target, cells, 30.0, 1.0))
    assert advice is not None
    return advice


def test_a_chunk_larger_than_the_cache() -> None:
    one = 1 << 20
    advice = advise(
        CRIS, cell(CRIS, ROW, 345.0, cache_nbytes=one), cell(CRIS, WHOLE, 0.36, cache_nbytes=one)
    )
    assert "3.0 MiB" in advice.why
    assert "1.0 MiB" in advice.why
    assert "1,080 times" in advice.why  # paper 004, "Adjust Chunk Cache Size"
    assert advice.fix == 'h5py.File("cris.h5", rdcc_nbytes=3 * 2**20, rdcc_nslots=521)'
    assert "1,080 times fewer decodes" in (advice.effect or "")
    assert "computed, not measured" in (advice.effect or "")


def test_a_walk_that_comes_back_too_late() -> None:
    target = replace(CUBE, chunks=(10, 20, 600))
    access = Access("step", (1, 600, 600))
    advice = advise(
        target,
        cell(target, access, 30.0, cache_nbytes=1 << 20),
        cell(target, ALL, 3.0, cache_nbytes=1 << 20),
    )
    assert "30 chunks" in advice.why
    assert "10 times" in advice.why
    # 30 chunks of 10x20x600 f4: 13.7 MiB.
    assert advice.fix == 'h5py.File("cube.h5", rdcc_nbytes=14 * 2**20, rdcc_nslots=3001)'


def test_lines_through_thin_chunks_need_another_layout() -> None:
    # 730 chunks of 1.4 MiB: a GiB, which no cache should have.
    advice = advise(LONG, cell(LONG, LONG_LINE, 1.2e6), cell(LONG, LONG_ALL, 3.5))
    assert "730 chunks of 1x600x600" in advice.why
    assert "360,000 times" in advice.why
    assert advice.fix is not None
    assert advice.fix.startswith("chunkwise repack --chunk /t:")
    assert "computed, not measured" in (advice.effect or "")


def test_lines_in_the_order_of_time_need_no_cache() -> None:
    """Maps one after the other: what a walk costs depends on its order."""
    shape, chunks = (100, 600, 600), (1, 600, 600)
    target = replace(CUBE, shape=shape, chunks=chunks)
    pixels = Access("pixels", (1, 1, 600))
    across = replace(pixels, order=(1, 2, 0))
    assert _decodes(target, cell(target, pixels, 1.0)) == 1
    assert _decodes(target, cell(target, across, 1.0)) == 600


def test_reads_in_no_order_need_all_chunks_cached() -> None:
    target = replace(CUBE, shape=(30, 600, 600))
    everywhere = Access("points", (1, 1, 1), seed=0, limit=1000)
    advice = advise(target, cell(target, everywhere, 9.0), cell(target, ALL, 0.3))
    assert "come to chunks in no order" in advice.why
    # 5 of 30 chunks are held: 1,000 reads find the sixth part of theirs.
    assert "about 833 chunks, each about 28 times" in advice.why
    assert "rdcc_nbytes=42 * 2**20" in (advice.fix or "")


def with_budget(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    """Have chunkwise's own cache hold so many bytes."""
    given = replace(reader(CHUNKWISE), cache_nbytes=nbytes)
    module = sys.modules[explain.__module__]  # the package has its function by the same name
    monkeypatch.setattr(module, "reader", lambda _: given)


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


def test_chunks_that_are_read_for_a_small_part_do_not_suit() -> None:
    """One pattern alone is never slower than the others; it may still read in vain."""
    for shape, chunks, block in (
        ((1000, 1000), (1000, 100), (1, 10)),
        ((112, 1000, 10), (112, 1, 10), (1, 1000, 10)),
    ):
        target = replace(CUBE, shape=shape, chunks=chunks, cache_nbytes=0)
        access = Access("part", block)
        advice = advise(
            target,
            cell(target, access, 5.0, cache_nbytes=1024),
            cell(target, Access("all", shape), 4.0, cache_nbytes=1024),
        )
        assert "suit" not in advice.why
        assert advice.fix


def test_small_reads_are_made_of_calls() -> None:
    target = replace(CUBE, shape=(2_000_000,), chunks=(100_000,))
    one, everything = Access("step", (1,)), Access("all", (2_000_000,))
    slow = cell(target, one, 50.0, median_s=2e-5)
    advice = advise(target, slow, cell(target, everything, 0.03))
    assert "2,000,000 calls" in advice.why
    assert "20.0 µs" in advice.why  # the median: the mean has the decoding in it
    assert "dataset[...]" in (advice.fix or "")
    # What is measured for the remedy is the remedy, not what happened to be quickest.
    part = Access("part", (20_000,))
    cells = (slow, cell(target, part, 0.02), cell(target, everything, 0.03))
    assert "30.0 ms by 'all'" in (advise(target, *cells).effect or "")
    # Where decoding dominates, the calls are not what costs.
    decoding = cell(target, one, 50.0, median_s=2e-6)
    assert "calls" not in advise(target, decoding, cell(target, everything, 0.03)).why


def test_small_reads_that_sum_up_to_little_need_no_change() -> None:
    target = replace(CUBE, shape=(400, 36), chunks=(400, 36))
    row, everything = Access("step", (1, 36)), Access("all", (400, 36))
    cells = (cell(target, row, 0.012, median_s=3e-5), cell(target, everything, 0.0004))
    assert advise(target, *cells).fix is None
    faster = advise(target, *cells, cell(target, row, 0.004, "chunkwise-py"))
    assert "400 calls" in faster.why
    assert "3.00 times" in (faster.effect or "")


def test_chunks_without_filters_that_are_not_cached_are_read_in_pieces() -> None:
    target = replace(CRIS, filters="none")
    access = Access("line", (60, 1, 1, 1))
    advice = advise(
        target,
        cell(target, access, 900.0, cache_nbytes=1 << 20),
        cell(target, WHOLE, 0.02, cache_nbytes=1 << 20),
    )
    assert "not cached" in advice.why
    # One read comes back to 15 chunks of 3 MiB: a cache for them goes before a copy.
    assert advice.fix == 'h5py.File("cris.h5", rdcc_nbytes=45 * 2**20, rdcc_nslots=1511)'


def test_patterns_are_compared_at_the_same_cache() -> None:
    slow = cell(CRIS, ROW, 345.0, cache_nbytes=1 << 20, asked=1 << 20)
    fast = cell(CRIS, ROW, 0.4)
    whole = cell(CRIS, WHOLE, 0.36, cache_nbytes=1 << 20, asked=1 << 20)
    advice = advise(CRIS, fast, slow, whole)
    assert "1,080 times" in advice.why


def test_the_cache_of_the_collapse_is_named_and_what_cured_it() -> None:
    slow, whole = (
        cell(CRIS, access, total, cache_nbytes=1 << 20, asked=1 << 20)
        for access, total in ((ROW, 345.0), (WHOLE, 0.36))
    )
    alone = advise(CRIS, slow, whole)
    assert "(1.0 MiB, as asked for; by default 8.0 MiB)" in alone.why
    assert "computed, not measured" in (alone.effect or "")
    enough = cell(CRIS, ROW, 0.345, cache_nbytes=3 << 20, asked=3 << 20)
    default = cell(CRIS, ROW, 0.3)
    cured = advise(CRIS, slow, enough, default, whole)
    assert cured.fix == 'h5py.File("cris.h5", rdcc_nbytes=3 * 2**20)'
    assert "measured with a chunk cache of 3.0 MiB:" in (cured.effect or "")
    assert "1,000 times" in (cured.effect or "")
    assert "8.0 MiB (the default)" in (advise(CRIS, slow, default, whole).effect or "")


def test_a_cache_that_was_measured_to_help_comes_before_another_layout() -> None:
    slow = cell(CUBE, LINE, 1000.0, cache_nbytes=1 << 20, asked=1 << 20)
    cured = cell(CUBE, LINE, 4.0, cache_nbytes=1 << 30, asked=1 << 30)
    whole = cell(CUBE, ALL, 3.5, cache_nbytes=1 << 20, asked=1 << 20)
    advice = advise(CUBE, slow, cured, whole)
    assert "rdcc_nbytes=" in (advice.fix or "")
    assert "250 times as fast" in (advice.effect or "")


def test_a_larger_cache_is_offered_beside_what_chunkwise_gains() -> None:
    advice = advise(
        CRIS,
        cell(CRIS, ROW, 345.0, cache_nbytes=1 << 20),
        cell(CRIS, ROW, 0.345, "chunkwise-py"),
        cell(CRIS, WHOLE, 0.36, cache_nbytes=1 << 20),
    )
    assert (advice.fix or "").startswith("h5py.File(")
    assert "1,000 times" in (advice.effect or "")


def test_a_good_layout_leaves_decoding() -> None:
    advice = advise(
        CUBE,
        cell(CUBE, STEP, 3.5),
        cell(CUBE, STEP, 0.8, "chunkwise-py"),
        cell(CUBE, ALL, 3.4),
        cell(CUBE, ALL, 0.8, "chunkwise-py"),
    )
    assert "decoding shuffle+deflate:4" in advice.why
    assert advice.fix == 'chunkwise.open("cube.h5")["/t"]'
    assert "4.38 times" in (advice.effect or "")


def test_it_says_where_chunkwise_is_slower() -> None:
    advice = advise(CUBE, cell(CUBE, ALL, 1.0), cell(CUBE, ALL, 2.0, "chunkwise-py"))
    assert advice.fix is None
    assert "slower" in (advice.effect or "")
    assert "0.50 times as fast" in (advice.effect or "")


def test_a_loop_in_rust_is_not_compared_with_one_in_python() -> None:
    advice = advise(CUBE, cell(CUBE, ALL, 1.0), cell(CUBE, ALL, 0.1, "chunkwise"))
    assert advice.fix is None
    assert advice.effect is None


def test_contiguous() -> None:
    target = replace(CUBE, chunks=None, filters="none", layout="contiguous")
    advice = advise(target, cell(target, LINE, 400.0), cell(target, ALL, 0.2))
    assert "contiguous" in advice.why
    assert (advice.fix or "").startswith("chunkwise repack --chunk /t:")
    quiet = advise(target, cell(target, ALL, 0.2))
    assert "contiguous" in quiet.why
    assert quiet.fix is None


@pytest.mark.parametrize("layout", ["virtual", "external", "compact"])
def test_layouts_that_are_not_contiguous_are_not_called_so(layout: str) -> None:
    target = replace(CUBE, chunks=None, filters="none", layout=layout)
    for cells in ([cell(target, LINE, 400.0), cell(target, ALL, 0.2)], [cell(target, ALL, 0.2)]):
        advice = advise(target, *cells)
        assert layout in advice.why
        assert "libhdf5 reads it" in advice.why
        assert "contiguous" not in advice.why
        assert advice.fix is None


def test_a_pattern_is_slow_also_by_itself() -> None:
    target = replace(CUBE, shape=(200, 300, 400), chunks=(1, 300, 400))
    line = Access("line", (200, 1, 1))
    advice = advise(target, cell(target, line, 600.0))
    assert "suit" not in advice.why
    assert "120,000 times" in advice.why
    assert advice.fix == 'h5py.File("cube.h5", rdcc_nbytes=92 * 2**20, rdcc_nslots=20011)'
    assert "120,000 times fewer decodes" in (advice.effect or "")
    # With a cache that holds them, still no word of chunks that suit it.
    held = advise(target, cell(target, line, 0.5, cache_nbytes=128 << 20))
    assert "One read of 'line' goes through 200 chunks" in held.why


def test_another_cache_is_named_with_one_pattern_only() -> None:
    target = replace(CUBE, shape=(200, 300, 400), chunks=(1, 300, 400))
    line = Access("line", (200, 1, 1))
    cells = [
        cell(target, line, total, cache_nbytes=nbytes, asked=asked)
        for total, nbytes, asked in (
            (600.0, 1 << 20, 1 << 20),
            (590.0, 8 << 20, None),
            (0.6, 128 << 20, 128 << 20),
        )
    ]
    advice = advise(target, *cells)
    assert advice.fix == 'h5py.File("cube.h5", rdcc_nbytes=128 * 2**20)'
    assert "measured with a chunk cache of 128.0 MiB" in (advice.effect or "")
    assert "1,000 times as fast" in (advice.effect or "")
    # Also where the shapes do not say why.
    slow = cell(target, STEP, 9.0, cache_nbytes=1 << 20, asked=1 << 20)
    odd = advise(target, slow, cell(target, STEP, 1.0))
    assert "chunk cache decides" in odd.why
    assert "8.0 MiB (the default)" in odd.why


def test_no_repack_with_a_filter_that_h5repack_may_lack() -> None:
    target = replace(LONG, filters="shuffle+zstd:3")
    cells = cell(target, LONG_LINE, 1.2e6), cell(target, LONG_ALL, 3.5)
    advice = advise(target, *cells)
    assert (advice.fix or "").startswith("chunkwise repack --chunk /t:")
    assert "not measured" in (advice.effect or "")
    assert "h5repack -l" not in str(advice)
    # Of a filter that nobody here has, there is no copy.
    unknown = replace(target, filters="filter-40000")
    advice = advise(unknown, cell(unknown, LONG_LINE, 1.2e6), cell(unknown, LONG_ALL, 3.5))
    assert "repack" not in (advice.fix or "")


def test_a_copy_that_outgrows_the_default_cache_comes_with_the_line_it_needs() -> None:
    target = replace(LONG, shape=(2000, 2000, 2000), chunks=(1, 2000, 2000))
    line, everything = Access("line", (2000, 1, 1)), Access("all", (2000, 2000, 2000))
    advice = advise(target, cell(target, line, 1e9), cell(target, everything, 3.5))
    command, opening = (advice.fix or "").split("\n")
    assert command.startswith("chunkwise repack --chunk /t:")
    assert opening.startswith('h5py.File("cube_rechunked.h5", rdcc_nbytes=')


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


def test_no_repack_where_another_dataset_would_be_lost() -> None:
    beside = replace(LONG, file_filters=("none", "bitshuffle:lz4"))
    advice = advise(beside, cell(beside, LONG_LINE, 1.2e6), cell(beside, LONG_ALL, 3.5))
    assert "h5repack -l" not in str(advice)
    assert (advice.fix or "").startswith("chunkwise repack --chunk /t:")


def test_nothing_measured_nothing_said() -> None:
    assert explain(Results(CUBE, (cell(CUBE, ALL, 1.0, "chunkwise"),), 30.0, 1.0)) is None


def test_a_read_that_never_came_back_is_explained_too() -> None:
    late = cell(CUBE, LINE, 0.0)
    measurement = replace(late.measurements[0], status="timeout", total_s=None)
    advice = advise(CUBE, replace(late, measurements=(measurement,)))
    assert "365 chunks" in advice.why


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
