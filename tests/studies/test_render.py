"""Does what a study prints at its end fit a terminal, and say what it should?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from chunkwise_lab.report.studies import section
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.render import list_experiments, list_studies, show
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.study import Experiment, Study
from tests.support.studies import row, write_study

MACHINE: dict[str, str | int] = {
    "cpu": "A Processor",
    "cpu_count": 2,
    "system": "Linux 6.1",
    "hdf5": "2.0.0",
    "zlib": "1.2.13",
    "chunkwise": "0.1.0",
}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(str(write_study(tmp_path / "tiny")))


def outcome(*rows: Any, **given: Any) -> Outcome:
    records = [{**record, "point": one.point} for one in rows for record in one.records]
    return Outcome(records, **given)


def results(**outcomes: Outcome) -> StudyResults:
    return StudyResults(
        "tiny", "quick", 3, "2026-01-01", 90.0, {}, outcomes, True, environment=MACHINE
    )


def printed(study: Study, found: StudyResults, folder: str = "studies/tiny-quick") -> str:
    out = io.StringIO()
    show(study, found, Path(folder), Console(file=out, width=80))
    return out.getvalue()


CACHES = (
    row(3.0, 3.3, 2.7, cache="1KiB", reader="libhdf5", access="row=1x1x1x7"),
    row(1.0, 1.0, 1.0, cache="1MiB", reader="libhdf5", access="row=1x1x1x7"),
)


def test_today_stands_beside_the_published_value_with_its_error(study: Study) -> None:
    text = printed(study, results(rows=outcome(*CACHES)))
    assert "rows: Rows (Table 1)\nDoes the cache matter?\n" in text
    assert "cache seconds for all of it  paper" in text
    assert "1KiB        3.00 s ± 173 ms 3.00 s" in text
    assert "1MiB                 1.00 s" in text


def test_verdicts_advice_and_what_to_do_next(study: Study) -> None:
    text = printed(study, results(rows=outcome(*CACHES)))
    assert "+ A small cache makes reads slow.\n  holds: 3.00 s with a chunk cache" in text
    assert "Advice that still stands:\n  * Make the cache as large as a chunk.\n" in text
    assert "Not run: chunks." in text
    assert "Measured 3 times, at reduced size, in 90.0 s, on A Processor, 2 CPUs" in text
    assert text.endswith(
        "Results: studies/tiny-quick/results.json.gz\n"
        "Report:  chunkwise report studies/tiny-quick -o report.html\n"
    )


def test_advice_that_does_not_stand_is_told_apart(study: Study) -> None:
    slow, fast = CACHES
    turned = replace(slow, records=fast.records), replace(fast, records=slow.records)
    text = printed(study, results(rows=outcome(*turned)))
    assert "! A small cache makes reads slow.\n  reversed: " in text
    assert "Advice that no longer does:\n  * Make the cache" in text
    assert "still stands" not in text


def test_what_failed_was_left_out_or_is_wrong_is_said(study: Study) -> None:
    failed = row(cache="1MiB", reader="libhdf5", access="row=1x1x1x7")
    found = outcome(
        CACHES[0], failed, skipped=["no libhdf5"], mismatches=["a and b differ"], complete=False
    )
    text = printed(study, results(rows=found))
    assert ". A small cache makes reads slow.\n  not measured: There are no figures with" in text
    assert "Failed: the worker was ended by SIGKILL" in text
    assert "Not measured: no libhdf5" in text
    assert "WRONG VALUES: a and b differ" in text
    assert "stopped before its end" in text
    assert "Advice of which this run cannot tell:" in text


def test_what_libhdf5_did_in_chunkwises_place_is_said(study: Study) -> None:
    rows = [
        row(1.0, reader="chunkwise", cache=cache, extra={"fallback": "its layout is contiguous"})
        for cache in ("1KiB", "1MiB")
    ]
    found = results(rows=outcome(*CACHES, *rows))
    line = "Done by libhdf5 in chunkwise's place, 2 rows: its layout is contiguous"
    assert line in printed(study, found)
    (block,) = section(found, study, "r1").blocks
    assert block.texts[-1] == (
        "Done by libhdf5 in chunkwise's place",
        "cache 1KiB, chunkwise (and 1 row more): its layout is contiguous.",
    )


def test_fewer_repeats_than_asked_for_are_admitted(study: Study) -> None:
    found = results(rows=outcome(CACHES[0], row(1.0, cache="1MiB")))
    found.repeat = 5
    assert "Measured 1 to 5 times, at" in printed(study, found)
    found.repeat = 2
    assert "Measured 1 to 2 times (at the scale paper it is 3), at" in printed(study, found)


def test_many_rows_become_their_extremes(study: Study) -> None:
    rows = [
        row(float(n), cache=f"{n}KiB", reader=reader)
        for reader in ("libhdf5", "chunkwise")
        for n in range(1, 20)
    ]
    text = printed(study, results(rows=outcome(*rows)))
    assert "Reading: seconds for all of it, lowest and highest of 38 rows" in text
    assert "1.00 s at cache 1KiB, 19.0 s at cache 19KiB" in text


def long(study: Study) -> Study:
    """Make everything long that a study says."""

    def words(text: str) -> str:
        return f"{text} {'and so on, ' * 15}end."

    def one(experiment: Experiment) -> Experiment:
        return replace(
            experiment,
            title=words(experiment.title),
            question=words(experiment.question),
            claims=tuple(
                replace(c, says=words(c.says), advice=words(c.advice)) for c in experiment.claims
            ),
        )

    experiments = tuple(map(one, study.experiments))
    return replace(study, paper=words("paper"), about=words("about"), experiments=experiments)


def test_no_line_is_wider_than_80_columns(study: Study) -> None:
    wide = [
        row(1.0, 1.1, cache=f"{n}KiB", reader="libhdf5", access=f"[{'::2, ' * n}:]",
            libhdf5=f"/a/long/path/{'x' * 40}/libhdf5_{n}.so", label="long words " * 5)
        for n in range(1, 6)
    ]  # fmt: skip
    found = results(rows=outcome(*wide, skipped=["word " * 40], mismatches=["x" * 200]))
    study = long(study)
    out = io.StringIO()
    console = Console(file=out, width=80)
    list_studies([study, study], console)
    list_experiments(study, console)
    lines = (out.getvalue() + printed(study, found)).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 50


def test_the_papers_own_tables_fold_labels_that_leave_no_room(study: Study) -> None:
    first = study.experiments[0]
    labelled = tuple(
        replace(one, label="a label of many words, as many as a line holds")
        for one in first.published
    )
    study = replace(study, experiments=(replace(first, published=labelled),))
    readers = ("libhdf5", "netcdf4", "chunkwise")
    rows = [row(1.0, cache="1KiB", reader=reader, access="row=1x1x1x7") for reader in readers]
    text = printed(study, results(rows=outcome(*rows)))
    assert max(map(len, text.splitlines())) <= 80
    assert "\n  a label of many words, as many as a\n    line holds  " in text


def test_a_command_is_not_wrapped_and_can_be_pasted(study: Study) -> None:
    folder = "a folder/" + "deep/" * 20
    assert f"chunkwise report 'a folder/{'deep/' * 19}deep' -o report.html\n" in printed(
        study, results(rows=outcome(*CACHES)), folder
    )


def test_the_list_has_times_room_and_experiments(study: Study) -> None:
    out = io.StringIO()
    list_studies([study], Console(file=out, width=80))
    assert "tiny" in out.getvalue()
    assert "rows, chunks" in out.getvalue()
    assert "1 min" in out.getvalue()
    assert "3.33 h" in out.getvalue()
