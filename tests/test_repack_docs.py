"""What docs/repack.md shows is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from chunkwise.cli.repack import command

PAGE = Path(__file__).parents[1] / "docs" / "repack.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_the_commands_parse() -> None:
    shown = re.findall(r"^ +chunkwise repack (.*)$", PAGE.read_text(), re.MULTILINE)
    rules = re.findall(
        r"\| `(--[^|]*?)`(?:, `(--[^|]*?)`)?[^|]*\|$", PAGE.read_text(), re.MULTILINE
    )
    options = [f"in.h5 out.h5 {one}" for pair in rules for one in pair if one]
    assert len(shown) > 6
    assert len(options) > 10
    for line in shown + options:
        context = command.make_context("repack", shlex.split(line))
        assert context.params["arguments"]
