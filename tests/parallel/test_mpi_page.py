"""Does docs/mpi.md name what there is, and are its commands understood?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from chunkwise_lab.mpi_model.calibrate import OTHER
from chunkwise_lab.mpi_model.measured import run_of
from chunkwise_lab.mpi_model.model import PHASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mpi.md").read_text("utf-8")
CHECKS = ROOT / "python" / "chunkwise_lab" / "mpi_check"


def codes_in(source: Path) -> set[str]:
    """Each first argument of Finding, as it stands in the source."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
            for one in ast.walk(node.args[0]):
                if isinstance(one, ast.Constant) and re.fullmatch(r"[a-z0-9-]+", str(one.value)):
                    found.add(str(one.value))
    return found


def test_each_code_is_explained() -> None:
    table = PAGE.partition("| code | what happens | severity |")[2].partition("\n\n")[0]
    explained = {
        code
        for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE)
        for code in re.findall(r"`([a-z0-9-]+)`", row)
    }
    sources = ("checks.py", "check.py", "known.py")
    assert explained == set().union(*(codes_in(CHECKS / name) for name in sources))


def test_each_phase_is_explained() -> None:
    assert set(PHASES) <= set(re.findall(r"^\| ([a-z]+) \|", PAGE, re.MULTILINE))
    assert f"`{OTHER}`" in PAGE


def test_the_record_is_one() -> None:
    text = PAGE.partition("A record is an object like this one:\n\n")[2].partition("\n\n")[0]
    one = run_of(ast.literal_eval(text.strip()))
    assert one.job.n_ranks == 2
    assert set(one.phases) == {*PHASES, OTHER}
