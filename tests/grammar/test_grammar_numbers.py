"""The grammar of shapes, sizes, times and counts: what is printed parses back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise.grammar import (
    format_shape,
    format_size,
    parse_count,
    parse_duration,
    parse_shape,
    parse_size,
)
from tests.support.commands import run


@given(st.lists(st.integers(1, 2**64 - 2), max_size=32).map(tuple))
def test_a_printed_shape_parses_to_itself(shape: tuple[int, ...]) -> None:
    assert parse_shape(format_shape(shape)) == shape


@pytest.mark.parametrize("word", ["stored", "auto", "contiguous"])
def test_shape_words(word: Any) -> None:
    assert parse_shape(word.upper()) == word
    assert format_shape(word) == word


def test_shapes_as_people_type_them() -> None:
    assert parse_shape(" 4X30 x 9x717") == (4, 30, 9, 717)
    assert parse_shape("scalar") == ()
    assert format_shape(()) == "scalar"
    assert format_shape((0, 3)) == "0x3"


@given(st.integers(0, 2**64 - 1) | st.integers(0, 10**6).map(lambda n: n * 1024**3))
def test_an_exactly_printed_size_parses_to_itself(nbytes: int) -> None:
    assert parse_size(format_size(nbytes, exact=True)) == nbytes


@given(st.integers(0, 2**63))
def test_a_size_for_people_is_within_a_twentieth(nbytes: int) -> None:
    assert parse_size(format_size(nbytes)) == pytest.approx(nbytes, rel=0.05)


@pytest.mark.parametrize(
    ("nbytes", "people", "exact"),
    [
        (0, "0 B", "0"),
        (1023, "1023 B", "1023"),
        (1024, "1.0 KiB", "1KiB"),
        (2**20 - 1, "1.0 MiB", "1048575"),
        (3 * 2**20, "3.0 MiB", "3MiB"),
        (10**6, "976.6 KiB", "1MB"),
        (2**64 - 1, "16.0 EiB", "18446744073709551615"),
    ],
)
def test_sizes_as_printed(nbytes: int, people: str, exact: str) -> None:
    assert format_size(nbytes) == people
    assert format_size(nbytes, exact=True) == exact


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_time_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, rest: int) -> None:
    written = f"{days}d{hours}h{minutes}min{rest}s"
    assert parse_duration(written) == ((days * 24 + hours) * 60 + minutes) * 60 + rest


@given(st.integers(0, 2**63 - 1))
def test_a_count_with_or_without_commas(count: int) -> None:
    assert parse_count(str(count)) == parse_count(f"{count:,}") == count


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        (parse_size, "0", 0),
        (parse_size, "512", 512),
        (parse_size, "1e6", 10**6),
        (parse_size, "3MiB", 3 * 2**20),
        (parse_size, "3 mib", 3 * 2**20),
        (parse_size, "1.5GiB", 3 * 2**29),
        (parse_size, "10kB", 10_000),
        (parse_size, "10KB", 10_000),
        (parse_size, ".5MiB", 2**19),
        (parse_size, "0.3KiB", 307),
        (parse_size, "7B", 7),
        (parse_size, "1EiB", 2**60),
        (parse_size, "16EB", 16 * 10**18),
        (parse_duration, "60", 60.0),
        (parse_duration, "0.5", 0.5),
        (parse_duration, "1e3", 1000.0),
        (parse_duration, "40s", 40.0),
        (parse_duration, "40 S", 40.0),
        (parse_duration, "5min", 300.0),
        (parse_duration, "5m", 300.0),
        (parse_duration, "2 hours", 7200.0),
        (parse_duration, "1h30min", 5400.0),
        (parse_duration, "1 h 30 min 5 s", 5405.0),
        (parse_duration, ".5h", 1800.0),
        (parse_duration, "1.5d", 129600.0),
        (parse_duration, "250ms", 0.25),
        (parse_duration, "0s", 0.0),
        (parse_count, "0", 0),
        (parse_count, "1000", 1000),
        (parse_count, "1,000,000", 10**6),
        (parse_count, "1e6", 10**6),
        (parse_count, "10k", 10_000),
        (parse_count, "10 K", 10_000),
        (parse_count, "1 million", 10**6),
        (parse_count, "2.5 million", 2_500_000),
        (parse_count, "3M", 3 * 10**6),
        (parse_count, "1.5 thousand", 1500),
        (parse_count, "2 billion", 2 * 10**9),
    ],
)
def test_numbers_as_people_type_them(
    parse: Callable[[str], float], text: str, number: float
) -> None:
    assert parse(text) == number


@pytest.mark.parametrize(
    ("parse", "text", "part"),
    [
        (parse_shape, "", "empty shape"),
        (parse_shape, "4x0", "at least 1, not 0"),
        (parse_shape, "4x-1", "at least 1, not -1"),
        (parse_shape, "ax3", "'a' is not a whole number"),
        (parse_shape, "4x", "an empty length"),
        (parse_shape, "4.5x2", "'4.5' is not a whole number"),
        (parse_shape, "(4, 30, 9)", "write it as 4x30x9"),
        (parse_shape, "4,30", "write it as 4x30"),
        (parse_shape, "9" * 5000, "larger than HDF5 can hold"),
        (parse_shape, str(2**64 - 1), "larger than HDF5 can hold"),
        (parse_shape, "٣x4", "is not a whole number"),
        (parse_shape, "1_000", "is not a whole number"),
        (parse_size, "", "empty size"),
        (parse_size, "-1", "cannot be negative"),
        (parse_size, "-.5MiB", "cannot be negative"),
        (parse_size, "3M", "write 3MiB .* or 3MB"),
        (parse_size, "3k", "write 3KiB .* or 3kB"),
        (parse_size, "1.5", "whole number of bytes"),
        (parse_size, "abc", "not understood"),
        (parse_size, "inf", "not understood"),
        (parse_size, "1_000", "not understood"),
        (parse_size, "3 foos", "no unit is called 'foos'"),
        (parse_size, "1e999", "larger than HDF5 can hold"),
        (parse_size, "1e9999999", "not understood"),
        (parse_size, "9" * 5000, "not understood"),
        (parse_size, "17EiB", "larger than HDF5 can hold"),
        (parse_duration, "", "empty length of time"),
        (parse_duration, "soon", "not understood"),
        (parse_duration, "-5s", "cannot be negative"),
        (parse_duration, "5 parsecs", "no unit is called 'parsecs'"),
        (parse_duration, "30min1h", "the larger unit comes first"),
        (parse_duration, "1h1h", "the larger unit comes first"),
        (parse_duration, "1h30", "a unit is missing"),
        (parse_duration, "1:30", "a unit is missing"),
        (parse_duration, "inf", "not understood"),
        (parse_duration, "1e9d", "longer than a thousand years"),
        (parse_duration, "9" * 5000, "a unit is missing"),
        (parse_count, "", "empty number"),
        (parse_count, "-1", "cannot be negative"),
        (parse_count, "1.5", "not a whole number"),
        (parse_count, "0.0001k", "not a whole number"),
        (parse_count, "ten", "not understood"),
        (parse_count, "1,00", "not understood"),
        (parse_count, "5 dozen", "'dozen' is no number"),
        (parse_count, "1e30", "too large"),
        (parse_count, "9" * 5000, "not understood"),
    ],
)
def test_what_is_no_number_is_refused_with_the_remedy(
    parse: Callable[[str], object], text: str, part: str
) -> None:
    with pytest.raises(UsageError, match=part):
        parse(text)


def test_one_number_means_no_two_things() -> None:
    """``3M`` is refused as a size, where it could be 3 MB or 3 MiB, and is a number of things."""
    with pytest.raises(UsageError, match="could mean two units"):
        parse_size("3M")
    assert parse_count("3M") == 3_000_000


@pytest.mark.parametrize(
    ("option", "value"),
    [("--budget", "0"), ("--budget", "soon"), ("--repeat", "0"), ("--repeat", "2.5")],
)
def test_the_option_is_named(option: str, value: str) -> None:
    done = run("bench", "a.h5", option, value)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert option in done.err
