"""Do the rooms of the package use only those that docs/architecture.md allows?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import chunkwise

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "chunkwise"
# Text, errors and the extension, which every room may use.
EVERYWHERE = {"errors", "names", "verdicts", "words", "_native", "_lazy", "_lib"}
# What a user imports, and the ways in.
FACE = {"file", "group", "dataset", "selection"}
DOORS = {"__init__", "__main__", "_startup", "_lib"}
# The names that a user imports from a room, and that lie in one behind it.
FRONTS = {"parallel/__init__.py"}
ABOVE = {"benching", "trials", "studies", "report", "cli"}


def room_of(module: str) -> str:
    """The folder below the package, or the file; what a user imports is one room."""
    name = module.split(".")[1] if "." in module else "__init__"
    return "face" if name in FACE else name


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chunkwise"):
            module = str(node.module)
            for alias in node.names:
                below = PACKAGE.joinpath(*module.split(".")[1:], alias.name)
                if below.is_dir() or below.with_suffix(".py").exists():
                    yield f"{module}.{alias.name}"
                elif module == "chunkwise":
                    # A public name, which the package has from elsewhere.
                    yield chunkwise._LATER.get(alias.name, "chunkwise._native")
                else:
                    yield module
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("chunkwise"))


@cache
def arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).as_posix() in FRONTS:
            continue
        relative = path.relative_to(PACKAGE).with_suffix("")
        room = room_of("chunkwise." + ".".join(relative.parts))
        used = {room_of(module) for module in imports(path)} - {room, "__init__"} - EVERYWHERE
        if room not in DOORS | EVERYWHERE:
            found.setdefault(room, set()).update(used)
    return found


def allowed() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text.partition("| room of Python | uses |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)`[^|]*\|(.*)\|$", table, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", uses)) for room, uses in rows}


def test_each_room_uses_what_it_may() -> None:
    assert arrows() == allowed()


def test_the_library_does_not_know_what_measures_or_prints() -> None:
    found = arrows()
    reached, left = set(), ["face", "settings", "patching"]
    while left:
        room = left.pop()
        if room not in reached:
            reached.add(room)
            left.extend(found.get(room, ()))
    assert {"files", "writing", "routing", "model"} <= reached
    assert not reached & ABOVE


def test_a_study_is_known_to_those_above_it_alone() -> None:
    users = {room for room, used in arrows().items() if "studies" in used}
    assert users == {"report", "cli"}
