"""Rules of repack: which datasets a pattern means, and what a text says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import DatasetNotFoundError, UsageError
from chunkwise.grammar import Pipeline
from chunkwise.repacking.rules import (
    Rules,
    holding,
    matches,
    parse_chunk_rule,
    parse_filter_rule,
    require_matches,
)


@pytest.mark.parametrize(
    ("pattern", "path", "meant"),
    [
        ("t2m", "/t2m", True),
        ("t2m", "/a/b/t2m", True),
        ("t2m", "/t2m_std", False),
        ("t*", "/a/t2m", True),
        ("*", "/a/b/c", True),
        ("**", "/a/b/c", True),
        ("/t2m", "/a/t2m", False),
        ("/a/*", "/a/t2m", True),
        ("/a/*", "/a/b/t2m", False),
        ("a/*", "/a/t2m", True),
        ("/a/**", "/a/b/t2m", True),
        ("/a/**", "/ab/t2m", False),
        ("/**/t2m", "/t2m", True),
        ("/**/t2m", "/a/b/t2m", True),
        ("t[12]m", "/t2m", True),
        ("t[!12]m", "/t2m", False),
        ("t?m", "/t2m", True),
        ("/a[1]", "/a[1]", True),
        ("/a.b", "/aXb", False),
        ("/a:b", "/a:b", True),
    ],
)
def test_a_pattern_means(pattern: str, path: str, meant: bool) -> None:
    assert matches(pattern, path) is meant


@given(st.text(st.characters(exclude_characters="/\0"), min_size=1))
def test_every_name_means_itself(name: str) -> None:
    assert matches(name, f"/{name}")
    assert matches(name, f"/group/{name}")
    assert matches(f"/group/{name}", f"/group/{name}")


@pytest.mark.parametrize(
    ("text", "pattern", "setting"),
    [
        ("365x20x20", "**", (365, 20, 20)),
        ("t2m:365x20x20", "t2m", (365, 20, 20)),
        ("/a:b/*:auto", "/a:b/*", "auto"),
        ("contiguous", "**", "contiguous"),
        ("x:stored", "x", "stored"),
    ],
)
def test_a_chunk_rule_is_read(text: str, pattern: str, setting: object) -> None:
    rule = parse_chunk_rule(text)
    assert (rule.pattern, rule.setting, rule.text) == (pattern, setting, text)


@pytest.mark.parametrize(
    ("text", "pattern", "setting"),
    [
        ("none", "**", "none"),
        ("shuffle+zstd:3", "**", "shuffle+zstd:3"),
        ("*:shuffle+zstd:3", "*", "shuffle+zstd:3"),
        ("/a:b:deflate:4", "/a:b", "deflate:4"),
        ("blosc:lz4:5", "**", "blosc:lz4:5"),
        ("/blosc:lz4", "/blosc", "lz4"),
        ("t2m:szip:nn:8", "t2m", "szip:nn:8"),
        ("x:stored", "x", "stored"),
    ],
)
def test_a_filter_rule_is_read(text: str, pattern: str, setting: str) -> None:
    rule = parse_filter_rule(text)
    assert (rule.pattern, str(rule.setting)) == (pattern, setting)


@pytest.mark.parametrize(
    ("chunk", "filters", "said"),
    [
        ("0x3", None, "at least 1"),
        ("t2m:-1x3", None, "at least 1"),
        ("t2m:3y4", None, "not a whole number"),
        ("t2m:", None, "empty shape"),
        (":3x4", None, "a pattern is missing"),
        ("scalar", None, "at least one dimension"),
        ((3, -1), None, "at least 1"),
        (None, "t2m:deflat:4", "unknown filter 'deflat': did you mean deflate?"),
        (None, "deflat:4", "unknown filter 'deflat': did you mean deflate?"),
        (None, "deflate:11", "LEVEL from 0 to 9"),
        (None, "t2m:deflate:11", "LEVEL from 0 to 9"),
        (None, "t2m:none+shuffle", "none stands alone"),
        (None, ":none", "a pattern is missing"),
    ],
)
def test_what_is_no_rule_is_refused(chunk: object, filters: object, said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        Rules.of(chunk, filters)  # type: ignore[arg-type]
    assert said in str(wrong.value)


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


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("tm2:3x4", "no dataset is called 'tm2'; did you mean '/a/t2m'?"),
        ("/a:3x4", "'/a' is a group; for all datasets below it write /a/**"),
        ("/zz/*:3x4", "there is '/a/t2m', '/lat'"),
    ],
)
def test_a_rule_that_means_nothing_says_what_there_is(rule: str, said: str) -> None:
    paths = {"/a/t2m": ["/a/t2m"], "/lat": ["/lat"]}
    with pytest.raises(DatasetNotFoundError) as wrong:
        require_matches(Rules.of(rule, None).chunks, paths, ["/", "/a"])
    assert said in str(wrong.value)
