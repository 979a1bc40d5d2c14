"""Are facts and findings shown completely, within the console, and legibly?"""

import io
import random
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from chunkwise.cells import Hung
from chunkwise.inspection.facts import ObjectFacts
from chunkwise.inspection.folder import FileSummary, refusal
from chunkwise.inspection.render import lint_line, patterns, print_folder
from chunkwise.inspection.render.words import ratio_words, wrapped
from chunkwise.model.purpose import Purpose, Use
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2
from chunkwise.remedy.fix import Fix
from tests.support.golden import assert_golden
from tests.support.inspect_fakes import (
    CHUNKS,
    DATASET,
    FORMAT,
    METADATA,
    PATTERNS,
    SAMPLE,
    VIRTUAL,
    dataset,
    file_facts,
    finding,
    one,
    shown,
    survival,
)  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have the defaults of libhdf5 2, whichever it has."""
    own = replace(LIBHDF5_2, name="this process")
    monkeypatch.setattr(patterns, "this_process", lambda: own)


# --- the pages -------------------------------------------------------------------------


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


def folder(
    *summaries: FileSummary, passed_over: int = 0, sampled: bool = True, **console: Any
) -> str:
    stream = io.StringIO()
    made = Console(file=stream, width=80, **console)
    print_folder(summaries, passed_over, made, sampled=sampled)
    return stream.getvalue()


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


# --- one dataset -----------------------------------------------------------------------

# A value that differs from that of the fake, for each field.
OTHERS: dict[str, Any] = {
    "shape": (1_234, 100, 201),
    "maxshape": (1_234, 100, 400),
    "dimensions": None,
    "is_scale": True,
    "dtype": "float64",
    "byte_order": "big",
    "itemsize": 8,
    "variable_length": True,
    "layout": "compact",
    "sources": VIRTUAL.sources,
    "mappings": 4,
    "chunks": None,
    "filters": "none",
    "unavailable_filters": (32_123,),
    "fill_value": "default",
    "fill_time": "never",
    "allocation_time": "early",
    "logical_nbytes": None,
    "stored_nbytes": 20_000_001,
    "ratio": 5.1,
    "sample": None,
    "patterns": None,
    "purpose": Purpose((Use("maps", (1, 100, 201)),), "each chunk is one of them"),
    "unlisted": "bad index",
    "taken_for": ("'all' was taken for 1 block.",),
}

# Of chunks, for each field by the type of its value.
OF_TYPE: dict[type, Any] = {
    bool: lambda value: not value,
    int: lambda value: 3 * value + 1,
    str: lambda _: "fixed array",
    tuple: lambda _: (2, 100, 200),
}
OTHER_SAMPLES: dict[str, Any] = {
    "chunks": 5, "raw_nbytes": 250_000, "stored_nbytes": 77_000, "read_s": 0.01, "encodings": (),
}  # fmt: skip


def test_each_fact_is_shown() -> None:
    assert set(OTHERS) == {field.name for field in fields(DATASET)}
    assert set(OTHER_SAMPLES) == {field.name for field in fields(SAMPLE)}
    usual = shown(one(), single=True)
    virtual = shown(one(layout="virtual"), single=True)
    for name, other in OTHERS.items():
        changes, before = {name: other}, usual
        if name in ("sources", "mappings"):
            changes, before = {name: other, "layout": "virtual"}, virtual
        assert shown(one(**changes), single=True) != before, name
    for field in fields(CHUNKS):
        value = getattr(CHUNKS, field.name)
        changed = replace(CHUNKS, **{field.name: OF_TYPE[type(value)](value)})
        assert shown(one(chunks=changed), single=True) != usual, field.name
    for name, other in OTHER_SAMPLES.items():
        changed_sample = replace(SAMPLE, **{name: other})
        assert shown(one(sample=changed_sample), single=True) != usual, name


def test_reader_of_this_process_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(LIBHDF5_1, name="this process")
    monkeypatch.setattr(patterns, "this_process", lambda: own)
    text = shown(one(), single=True)
    assert "libhdf5-1.10 (here)" in text
    assert text.count("(here)") == 2  # with its explanation
    # It has a row of its own where it is like none of the libraries.
    monkeypatch.setattr(patterns, "this_process", lambda: replace(own, cache_nbytes=12_345))
    assert "(here)" not in shown(one(), single=True)


def test_little_that_is_lost_is_not_rounded_away() -> None:
    pattern = replace(PATTERNS[0], chunks=10_000, survival=(survival("libhdf5-2", reloads=1),))
    assert " 99% " in shown(one(patterns=(pattern,)), single=True)


@pytest.mark.parametrize("columns", [80, 60, 20])
def test_figures_are_never_cut(columns: int) -> None:
    huge = replace(
        PATTERNS[0],
        block=(1_234_567, 1_234_567, 1_234_567),
        chunks=1_234_567_890,
        selected_nbytes=10**15,
        decoded_nbytes=10**18,
        amplification=123_456_789.0,
        survival=(survival("libhdf5-1.10", 1e7, reloads=1_234_567_890, collisions=12_345_678),),
    )
    text = shown(one(patterns=(huge,)), columns=columns, single=True)
    assert "…" not in text
    for figure in ("1,234,567,890", "888.2 PiB", "123,000,000", "12,345,678", "10,000,000"):
        assert figure in text


# --- findings --------------------------------------------------------------------------

TWO = finding().fixes
CREATE, MAKE = Fix("h5py", "create()", writing=True), Fix("C", "H5Dcreate2();", writing=True)
WRITING_TOO = (CREATE, Fix("C", "H5Dopen2();"), Fix("h5py", "read()"))


@pytest.mark.parametrize(
    ("fixes", "tool", "single", "labels"),
    [
        (TWO, None, False, ["Fix (h5py):"]),
        (TWO, "all", False, ["Fix (h5py):", "Fix (nccopy):"]),
        (TWO, "nccopy", False, ["Fix (nccopy):"]),
        # A tool that has no line is said to have none.
        (TWO, "h5repack", False, ["Fix (h5py): (no h5repack line)"]),
        # Lines for writing stand apart, and are shown where there are no others.
        (WRITING_TOO, None, False, ["Fix (C):"]),
        (WRITING_TOO, None, True, ["Fix (C):", "Fix (h5py):"]),
        (WRITING_TOO, "h5py", True, ["When writing (h5py):", "Fix (h5py):"]),
        (WRITING_TOO, "netCDF4", True, ["Fix (C): (no netCDF4 line)"]),
        (WRITING_TOO, "all", True, ["When writing (h5py):", "Fix (C):", "Fix (h5py):"]),
        ((CREATE, MAKE), None, True, ["When writing (h5py):", "When writing (C):"]),
        ((CREATE, MAKE), None, False, ["When writing (h5py):"]),
    ],
)
def test_which_lines_are_shown(
    fixes: tuple[Fix, ...], tool: str | None, single: bool, labels: list[str]
) -> None:
    facts = replace(one() if single else file_facts(), findings=(finding(fixes=fixes),))
    text = shown(facts, single=single, tool=tool)
    assert re.findall(r"^  ((?:Fix|When writing) \(.*)", text, re.MULTILINE) == labels
    if fixes is WRITING_TOO:
        assert ("add --tool all" in text) == (single and tool is None)


def test_lines_to_paste_are_whole() -> None:
    line = "nccopy -c " + ",".join(f"dimension_{i}/{i}" for i in range(30)) + " a.nc b.nc"
    fixes = (Fix("nccopy", f"# two lines\n{line}"),)
    text = shown(file_facts(findings=(finding(fixes=fixes),)), columns=60)
    assert f"    # two lines\n    {line}\n" in text


def test_many_alike_are_one_paragraph() -> None:
    alike = tuple(finding(f"/d{i}") for i in range(9_815))
    text = shown(file_facts(findings=(*alike, finding(None, "free-space", severity="note"))))
    assert all(fact in text for fact in ("9,816", "9,815", "/d0", "/d1", "9,812 more"))
    assert text.count("chunk-exceeds-cache") == 1 + text.count("(see the top)")
    assert "/d9814" in shown(file_facts(findings=alike), everything=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": None},
        {"shape": ()},
        {"shape": (0, 3)},
        {"unavailable_filters": (32_123,)},
        {"variable_length": True},
        {"unlisted": "bad index"},
    ],
)
def test_what_cannot_be_timed_is_not_to_be_timed(changes: dict[str, Any]) -> None:
    changed = replace(DATASET, maxshape=None, dimensions=None, **changes)
    text = shown(file_facts(dataset(facts=changed), findings=(finding(),)))
    assert "chunkwise inspect model.nc /t2m" in text
    assert "chunkwise bench" not in text


def test_lint_line_is_one_line() -> None:
    line = lint_line("a\nb.nc", finding("/x\x1b[31m", summary="One.\nTwo."))
    assert line == r"a\nb.nc: /x\x1b[31m: warning: chunk-exceeds-cache: One. Two."
    assert lint_line("a.nc", finding(None)).startswith("a.nc: (file): warning: ")


# --- words, the tree and the console ---------------------------------------------------


@given(st.floats(1e-12, 1e12))
@example(0.09375)
def test_ratios_read_back(ratio: float) -> None:
    words = ratio_words(ratio).replace(",", "")
    assert "e" not in words
    number = 1 / float(words[2:]) if words.startswith("1/") else float(words)
    assert number == pytest.approx(ratio, rel=0.006)


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


def test_terminal_breaks_long_lines_itself() -> None:
    name = "archive/" + "long/" * 30 + "a.nc"
    text = folder(FileSummary(name, 10**7), force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= 80
    assert name in "".join(text.split())


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


@pytest.mark.parametrize("seed", range(50))
def test_what_is_broken_in_a_table_goes_on_indented(seed: int) -> None:
    rng = random.Random(seed)
    words = rng.choices(["error: forged", "温度温度温度", "x" * 30, "😀", " ", "a b c"], k=12)
    name = "pattern " + " ".join(words)
    table = Table(box=None, padding=0, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_row(Hung(name))
    out = io.StringIO()
    Console(file=out, width=rng.randrange(12, 60)).print(table)
    first, *others = (line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))
    assert first.startswith("pattern")
    assert others
    assert all(line.startswith("  ") for line in others if line)
    assert "".join([first, *others]).replace(" ", "") == name.replace(" ", "")


def test_lines_of_its_own_begin_at_the_edge() -> None:
    out = io.StringIO()
    Console(file=out, width=20).print(Hung("row\n1x1000"))
    assert out.getvalue() == "row\n1x1000\n"
