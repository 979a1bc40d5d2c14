"""The grammar of shapes, sizes, times and counts: what is printed parses back."""

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
from tests.support.golden import assert_golden, refused


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


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_time_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, rest: int) -> None:
    written = f"{days}d{hours}h{minutes}min{rest}s"
    assert parse_duration(written) == ((days * 24 + hours) * 60 + minutes) * 60 + rest


@given(st.integers(0, 2**63 - 1))
def test_a_count_with_or_without_commas(count: int) -> None:
    assert parse_count(str(count)) == parse_count(f"{count:,}") == count


LONG = "9" * 5000
READ = {
    parse_size: "0|512|1e6|3MiB|3 mib|1.5GiB|10kB|10KB|.5MiB|0.3KiB|7B|1EiB|16EB",
    parse_duration: "60|0.5|1e3|40s|40 S|5min|5m|2 hours|1h30min|1 h 30 min 5 s|.5h|1.5d|250ms|0s",
    parse_count: "0|1000|1,000,000|1e6|10k|10 K|1 million|2.5 million|3M|1.5 thousand|2 billion",
}
REFUSED = {
    parse_shape: f"|4x0|4x-1|ax3|4x|4.5x2|(4, 30, 9)|4,30|{LONG}|{2**64 - 1}|٣x4|1_000",
    parse_size: f"|-1|-.5MiB|3M|3k|1.5|abc|inf|1_000|3 foos|1e999|1e9999999|{LONG}|17EiB",
    parse_duration: f"|soon|-5s|5 parsecs|30min1h|1h1h|1h30|1:30|inf|1e9d|{LONG}",
    parse_count: f"|-1|1.5|0.0001k|ten|1,00|5 dozen|1e30|{LONG}",
}


def test_the_page() -> None:
    """Numbers as people type them, sizes as they are printed, and what is refused."""
    sizes = (0, 1023, 1024, 2**20 - 1, 3 * 2**20, 10**6, 2**64 - 1)
    assert_golden(
        "numbers",
        *(
            "\n".join(f"{t}: {parse(t)}" for t in texts.split("|"))
            for parse, texts in READ.items()
        ),
        "\n".join(f"{n}: {format_size(n)}; {format_size(n, exact=True)}" for n in sizes),
        *(refused(parse, texts.split("|")) for parse, texts in REFUSED.items()),
    )


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
