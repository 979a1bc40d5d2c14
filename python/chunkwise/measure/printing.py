"""How are texts and tables printed, on a terminal of 80 columns?"""

from __future__ import annotations

import textwrap
from typing import Final

from rich.console import Console
from rich.table import Table

WIDTH: Final = 80
# Characters of the longest bar, and the parts of one.
_BAR_WIDTH: Final = 26
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def say(console: Console, text: str, style: str = "", indent: str = "") -> None:
    """Print a text, broken at spaces, with `indent` before what follows its first line."""
    for part in textwrap.wrap(text, WIDTH, subsequent_indent=indent):
        console.print(part, highlight=False, markup=False, style=style)


def plain_table(gap: int = 1) -> Table:
    """Make a table without lines, its columns so many spaces apart."""
    return Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Draw a bar of a share of the width, to an eighth of a character."""
    eighths = max(1, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
