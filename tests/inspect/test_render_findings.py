"""Are findings shown first, completely, and with the lines that were asked for?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from chunkwise.inspection.facts import ObjectFacts
from chunkwise.inspection.render import lint_line
from chunkwise.remedy.fix import Fix
from tests.support.inspect_fakes import DATASET, dataset, file_facts, finding, one, shown


def in_order(text: str, *words: str) -> bool:
    places = [text.index(each) for each in words]
    return places == sorted(places)


def test_findings_come_first() -> None:
    text = shown(file_facts(findings=(finding(),)))
    assert in_order(
        text,
        "model.nc: 20.0 MiB",
        "1 finding: 1 warning",
        "chunk-exceeds-cache",
        "\nformat: superblock 2",
        "\nmetadata: ",
        "└── t2m",
        "(see the top)",
    )
    lines = text.splitlines()
    assert "warning  chunk-exceeds-cache  /t2m" in lines
    # One fix by default, on a line of its own.
    assert "    file = h5py.File('model.nc', rdcc_nbytes=128 * 1024**2)" in lines
    assert "nccopy" not in text
    assert "See 'NetCDF-4 Performance Report' (2008), section 4" in text


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("nccopy", ["nccopy"]),
        ("all", ["h5py", "nccopy"]),
        ("h5repack", ["h5py"]),
        (None, ["h5py"]),
    ],
)
def test_fixes_of_one_tool(tool: str | None, expected: list[str]) -> None:
    text = shown(file_facts(findings=(finding(),)), tool=tool)
    assert re.findall(r"Fix \((\w+)\)", text) == expected


def test_other_tool_is_named_where_it_has_no_line() -> None:
    found = (finding(), finding("/b", "other", fixes=(Fix("h5repack", "h5repack a b"),)))
    lines = shown(file_facts(findings=found), tool="nccopy").splitlines()
    assert [line for line in lines if line.startswith("  Fix")] == [
        "  Fix (nccopy):",
        "  Fix (h5repack): (no nccopy line)",
    ]
    for tool in (None, "all"):
        assert "(no " not in shown(file_facts(findings=found), tool=tool)


@pytest.mark.parametrize(
    ("tool", "single", "labels"),
    [
        (None, False, ["Fix (C)"]),
        (None, True, ["Fix (C)", "Fix (h5py)"]),
        ("h5py", True, ["When writing (h5py)", "Fix (h5py)"]),
        ("netCDF4", True, ["Fix (C)"]),
        ("all", True, ["When writing (h5py)", "Fix (C)", "Fix (h5py)"]),
    ],
)
def test_lines_for_writing_stand_apart(tool: str | None, single: bool, labels: list[str]) -> None:
    fixes = (Fix("h5py", "create()", writing=True), Fix("C", "H5Dopen2();"), Fix("h5py", "read()"))
    facts = one() if single else file_facts()
    text = shown(replace(facts, findings=(finding(fixes=fixes),)), single=single, tool=tool)
    assert re.findall(r"^  ((?:Fix|When writing) \(\w+\)):", text, re.MULTILINE) == labels
    assert ("add --fixes all" in text) == (single and tool is None)


def test_lines_for_writing_are_shown_where_there_are_no_others() -> None:
    fixes = (Fix("h5py", "create()", writing=True), Fix("C", "H5Dcreate2();", writing=True))
    facts = replace(one(), findings=(finding(fixes=fixes),))
    assert len(re.findall(r"When writing \(", shown(facts, single=True))) == 2
    assert "When writing (h5py):" in shown(file_facts(findings=facts.findings))


def test_lines_to_paste_are_whole() -> None:
    line = "nccopy -c " + ",".join(f"dimension_{i}/{i}" for i in range(30)) + " a.nc b.nc"
    fixes = (Fix("nccopy", f"# two lines\n{line}"),)
    text = shown(file_facts(findings=(finding(fixes=fixes),)), columns=60)
    assert f"    # two lines\n    {line}\n" in text


def test_many_alike_are_one_paragraph() -> None:
    alike = tuple(finding(f"/d{i}") for i in range(9_815))
    text = shown(file_facts(findings=(*alike, finding(None, "free-space", severity="note"))))
    assert "9,816 findings of 2 kinds: 9,815 warnings, 1 note" in text
    assert "warning  chunk-exceeds-cache  9,815 objects" in text
    assert "  /d0: Reading a line" in text
    assert "The same: /d1, /d2 and 9,812 more" in text
    assert "note     free-space  the file as a whole" in text
    assert "/d9814" in shown(file_facts(findings=alike), everything=True)


def test_severities_of_one_code_stand_apart() -> None:
    findings = (finding("/a", severity="error"), finding("/b"))
    text = shown(file_facts(findings=findings))
    assert "error    chunk-exceeds-cache  /a" in text
    assert "warning  chunk-exceeds-cache  /b" in text


def test_no_findings() -> None:
    text = shown(file_facts())
    assert "No findings." in text
    assert "chunkwise inspect" not in text


def test_file_without_a_dataset() -> None:
    group = ObjectFacts("/a", 1, "group")
    assert "No findings: the file holds no dataset." in shown(file_facts(group))
    assert "No findings.\n" in shown(file_facts())
    # It may be a dataset.
    broken = ObjectFacts("/b", 1, "unreadable", reason="bad header")
    assert "No findings.\n" in shown(file_facts(group, broken))


def test_end_names_the_next_commands() -> None:
    facts = file_facts(
        dataset("/a b"), path="my model.nc", findings=(finding(None), finding("/a b"))
    )
    assert shown(facts).endswith(
        "What reading one dataset costs:\n"
        "    chunkwise inspect 'my model.nc' '/a b'\n"
        "Measured times:\n"
        "    chunkwise bench 'my model.nc' '/a b'\n"
    )


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
