"""Does every block of README.md and docs/start run as printed, in order, in one fresh folder?"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.sample import write
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
START = ROOT / "docs/start"
_BUILDS = "builds the project, of which this test is a part"
_MINUTES = "takes minutes; results that are saved here stand for it"
# Lines that do not run here, and why.
NOT_RUN = {
    "make demo": f"{_BUILDS}; tests/whole/test_demo.py has its acts",
    "make test": _BUILDS,
    "make check": _BUILDS,
    "make docs": _BUILDS,
    "make wheel": _BUILDS,
    "make bench": _BUILDS,
    "chunkwise fix demo-files/cube.h5 -o demo-files/mended.h5 --access line:0": (
        "README.md has it, with another name of the result"
    ),
    "chunkwise study cris": _MINUTES,
    "chunkwise study cris --file demo-files/cube.h5": _MINUTES,
    "read    selection -> plan -> fetch -> decode -> scatter": "a drawing",
    "write   selection -> plan -> gather -> encode -> commit": "a drawing",
}
# What begins so is a drawing.
DRAWN = "repack  blocks of chunks -> "
MARKUP = ("{image}", "{toctree}")
BLOCK = re.compile(
    r"^```(?P<kind>\S*)[^\n]*\n(?P<fenced>.*?)^```$|(?<=\n\n)(?P<indented>(?: {4}[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
# What readers have themselves: files that pages name, and a program that nobody can change.
PROGRAM = """
import sys
import h5py
assert sys.argv[1:] == ["its", "arguments"]
with h5py.File("demo-files/cube.h5") as f:
    assert f["t2m"][:, 100, 200].shape == (120,)
"""
CDO = """
import sys
import h5py
operator, read, written = sys.argv[1:]
with h5py.File(read) as f, h5py.File(written, "w") as made:
    made["t2m"] = f["t2m"][...].mean(axis=0)
"""


@dataclass(frozen=True)
class Block:
    """A block of a page."""

    place: str  # Page and line
    kind: str  # As its fence says
    text: str

    def lines(self) -> list[str]:
        """The commands of a block that is none of Python, without what they print."""
        lines = textwrap.dedent(self.text).replace("\\\n", " ").splitlines()
        if self.kind == "console":
            return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in (re.sub(r"\s+# .*", "", line) for line in lines) if line]


def pages() -> Iterator[Path]:
    """Give the pages in the order in which they are read."""
    yield ROOT / "README.md"
    listed = re.findall(r"^\w+$", (START / "index.md").read_text("utf-8"), re.MULTILINE)
    assert {*listed, "index"} == {path.stem for path in START.glob("*.md")}
    yield from (START / f"{name}.md" for name in listed)


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for match in BLOCK.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        place = f"{page.relative_to(ROOT)}:{number}"
        yield Block(place, match["kind"] or "", match["fenced"] or match["indented"])


def test_blocks_are_found() -> None:
    found = [block for page in pages() for block in blocks(page)]
    assert {block.kind for block in found} == {"", "console", "python", *MARKUP}
    lines = {line for one in found if one.kind in ("", "console") for line in one.lines()}
    # No reason is left of a line that has gone.
    assert set(NOT_RUN) <= lines
    assert any(line.startswith(DRAWN) for line in lines)
    assert "chunkwise run -- cdo timmean in.nc out.nc" in lines
    assert "chunkwise bench demo-files/cube.h5" in lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `make demo` was run, with what readers have themselves."""
    folder = tmp_path / "fresh"
    (folder / "demo-files").mkdir(parents=True)
    write("cube", folder / "demo-files/cube.h5", shape=(120, 101, 201))
    (folder / "in.nc").write_bytes((folder / "demo-files/cube.h5").read_bytes())
    for name in ("analysis.py", "script.py"):
        (folder / name).write_text(PROGRAM)
    saved = folder / "studies/cris-quick/results.json.gz"
    saved.parent.mkdir(parents=True)
    saved.write_bytes((ROOT / "docs/studies/cris-quick.json.gz").read_bytes())
    return folder


def environment(programs: Path) -> dict[str, str]:
    """Let commands be those of this checkout, by this Python, with a cache of their own."""
    programs.mkdir()
    (programs / "cdo.py").write_text(CDO)
    command = "-c 'from chunkwise.cli import main; main()'"
    for name, words in (("python", ""), ("chunkwise", command), ("cdo", f"{programs}/cdo.py")):
        made = programs / name
        made.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        made.chmod(0o755)
    left_out = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(programs),
        "COLUMNS": "80",
    }


def looked_at(line: str, folder: Path, env: dict[str, str]) -> None:
    """Run `chunkwise view`, open its page, and end it as Ctrl-C does."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {line}"], cwd=folder, env=env, text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"<html" in page.read()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.slow
def test_every_block_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xarray", reason="xarray is not installed")
    env = environment(tmp_path / "programs")
    monkeypatch.chdir(folder)
    given, known = set(folder.iterdir()), set(NOT_RUN)
    for page in pages():
        names: dict[str, Any] = {}
        for block in blocks(page):
            if block.kind in MARKUP:
                continue
            if block.kind == "python":
                exec(compile(block.text, block.place, "exec"), names)
                continue
            for line in block.lines():
                # What several pages have runs once.
                if line in known or line.startswith(DRAWN):
                    continue
                known.add(line)
                if line.startswith("chunkwise view "):
                    looked_at(line, folder, env)
                    continue
                done = ran(["sh", "-c", line], cwd=folder, env=env, timeout=170)
                assert done.returncode == 0, f"{block.place}: {line}\n{done.stdout}{done.stderr}"
    assert (folder / "out.nc").exists()
    # What the pages write does not stand in the way of git.
    if (ROOT / ".git").exists():
        made = {*folder.iterdir()} - given - {folder / "out.nc"}
        ours = [*made, folder / "demo-files", folder / "studies"]
        paths = sorted(f"{one.name}/" if one.is_dir() else one.name for one in ours)
        asked = ran(["git", "check-ignore", "--no-index", *paths], cwd=ROOT)
        assert asked.stdout.split() == paths
