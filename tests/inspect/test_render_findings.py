"""Are findings shown first, completely, and with the lines that were asked for?"""

import re
from dataclasses import replace
from typing import Any

import pytest

from chunkwise.inspection.render import lint_line
from chunkwise.remedy.fix import Fix
from tests.support.inspect_fakes import DATASET, dataset, file_facts, finding, one, shown


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
