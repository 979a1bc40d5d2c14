"""What the pages in docs/ show is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from chunkwise.cli.repack import command

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "fewest"),
    [
        ("index-files.md", 6),
        ("memory.md", 7),
        ("remote.md", 2),
        ("repack.md", 10),
        ("selections.md", 10),
        ("writing.md", 20),
    ],
)
def test_the_examples_run(
    page: str, fewest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A fence that ends an example follows a blank line, and so is no output.
    outcome = doctest.testfile(
        str(DOCS / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > fewest
    assert outcome.failed == 0


def test_the_commands_of_repack_parse() -> None:
    page = (DOCS / "repack.md").read_text()
    shown = re.findall(r"^ +chunkwise repack (.*)$", page, re.MULTILINE)
    rules = re.findall(r"\| `(--[^|]*?)`(?:, `(--[^|]*?)`)?[^|]*\|$", page, re.MULTILINE)
    options = [f"in.h5 out.h5 {one}" for pair in rules for one in pair if one]
    assert len(shown) > 6
    assert len(options) > 10
    for line in shown + options:
        context = command.make_context("repack", shlex.split(line))
        assert context.params["arguments"] or context.params["files_from"]
