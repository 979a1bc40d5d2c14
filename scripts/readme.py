"""Are the figures of README.md and of the first pages of the site from a real run?  Fills them.

Nothing that was measured is typed into these pages (`PAGES`).  A block

    <!-- run: chunkwise bench demo-files/cube.h5 -->
    <!-- end -->

gets the command and what it prints; `<!--=row_speedup--><!--/-->` gets one figure
of the study 'cris' (`FIGURES`).  The commands run in a scratch folder, after the demo and that
study, so that `demo-files/` and `studies/` are there.  A command that names another file
needs that file: give it by --foreign (or $FOREIGN), or the block stays as it is.

    python scripts/readme.py --foreign ~/data/nwm_channel_rt_conus.nc
    python scripts/readme.py --check        # runs nothing: do the commands still parse?
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from chunkwise.cli.main import cli
from chunkwise_lab.studies import published
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.study import Published

ROOT = Path(__file__).resolve().parent.parent
STUDY = "studies/cris-quick"
READERS = ("libhdf5", "chunkwise")
# Reads of the study 'cris' that the text quotes: pattern, filter, and libhdf5's cache.
READS = {
    "row": ("row=1x1x1x717", "stored", "1MiB"),
    "row_3mb": ("row=1x1x1x717", "stored", "3MiB"),
    "plain_chunk": ("chunk=4x30x9x717", "none", "1MiB"),
}
# What a text may quote: of each both times in seconds, and their ratio.
FIGURES = (*(f"{read}_{kind}" for read in READS for kind in (*READERS, "speedup")), "machine")

PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "start").glob("*.md")),
    ROOT / "docs" / "real-file.md",
)
BLOCK = re.compile(r"(<!-- run: (?P<command>[^\n]+?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
FIGURE = re.compile(r"(<!--=(?P<name>\w+)-->)(?P<value>.*?)(<!--/-->)", re.DOTALL)
FENCE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"<!--.*?-->", re.DOTALL)
CLI = (sys.executable, "-c", "from chunkwise.cli import main; main()")


def check(text: str) -> list[str]:
    """Return what is wrong with the markers and commands of a text: a line for each."""
    wrong = []
    rest = FIGURE.sub("", BLOCK.sub("", text))
    wrong += [f"{mark}: has no end, or no beginning" for mark in MARK.findall(rest)]
    for match in BLOCK.finditer(text):
        reason = _refusal(match["command"])
        if reason:
            wrong.append(f"{match['command']}: {reason}")
        if not match["body"].strip():
            wrong.append(f"{match['command']}: not filled: run make readme")
    for match in FIGURE.finditer(text):
        if match["name"] not in FIGURES:
            wrong.append(f"{match['name']}: no figure of the study has this name")
        elif not match["value"].strip():
            wrong.append(f"{match['name']}: not filled: run make readme")
    # What readers are told to type has to parse as well.
    for command in _typed(BLOCK.sub("", text)):
        reason = _refusal(command)
        if reason:
            wrong.append(f"{command}: {reason}")
    return wrong


def _typed(text: str) -> Iterator[str]:
    for fence in FENCE.findall(text):
        for line in fence.replace("\\\n", " ").splitlines():
            if line.startswith("chunkwise "):
                yield line


def _refusal(command: str) -> str | None:
    """Say why a command would not be understood; None if it would."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "python":
        return None if (ROOT / arguments[0]).is_file() else f"there is no {arguments[0]}"
    if program != "chunkwise" or not arguments:
        return "neither chunkwise with a command nor a Python file"
    context = click.Context(cli, info_name="chunkwise")
    subcommand = cli.get_command(context, arguments[0])
    if subcommand is None:
        return f"chunkwise has no command '{arguments[0]}'"
    try:
        # Options such as --list answer at once.
        with contextlib.redirect_stdout(io.StringIO()):
            subcommand.make_context(arguments[0], arguments[1:], parent=context)
    except click.exceptions.Exit:
        pass
    except click.ClickException as refused:
        return refused.format_message()
    return None


def figures(results: StudyResults) -> dict[str, str]:
    """Return the single figures that a text may quote, named as in `FIGURES`."""
    outcome, statistic = results.outcomes["tables"], load("cris").statistic
    values = []
    for access, filters, cache in READS.values():
        where = {"access": access, "chunk": "stored", "filter": filters, "cache": cache}
        asked = Published(where, "total_s", 0.0, "")
        found = published.measured(outcome.rows(), asked, statistic)
        slow, fast = (found[reader].middle for reader in READERS)
        values += [published.number(slow), published.number(fast), published.times(slow / fast)]
    values.append(published.machine(outcome).partition(";")[0])
    return dict(zip(FIGURES, values, strict=True))


def fill(text: str, run: Callable[[str], str | None], figures: dict[str, str]) -> str:
    """Return a text with its markers filled."""

    def block(match: re.Match[str]) -> str:
        command = match["command"]
        printed = run(command)
        if printed is None:
            return match[0]
        lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
        return f"{match[1]}```console\n$ {command}\n{lines}\n```\n{match[4]}"

    def figure(match: re.Match[str]) -> str:
        return f"{match[1]}{figures[match['name']]}{match[4]}"

    return FIGURE.sub(figure, BLOCK.sub(block, text))


def runner(folder: Path) -> Callable[[str], str | None]:
    """Return what runs a command in `folder`, at 80 columns, without colours."""
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}

    def run(command: str) -> str | None:
        program, *arguments = shlex.split(command)
        files = [a for a in arguments if Path(a).suffix in (".h5", ".nc", ".json")]
        # The first is read; a second one is written.
        missing = [file for file in files[:1] if not (folder / file).exists()]
        if missing:
            print(f"left as it was: {command}: no {missing[0]} (--foreign PATH)", file=sys.stderr)
            return None
        print(f"$ {command}", file=sys.stderr)
        if program == "python":
            arguments = [sys.executable, str(ROOT / arguments[0]), *arguments[1:]]
        else:
            arguments = [*CLI, *arguments]
        done = subprocess.run(
            arguments, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"readme: {command}: ended with code {done.returncode}")
        return done.stdout

    return run


def main() -> None:
    """Fill the pages, or check their markers."""
    parser = argparse.ArgumentParser(
        description="Fill the figures of README.md and of the site from real runs."
    )
    parser.add_argument("--check", action="store_true", help="only see whether commands parse")
    parser.add_argument(
        "--foreign", type=Path, default=os.environ.get("FOREIGN"), help="a real file, by its name"
    )
    asked = parser.parse_args()
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    if not asked.check:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if asked.foreign:
                foreign = asked.foreign.expanduser().resolve(strict=True)
                (folder / foreign.name).symlink_to(foreign)
            demo = [sys.executable, str(ROOT / "examples/demo.py")]
            for made in (demo, [*CLI, "study", "cris"]):
                subprocess.run(made, cwd=folder, stdout=sys.stderr, check=True)
            results = StudyResults.read(folder / STUDY / "results.json.gz")
            for page, text in texts.items():
                texts[page] = fill(text, runner(folder), figures(results))
                page.write_text(texts[page], encoding="utf-8")
    wrong = [
        f"  {page.relative_to(ROOT)}: {line}"
        for page, text in texts.items()
        for line in check(text)
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
