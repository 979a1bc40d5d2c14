"""Is every command that docs/bench.md and the help print understood, and each option told of?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from chunkwise.cli import bench
from chunkwise.measure.axes import AXES
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
    named = {
        name: asked[name.replace("-", "_")] for name in AXES if name.replace("-", "_") in asked
    }
    axes = {name: tuple(text.split(",")) for name, text in named.items() if isinstance(text, str)}
    axes |= dict(map(bench._property, asked["properties"]))
    space = Space({**axes, **({"access": asked["access"]} if asked["access"] else {})})
    if "reader" not in space.axes:
        space = Space({**space.axes, "reader": ("h5py", "chunkwise-py")})
    assert space.points(("all",))
