"""Are facts and findings shown completely, within the console, and legibly?"""

from __future__ import annotations

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
from chunkwise.inspection.render.words import ratio_words, vain_words, wrapped
from chunkwise.remedy.fix import Fix
from tests.support.inspect_fakes import (
    DATASET,
    FORMAT,
    METADATA,
    VIRTUAL,
    dataset,
    file_facts,
    finding,
    flowed,
    one,
    shown,
)

# --- ratios ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(54_812, "54,800"), (0.000218, "1/4,590"), (6.468, "6.47"), (1, "1.00"), (0.21849, "0.218")],
)
def test_ratios_have_no_exponent(ratio: float, words: str) -> None:
    assert ratio_words(ratio) == words


@given(st.floats(1e-12, 1e12))
@example(0.09375)
def test_ratios_read_back(ratio: float) -> None:
    words = ratio_words(ratio).replace(",", "")
    assert "e" not in words
    number = 1 / float(words[2:]) if words.startswith("1/") else float(words)
    assert number == pytest.approx(ratio, rel=0.006)


@pytest.mark.parametrize(
    ("waste", "size", "words"),
    [
        (11_388, 1, "11,400x"),
        (908, 1_000, "0.908x"),
        (5, 100, "0.05x"),
        (0, 100, "-"),
        (5, 0, "-"),
        (5, None, "-"),
    ],
)
def test_waste_is_a_multiple(waste: int, size: int | None, words: str) -> None:
    assert vain_words(waste, size) == words


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


# --- the file --------------------------------------------------------------------------


def test_heading_tells_format_and_what_opening_takes() -> None:
    text = flowed(
        shown(
            file_facts(
                file_format=replace(
                    FORMAT,
                    userblock_nbytes=512,
                    space_strategy="page",
                    page_nbytes=65_536,
                    space_persistent=True,
                    free_nbytes=2_048,
                    flags=("write", "swmr"),
                )
            )
        )
    )
    for words in (
        "model.nc: 20.0 MiB, read by HDF5 2.0.0 (h5py 3.16.0)",
        "superblock 2, read by HDF5 1.8 and later",
        "user block of 512 B",
        "pages of 64.0 KiB",
        "2.0 KiB free, remembered",
        "its writer left it marked as open (write and swmr)",
        "metadata: 446.1 KiB in 43 places, 18 blocks of 1 MiB",
        "3 requests to open the file, 1,210 to list it (337.6 KiB), 97 more for chunk indexes",
        "12.1 KiB unaccounted for",
    ):
        assert words in text


def test_heading_leaves_out_what_is_not_so() -> None:
    heading = shown(
        file_facts(metadata=replace(METADATA, unaccounted_nbytes=0, index_requests=0))
    ).partition("\n/  ")[0]
    for words in ("user block", "pages", "marked", "unaccounted", "indexes"):
        assert words not in heading
    assert "metadata" not in shown(file_facts(metadata=None))


# --- the tree --------------------------------------------------------------------------


def test_tree_tells_the_new_facts() -> None:
    text = flowed(shown(file_facts(dataset(), dataset("/v", VIRTUAL)), columns=200))
    assert "(time, lat, -; time unlimited, axis 2 up to 400)" in text
    assert "1,200 of 1,234 chunks of 1x100x200" in text
    assert "shuffle+deflate:4, v1 B-tree" in text
    assert "4 mappings: 2001.h5:/t, /spare, 2002.h5:/t (missing: no such file) and 1 more" in text
    scale = shown(file_facts(dataset(facts=replace(DATASET, is_scale=True))), columns=200)
    assert "dimension scale" in scale


def test_branches_lead_to_each_member() -> None:
    paths = ["/a", "/a/b", "/a/b/c", "/a/d", "/e", "/f", "/f/g"]
    groups = tuple(ObjectFacts(path, path.count("/"), "group") for path in paths)
    lines = shown(file_facts(*groups)).splitlines()
    assert lines[lines.index("/  3 attributes") :] == [
        "/  3 attributes",
        "├── a",
        "│   ├── b",
        "│   │   └── c",
        "│   └── d",
        "├── e",
        "└── f",
        "    └── g",
    ]


