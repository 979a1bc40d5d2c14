"""What the pages in docs/ and the help of commands show is what happens."""

import contextlib
import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from chunkwise.cli import bench
from chunkwise.cli.main import COMMANDS, cli
from chunkwise.measure.axes import AXES
from chunkwise.measure.space import Space

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("page", "fewest", "needs"),
    [
        ("index-files.md", 6, ()),
        ("joined.md", 5, ()),
        ("loaders.md", 5, ()),
        ("memory.md", 7, ()),
        ("remote.md", 2, ()),
        ("repack.md", 10, ()),
        ("selections.md", 10, ()),
        ("writing.md", 20, ()),
        ("xarray.md", 10, ("xarray", "h5netcdf", "dask.array")),
    ],
)
def test_the_examples_run(
    page: str, fewest: int, needs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in needs:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    # A fence that ends an example follows a blank line, and so is no output.
    outcome = doctest.testfile(
        str(DOCS / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > fewest
    assert outcome.failed == 0


def help_of(name: str) -> str:
    return CliRunner().invoke(cli, [name, "--help"], env={"COLUMNS": "80"}).output


def commands(text: str) -> list[list[str]]:
    """Find the commands that can be pasted, which are no synopsis, without `chunkwise`."""
    lines = re.findall(
        r"^(?: +|\$ )(?:\$ )?(?:mpirun -n \d+ )?chunkwise (.*)$", text.replace("\\\n", " "), re.M
    )
    shown = [re.split(r" [>|#] |   |;", line)[0] for line in lines]
    whole = [line for line in shown if not re.search(r"[\[<…]|\.\.\.|\b[A-Z]{3,}\b", line)]
    return [words for words in map(str.split, whole) if words and words[0] in COMMANDS]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_and_has_examples(name: str) -> None:
    text = help_of(name)
    # Commands to paste are whole.
    assert max(len(line) for line in text.splitlines() if "chunkwise " not in line) <= 80
    assert commands(text)


@pytest.mark.parametrize("page", ["help", "README.md", *sorted(DOCS.glob("**/*.md"))], ids=str)
def test_commands_parse(page: str | Path) -> None:
    text = "".join(map(help_of, COMMANDS)) if page == "help" else (ROOT / page).read_text("utf-8")
    for name, *words in commands(text):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        # --list and --help end at once.
        with contextlib.suppress(click.exceptions.Exit):
            asked = command.make_context(name, shlex.split(" ".join(words))).params
            if name == "bench":
                assert trials_of(asked), words


def trials_of(asked: dict[str, Any]) -> list[Any]:
    """Spell out the trials of a command of bench, whose options are text to click."""
    named = {name: asked.get(name.replace("-", "_")) for name in AXES}
    axes = {name: tuple(text.split(",")) for name, text in named.items() if isinstance(text, str)}
    axes |= dict(map(bench._property, asked["properties"]))
    axes |= {"access": asked["access"]} if asked["access"] else {}
    return Space({"reader": ("h5py", "chunkwise-py"), **axes}).points(("all",))


def test_rules_of_repack_parse() -> None:
    page = (DOCS / "repack.md").read_text()
    rules = re.findall(r"\| `(--[^|]*?)`(?:, `(--[^|]*?)`)?[^|]*\|$", page, re.MULTILINE)
    options = [one for pair in rules for one in pair if one]
    assert len(options) > 10
    command = cli.get_command(click.Context(cli), "repack")
    assert command is not None
    for line in options:
        assert command.make_context("repack", ["in.h5", "out.h5", *shlex.split(line)])


def test_whoever_installs_xarray_s_extra_is_told_of_dask() -> None:
    for page in (ROOT / "README.md", DOCS / "index.md", DOCS / "xarray.md"):
        text = page.read_text("utf-8")
        # `open_mfdataset` needs it.
        assert "'.[xarray,dask]'" in text
        assert "[xarray]'" not in text
