"""Counts become seconds by rates, and rates are found from seconds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.model.readers import CHUNKWISE
from chunkwise.model.seconds import (
    PARTS,
    RATES,
    Codec,
    Machine,
    Rates,
    Speed,
    Storage,
    parts,
    terms,
)
from chunkwise.model.traffic import READ_AHEAD_NBYTES, Traffic

SOME = Rates(1e-4, 1e-6, 5e-7, 3e-7, 2e-6, 1e-7, 4e-9, 2e-10, 1e-10, 1e-7, 1e-10)
MACHINE = Machine({"libhdf5": SOME, CHUNKWISE: SOME}, {"libhdf5": SOME}, 4, 3.0)
DEFLATE = Codec(
    "deflate:4", (((64, 64), 0.5),), {"libhdf5": Speed(2e-5, 3e-9)}, {"libhdf5": Speed(4e-5, 2e-8)}
)
COUNTS = ("operations", "touches", "loads", "partial", "pieces", "runs", "selected_nbytes")

traffics = st.builds(
    Traffic,
    *[st.floats(0, 1e6) for _ in COUNTS],
    st.integers(1, 10**6),
    st.floats(1, 64),
)


def total(found: Traffic, reader: str = "libhdf5", **options: object) -> float:
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, reader, **options)  # type: ignore[arg-type]
    assert tuple(told) == PARTS
    return sum(told.values())


# Of more calls for as many chunks, each has fewer to sort.
@given(traffics, st.sampled_from([name for name in COUNTS if name != "operations"]))
def test_more_of_anything_never_takes_less_time(found: Traffic, name: str) -> None:
    more = replace(found, **{name: getattr(found, name) + 1000})
    assert total(more) >= total(found)
    assert total(more, writing=True) >= total(found, writing=True)


@given(traffics)
def test_storage_only_adds_and_threads_only_take_off(found: Traffic) -> None:
    assert total(found, storage=Storage(1e-3, 1e8)) >= total(found)
    assert total(found, CHUNKWISE) <= total(found) + 1e-12


def test_what_a_system_remembers_is_fetched_once() -> None:
    found = Traffic(100, 1000, 1000, 0, 0, 1000, 1e6, 10, 1, seeks=1000)
    far, near = Storage(0.05, 1e8), Storage(0.05, 1e8, remembers=True, reads_ahead=True)
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=far)
    assert told["storage"] > 1000 * 0.05
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=near)
    assert 10 * 0.05 < told["storage"] < 12 * 0.05


def test_threads_help_as_far_as_there_are_chunks_to_decode() -> None:
    assert MACHINE.speedup(CHUNKWISE, 1) == 1
    assert MACHINE.speedup(CHUNKWISE, 4) == MACHINE.speedup(CHUNKWISE, 100) == 3
    assert 1 < MACHINE.speedup(CHUNKWISE, 2) < 3
    assert MACHINE.speedup("libhdf5", 100) == 1


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_ratio_between_shapes_lies_between_their_ratios(rows: int, columns: int) -> None:
    codec = Codec("x", (((64, 64), 0.5), ((8, 512), 0.8)))
    assert 0.5 <= codec.ratio((rows, columns)) <= 0.8
    assert codec.ratio((64, 64)) == 0.5
    assert Codec("x").ratio((rows, columns)) == 1.0


def test_a_machine_is_read_back_as_it_was_written() -> None:
    machine = replace(MACHINE, cold=Storage(1e-4, 1e9))
    assert Machine.from_dict(json.loads(json.dumps(machine.as_dict()))) == machine


@pytest.mark.parametrize(
    "change",
    [
        {"reads": {}},
        {"reads": {"libhdf5": {"walk_s": -1.0}}},
        {"reads": {"libhdf5": {"speed": 1.0}}},
        {"threads": "many"},
        {"cold": {"request_s": 1}},
    ],
)
def test_what_is_no_machine_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Machine.from_dict({**MACHINE.as_dict(), **change})


def test_the_terms_are_those_of_the_rates() -> None:
    found = Traffic(2, 3, 5, 1, 0, 7, 11, 13, 1, 0, 8192, 17, 19, 23, 29, 4096, 31, 37)
    assert len(terms(found, 10.0)) == len(RATES)
    assert terms(found, 10.0) == (1, 2, 3, 0, 6, 0, 7, 11, 91, 19, 8192, 17, 1, 37)
    pieces = Traffic(2, 3, 0, 0, 5, 0, 11, 13, 1, 1, 4, pieces_nbytes=31)
    assert terms(pieces, 10.0) == (1, 2, 3, 0, 1, 5, 0, 11, 31, 0, 4, 0, 0, 0)


def test_of_an_object_store_each_chunk_is_a_request() -> None:
    # 100 chunks of 64 x 64 x 4 bytes at a ratio of 0.5, one after another.
    found = Traffic(100, 100, 100, 0, 0, 100, 1e6, 100, 1, seeks=1)
    store = Storage(0.05, 1e8)
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=store)["storage"]
    bare = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5")["storage"]
    assert told - bare == pytest.approx(100 * 0.05 + 100 * 8192 / 1e8)


def test_threads_wait_for_an_object_store_side_by_side() -> None:
    found = Traffic(1, 100, 100, 0, 0, 100, 1e6, 100, 100)
    store = Storage(0.05, 1e8)
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, CHUNKWISE, storage=store)["storage"]
    bare = parts(found, (64, 64), 4, DEFLATE, MACHINE, CHUNKWISE)["storage"]
    assert told - bare == pytest.approx(100 / 4 * 0.05 + 100 * 8192 / 1e8)


def test_of_a_local_file_what_lies_in_a_row_is_one_request() -> None:
    rows = Traffic(1, 100, 100, 0, 0, 100, 1e6, 100, 1, seeks=1)
    disk = Storage(0.01, 1e8, reads_ahead=True)
    bare = parts(rows, (64, 64), 4, DEFLATE, MACHINE, "libhdf5")["storage"]
    for seeks in (1, 100):
        found = replace(rows, seeks=seeks)
        told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=disk)["storage"]
        assert told - bare == pytest.approx(seeks * 0.01 + 100 * 8192 / 1e8)


def test_a_file_that_fits_memory_comes_from_storage_once() -> None:
    # Each of 100 chunks is loaded ten times, at random places.
    found = Traffic(1000, 1000, 1000, 0, 0, 1000, 1e6, 100, 1, seeks=1000)
    disk = Storage(0.01, 1e8, remembers=True, reads_ahead=True)
    told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=disk)["storage"]
    bare = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5")["storage"]
    requests = 100 + 100 * 8192 / READ_AHEAD_NBYTES
    assert told - bare == pytest.approx(requests * 0.01 + 100 * 8192 / 1e8)
