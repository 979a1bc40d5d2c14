"""Does docs/studies/README.md say what the saved results do, and how long studies take?"""

import re
from collections import Counter
from pathlib import Path

import pytest

from chunkwise_lab.commands.study import command
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.items import papers
from chunkwise_lab.studies.load import NAMES, load
from chunkwise_lab.studies.results import StudyResults

FOLDER = Path(__file__).resolve().parents[2] / "docs/studies"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
WORDS = ("holds", "weaker", "no longer holds", "reversed", "cannot tell", "not measured")
SAVED = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*-*.json.gz"))


@pytest.mark.parametrize("name", SAVED)
def test_verdicts_are_counted_as_they_are(name: str) -> None:
    judged = judge_all(
        load(name.rpartition("-")[0]), StudyResults.read(FOLDER / f"{name}.json.gz")
    )
    counts: Counter[str] = Counter(one.verdict.word for one in judged)
    assert f"| {name} | {' | '.join(str(counts[word]) for word in WORDS)} |" in TEXT


def test_every_paper_has_headlines() -> None:
    _, _, rest = TEXT.partition("## The papers' headlines\n")
    rows = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    for paper in papers():
        assert any(f"({paper.number}" in row for row in rows), paper.number
    # Of 002, with the figures and words of its verdicts.
    judged = judge_all(load("iotest"), StudyResults.read(FOLDER / "iotest-quick.json.gz"))
    verdicts = {f"{one.experiment.id}/{one.claim.id}": one.verdict for one in judged}
    for claim, figures in (
        ("scaling/compression-scales-better", ("88.8", "40.4")),
        ("walk/start", ("umber 48 of 96", "1.34 times as long")),
    ):
        (row,) = (row for row in rows if all(text in row for text in figures))
        assert all(text in verdicts[claim].sentence for text in figures)
        assert row.endswith(f": {verdicts[claim].word} |")


def test_studies_take_as_long_as_all_pages_say() -> None:
    minutes = {name: load(name).minutes["quick"] for name in NAMES}
    for name, stated in minutes.items():
        # The saved runs have more repeats: what a study takes by itself is in proportion.
        took = StudyResults.read(FOLDER / f"{name}-quick.json.gz").elapsed_s / 60
        assert 0.6 < stated / took < 1.2, name
    every = f"{sum(minutes.values()):g} minutes"
    told = {
        name: " ".join((FOLDER.parents[1] / name).read_text(encoding="utf-8").split())
        for name in (
            "docs/studies.md",
            "docs/start/holds.md",
            "docs/studies/README.md",
            "Makefile",
        )
    }
    assert f"about {every}" in told["docs/studies.md"]
    assert f"about {every}" in told["Makefile"]
    assert f"# {every}, {minutes['iotest']:g} of them iotest" in told["docs/studies/README.md"]
    assert (min(minutes.values()), max(minutes.values())) == (0.5, 9)
    each = "in half a minute to nine minutes"
    (scale,) = (one for one in command.params if one.name == "scale")
    assert each in str(getattr(scale, "help", ""))
    assert each in told["docs/studies.md"]
    assert each.removeprefix("in ") in told["docs/start/holds.md"]
    assert minutes["cris"] == 1.5
    assert "in one and a half minutes" in told["docs/start/holds.md"]


def test_all_of_them_are_counted() -> None:
    rows = re.findall(r"^\| \S+-(?:paper|quick) \|((?: \d+ \|){6})$", TEXT, re.MULTILINE)
    numbers = [[int(text) for text in row.strip(" |").split("|")] for row in rows]
    assert len(numbers) == len(SAVED)
    assert f"Of {sum(map(sum, numbers))} verdicts" in TEXT
    assert f"Why {sum(row[4] for row in numbers)} cannot tell" in TEXT
