"""Can every command that docs/advise.md and the help print be asked as it stands?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from chunkwise.advice import patterns
from chunkwise.cli import advise

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "advise.md").read_text("utf-8")


def commands() -> list[str]:
    """List the commands of the help, and those of the page that are no synopsis."""
    examples = advise.EXAMPLES.replace("\b", "").replace("\\\n", " ")
    found = re.findall(r"^ +chunkwise (advise .*)$", examples, re.MULTILINE)
    for line in re.findall(r"^    chunkwise (advise .*)$", PAGE, re.MULTILINE):
        if not re.search(r"[\[|…]", line):
            found.append(line)
    return found


@pytest.mark.parametrize("line", commands())
def test_a_command_is_understood(line: str) -> None:
    _, *words = shlex.split(line)
    context = advise.command.make_context("advise", words)
    advise._check(context.params["file"], context.params["dataset"], context.params)
    shape = (8760, 2167, 2070) if "frames" in line else (8760, 721, 1440)
    for text in context.params["access"]:
        assert patterns.read((text,), shape, 4, "here")


def test_there_are_such_commands() -> None:
    assert len(commands()) > 10


def test_each_option_is_told_of() -> None:
    names = {
        name
        for one in advise.command.params
        if isinstance(one, click.Option)
        for name in one.opts
        if name not in ("--scratch", "--lossless")
    }
    assert {name for name in names if name not in PAGE} == set()
