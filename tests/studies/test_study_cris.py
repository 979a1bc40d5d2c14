"""Does paper 004's study say what was published, and count what libhdf5's cache does?"""

import re
from itertools import count
from pathlib import Path
from typing import Any

import h5py
import pytest

from chunkwise.measure.target import look
from chunkwise.measure.variants import prepared, variant_of
from chunkwise_lab.sample import write
from chunkwise_lab.studies import probes, published
from chunkwise_lab.studies.context import Context
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.run import Options, run
from tests.support.golden import assert_golden
from tests.support.tools import require_tool

STUDY = load("cris")
DATASET = "/All_Data/CrIS-SDR_All/ES_ImaginaryLW"


def context(tmp_path: Path, **settings: Any) -> Context:
    folder = tmp_path / "files"
    folder.mkdir()
    return Context({}, settings, 1, {}, folder, tmp_path / "kept", (), lambda _: None)


def measured(**seconds: float) -> StudyResults:
    """Results in which everything that the tables read took a second, but for what is named."""
    records = []
    for space in (STUDY.experiments[0].runs[0].spaces["quick"],):
        for point in space.points(("",)):
            name = "_".join((point["reader"], point["filter"], point["cache"]))
            took = seconds.get(name, 1.0)
            record = {"status": "ok", "total_s": took, "extrapolated": took > 100}
            records.append({**record, "point": point})
    return StudyResults("cris", "quick", 1, "", outcomes={"tables": Outcome(records)})


def test_the_published_tables() -> None:
    """Beside a second for each read but two, and sizes beside sizes."""
    results = measured(libhdf5_stored_1MiB=243.0, chunkwise_stored_default=0.15)
    tables = [list(published.draw(STUDY, results, f"Table {number}")) for number in range(1, 9)]
    assert max(len(line) for lines in tables for line in lines) <= 80
    same = {"operation": "write", "reader": "libhdf5", "data": "smooth"}
    records = [
        {"status": "ok", "file_nbytes": nbytes, "point": {**same, "filter": name}}
        for name, nbytes in (("deflate:1", 3 << 20), ("szip:nn:8", 1 << 20))
    ]
    sizes = StudyResults("occam", "quick", 1, "", outcomes={"szip": Outcome(records)})
    tables.append(list(published.draw(load("occam"), sizes, "Section 5.7.2")))
    # What stands below each of them once.
    texts = ["\n".join(lines) for lines in tables]
    texts[1:8] = [text.partition("\n\nToday")[0] for text in texts[1:8]]
    numbers = map(published.number, (345.2, 3.6, 0.372, 0.0054))
    ratios = map(published.times, (1649, 12.4, 0.944))
    assert_golden("study-tables", *texts, " ".join([*numbers, *ratios]))


def test_slots_are_as_the_librarys_source_has_them(tmp_path: Path) -> None:
    results = run(STUDY, Options("quick", tmp_path / "out", only=("slots",)))
    outcome = results.outcomes["slots"]
    assert outcome.skipped == [] or "no libhdf5 was found" in outcome.skipped[0]
    loads = {
        (row.point["by"], row.point.get("libhdf5"), row.point["nslots"]): row.values("chunk_loads")
        for row in outcome.rows()
    }
    for nslots, paper, library in (("3", 18, 6), ("4", 6, 18), ("521", 6, 6)):
        assert loads["paper's formula", None, nslots] == (paper,)
        assert loads["libhdf5's source", None, nslots] == (library,)
        for value in results.libraries:
            assert loads["measured", value, nslots] == (library,)


def test_four_slots_are_the_fewest_above_three_that_collide() -> None:
    grid, columns = (2, 3), (0, 0, 0, 1, 1, 1, 2, 2, 2)
    counts = {
        nslots: probes.loads(probes.HASHES["libhdf5's source"](grid, nslots), grid, columns)
        for nslots in range(1, 9)
    }
    assert [nslots for nslots, count in counts.items() if count == 18] == [1, 2, 4]


