"""Do the rooms of both packages use only those that docs/architecture.md allows?"""

import ast
import importlib
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

import chunkwise
from chunkwise.cli.main import OF_THE_LAB, cli
from chunkwise.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "python"
PRODUCT, LABORATORY = PACKAGES / "chunkwise", PACKAGES / "chunkwise_lab"
# A module of the laboratory's, also one that is started or imported by its name.
OF_THE_LABORATORY = re.compile(r"(?:^|-m )chunkwise_lab\b|\bchunkwise_lab\.")
# Text, errors, the system and the extension, which every room may use.
EVERYWHERE = {
    "errors", "names", "system", "verdicts", "words", "_native", "_lazy", "_lib", "checkout",
}  # fmt: skip
# What a user imports, and the ways in.
FACE = {"file", "group", "dataset"}
DOORS = {"__init__", "__main__", "_startup", "_lib"}
ABOVE = {"measure", "trials", "cli"}
# What starts a program and has a clock too, and times that program with it only in `measure`.
STARTS = {"Popen", "run", "call", "check_call", "check_output"}
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
NOT_TIMED = {
    "chunkwise_lab.peers.remotes": "serves the file that is read: who reads it is timed, in here",
}


def room_of(module: str) -> str:
    """The folder below the package, or the file; what a user imports is one room."""
    name = module.split(".")[1] if "." in module else "__init__"
    return "face" if name in FACE else name


@cache
def names_and_texts(path: Path) -> tuple[list[str], list[str]]:
    """What a file imports, and the texts in it: parsed once for all tests."""
    names: list[str] = []
    texts: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chunkwise"):
            module = str(node.module)
            for alias in node.names:
                below = PACKAGES.joinpath(*module.split("."), alias.name)
                if below.is_dir() or below.with_suffix(".py").exists():
                    names.append(f"{module}.{alias.name}")
                elif module == "chunkwise":
                    # A public name, which the package has from elsewhere.
                    names.append(chunkwise._LATER.get(alias.name, "chunkwise._native"))
                else:
                    names.append(module)
        elif isinstance(node, ast.Import):
            names += (one.name for one in node.names if one.name.startswith("chunkwise"))
    return names, texts


def imports(path: Path) -> list[str]:
    return names_and_texts(path)[0]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGES).with_suffix("").parts).removesuffix(".__init__")


@cache
def arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in {*PRODUCT.rglob("*.py"), *LABORATORY.rglob("*.py")}:
        room = room_of(".".join(path.relative_to(PACKAGES).with_suffix("").parts))
        used = {room_of(module) for module in imports(path)} - {room, "__init__"} - EVERYWHERE
        if room not in DOORS | EVERYWHERE:
            found.setdefault(room, set()).update(used)
    return found


def allowed() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tables = re.findall(
        r"\| room of (?:Python|the laboratory) \| uses \|\n(.*?)\n\n", text, re.DOTALL
    )
    rows = re.findall(r"^\| `(\w+)`[^|]*\|(.*)\|$", "\n".join(tables), re.MULTILINE)
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
    assert {"files", "handles", "writing", "routing", "model"} <= reached
    assert not reached & ABOVE


def test_no_room_needs_itself() -> None:
    """By way of others; an import within a function counts, and so does one for types."""
    TopologicalSorter(arrows()).prepare()


def test_no_file_needs_itself() -> None:
    files = {module_of(path): path for path in {*PRODUCT.rglob("*.py"), *LABORATORY.rglob("*.py")}}
    # The interface, whose names wait until they are used.
    del files["chunkwise"]
    needs = {name: {*imports(path)} & files.keys() - {name} for name, path in files.items()}
    assert needs["chunkwise.file"] >= {"chunkwise.group", "chunkwise.remote.opening"}
    TopologicalSorter(needs).prepare()


def test_a_study_is_known_to_those_above_it_alone() -> None:
    users = {room for room, used in arrows().items() if "studies" in used}
    assert users == {"report", "commands"}


def test_the_product_knows_nothing_of_the_laboratory() -> None:
    for path in PRODUCT.rglob("*.py"):
        names, texts = names_and_texts(path)
        assert not [name for name in names + texts if OF_THE_LABORATORY.search(name)], path


def uses(path: Path, module: str, functions: set[str]) -> bool:
    """Whether a file names some of a module's functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id == module else set()
    return bool(found & functions)


def test_every_timed_process_is_started_by_the_room_that_measures() -> None:
    found = {
        module_of(path)
        for path in {*PRODUCT.rglob("*.py"), *LABORATORY.rglob("*.py")}
        if uses(path, "subprocess", STARTS) and uses(path, "time", CLOCKS)
    }
    assert found == {"chunkwise.measure.process", *NOT_TIMED}


def test_what_names_the_laboratory() -> None:
    named = (
        "chunkwise_lab",
        "chunkwise_lab.sample",
        "python -m chunkwise_lab",
        "x chunkwise_lab.",
    )
    assert all(OF_THE_LABORATORY.search(text) for text in named)
    assert not OF_THE_LABORATORY.search("in the package chunkwise_lab, which")


def test_each_command_of_the_laboratory_is_registered() -> None:
    table = (ROOT / "pyproject.toml").read_text("utf-8").partition('"chunkwise.commands"]\n')[2]
    found = re.findall(r'^([\w-]+) = "(.+):command"$', table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(OF_THE_LAB) == [name for name, _ in found]
    for name, module in found:
        assert module == f"chunkwise_lab.commands.{name.replace('-', '_')}"
        assert isinstance(importlib.import_module(module).command, click.Command)


@pytest.mark.parametrize("registered", [False, True])
def test_a_command_that_is_not_installed(
    registered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = EntryPoint("study", "not_installed.commands.study:command", "chunkwise.commands")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: (there,) * registered)
    with pytest.raises(UsageError, match="study is in the package chunkwise_lab, which is not"):
        cli.get_command(click.Context(cli), "study")
