"""Does each rule give the word that the figures deserve?"""

from __future__ import annotations

import pytest

from chunkwise.studies.claims import judge
from chunkwise.studies.results import Row
from chunkwise.studies.rules import Verdict
from tests.studies import claim, row

SLOW, FAST = {"cache": "1MiB"}, {"cache": "3MiB"}


def ratio(slow: Row, fast: Row, **settings: object) -> Verdict:
    return judge(claim("ratio", slow=SLOW, fast=FAST, **settings), [slow, fast], "median")


def caches(slow: tuple[float, ...], fast: tuple[float, ...]) -> tuple[Row, Row]:
    return row(*slow, cache="1MiB"), row(*fast, cache="3MiB")


@pytest.mark.parametrize(
    ("slow", "word"),
    [
        ((345, 346, 344), "holds"),
        ((1.5, 1.51, 1.49), "no longer holds"),
        ((0.7, 0.71, 0.69), "reversed"),
        ((2.02, 2.01, 2.0), "cannot tell"),
        # One repeat tells the coarse and nothing else.
        ((345,), "holds"),
        ((2.5,), "cannot tell"),
    ],
)
def test_ratio(slow: tuple[float, ...], word: str) -> None:
    assert ratio(*caches(slow, (1.0, 1.01, 0.99))).word == word


def test_a_sentence_has_numbers_units_version_and_the_papers_figures() -> None:
    slow, fast = caches((345, 346, 344), (0.37, 0.38, 0.36))
    told = judge(
        claim("ratio", published="345 s against 0.37 s", slow=SLOW, fast=FAST),
        [slow, fast],
        "median",
    )
    assert told.sentence == (
        "5.75 min with a chunk cache of 1MiB against 370 ms with a chunk cache of 3MiB: 932 times "
        "as long (HDF5 2.0.0) [paper: 345 s against 0.37 s]."
    )


def test_the_larger_stands_first_also_where_the_paper_has_it_the_other_way_round() -> None:
    told = ratio(*caches((0.5, 0.5, 0.5), (1.0, 1.0, 1.0)))
    assert told.sentence.startswith("1.00 s with a chunk cache of 3MiB against 500 ms")
    assert "2.00 times as long" in told.sentence


def test_what_cannot_be_told_says_how_many_repeats_would_tell() -> None:
    told = ratio(*caches((2.1, 2.15, 2.05), (1.0, 1.01, 0.99)))
    assert told.word == "cannot tell"
    assert "By 3 repeats it lies between" in told.sentence
    assert "where 2 decides: about 7 repeats would tell." in told.sentence
