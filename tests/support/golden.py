"""Pages that commands print, each kept whole in tests/golden: their words are pinned there alone.

After a change of words, write them anew and look at what differs:

    GOLDEN=write pytest $(git grep -l assert_golden tests)
    git diff tests/golden
"""

import os
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from chunkwise.errors import ChunkwiseError
from tests.support.commands import run

FOLDER = Path(__file__).parents[1] / "golden"
# Times, sizes and rates, which differ between runs and versions of libraries.
_MEASURED = re.compile(r"~?\d[\d.,]* ?(?:(?:bytes?|[kMGT]?B|[KMGT]iB)(?:/s)?|[nmu\u00b5]?s|min)\b")


def assert_golden(name: str, *parts: str) -> None:
    """Require that the parts, one below the other, are the page of this name."""
    page = FOLDER / f"{name}.txt"
    text = "\n--------\n".join(part.rstrip("\n") + "\n" for part in parts)
    if os.environ.get("GOLDEN") == "write":
        page.write_text(text, encoding="utf-8")
    assert text == page.read_text(encoding="utf-8"), f"GOLDEN=write writes {page} anew"


def steady(text: str, folder: object = "\0", *, numbers: bool = False) -> str:
    """Put N for what is measured, or all numbers but shapes, and fill each paragraph anew."""
    text = _MEASURED.sub("N", text.replace(str(folder), "FOLDER"))
    text = re.sub(r"\b\d[\d.,]*\b%?", "N", text) if numbers else text
    return "\n\n".join(
        textwrap.fill(" ".join(part.split()), 99, break_long_words=False, break_on_hyphens=False)
        for part in text.strip().split("\n\n")
    )


def refused(call: Callable[[Any], object], asked: Iterable[Any]) -> str:
    """Give all that is asked with the one line that refuses it, and the error's class."""
    lines = []
    for one in asked:
        with pytest.raises(ChunkwiseError) as wrong:
            call(one)
        message = str(wrong.value)
        assert "\n" not in message
        lines.append(f"{one!r:.80}: {type(wrong.value).__name__}: {message}")
    return "\n".join(lines)


def mistakes(commands: str) -> str:
    """Run commands, one a line, that each end with code 2 and one line of error; give these."""
    lines = []
    for command in commands.strip().splitlines():
        done = run(*shlex.split(command))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), (command, done)
        lines.append(f"$ {command}\n{done.err}")
    return "".join(lines)
