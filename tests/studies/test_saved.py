"""Do the pages on studies say what the saved results do, and name all that files can say?"""

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from chunkwise_lab.report import parts
from chunkwise_lab.report.build import report
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.items import papers, verdicts
from chunkwise_lab.studies.load import NAMES, load
from chunkwise_lab.studies.own_data import PLACEHOLDERS
from chunkwise_lab.studies.probes import PROBES
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.rules import RULES, Word
from chunkwise_lab.studies.study import Claim, Data, Experiment, Plot, Published, Run, Study

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


def test_studies_take_as_long_as_is_stated() -> None:
    for name in NAMES:
        # The saved runs have more repeats: what a study takes by itself is in proportion.
        took = StudyResults.read(FOLDER / f"{name}-quick.json.gz").elapsed_s / 60
        assert 0.6 < load(name).minutes["quick"] / took < 1.2, name


def test_all_of_them_are_counted() -> None:
    rows = re.findall(r"^\| \S+-(?:paper|quick) \|((?: \d+ \|){6})$", TEXT, re.MULTILINE)
    numbers = [[int(text) for text in row.strip(" |").split("|")] for row in rows]
    assert len(numbers) == len(SAVED)
    assert f"Of {sum(map(sum, numbers))} verdicts" in TEXT
    assert f"Why {sum(row[4] for row in numbers)} cannot tell" in TEXT


# --- the papers' items -------------------------------------------------------------------


PAGE = FOLDER / "README.md"
MARKED = re.compile(r"(?<=<!-- items -->\n).*?(?=<!-- end of items -->)", re.DOTALL)


def test_what_does_an_item_is_there() -> None:
    claims = {
        f"{name}/{experiment.id}/{claim.id}"
        for name in NAMES
        for experiment in load(name).experiments
        for claim in experiment.claims
    }
    for paper in papers():
        for item in paper.items:
            assert item.by or item.at or item.done or item.lacks, item
            for one in (*item.by, *item.at):
                assert any(c == one or c.startswith(f"{one}/") for c in claims), (item, one)


def test_every_claim_on_a_paper_is_one_of_its_items() -> None:
    listed = [one for paper in papers() for item in paper.items for one in (*item.by, *item.at)]
    own = ("bandwidth", "two-ways", "selections")  # Questions of ours.
    missing = [
        f"{name}/{experiment.id}"
        for name in NAMES
        if name not in own
        for experiment in load(name).experiments
        if not any(f"{one}/".startswith(f"{name}/{experiment.id}/") for one in listed)
    ]
    assert missing == []


def tables(known: Mapping[str, Word]) -> str:
    """Write the list as Markdown, a table for each paper."""
    lines = []
    for paper in papers():
        lines += [f"### {paper.number}: {paper.title}", "", f"{paper.states(known)}.", ""]
        lines += ["| item | it says | here | verdict |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {item.item} | {item.says} | {item.means} | {item.verdict(known)} |"
            for item in paper.items
        ]
        lines.append("")
    return "\n".join(lines)


def test_the_page_has_the_list_with_the_saved_verdicts() -> None:
    saved = [StudyResults.read(path) for path in sorted(FOLDER.glob("*-*.json.gz"))]
    text = f"\n{tables(verdicts(saved))}\n"
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("GOLDEN") == "write":
        page = MARKED.sub(lambda _: text, page)
        PAGE.write_text(page, encoding="utf-8")
    found = MARKED.search(page)
    assert found is not None
    assert found[0] == text, "GOLDEN=write writes the tables anew"


def saved(name: str) -> StudyResults:
    return StudyResults.read(FOLDER / f"{name}.json.gz")


def test_what_the_saved_runs_do_in_part_is_not_said_to_be_done() -> None:
    lacks = {item.says: item.lacks for paper in papers() for item in paper.items}
    # Fewer repeats than the paper's.
    for name, says in (
        (
            "occam-paper",
            "Five repeats at least, mean and standard error, against the standard run",
        ),
        ("netcdf4-paper", "Ten runs of twelve, best and worst dropped, mean of eight"),
    ):
        study = load(name.removesuffix("-paper"))
        assert (saved(name).repeat < study.repeat["paper"]) == bool(lacks[says]), says
    sizes = {
        record["point"]["chunk"]
        for name in ("occam-quick", "occam-paper")
        for record in saved(name).outcomes.get("zlib-sizes", Outcome()).records
    }
    (experiment,) = (one for one in load("occam").experiments if one.id == "zlib-sizes")
    every = experiment.runs[0].spaces["paper"].axes["chunk"]
    told = f"{len(sizes)} of the {len(every)} chunk sizes" if len(sizes) < len(every) else ""
    assert told in lacks["575% over all chunk sizes by a better gzip"]
    assert bool(told) == bool(lacks["575% over all chunk sizes by a better gzip"])
    for name in ("hyperslabs-paper", "hyperslabs-quick", "selections-quick"):
        for record in saved(name).outcomes["versions"].records:
            assert record["hdf5"] in lacks["HDF5 1.4.5, 1.6.4 and 1.7.45"]


def test_a_report_leads_from_each_item_to_its_experiment() -> None:
    made = report([FOLDER / "cris-paper.json.gz"])
    (index,) = made.indexes
    blocks = {block.id for section in made.sections for block in section.blocks}
    assert index.title.startswith("004")
    table_1 = next(entry for entry in index.entries if entry.item == "Table 1")
    assert table_1.verdict == "holds"
    assert table_1.where in blocks
    assert {entry.where for entry in index.entries} <= blocks | {""}
    assert f'<a href="#{table_1.where}">Table 1</a>' in parts.index(index)


# --- docs/studies.md ---------------------------------------------------------------------


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE_OF_STUDIES = (FOLDER.parent / "studies.md").read_text(encoding="utf-8")
# What the files write otherwise than the classes have it.
OTHERWISE = {
    "disk_nbytes": "disk", "experiments": "files", "options": "quick", "spaces": "axes",
    "runs": "run", "plots": "plot", "claims": "claim",
}  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [NAMES, FIGURES, RULES, PLACEHOLDERS, PROBES],
    ids=["studies", "figures", "rules", "placeholders", "probes"],
)
def test_every_name_is_explained(names: tuple[str, ...]) -> None:
    assert [name for name in names if f"`{name}`" not in PAGE_OF_STUDIES] == []


@pytest.mark.parametrize("kind", [StudyResults, Outcome])
def test_every_key_of_results_is_explained(kind: type[StudyResults | Outcome]) -> None:
    assert [one.name for one in fields(kind) if f"`{one.name}`" not in PAGE_OF_STUDIES] == []


def test_every_key_of_the_files_is_shown() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE_OF_STUDIES, re.DOTALL | re.MULTILINE)
    shown = {key for block in blocks for key in _keys(tomllib.loads(block))}
    for kind in (Study, Data, Experiment, Run, Published, Plot, Claim):
        names = {OTHERWISE.get(one.name, one.name) for one in fields(kind)}
        # A dataset's name is the key that its table has; a claim's settings are its rule's.
        assert names - shown - {"name", "settings"} == set(), kind
    settings = {*RULES["ratio"].sides, "words", "least", "published", "advice"}
    assert settings <= shown


def _keys(values: object) -> set[str]:
    if isinstance(values, dict):
        return set(values).union(*map(_keys, values.values()))
    return set().union(*map(_keys, values)) if isinstance(values, list) else set()
