"""The grammar of shapes, sizes, times and counts: what is printed parses back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.cli.main import main
from chunkwise.errors import UsageError
from chunkwise.grammar import (
    format_shape,
    format_size,
    parse_count,
    parse_duration,
    parse_shape,
    parse_size,
)


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


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty shape"),
        ("4x0", "at least 1, not 0"),
        ("4x-1", "at least 1, not -1"),
        ("ax3", "'a' is not a whole number"),
        ("4x", "an empty length"),
        ("4.5x2", "'4.5' is not a whole number"),
        ("(4, 30, 9)", "write it as 4x30x9"),
        ("4,30", "write it as 4x30"),
        ("9" * 5000, "larger than HDF5 can hold"),
        (str(2**64 - 1), "larger than HDF5 can hold"),
        ("٣x4", "is not a whole number"),
        ("1_000", "is not a whole number"),
    ],
)
def test_bad_shapes_are_refused_with_the_remedy(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse_shape(text)


@given(st.integers(0, 2**64 - 1) | st.integers(0, 10**6).map(lambda n: n * 1024**3))
def test_an_exactly_printed_size_parses_to_itself(nbytes: int) -> None:
    assert parse_size(format_size(nbytes, exact=True)) == nbytes


@given(st.integers(0, 2**63))
def test_a_size_for_people_is_within_a_twentieth(nbytes: int) -> None:
    assert parse_size(format_size(nbytes)) == pytest.approx(nbytes, rel=0.05)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("512", 512),
        ("1e6", 10**6),
        ("3MiB", 3 * 2**20),
        ("3 mib", 3 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("10kB", 10_000),
        ("10KB", 10_000),
        (".5MiB", 2**19),
        ("0.3KiB", 307),
        ("7B", 7),
        ("1EiB", 2**60),
        ("16EB", 16 * 10**18),
    ],
)
def test_sizes_as_people_type_them(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


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


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty size"),
        ("-1", "cannot be negative"),
        ("-.5MiB", "cannot be negative"),
        ("3M", "write 3MiB .* or 3MB"),
        ("3k", "write 3KiB .* or 3kB"),
        ("1.5", "whole number of bytes"),
        ("abc", "not understood"),
        ("inf", "not understood"),
        ("1_000", "not understood"),
        ("3 foos", "no unit is called 'foos'"),
        ("1e999", "larger than HDF5 can hold"),
        ("1e9999999", "not understood"),
        ("9" * 5000, "not understood"),
        ("17EiB", "larger than HDF5 can hold"),
    ],
)
def test_bad_sizes_are_refused_with_the_remedy(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60.0),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("40s", 40.0),
        ("40 S", 40.0),
        ("5min", 300.0),
        ("5m", 300.0),
        ("2 hours", 7200.0),
        ("1h30min", 5400.0),
        ("1 h 30 min 5 s", 5405.0),
        (".5h", 1800.0),
        ("1.5d", 129600.0),
        ("250ms", 0.25),
        ("0s", 0.0),
    ],
)
def test_times_as_people_type_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_time_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, rest: int) -> None:
    written = f"{days}d{hours}h{minutes}min{rest}s"
    assert parse_duration(written) == ((days * 24 + hours) * 60 + minutes) * 60 + rest


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty length of time"),
        ("soon", "not understood"),
        ("-5s", "cannot be negative"),
        ("5 parsecs", "no unit is called 'parsecs'"),
        ("30min1h", "the larger unit comes first"),
        ("1h1h", "the larger unit comes first"),
        ("1h30", "a unit is missing"),
        ("1:30", "a unit is missing"),
        ("inf", "not understood"),
        ("1e9d", "longer than a thousand years"),
        ("9" * 5000, "a unit is missing"),
    ],
)
def test_bad_times_are_refused_with_the_remedy(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1000", 1000),
        ("1,000,000", 10**6),
        ("1e6", 10**6),
        ("10k", 10_000),
        ("10 K", 10_000),
        ("1 million", 10**6),
        ("2.5 million", 2_500_000),
        ("3M", 3 * 10**6),
        ("1.5 thousand", 1500),
        ("2 billion", 2 * 10**9),
    ],
)
def test_counts_as_people_type_them(text: str, count: int) -> None:
    assert parse_count(text) == count


@given(st.integers(0, 2**63 - 1))
def test_a_count_with_or_without_commas(count: int) -> None:
    assert parse_count(str(count)) == parse_count(f"{count:,}") == count


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty number"),
        ("-1", "cannot be negative"),
        ("1.5", "not a whole number"),
        ("0.0001k", "not a whole number"),
        ("ten", "not understood"),
        ("1,00", "not understood"),
        ("5 dozen", "'dozen' is no number"),
        ("1e30", "too large"),
        ("9" * 5000, "not understood"),
    ],
)
def test_bad_counts_are_refused_with_the_remedy(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse_count(text)


def test_one_number_means_no_two_things() -> None:
    """``3M`` is refused as a size, where it could be 3 MB or 3 MiB, and is a number of things."""
    with pytest.raises(UsageError, match="could mean two units"):
        parse_size("3M")
    assert parse_count("3M") == 3_000_000


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--budget", "0", "no time"),
        ("--budget", "soon", "not understood"),
        ("--repeat", "0", "give 1 or more"),
        ("--repeat", "2.5", "not a whole number"),
    ],
)
def test_the_option_is_named(
    option: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["chunkwise", "bench", "a.h5", option, value])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr().err
    assert left.value.code == 2
    assert option in printed
    assert said in printed
    assert len(printed.splitlines()) == 1