@pytest.mark.parametrize(
    ("maxshape", "dimensions", "words"),
    [
        ((None, None, 400), None, "(axes 0, 1 unlimited, axis 2 up to 400)"),
        ((None, 100, 200), None, "(axis 0 unlimited)"),
        ((None, None, 200), ("t", "y", None), "(t, y, -; t, y unlimited)"),
        ((1_234, 100, 200), ("t", "y", "x"), "(t, y, x)"),
    ],
)
def test_growth(maxshape: Any, dimensions: Any, words: str) -> None:
    changed = replace(DATASET, maxshape=maxshape, dimensions=dimensions)
    text = shown(file_facts(dataset(facts=changed)), columns=99)
    assert f"1234x100x200 {words}  float32" in text


def test_unreadable_things_are_named() -> None:
    entry = dataset(unreadable_attributes=("units (bad\x1b)",))
    broken = replace(dataset("/b"), kind="unreadable", reason="bad header", dataset=None)
    link = ObjectFacts("/s", 1, "soft_link", target="/gone", dangling=True)
    text = flowed(shown(file_facts(entry, broken, link)))
    assert "s soft link to /gone, which is not there" in text
    assert r"attributes that HDF5 cannot read: units (bad\x1b)" in text
    assert "b cannot be opened: bad header" in text


def test_chunks_that_cannot_be_listed() -> None:
    unlisted = replace(DATASET, chunks=None, stored_nbytes=None, ratio=None, unlisted="bad\x1b")
    text = shown(file_facts(dataset(facts=unlisted)))
    assert r"chunks cannot be listed: bad\x1b" in text
    single = shown(file_facts(objects=(dataset(facts=unlisted),)), single=True)
    assert r"chunks      cannot be listed: bad\x1b" in single
    assert re.search(r"^stored +unknown$", single, re.M)


def test_scale_without_values() -> None:
    unwritten = replace(DATASET, stored_nbytes=0, ratio=None)
    assert "of data, none of it written" in shown(file_facts(dataset(facts=unwritten)))
    scale = shown(file_facts(dataset(facts=replace(unwritten, is_scale=True))))
    assert "no values stored (a dimension scale)" in scale
    assert "none of it written" not in scale


def test_missing_filters_are_named() -> None:
    lacking = dataset(facts=replace(DATASET, unavailable_filters=(32_008, 40_000)))
    assert lacking.dataset is not None
    strings = replace(lacking.dataset, variable_length=True)  # which chunkwise leaves to libhdf5
    text = flowed(shown(file_facts(replace(lacking, dataset=strings)), columns=200))
    assert (
        "HDF5 lacks filters bitshuffle (number 32008), number 40000 here and cannot read it"
        in text
    )


def test_who_reads_what_hdf5_lacks_a_filter_for() -> None:
    facts = replace(DATASET, filters="bitshuffle:lz4", unavailable_filters=(32_008,))
    text = flowed(shown(file_facts(dataset(facts=facts)), columns=200))
    assert "HDF5 by itself lacks filter bitshuffle (number 32008) here; chunkwise.open" in text
    assert "cannot read it" not in text


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


def test_tree_that_just_fits_is_whole() -> None:
    objects = tuple(dataset(f"/d{i}", VIRTUAL) for i in range(14))
    text = shown(file_facts(*objects), columns=200)
    assert "not shown" not in text
    assert len(text.partition("/  3 attributes")[2].splitlines()) in (29, 30)
    one_more = (*objects, dataset("/e"))
    assert "1 more object not shown" in shown(file_facts(*one_more), columns=200)


# --- the flat list ---------------------------------------------------------------------


def test_listing_is_sorted() -> None:
    small, large = replace(DATASET, stored_nbytes=1), replace(DATASET, stored_nbytes=10**9)
    objects = (dataset("/b", small), dataset("/c", large), dataset("/a"))
    found = (
        finding("/a", waste_nbytes=5),
        finding("/b", "other", waste_nbytes=70),
        finding("/b", waste_nbytes=3),
    )
    facts = file_facts(*objects, findings=found)

    def order(by: str) -> list[str]:
        return re.findall(r"  /(\w)(?=\s)", shown(facts, order=by).partition("dataset\n")[2])[:3]

    assert order("waste") == ["b", "a", "c"]
    assert order("bytes") == ["c", "a", "b"]
    assert order("name") == ["a", "b", "c"]
    text = shown(facts, order="waste")
    assert re.search(r"^ +70\.0x +94\.1 MiB +1 B .*  /b  other, chunk-exceeds-cache$", text, re.M)
    assert "multiples of the dataset's size; the most bytes come first" in flowed(text)
    assert "come first" not in shown(facts, order="name")
    assert "└──" not in text


def test_listing_without_waste_explains_none() -> None:
    assert "multiples" not in shown(file_facts(), order="waste")


