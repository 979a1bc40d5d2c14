"""Does the list of the papers' items name what is there, and do docs and report show it?"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from chunkwise_lab.report import parts
from chunkwise_lab.report.build import report
from chunkwise_lab.studies.items import papers, verdicts
from chunkwise_lab.studies.load import NAMES, load
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.rules import Word

FOLDER = Path(__file__).resolve().parents[2] / "docs/studies"
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
