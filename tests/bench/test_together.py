"""Do several datasets of a file come to the sum of what each of them takes?"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from chunkwise.cli.bench import command
from chunkwise.errors import DatasetNotFoundError, SelectionError, UsageError
from chunkwise.measure import Space, run_together
from chunkwise.measure.together import Together
from chunkwise_lab.report.build import report

NAMES = ("t", "group/u")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "several.h5"
    with h5py.File(path, "w") as made:
        data = np.arange(6000, dtype="i4").reshape(20, 30, 10)
        made.create_dataset("t", data=data, chunks=(1, 30, 10), compression=1)
        made.create_dataset("group/u", data=data[:, 0], chunks=(20, 1), compression=1)
        made["scalar"] = 1
    return path


@pytest.fixture(scope="module")
def found(file: Path) -> Together:
    space = Space.of(
        access=["line:0", "all"], reader=["h5py", "chunkwise-py"], cache=["1MiB", "2MiB"]
    )
    return run_together(file, NAMES, space, repeat=1, seconds=12)


def test_each_setting_is_the_sum_over_datasets_and_patterns(found: Together) -> None:
    assert [one.file.dataset for one in found.results] == ["t", "group/u"]
    settings = found.settings
    # What a cache makes no difference to is there once.
    assert [(one.point["reader"], one.point["cache"]) for one in settings] == [
        ("h5py", "1MiB"),
        ("h5py", "2MiB"),
        ("chunkwise-py", "default"),
    ]
    for one in settings:
        assert len(one.cells) == 4
        rows = [
            row["total_s"]
            for results in found.results
            for row in results.summary()
            if (row["reader"], row["cache"]) == (one.point["reader"], one.point["cache"])
        ]
        assert one.total_s == pytest.approx(sum(rows))


def test_a_cache_of_the_file_is_one_for_each_dataset(found: Together) -> None:
    first, second, ours = found.settings
    assert first.cache_nbytes == (1 << 20, 1 << 20)
    assert first.caches_nbytes == 2 << 20
    assert second.caches_nbytes == 4 << 20
    assert ours.caches_nbytes is None


def test_the_record_has_all_of_it(found: Together) -> None:
    record = json.loads(json.dumps(found.as_dict()))
    assert record["format"] == "chunkwise-bench-datasets"
    assert [one["format"] for one in record["datasets"]] == ["chunkwise-bench"] * 2
    assert [one["caches_nbytes"] for one in record["settings"]] == [2 << 20, 4 << 20, None]
    assert record["settings"][0]["speed"] == 1.0


def test_a_report_has_a_section_for_each_dataset(found: Together, tmp_path: Path) -> None:
    path = tmp_path / "several.json"
    path.write_text(json.dumps(found.as_dict()), encoding="utf-8")
    made = report([path])
    assert [section.title for section in made.sections] == [
        "several.json: t", "several.json: group/u"
    ]  # fmt: skip
    assert len({chart.id for chart in made.charts}) == 4
    several: tuple[object, ...] = ([], None, [7], [{}])
    for wrong in several:
        path.write_text(json.dumps({**found.as_dict(), "datasets": wrong}), encoding="utf-8")
        with pytest.raises(UsageError):
            report([path])


def test_it_prints_within_80_columns_and_as_csv(file: Path) -> None:
    words = [str(file), *NAMES, "--access", "all", "--reader", "h5py", "--repeat", "1"]
    done = CliRunner().invoke(command, [*words, "--budget", "4s"], standalone_mode=False)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert max(len(line) for line in lines if str(file) not in line) <= 80
    (row,) = [line for line in lines if line.startswith("h5py  ")]
    *_, each, unit, together, same = row.split()
    assert (unit, float(together)) == (same, 2 * float(each))
    done = CliRunner().invoke(command, [*words, "--budget", "4s", "--csv"], standalone_mode=False)
    rows = list(csv.DictReader(io.StringIO(done.output)))
    assert [row["dataset"] for row in rows] == ["t", "group/u"]


@pytest.mark.parametrize(
    ("names", "options", "wrong", "said"),
    [
        (("t", "/t"), {}, UsageError, "named twice"),
        (("t", "v"), {}, DatasetNotFoundError, "v"),
        (("t", "scalar"), {}, UsageError, "is a scalar"),
        (NAMES, {"save": "x.jsonl"}, UsageError, "--save belongs to one dataset"),
        (NAMES, {"space": Space.of(access=["1x30x10"], reader=["h5py"])}, SelectionError, "dim"),
    ],
)
def test_what_makes_no_sense_is_refused(
    file: Path, names: tuple[str, ...], options: dict[str, object], wrong: type, said: str
) -> None:
    space = options.pop("space", Space.of(access=["all"], reader=["h5py"]))
    with pytest.raises(wrong, match=said):
        run_together(file, names, space, repeat=1, seconds=2, **options)  # type: ignore[arg-type]