def test_columns_of_the_listing_do_not_touch() -> None:
    wide = replace(DATASET, logical_nbytes=1_045_000, stored_nbytes=1_045_001, ratio=1e-7)
    facts = file_facts(dataset(facts=wide), findings=(finding(waste_nbytes=10**15),))
    (row,) = re.findall(r".*  /t2m .*", shown(facts, order="name"))
    assert row.split()[:6] == ["957,000,000x", "1020.5", "KiB", "1020.5", "KiB", "1/10,000,000"]


def test_long_listings_are_cut_aloud() -> None:
    facts = file_facts(*(dataset(f"/d{i}") for i in range(100)))
    assert "70 more datasets not shown: add --all" in shown(facts, order="name")
    assert "not shown" not in shown(facts, order="name", everything=True)


# --- folders ---------------------------------------------------------------------------


def folder(
    *summaries: FileSummary, passed_over: int = 0, sampled: bool = True, **console: Any
) -> str:
    stream = io.StringIO()
    made = Console(file=stream, width=80, **console)
    print_folder(summaries, passed_over, made, sampled=sampled)
    return stream.getvalue()


def test_one_line_a_file() -> None:
    name = "archive/" + "long/" * 30 + "a.nc"
    text = folder(
        FileSummary("bad.nc", 0, worst=refusal("the file is empty"), reason="the file is empty"),
        FileSummary(name, 10**7, 3, finding(), 10**6),
        FileSummary("fine.nc", 10**6),
        passed_over=17,
    )
    head, bad, wrong, fine, empty, *total = text.splitlines()
    assert head.split() == ["worst", "findings", "size", "wasted", "file"]
    assert " ".join(bad.split()) == "error - 0 B - bad.nc cannot be opened: the file is empty"
    assert " ".join(wrong.split()) == f"warning 3 9.5 MiB 0.1x {name} chunk-exceeds-cache"
    assert " ".join(fine.split()) == "ok - 976.6 KiB - fine.nc"
    assert not empty
    assert flowed(" ".join(total)) == (
        "3 HDF5 files of 10.5 MiB: 1 cannot be opened, 1 with warnings, "
        "1 without a finding; 17 files of other formats passed over "
        "wasted: bytes stored, fetched or decoded for nothing, as multiples of the file's size"
    )


def test_folder_says_when_it_was_not_sampled() -> None:
    fine, bad = FileSummary("fine.nc", 10**6), FileSummary("bad.nc", 0, reason="empty")
    said = "Not sampled: --sample also tells how fast data decodes and which filters pay.\n"
    assert folder(fine, bad, sampled=False).endswith(said)
    assert "Not sampled" not in folder(fine, bad)
    assert "Not sampled" not in folder(bad, sampled=False)
    assert "wasted:" not in folder(fine)


def test_terminal_breaks_long_lines_itself() -> None:
    name = "archive/" + "long/" * 30 + "a.nc"
    text = folder(FileSummary(name, 10**7), force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= 80
    assert name in "".join(text.split())


def test_empty_folder() -> None:
    assert folder(passed_over=2) == "0 HDF5 files; 2 files of other formats passed over\n"


# --- the console -----------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("order", [None, "waste"])
@pytest.mark.parametrize("single", [False, True])
def test_fits_the_console(columns: int, order: str | None, single: bool) -> None:
    short = (Fix("shell", "h5clear -s model.nc"),)
    found = (finding(fixes=short), finding("/a/" + "very_" * 30 + "long", fixes=short))
    if single:
        text = shown(replace(one(), findings=found), columns=columns, single=True)
    else:
        objects = (dataset(), dataset("/a/" + "very_" * 30 + "long"), dataset("/v", VIRTUAL))
        facts = file_facts(*objects, findings=found)
        text = shown(facts, columns=columns, order=order)
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert not [line for line in lines if line != line.rstrip()]
    assert "very_" * 30 + "long" in re.sub(r"[\s│]", "", text)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1), st.sampled_from([None, "name"]))
@pytest.mark.slow
def test_names_cannot_disturb_the_terminal(name: str, order: str | None) -> None:
    found = (finding(f"/{name}", summary=name, fixes=(Fix("shell", name),)),)
    facts = file_facts(
        dataset(f"/{name}", replace(DATASET, dimensions=(name,) * 3, dtype=name, fill_value=name)),
        path=name,
        findings=found,
    )
    for text in (
        shown(facts, order=order),
        shown(replace(facts, objects=facts.objects[1:]), single=True),
    ):
        assert all(character.isprintable() or character == "\n" for character in text)
