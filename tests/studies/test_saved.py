"""Does docs/studies/README.md count the verdicts as the saved results have them?"""

import re
from collections import Counter
from pathlib import Path

import pytest

from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.items import papers
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults

FOLDER = Path(__file__).resolve().parents[2] / "docs/studies"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
WORDS = ("holds", "weaker", "no longer holds", "reversed", "cannot tell", "not measured")
SAVED = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*-*.json.gz"))


@pytest.mark.parametrize("name", SAVED)
def test_verdicts_are_counted_as_they_are(name: str) -> None:
    study = load(name.rpartition("-")[0])
    judged = judge_all(study, StudyResults.read(FOLDER / f"{name}.json.gz"))
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


def test_all_of_them_are_counted() -> None:
    rows = re.findall(r"^\| \S+-(?:paper|quick) \|((?: \d+ \|){6})$", TEXT, re.MULTILINE)
    numbers = [[int(text) for text in row.strip(" |").split("|")] for row in rows]
    assert len(numbers) == len(SAVED)
    assert f"Of {sum(map(sum, numbers))} verdicts" in TEXT
    assert f"Why {sum(row[4] for row in numbers)} cannot tell" in TEXT
