"""Rules of repack: which datasets a pattern means, and what a text says."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chunkwise.grammar import Pipeline
from chunkwise.repacking.rules import (
    Rule,
    Rules,
    holding,
    matches,
    parse_chunk_rule,
    parse_filter_rule,
    require_matches,
)
from tests.support.golden import assert_golden, refused

MEANT = """
t2m~/t2m t2m~/a/b/t2m t*~/a/t2m *~/a/b/c **~/a/b/c /a/*~/a/t2m a/*~/a/t2m /a/**~/a/b/t2m
/**/t2m~/t2m /**/t2m~/a/b/t2m t[12]m~/t2m t?m~/t2m /a[1]~/a[1] /a:b~/a:b
"""
NOT_MEANT = "t2m~/t2m_std /t2m~/a/t2m /a/*~/a/b/t2m /a/**~/ab/t2m t[!12]m~/t2m /a.b~/aXb"


def test_a_pattern_means() -> None:
    for pairs, meant in ((MEANT, True), (NOT_MEANT, False)):
        for pattern, path in (pair.split("~") for pair in pairs.split()):
            assert matches(pattern, path) is meant, (pattern, path)


@given(st.text(st.characters(exclude_characters="/\0"), min_size=1))
def test_every_name_means_itself(name: str) -> None:
    assert matches(name, f"/{name}")
    assert matches(name, f"/group/{name}")
    assert matches(f"/group/{name}", f"/group/{name}")


CHUNKS = "365x20x20 t2m:365x20x20 /a:b/*:auto contiguous x:stored"
FILTERS = """
none shuffle+zstd:3 *:shuffle+zstd:3 /a:b:deflate:4 blosc:lz4:5 /blosc:lz4 t2m:szip:nn:8 x:stored
"""
NO_FILTERS = "t2m:deflat:4 deflat:4 deflate:11 t2m:deflate:11 t2m:none+shuffle :none"


def test_the_page() -> None:
    """What is read of rules, and what is refused."""

    def read(rules: Iterable[Rule[Any]]) -> str:
        return "\n".join(f"{one.text}: {one.pattern!r} {one.setting}" for one in rules)

    no_chunks = ["0x3", "t2m:-1x3", "t2m:3y4", "t2m:", ":3x4", "scalar", (3, -1)]
    assert_golden(
        "repack-rules",
        read(map(parse_chunk_rule, CHUNKS.split())),
        read(map(parse_filter_rule, FILTERS.split())),
        refused(lambda rule: Rules.of(rule, None), no_chunks),
        refused(lambda rule: Rules.of(None, rule), NO_FILTERS.split()),
    )


def test_the_api_takes_mappings_and_values() -> None:
    rules = Rules.of({"t2m": (365, 20, 20), "/a/*": "auto"}, {"*": Pipeline.parse("zstd:3")})
    assert [(r.pattern, r.setting) for r in rules.chunks] == [
        ("t2m", (365, 20, 20)),
        ("/a/*", "auto"),
    ]
    assert str(rules.filters[0].setting) == "zstd:3"
    assert Rules.of((3, 4), ["a:none", "b:lzf"]).chunks[0].setting == (3, 4)


def test_the_last_rule_holds() -> None:
    rules = Rules.of(None, ["zstd:3", "mask:none"]).filters
    assert str(holding(rules, ["/mask"]).setting) == "none"  # type: ignore[union-attr]
    assert str(holding(rules, ["/t2m"]).setting) == "zstd:3"  # type: ignore[union-attr]
    swapped = tuple(reversed(rules))
    assert str(holding(swapped, ["/mask"]).setting) == "zstd:3"  # type: ignore[union-attr]
    assert holding(Rules.of(None, "t2m:none").filters, ["/x"]) is None


def test_a_rule_that_means_nothing_says_what_there_is() -> None:
    paths = {"/a/t2m": ["/a/t2m"], "/lat": ["/lat"]}

    def check(rule: str) -> None:
        require_matches(Rules.of(rule, None).chunks, paths, ["/", "/a"])

    said = refused(check, ["tm2:3x4", "/a:3x4", "/zz/*:3x4"])
    assert said.count("DatasetNotFoundError") == 3
    assert_golden("repack-rules-without-dataset", said)
