"""Rates are found from what they give, and what nothing tells stays what is believed."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.fitting import NOMINAL, fitted, fitted_columns, non_negative
from chunkwise.model.seconds import RATES


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
