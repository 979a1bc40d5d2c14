"""Is every command that docs/bench.md and the help print understood, and each option told of?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from chunkwise.cli import bench
from chunkwise.measure.axes import AXES
from chunkwise.measure.described import described, times_smaller
from chunkwise.measure.space import Space

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "bench.md").read_text("utf-8")


def commands() -> list[str]:
    """List the commands of the help, and those of the page that are no synopsis."""
    text = f"{bench.EXAMPLES.replace(chr(8), '')}\n{PAGE}".replace("\\\n", " ")
    found = re.findall(r"^ +chunkwise (bench .*)$", text, re.MULTILINE)
    return [line for line in found if not re.search(r"\[|\.\.\.", line.partition("'[")[0])]


@pytest.mark.parametrize("line", commands())
def test_a_command_is_understood(line: str) -> None:
    _, *words = shlex.split(line.partition(" > ")[0])
    asked = bench.command.make_context("bench", words).params
    bench._check_described(
        asked["file"] or asked["plan"], asked["shape"], asked["dtype"],
        {"--type": asked["dtype"], "--like": asked["like"], "--compress": asked["compress"]},
    )  # fmt: skip
    if asked["shape"] is not None:
        described(asked["shape"], asked["dtype"])
    if asked["compress"] is not None:
        times_smaller(asked["compress"])
    named = {
        name: asked[name.replace("-", "_")] for name in AXES if name.replace("-", "_") in asked
    }
    axes = {name: tuple(text.split(",")) for name, text in named.items() if isinstance(text, str)}
    axes |= dict(map(bench._property, asked["properties"]))
    space = Space({**axes, **({"access": asked["access"]} if asked["access"] else {})})
    if "reader" not in space.axes:
        space = Space({**space.axes, "reader": ("h5py", "chunkwise-py")})
    assert space.points(("all",))


def test_there_are_such_commands() -> None:
    assert len(commands()) > 20


def test_each_option_is_told_of() -> None:
    names = {
        name for one in bench.command.params if isinstance(one, click.Option) for name in one.opts
    }
    assert {name for name in names if name not in PAGE} == set()


@pytest.mark.parametrize("operation", ["read", "write", "append", "update"])
def test_each_operation_is_told_of(operation: str) -> None:
    assert f"`{operation}`" in PAGE