def test_closed_datasets_give_their_caches_back(tmp_path: Path) -> None:
    told = context(tmp_path, datasets=("1", "6"), cache="8MiB")
    found = {
        (point["datasets"], point["then"]): records[0]["peak_rss_nbytes"]
        for point, records in probes.many_open(told)
    }
    assert found["6", "kept open"] - found["6", "closed"] > 4 * 8 << 20
    assert list(told.folder.iterdir()) == []
    # What was measured stays.
    again = {point["datasets"]: records for point, records in probes.many_open(told)}
    assert again["6"] == [{"status": "ok", "peak_rss_nbytes": found["6", "closed"]}]


def test_repacking_is_timed_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("h5repack")
    file, folder = tmp_path / "cris.h5", tmp_path / "work"
    folder.mkdir()
    write("cris", file, shape=(4, 30, 9, 717))

    numbers = count()

    def repacked(reader: str) -> list[dict[str, Any]]:
        data: dict[str, tuple[str, str, dict[str, str]]] = {"cris": (str(file), DATASET, {})}
        told = Context(
            data, {"chunk": "1x30x9x717"}, 1, {}, folder, tmp_path / f"kept-{next(numbers)}",
            (reader,), lambda _: None,
        )  # fmt: skip
        return [{**point, **records[0]} for point, records in probes.timed_repacking(told)]

    for reader in ("libhdf5", "chunkwise"):
        found = repacked(reader)
        assert [(one["operation"], one["filter"], one["status"]) for one in found] == [
            ("repack", "stored", "ok"),
            ("repack", "none", "ok"),
        ]
        assert all(one["total_s"] > 0 and one["stored_nbytes"] > 0 for one in found)
        assert re.match(r"\d+\.\d+", found[0]["tool_version"])
    # One that copies alone, one that fails, and none.
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for script, why in (
        ('[ "$1" = --version ] && echo 1 || cp "$3" "$4"', "left something out"),
        ("echo full >&2; exit 1", "full"),
    ):
        (bin_folder / "h5repack").write_text(f"#!/bin/sh\n{script}\n")
        (bin_folder / "h5repack").chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
        assert all(why in one["error"] for one in repacked("libhdf5"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed" in repacked("libhdf5")[0]["error"]
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_what_bench_writes_is_what_sample_writes(tmp_path: Path) -> None:
    write("cris", tmp_path / "cris.h5", shape=(8, 30, 9, 717))
    known = look(tmp_path / "cris.h5", DATASET)
    space = STUDY.experiments[0].runs[0].spaces["quick"]
    ways = dict.fromkeys((trial["chunk"], trial["filter"]) for trial in space.trials)
    variants = {variant_of(known, *way): way for way in ways}
    assert len(variants) == 4
    with prepared(known, list(variants), scratch=str(tmp_path)) as made:
        for variant, (chunk, filters) in variants.items():
            other = tmp_path / f"{chunk}-{filters}.h5"
            shape = None if chunk == "stored" else tuple(map(int, chunk.split("x")))
            pipeline = None if filters == "stored" else filters
            write("cris", other, shape=known.shape, chunk=shape, filters=pipeline)
            assert facts(Path(made.reading[variant].file)) == facts(other)


def facts(path: Path) -> tuple[Any, ...]:
    """All that decides how fast a dataset is read, and its bytes."""
    with h5py.File(path) as file:
        dataset = file[DATASET]
        dcpl = dataset.id.get_create_plist()
        return (
            file.id.get_create_plist().get_version(),
            dataset.dtype.str,
            dataset.chunks,
            dataset.maxshape,
            dataset.fillvalue,
            [dcpl.get_filter(i)[:3] for i in range(dcpl.get_nfilters())],
            dcpl.get_alloc_time(),
            dataset.id.get_storage_size(),
            dataset[...].tobytes(),
        )
