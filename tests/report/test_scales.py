"""Do values that are texts stand where their numbers say?"""

import math

import pytest

from chunkwise_lab.report.plots import style
from chunkwise_lab.report.scales import number, numbers, words

# The grounds of the page.
WHITE, DARK = "#ffffff", "#16191d"


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb``, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21, as WCAG defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("text", "value"),
    [("64KiB", 65536), ("0.75", 0.75), ("0", 0), ("50x50", 2500), ("1e6", 1e6), ("790", 790)],
)
def test_numbers_are_read(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["default", "libhdf5", "nan", "inf", "50x", "", "deflate:6"])
def test_words_are_none(text: str) -> None:
    assert number(text) is None


def test_words_and_zero_stand_left_of_a_logarithmic_axis() -> None:
    scale = numbers(["default", "1MiB", "0", "64KiB", "64MiB"], log=True)
    assert scale.places["64KiB"] == pytest.approx(math.log10(65536))
    order = sorted(scale.places, key=lambda text: scale.places[text])
    assert order == ["default", "0", "64KiB", "1MiB", "64MiB"]
    assert len(scale.breaks) == 2
    for text, other, place in zip(order, order[1:], sorted(scale.breaks), strict=False):
        assert scale.places[text] < place < scale.places[other]


def test_zero_is_a_number_on_a_linear_axis() -> None:
    scale = numbers(["0", "0.25", "1", "default"], log=False)
    assert (scale.places["0"], scale.places["1"]) == (0, 1)
    assert scale.places["default"] < 0
    assert len(scale.breaks) == 1


def test_equal_numbers_share_a_place() -> None:
    scale = numbers(["1MiB", "1048576", "2MiB"], log=True)
    assert scale.places["1MiB"] == scale.places["1048576"]


@pytest.mark.parametrize("texts", [["default"], ["64KiB"], ["libhdf5", "h5py"], ["0", "default"]])
def test_without_two_numbers_there_are_words(texts: list[str]) -> None:
    assert numbers(texts, log=True) == words(texts)


def test_ticks_do_not_touch() -> None:
    texts = [str(n) for n in range(1000, 1100)]
    ticks = numbers(texts, log=False).ticks
    assert 5 <= len(ticks) <= 20
    assert ticks[0].text == "1000"


def test_each_style_is_seen_on_white_and_on_dark_and_differs_without_colour() -> None:
    looks = [style(n) for n in range(36)]
    assert len({(look.colour, look.mark, look.dash) for look in looks}) == 36
    for look in (*looks, style(None, published=True)):
        assert contrast(look.colour, WHITE) >= 3
        assert contrast(look.colour, DARK) >= 3
    # Six at a time are told apart in black and white.
    assert len({look.mark for look in looks[:6]}) == len({look.dash for look in looks[:6]}) == 6
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_words_that_are_numbers_stand_by_value() -> None:
    assert list(words(["2", "10", "1"]).places) == ["1", "2", "10"]
    assert list(words(["790x790", "8x8"]).places) == ["8x8", "790x790"]
    assert list(words(["b", "1", "a"]).places) == ["b", "1", "a"]


def test_values_that_nearly_coincide_are_seen() -> None:
    sizes = ["8x8", "790x790", "791x791", "3162x3162"]
    assert numbers(sizes, log=True).crowded
    assert not numbers(sizes[1::2], log=True).crowded
    assert not numbers(["1KiB", "1024", "1MiB"], log=True).crowded
