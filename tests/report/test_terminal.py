"""Does what a study prints at its end fit a terminal, and say what it should?"""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from chunkwise_lab.report.terminal import list_experiments, list_studies, show
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.published import draw
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.study import Experiment, Study
from tests.support.golden import assert_golden
from tests.support.studies import row, write_study

MACHINE: dict[str, str | int] = {
    "cpu": "A Processor", "cpu_count": 2, "system": "Linux 6.1", "hdf5": "2.0.0", "zlib": "1.2.13",
    "chunkwise": "0.1.0",
}  # fmt: skip


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


def test_the_pages(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study whose advice stands, one whose advice does not, one that went wrong, the list."""
    monkeypatch.chdir(tmp_path)
    slow, fast = CACHES
    turned = replace(slow, records=fast.records), replace(fast, records=slow.records)
    failed = row(cache="1MiB", reader="libhdf5", access="row=1x1x1x7")
    wrong = outcome(
        slow, failed, skipped=["no libhdf5"], mismatches=["a and b differ"], complete=False
    )
    many = [
        row(float(n), cache=f"{n}KiB", reader=reader)
        for reader in ("libhdf5", "chunkwise")
        for n in range(1, 20)
    ]
    fallback = {"fallback": "its layout is contiguous"}
    by_libhdf5 = [row(1.0, reader="chunkwise", cache=c, extra=fallback) for c in ("1KiB", "1MiB")]
    few = results(rows=outcome(slow, row(1.0, cache="1MiB")))
    few.repeat = 5
    # The paper's own table folds a label that leaves no room.
    first = study.experiments[0]
    label = "a label of many words, as many as a line holds"
    named = tuple(replace(one, label=label) for one in first.published)
    labelled = replace(study, experiments=(replace(first, published=named),))
    three = [
        row(1.0, cache="1KiB", reader=reader, access="row=1x1x1x7")
        for reader in ("libhdf5", "netcdf4", "chunkwise")
    ]
    listed = io.StringIO()
    list_studies([study], Console(file=listed, width=80))
    list_experiments(study, Console(file=listed, width=80))
    assert_golden(
        "study",
        printed(study, results(rows=outcome(*CACHES))),
        printed(study, results(rows=outcome(*turned))),
        printed(study, results(rows=wrong)),
        printed(study, results(rows=outcome(*many))),
        printed(study, few),
        # The command is not wrapped, and can be pasted.
        printed(study, results(rows=outcome(*CACHES, *by_libhdf5)), f"a folder/{'deep/' * 20}"),
        "\n".join(draw(labelled, results(rows=outcome(*three)), "Table 1")),
        listed.getvalue(),
    )


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
