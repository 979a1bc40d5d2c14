"""What does a report make of an answer of advise?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chunkwise.advice.answer import Advice, FrontPoint, PatternAdvice
from chunkwise.advice.verifying import Timing
from chunkwise.errors import UsageError
from chunkwise.model.layout import Layout
from chunkwise.remedy.fix import Fix
from chunkwise_lab.commands.report import command
from chunkwise_lab.report.build import report
from chunkwise_lab.report.markdown import markdown
from chunkwise_lab.report.page import page
from tests.support.reports import HOSTILE

NOW = Layout((1, 150, 150), "deflate:1")
BEST = Layout((60, 75, 150), "shuffle+deflate:1")
SMALL = Layout((60, 75, 75), "shuffle+deflate:9")
MIB = 1 << 20


def timed(seconds: float) -> Timing:
    return Timing(seconds, 0.9 * seconds, 1.2 * seconds, 3, False)


def answer(**changed: Any) -> Advice:
    """Make up an answer."""
    map_ = PatternAdvice(
        "map", "map=1x150x150", (1, 150, 150), 3.0, False, timed(0.1), timed(0.2), 0.1, 0.2,
        timed(0.05),
    )  # fmt: skip
    series = PatternAdvice("series", "x", (120, 1, 1), 1.0, False, timed(2700), None, 2600, 0.3)
    written = PatternAdvice("kept", "x", (1, 150, 150), 1.0, True, None, None, 0.5, 0.4)
    made = Advice(
        "model.nc", "g/t2m", (120, 150, 150), 4, "HDF5 2.0.0 here", "balanced", NOW, BEST,
        (map_, series, written), True,
        (
            FrontPoint(SMALL, 4.0, 9.0, 3 * MIB, False),
            FrontPoint(BEST, 0.9, 0.4, 5 * MIB, True),
        ),
        6 * MIB, 5 * MIB, False, True, "It reads 3,000 times as fast.",
        fixes=(Fix("chunkwise", "chunkwise repack --chunk /g/t2m:60x75x150 model.nc new.nc"),),
        part="the whole dataset", notes=("A note.",), looked_at=1234,
    )  # fmt: skip
    return replace(made, **changed)


def saved(folder: Path, advice: Advice) -> Path:
    path = folder / "advice.json"
    path.write_text(json.dumps(advice.as_dict()), encoding="utf-8")
    return path


def test_the_front_and_before_and_after(tmp_path: Path) -> None:
    made = report([saved(tmp_path, answer())])
    (section,) = made.sections
    assert made.title == "How the data should be stored"
    assert section.title == "model.nc: g/t2m"
    assert section.about == "It reads 3,000 times as fast."
    assert section.remedy.startswith("chunkwise repack")
    size, write, times = made.charts
    places = {one.name: [(p.at, p.value, p.estimated) for p in one.points] for one in size.series}
    now_s = 3 * 0.1 + 2700
    assert places == {
        "choices": [(4.0, 3.0, True)],
        "advised": [(0.9, 5.0, False)],
        "as it is": [(pytest.approx(now_s), 6.0, False)],
    }
    assert {p.value for one in write.series for p in one.points} == {9.0, 0.4}
    assert [tick.text for tick in times.along.ticks] == ["map", "series", "kept, written"]
    found = {one.name: [(p.value, p.low, p.high) for p in one.points] for one in times.series}
    assert found["as it is"][0] == pytest.approx((0.1, 0.09, 0.12))
    assert found["as advised"] == [
        (0.2, pytest.approx(0.18), pytest.approx(0.24)), (0.3, 0.3, 0.3), (0.4, 0.4, 0.4)
    ]  # fmt: skip
    assert len(found["by chunkwise, as it is"]) == 1


def test_tables_say_the_same_and_mark_what_was_not_measured(tmp_path: Path) -> None:
    text = markdown(report([saved(tmp_path, answer())]))
    assert "| 60x75x150 shuffle+deflate:1 | 900 ms | \\~ 400 ms | 5.0 MiB | advised |" in text
    assert "| 60x75x75 shuffle+deflate:9 | \\~ 4.00 s | \\~ 9.00 s | 3.0 MiB |  |" in text
    assert "| series | 45.0 min | \\~ 300 ms | 9,000x |  |" in text
    assert "## Measured on" not in text  # an answer does not say on which machine
    assert "1 answer of chunkwise advise" in text


def test_a_present_layout_that_is_a_choice_is_drawn_once(tmp_path: Path) -> None:
    front = (*answer().front, FrontPoint(NOW, 2700.3, 0.3, 6 * MIB, True))
    made = report([saved(tmp_path, answer(front=front))])
    size = next(made.charts)
    points = [p for one in size.series for p in one.points]
    assert len(points) == 3
    assert {one.name for one in size.series} == {"choices", "advised", "as it is"}


def test_what_is_to_be_left_has_no_remedy(tmp_path: Path) -> None:
    (section,) = report([saved(tmp_path, answer(leave=True, best=NOW))]).sections
    assert section.remedy == ""


def test_before_there_is_a_file(tmp_path: Path) -> None:
    patterns = tuple(
        replace(one, present=None, best=None, ours=None, present_model_s=None)
        for one in answer().patterns
    )
    made = report([saved(tmp_path, answer(
        file="", dataset="data", present=None, present_nbytes=None, verified=False,
        patterns=patterns, part="",
    ))])  # fmt: skip
    (section,) = made.sections
    assert section.title == "A new dataset"
    assert dict(section.facts)["Answer"].startswith("the model's word")
    *_, times = made.charts
    assert [one.name for one in times.series] == ["as advised"]
    assert all(point.estimated for one in times.series for point in one.points)


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    patterns = (replace(answer().patterns[0], name=HOSTILE), *answer().patterns[1:])
    made = report([saved(tmp_path, answer(dataset=HOSTILE, reason=HOSTILE, patterns=patterns))])
    assert "<b onclick" not in page(made)


def test_beside_a_run_of_bench_both_are_told(tmp_path: Path) -> None:
    path = saved(tmp_path, answer())
    done = CliRunner().invoke(
        command, [str(path), str(path), "-o", str(tmp_path / "r.md")], standalone_mode=False
    )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "r.md").read_text("utf-8")
    assert "2 answers of chunkwise advise" in text
    assert "run 2" in text


@pytest.mark.parametrize("key", ["front", "patterns", "best", "reader", "shape"])
@pytest.mark.parametrize("value", [None, 7, "x", {"a": 1}])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    path = tmp_path / "advice.json"
    values = answer().as_dict()
    del values[key]
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UsageError, match="is no whole file of chunkwise advise"):
        report([path])
    if key in ("front", "patterns", "best") and value != {"a": 1}:
        path.write_text(json.dumps({**values, key: value}), encoding="utf-8")
        with pytest.raises(UsageError, match="is no whole file of chunkwise advise"):
            report([path])


def test_a_ranking_is_refused_with_what_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    path.write_text('{"format": "chunkwise-advise-ranking"}', encoding="utf-8")
    with pytest.raises(UsageError, match="chunkwise advise FILE DATASET --json"):
        report([path])
