"""The study of hyperslabs: what it asks for, and that one wrong value fails it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.errors import WrongValueError
from chunkwise.measure.space import Space
from chunkwise_lab import sample
from chunkwise_lab.studies import memory_places
from chunkwise_lab.studies.libraries import Library, expand
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.run import Options, run
from chunkwise_lab.studies.study import Data, Study
from tests.support.wrong_reader import WRONG_H5PY

FOLDER = Path(__file__).resolve().parents[2] / "docs/studies"


def test_every_read_is_checked_and_the_readers_take_part() -> None:
    study = load("hyperslabs")
    runs = [one for experiment in study.experiments for one in experiment.runs]
    assert all(one.check for one in runs if one.probe is None)
    readers = {
        reader
        for one in runs
        if one.probe is None
        for reader in one.spaces["quick"].axes["reader"]
    }
    assert readers == {"libhdf5", "h5py", "chunkwise"}
    ranks = {data.labels["rank"]: data for data in study.data.values() if "rank" in data.labels}
    assert [len(data.options["paper"]["shape"]) for data in ranks.values()] == [1, 2, 3, 4]
    for scale in ("quick", "paper"):
        sizes = {np.prod(data.options[scale]["shape"]) for data in ranks.values()}
        assert len(sizes) == 1


def test_no_experiment_says_that_all_is_read_where_the_saved_run_estimates() -> None:
    saved = StudyResults.read(FOLDER / "hyperslabs-paper.json.gz")
    notes = {one.id: one.note for one in load("hyperslabs").experiments}
    estimated = {
        name
        for name, outcome in saved.outcomes.items()
        if any(record.get("extrapolated") for record in outcome.records)
    }
    assert estimated == {"storage", "versions", "ranks", "reopen"}
    for name in estimated:
        assert "~ marks what" in notes[name], name
        assert "none is estimated" not in " ".join(notes[name].split()), name


def tiny() -> Study:
    """One run of one reader, on little data."""
    study = load("hyperslabs")
    (whole,) = (one for one in study.experiments if one.id == "reopen")
    one = whole.runs[0]
    space = Space.of(access=["cells:5:3"], reader=["h5py"], reopen=["once"])
    options = {"shape": (40, 30), "chunk": (10, 10), "filters": "none"}
    data = Data("many-compressed", "counting", {"quick": options, "paper": options})
    runs = (replace(one, spaces={"quick": space, "paper": space}),)
    experiment = replace(whole, runs=runs, claims=(), plots=())
    return replace(study, experiments=(experiment,), data={data.name: data})


def test_figures_are_of_the_parts(tmp_path: Path) -> None:
    results = run(tiny(), Options("quick", tmp_path, repeat=1))
    outcome = results.outcomes["reopen"]
    assert outcome.mismatches == []
    (row,) = outcome.rows()
    parts = {name: row.values(name)[0] for name in ("open_s", "select_s", "read_s", "opened_s")}
    assert parts["opened_s"] == pytest.approx(
        parts["open_s"] + parts["select_s"] + parts["read_s"]
    )
    record = row.records[0]
    assert record["checked_elements"] * 4 == record["selected_nbytes"]
    assert row.values("selected_mb") == (record["selected_nbytes"] / 1e6,)
    assert not list((tmp_path / "files").glob("*"))


def test_one_wrong_value_fails_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "run", partial(measure.run, worker=WRONG_H5PY))
    results = run(tiny(), Options("quick", tmp_path, repeat=1))
    (told,) = results.outcomes["reopen"].mismatches
    assert all(fact in told for fact in ("'cells:5:3'", "seed 0"))


def test_elements_are_known_without_a_file(tmp_path: Path) -> None:
    for name, options in (("counting", {"shape": (6, 5, 4)}), ("radar", {"shape": (20, 30)})):
        dataset = sample.SAMPLES[name].datasets[-1]
        sample.write(name, tmp_path / "x.h5", seed=3, force=True, **options)
        sample.write_elements(name, tmp_path / "known", dataset=dataset, seed=3, **options)
        with h5py.File(tmp_path / "x.h5") as file:
            assert (tmp_path / "known").read_bytes() == file[dataset][...].tobytes()


def test_older_libraries_are_those_below_h5py_s_one_of_each_version() -> None:
    found = {
        name: Library(name, version, "")
        for name, version in (
            ("default", "2.0.0"),
            ("/a.so", "1.10.8"),
            ("/b.so", "1.10.8"),
            ("/c.so", "2.2.0"),
            ("/d.so", "1.14.6"),
        )
    }
    space, reasons = expand(Space.of(libhdf5=["default", "@older"]), found)
    assert space is not None
    assert space.axes["libhdf5"] == ("default", "/a.so", "/d.so")
    assert reasons == []
    space, reasons = expand(Space.of(libhdf5=["default", "@older"]), {"default": found["default"]})
    assert space is not None
    assert space.axes["libhdf5"] == ("default",)
    assert "older" in reasons[0]


def test_elements_go_to_each_place_in_memory(tmp_path: Path) -> None:
    study = load("hyperslabs")
    (whole,) = (one for one in study.experiments if one.id == "memory")
    options = {"shape": (40, 30), "chunk": (10, 10), "filters": "none"}
    data = {
        name: replace(study.data[name], options=dict.fromkeys(("quick", "paper"), options))
        for name in whole.runs[0].data
    }
    small = replace(study, experiments=(whole,), data=data)
    outcome = run(small, Options("quick", tmp_path, repeat=2)).outcomes["memory"]
    assert outcome.skipped == []
    rows = outcome.rows()
    assert len(rows) == 2 * 2 * 3
    assert {len(row.records) for row in rows} == {2}
    # The same elements, wherever they go.
    sizes = {(r.point["planes"], r.values("selected_mb")) for r in rows}
    assert len(sizes) == 2


def test_a_wrong_place_is_met(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["d"] = np.arange(12, dtype="i4").reshape(3, 4)
        whole = file["d"][()]
        whole[1, 2] = 99
        with pytest.raises(WrongValueError, match="/d: was read wrong"):
            memory_places._read(file["d"], whole, [((0, 0), (1, 1), (1, 1), (3, 4))],
                                memory_places.PLACES["a row"])  # fmt: skip
