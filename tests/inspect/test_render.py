"""Are facts and findings shown completely, within the console, and legibly?"""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from chunkwise.inspection.facts import ObjectFacts
from chunkwise.inspection.folder import FileSummary, refusal
from chunkwise.inspection.render import print_folder
from chunkwise.inspection.render.words import ratio_words, wrapped
from chunkwise.remedy.fix import Fix
from tests.support.golden import assert_golden
from tests.support.inspect_fakes import (
    DATASET,
    FORMAT,
    METADATA,
    PATTERNS,
    VIRTUAL,
    dataset,
    file_facts,
    finding,
    one,
    shown,
)
from tests.support.versions import needs_cache_of_hdf5_2

# --- the pages -------------------------------------------------------------------------


@needs_cache_of_hdf5_2  # The pages name the reader that is here
def test_the_pages() -> None:
    """A file and single datasets, with what is unusual in them."""
    unusual = replace(
        FORMAT,
        userblock_nbytes=512,
        space_strategy="page",
        page_nbytes=65_536,
        space_persistent=True,
        free_nbytes=2_048,
        flags=("write", "swmr"),
    )
    unlisted = replace(DATASET, chunks=None, stored_nbytes=None, ratio=None, unlisted="bad\x1b")
    unwritten = replace(DATASET, stored_nbytes=0, ratio=None)
    strings = replace(DATASET, unavailable_filters=(32_008, 40_000), variable_length=True)
    lacking = replace(DATASET, filters="bitshuffle:lz4", unavailable_filters=(32_008,))
    objects = (
        dataset("/grown", replace(DATASET, maxshape=(None, None, 400), dimensions=None)),
        dataset("/scale", replace(unwritten, is_scale=True)),
        dataset("/unwritten", unwritten),
        dataset("/v", VIRTUAL),
        dataset("/attributes", unreadable_attributes=("units (bad\x1b)",)),
        dataset("/unlisted", unlisted),
        dataset("/strings", strings),
        dataset("/lacking", lacking),
        replace(dataset("/broken"), kind="unreadable", reason="bad header", dataset=None),
        ObjectFacts("/soft", 1, "soft_link", target="/gone", dangling=True),
        *(ObjectFacts(f"/a{rest}", 1 + rest.count("/"), "group") for rest in ("", "/b", "/b/c")),
        ObjectFacts("/e", 1, "group"),
    )
    found = (
        finding("/v", severity="error"),
        finding(waste_nbytes=5),
        finding(None, "free-space", severity="note"),
    )
    group = ObjectFacts("/a", 1, "group")
    assert_golden(
        "inspect",
        shown(file_facts(*objects, file_format=unusual, path="my model.nc", findings=found)),
        shown(file_facts()),
        shown(file_facts(group, metadata=replace(METADATA, unaccounted_nbytes=0))),
        shown(replace(one(), findings=(finding(),)), single=True),
        shown(
            one(chunks=None, layout="contiguous", sample=None, patterns=PATTERNS[1:]), single=True
        ),
        shown(file_facts(objects=(dataset(facts=unlisted),)), single=True),
        shown(file_facts(objects=(objects[8],)), single=True),
    )


def test_the_page_of_a_folder() -> None:
    assert_golden(
        "inspect-folder",
        folder(
            FileSummary("bad.nc", 0, worst=refusal("the file is empty"), reason="empty"),
            FileSummary("archive/" + "long/" * 30 + "a.nc", 10**7, 3, finding(), 10**6),
            FileSummary("fine.nc", 10**6),
            passed_over=17,
            sampled=False,
        ),
        folder(FileSummary("bad.nc", 0, reason="empty"), sampled=False),
        folder(passed_over=2),
    )


# --- ratios ----------------------------------------------------------------------------


@given(st.floats(1e-12, 1e12))
@example(0.09375)
def test_ratios_read_back(ratio: float) -> None:
    words = ratio_words(ratio).replace(",", "")
    assert "e" not in words
    number = 1 / float(words[2:]) if words.startswith("1/") else float(words)
    assert number == pytest.approx(ratio, rel=0.006)


# --- wrapping --------------------------------------------------------------------------


def test_numbers_stay_with_what_they_count() -> None:
    for width in range(30, 60):
        text = wrapped("x  int32  dimension scale  6 attributes, 3,000 chunks (1.0 MiB)", width)
        assert not [line for line in text if re.search(r"(?<!\S)\(?[\d.,]+$", line)]
    # A digit at a word's end is no number.
    assert wrapped("as read by libhdf5 before that", 18) == ["as read by libhdf5", "before that"]


@given(st.text("ab 19.,(", max_size=60), st.integers(16, 40))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(len, lines)) <= width


# --- the tree --------------------------------------------------------------------------


def test_long_trees_are_cut_aloud() -> None:
    objects = tuple(dataset(f"/d{i}") for i in range(500))
    facts = file_facts(*objects, findings=tuple(finding(f"/d{i}", f"c{i}") for i in range(40)))
    text = shown(facts, columns=100)
    shown_objects = re.findall(r"── d\d+ ", text)
    assert 5 < len(shown_objects) < 20
    assert f"{500 - len(shown_objects)} more objects not shown: add --all" in text
    assert all(f"  c{i}  " in text for i in range(40)), "findings are never cut"
    whole = shown(facts, columns=100, everything=True)
    assert len(re.findall(r"── d\d+ ", whole)) == 500
    assert "not shown" not in whole


# --- folders ---------------------------------------------------------------------------


def folder(
    *summaries: FileSummary, passed_over: int = 0, sampled: bool = True, **console: Any
) -> str:
    stream = io.StringIO()
    made = Console(file=stream, width=80, **console)
    print_folder(summaries, passed_over, made, sampled=sampled)
    return stream.getvalue()


def test_terminal_breaks_long_lines_itself() -> None:
    name = "archive/" + "long/" * 30 + "a.nc"
    text = folder(FileSummary(name, 10**7), force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= 80
    assert name in "".join(text.split())


# --- the console -----------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("single", [False, True])
def test_fits_the_console(columns: int, single: bool) -> None:
    short = (Fix("shell", "h5clear -s model.nc"),)
    found = (finding(fixes=short), finding("/a/" + "very_" * 30 + "long", fixes=short))
    if single:
        text = shown(replace(one(), findings=found), columns=columns, single=True)
    else:
        objects = (dataset(), dataset("/a/" + "very_" * 30 + "long"), dataset("/v", VIRTUAL))
        facts = file_facts(*objects, findings=found)
        text = shown(facts, columns=columns)
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert not [line for line in lines if line != line.rstrip()]
    assert "very_" * 30 + "long" in re.sub(r"[\s│]", "", text)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1))
@pytest.mark.slow
def test_names_cannot_disturb_the_terminal(name: str) -> None:
    found = (finding(f"/{name}", summary=name, fixes=(Fix("shell", name),)),)
    facts = file_facts(
        dataset(f"/{name}", replace(DATASET, dimensions=(name,) * 3, dtype=name, fill_value=name)),
        path=name,
        findings=found,
    )
    for text in (shown(facts), shown(replace(facts, objects=facts.objects[1:]), single=True)):
        assert all(character.isprintable() or character == "\n" for character in text)
