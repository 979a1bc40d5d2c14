"""Does the study of paper 001 measure what the paper measured, and can that be measured?"""

import math
from pathlib import Path

import pytest

from chunkwise.trials.formats import holds, is_netcdf3
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.run import Options, dataset_of, generate, run
from chunkwise_lab.studies.study import SCALES, Run, Scale, Study
from tests.support.studies import STUDY, write_study
from tests.support.tools import needs_netcdf


@pytest.fixture(scope="module")
def study() -> Study:
    return load("netcdf4")


def measured(study: Study, scale: Scale) -> list[tuple[str, Run]]:
    return [(e.id, one) for e in study.experiments for one in e.runs if scale in one.scales]


def test_every_table_and_figure_that_measures_has_an_experiment(study: Study) -> None:
    sources = " ".join(experiment.source for experiment in study.experiments)
    assert [experiment.id for experiment in study.experiments] == [
        "versions", "conversion", "allocation", "column", "transfer", "radar", "chunk-size",
        "hyperslabs",
    ]  # fmt: skip
    for words in (
        "Tables 1 and 2", "Figures 1 to 4", "3.2.2", "Tables 3 and 4", "Figures 5 to 8",
        "Table 5, Figure 9", "Table 6, Figures 10 to 12", "Tables 7 and 8, Figure 13",
    ):  # fmt: skip
        assert words in sources


@pytest.mark.parametrize("scale", SCALES)
def test_all_experiments_are_measured_at_both_scales(study: Study, scale: Scale) -> None:
    assert {name for name, _ in measured(study, scale)} == {e.id for e in study.experiments}


@pytest.mark.parametrize("scale", SCALES)
def test_its_points_are_possible(study: Study, scale: Scale) -> None:
    for _, one in measured(study, scale):
        for point in one.spaces[scale].points(()):
            for name in one.data:
                shape = study.data[name].options[scale].get("shape", (1501, 2001))
                if "x" in point["chunk"]:
                    chunk = tuple(map(int, point["chunk"].split("x")))
                    assert len(chunk) == len(shape)
                    assert all(c <= n for c, n in zip(chunk, shape, strict=True))
                # Array variables are of integers, radar images of short ones.
                assert holds(point["format"], "i4")
                assert holds(point["format"], "i2")
            assert point["reader"] == "netcdf4" or not is_netcdf3(point["format"])


def test_the_paper_scale_has_the_papers_sizes(study: Study) -> None:
    nbytes = {
        name: 4 * math.prod(data.options["paper"]["shape"])
        for name, data in study.data.items()
        if data.labels.get("size")
    }
    small = [n for name, n in nbytes.items() if name.startswith("small")]
    large = [n for name, n in nbytes.items() if name.startswith("large")]
    assert (len(small), len(large)) == (6, 6)
    assert all(0.9e6 < n < 1.1e6 for n in small)
    assert all(30e6 < n <= 40e6 for n in large)
    [chunks] = [
        one.spaces["paper"].axes["chunk"] for name, one in measured(study, "paper")
        if name == "chunk-size"
    ]  # fmt: skip
    assert len(set(chunks)) == 25
    assert {"8x8", "790x790", "791x791", "792x792", "3162x3162"} <= set(chunks)
    assert study.repeat["paper"] == 10


@pytest.mark.parametrize("name", ["small-1", "small-6", "large-5"])
def test_variables_of_every_rank_can_be_made(study: Study, name: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    data = study.data[name]
    generate(data, "quick", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        found = file[dataset_of(data)]
        assert (found.shape, found.chunks) == (data.options["quick"]["shape"], None)
        assert found[(0,) * (found.ndim - 1) + (3,)] == 3


@needs_netcdf
def test_an_experiment_from_end_to_end(tmp_path: Path) -> None:
    head = STUDY.replace('"cris"', '"radar"').replace("[4, 5, 3, 7]", "[20, 30]")
    small = load(str(write_study(tmp_path / "study", _EXPERIMENT, head)))
    results = run(small, Options("quick", tmp_path / "out"))
    outcome = results.outcomes["versions"]
    assert (outcome.skipped, outcome.mismatches, results.complete) == ([], [], True)
    rows = outcome.rows()
    told = [(r.point["dataset"], r.point["operation"], r.point["format"]) for r in rows]
    assert told == [
        (dataset, operation, format)
        for dataset in ("/SHI", "/POSH")
        for operation in ("write", "read")
        for format in ("classic", "netcdf4")
    ]
    for row in rows:
        synced, alone = row.values("rate_synced"), row.values("rate")
        assert alone
        if row.point["operation"] == "read":
            assert not synced
        else:
            assert all(a < b for a, b in zip(synced, alone, strict=True))
    [judged] = judge_all(small, results)
    assert judged.verdict.word != "not measured"


_EXPERIMENT = """
[[experiment]]
id = "versions"
title = "Formats"
source = "None"
question = "None?"
found = "None."
[[experiment.run]]
data = ["small"]
datasets = {quick = ["/SHI", "/POSH"]}
axes = {operation = ["write", "read"], access = ["all"], format = ["classic", "netcdf4"], \
page-cache = ["cold"], reader = ["netcdf4"]}
[[experiment.claim]]
id = "same"
says = "All is one."
rule = "same"
figure = "rate"
where = {operation = "write"}
one = {format = "classic"}
other = {format = "netcdf4"}
over = "dataset"
"""
