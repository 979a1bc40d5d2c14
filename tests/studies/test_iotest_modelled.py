"""Does a report draw the model beside ranks that shared cores, and only there?"""

import re
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.report.charts import draw
from chunkwise_lab.report.values import Drawing
from chunkwise_lab.studies.iotest.modelled import modelled, said
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import Row, StudyResults, middle
from chunkwise_lab.studies.study import Published

FOLDER = Path(__file__).resolve().parents[2] / "docs/studies"
WRITING_S = {1: 2.0, 2: 2.0, 4: 4.4}
REST_S = 1.0


def rows(crowded: tuple[int, ...] = (4,)) -> list[Row]:
    """Weak scaling that is perfect until ranks share cores."""
    found = []
    for filters in ("none", "shuffle+deflate:1"):
        times = 1 if filters == "none" else 3
        for ranks, seconds in WRITING_S.items():
            record: dict[str, Any] = {
                "status": "ok",
                "total_s": times * seconds + REST_S,
                "elapsed_s": times * seconds,
                "selected_nbytes": 10**9 * ranks,
                "file_nbytes": 10**9 * ranks // times,
                "shape": [20, 50, 100 * ranks, 200],
                "itemsize": 8,
                "efficiency": 100 * (2 * times + REST_S) / (times * seconds + REST_S),
            }
            point = {"filter": filters, "dataset-rank": "4", "ranks": str(ranks)}
            point["oversubscribed"] = "yes" if ranks in crowded else "no"
            found.append(Row(point, (record,)))
    return found


def test_the_model_says_what_ranks_with_a_core_each_take() -> None:
    found = modelled(rows())
    by = {(one.point["filter"], one.point["ranks"], one.figure): one.value for one in found}
    assert len(by) == len(found) == 2 * 3 * 2
    for filters, seconds in (("none", 3.0), ("shuffle+deflate:1", 7.0)):
        for ranks in ("1", "2", "4"):
            assert by[filters, ranks, "total_s"] == pytest.approx(seconds)
            assert by[filters, ranks, "efficiency"] == pytest.approx(100)


def test_a_series_whose_own_runs_it_does_not_give_has_no_model() -> None:
    # Twice the ranks take twice as long, although each has a core: memory is the limit.
    [one, two, four, *_] = rows()
    slow = Row(two.point, tuple({**r, "total_s": 5.0, "elapsed_s": 4.0} for r in two.records))
    assert modelled([one, two, four])
    assert modelled([one, slow, four]) == []
    assert said([one, slow, four], 2) == ""


def test_its_own_error_is_that_of_the_oversubscribed_runs() -> None:
    # Four ranks on two cores write for 4 s by the model, and with three times as much for 12.
    shares = [100 * 5 / 5.4, 100 * 13 / 14.2]
    text = f"gives {shares[1]:.0f} to {shares[0]:.0f}% of the seconds that they took"
    assert text in said(rows(), 2)
    assert said(rows(crowded=()), 2) == ""


def test_the_model_gives_the_saved_rows_that_it_is_fitted_to() -> None:
    saved = StudyResults.read(FOLDER / "iotest-quick.json.gz")
    page = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
    for name, outcome in saved.outcomes.items():
        measured = {tuple(row.point.items()): row for row in outcome.rows()}
        found = modelled(outcome.rows())
        for one in found:
            row = measured.get(tuple(one.point.items()))
            if row is not None and one.figure == "total_s":
                share = one.value / middle(row.values("total_s"), "median")
                assert 0.5 < share < 2, (name, one)
        told = said(outcome.rows(), saved.environment["cpu_count"])
        assert bool(told) == bool(found)
        if name == "scaling":
            assert re.findall(r"gives (.* to .*%) of the seconds", told)[0] in page


def test_where_each_rank_had_a_core_nothing_is_modelled() -> None:
    assert modelled(rows(crowded=())) == []
    # And of what can it be fitted, where none had?
    assert modelled(rows(crowded=(1, 2, 4))) == []
    [first, *_] = rows()
    other = Row({**first.point, "ranks": "4", "oversubscribed": "yes"}, ({"status": "failed"},))
    assert modelled([first, other]) == []


def test_it_is_drawn_beside_what_was_measured_and_not_as_the_paper_s() -> None:
    study = load("iotest")
    [experiment] = [one for one in study.experiments if one.id == "scaling"]
    [plot] = [one for one in experiment.plots if one.figure == "total_s"]
    paper = Published({"filter": "none", "dataset-rank": "4", "ranks": "2"}, "total_s", 9.0, "x")
    measured = rows()
    drawing = Drawing(measured, [paper], "median", {}, reduced=True, modelled=modelled(measured))
    drawn = draw("c", plot, drawing)
    assert drawn is not None
    chart, table = drawn
    assert chart is not None
    names = {series.name: series for series in chart.series}
    assert sum(name.startswith("model") for name in names) == 2
    assert sum(name.startswith("paper") for name in names) == 1
    plain = {name: one for name, one in names.items() if "no filter" in name}
    [mine] = [one for name, one in plain.items() if name.startswith("model")]
    assert [point.value for point in mine.points] == pytest.approx([3, 3, 3], rel=0.02)
    assert mine.points[0].details[0].endswith("by the model")
    # It stands beside the series that it models.
    [today] = [one for name, one in plain.items() if not name.startswith(("model", "paper"))]
    assert mine.style == today.style
    column = table.columns.index("model")
    assert all(row[column] for row in table.rows)
    assert sum(bool(row[table.columns.index("published")]) for row in table.rows) == 1
    without = draw("c", plot, Drawing(measured, [], "median", {}))
    assert without is not None
    assert "model" not in without[1].columns
