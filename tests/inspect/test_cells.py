"""Can a name in a table's first column forge a line?"""

import io
import random

import pytest
from rich.console import Console
from rich.table import Table

from chunkwise.cells import Hung


@pytest.mark.parametrize("seed", range(50))
def test_what_is_broken_goes_on_indented(seed: int) -> None:
    rng = random.Random(seed)
    words = rng.choices(["error: forged", "温度温度温度", "x" * 30, "😀", " ", "a b c"], k=12)
    name = "pattern " + " ".join(words)
    table = Table(box=None, padding=0, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_row(Hung(name))
    out = io.StringIO()
    Console(file=out, width=rng.randrange(12, 60)).print(table)
    first, *others = (line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))
    assert first.startswith("pattern")
    assert others
    assert all(line.startswith("  ") for line in others if line)
    assert "".join([first, *others]).replace(" ", "") == name.replace(" ", "")


def test_lines_of_its_own_begin_at_the_edge() -> None:
    out = io.StringIO()
    Console(file=out, width=20).print(Hung("row\n1x1000"))
    assert out.getvalue() == "row\n1x1000\n"
