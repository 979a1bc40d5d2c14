"""Do the benches of the advice say what they measure?"""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

from tests.advise.test_search import problem

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches"))
cases: Any = importlib.import_module("advice.cases")
model: Any = importlib.import_module("advice.model")
regret: Any = importlib.import_module("advice.regret")


@pytest.mark.slow
def test_the_model_is_held_against_trials_that_it_has_not_seen() -> None:
    rows = model.rows([model.STUDIES / "cris-paper.json.gz"])
    assert len(rows) > 20
    fitted, predicted = ([r for r in rows if r.is_fitted is side] for side in (True, False))
    assert not {r.key for r in fitted} & {r.key for r in predicted}
    found = {one.name: one for one in model.errors(rows)}
    one = found["cris, reads"]
    # Trials from a quarter of a second to five minutes; a model of nothing would be far off.
    seconds = [row.measured_s for row in predicted]
    assert max(seconds) > 500 * min(seconds)
    assert one.median < 0.35
    assert one.predicted <= len(predicted)
    lines = list(model.lines(list(found.values())))
    assert "cris, reads" in "\n".join(lines)


def test_there_are_40_cases_and_each_can_be_written(tmp_path: Path) -> None:
    known = list(cases.cases())
    assert len({case.name for case in known}) == len(known) == 40
    case = next(one for one in known if one.name.startswith("rows,"))
    small = type(case)(**{**vars(case), "shape": (400, 20), "chunks": (400, 1)})
    small.write(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["x"].shape, file["x"].chunks) == ((400, 20), (400, 1))


def test_the_grid_has_the_longest_and_the_shortest_sides() -> None:
    asked = problem()
    grid = regret._grid(asked, 4)
    assert len(grid) == len(set(grid)) > 20
    for one in grid:
        assert 8 << 10 <= math.prod(one.chunks) * asked.itemsize <= 16 << 20
    assert {one.filters for one in grid} == set(asked.codecs)
    assert {365, 1} <= {one.chunks[0] for one in grid}


def test_regrets_are_summed_up() -> None:
    found = [
        regret.Regret("a", "x", "y", 1.1, 1.0, 5.0, {"h5py's guess": 2.2}, 0.1),
        regret.Regret("b", "x", "x", 1.0, 1.0, 1.0, {"h5py's guess": 1.0}, 0.0, True),
    ]
    text = "\n".join(regret.lines(found))
    assert "median 5%, worst 10%" in text
    assert "from 1.00x to 2.00x" in text
    assert "(left)" in text
