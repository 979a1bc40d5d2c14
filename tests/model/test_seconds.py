"""Counts become seconds by rates, and rates are found from seconds."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.fitting import NOMINAL, fitted, fitted_columns, non_negative
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
from chunkwise.model.traffic import Traffic

SOME = Rates(1e-4, 1e-6, 5e-7, 3e-7, 2e-6, 1e-7, 4e-9, 2e-10, 1e-10, 1e-7, 1e-10)
MACHINE = Machine({"libhdf5": SOME, CHUNKWISE: SOME}, {"libhdf5": SOME}, 4, 3.0)
DEFLATE = Codec(
    "deflate:4", (((64, 64), 0.5),), {"libhdf5": Speed(2e-5, 3e-9)}, {"libhdf5": Speed(4e-5, 2e-8)}
)
COUNTS = ("operations", "touches", "loads", "partial", "pieces", "runs", "selected_nbytes")

traffics = st.builds(
    Traffic, *[st.floats(0, 1e6) for _ in COUNTS], st.integers(1, 10**6), st.floats(1, 64)
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
    found = Traffic(2, 3, 5, 1, 0, 7, 11, 13, 1, 0, 8192, 17, 19, 23, 29, 4096, 31, 37, 41, 43)
    assert len(terms(found, 10.0)) == len(RATES)
    assert terms(found, 10.0) == (1, 2, 3, 0, 6, 0, 7, 37, 91, 19, 8192, 17, 1, 41, 43)
    pieces = Traffic(2, 3, 0, 0, 5, 0, 11, 13, 1, 1, 4, pieces_nbytes=31)
    assert terms(pieces, 10.0) == (1, 2, 3, 0, 0, 6, 0, 0, 31, 0, 4, 0, 0, 0, 0)


def test_of_a_local_file_what_lies_in_a_row_is_one_request() -> None:
    rows = Traffic(1, 100, 100, 0, 0, 100, 1e6, 100, 1, seeks=1)
    disk = Storage(0.01, 1e8)
    bare = parts(rows, (64, 64), 4, DEFLATE, MACHINE, "libhdf5")["storage"]
    for seeks in (1, 100):
        found = replace(rows, seeks=seeks)
        told = parts(found, (64, 64), 4, DEFLATE, MACHINE, "libhdf5", storage=disk)["storage"]
        assert told - bare == pytest.approx(seeks * 0.01 + 100 * 8192 / 1e8)


# Rates that are fitted ------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.3, 4), min_size=len(RATES), max_size=len(RATES)))
def test_rates_are_found_again_from_what_they_give(factors: list[float]) -> None:
    nominal = np.array([getattr(NOMINAL["libhdf5", False], name) for name in RATES])
    rng = np.random.default_rng(0)
    # Walks of a microsecond to hours, each made of some of the parts.
    counts = 10 ** rng.uniform(0, 4, (100, len(RATES))) / nominal * 1e-6
    counts *= rng.random(counts.shape) < 0.3
    counts[:, 0] = 1
    measured = counts @ (nominal * np.array(factors))
    found = fitted(counts, measured, "libhdf5")
    predicted = counts @ np.array([getattr(found, name) for name in RATES])
    assert np.median(np.abs(predicted / measured - 1)) < 0.1


def test_what_no_measurement_tells_is_nominal() -> None:
    for (reader, writing), nominal in NOMINAL.items():
        counts = np.zeros((30, len(RATES)))
        counts[:, 0] = 1.0
        found = fitted(counts, np.full(30, 7e-3), reader, writing=writing)
        assert abs(found.walk_s / 7e-3 - 1) < 0.15
        for name in RATES[1:]:
            assert abs(getattr(found, name) / getattr(nominal, name) - 1) < 1e-6


def test_no_rate_is_negative_whatever_was_measured() -> None:
    rng = np.random.default_rng(1)
    counts = rng.uniform(0, 100, (20, len(RATES)))
    found = fitted(counts, rng.uniform(1e-6, 1, 20), "libhdf5")
    assert min(getattr(found, name) for name in RATES) >= 0


def test_one_measurement_that_is_far_off_says_little() -> None:
    counts = np.linspace(1, 100, 30, dtype=np.float64)[:, None].astype(np.float64)
    measured = 2.0 * counts[:, 0]
    measured[7] *= 50
    assert abs(fitted_columns(counts, measured)[0] / 2.0 - 1) < 0.1


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 8))
def test_least_squares_without_negatives_is_the_best_of_all_subsets(
    seed: int, unknowns: int, equations: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(equations, unknowns))
    rows[:, rng.random(unknowns) < 0.2] = 0.0
    wanted = rng.normal(size=equations)
    found = non_negative(rows, wanted)
    assert found.min() >= 0
    best = float(np.sum(wanted**2))
    for number in range(1, unknowns + 1):
        for free in map(list, itertools.combinations(range(unknowns), number)):
            one = np.linalg.lstsq(rows[:, free], wanted, rcond=None)[0]
            if one.min() >= 0:
                best = min(best, float(np.sum((rows[:, free] @ one - wanted) ** 2)))
    assert np.sum((rows @ found - wanted) ** 2) <= best * (1 + 1e-6) + 1e-9
