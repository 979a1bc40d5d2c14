"""Can a study's questions be put to a dataset of the user's?"""

import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from chunkwise.errors import UsageError
from chunkwise.measure.planning import spell_out
from chunkwise_lab.commands.study import command
from chunkwise_lab.studies import own_data as own
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.run import Options, run

STUDY = load("cris")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.h5"
    numbers = np.arange(12 * 40 * 300, dtype="i4").reshape(12, 40, 300)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=numbers, chunks=(4, 20, 100), compression=1)
        file.create_dataset("plain", data=numbers, chunks=(4, 20, 300))
        file.create_dataset("contiguous", data=numbers)
        file.create_dataset("line", data=numbers[0, 0], chunks=(10,))
        file.create_dataset("rows", data=numbers[0], chunks=(1, 300))
        file.create_dataset("long", shape=(4, 4000000), chunks=(4, 1000000), dtype="u1")
    return str(path)


def test_values_follow_from_the_chunk(mine: str) -> None:
    _, values = own.values_for(STUDY, mine, "a")
    assert values == {
        "access": {"row=1x1x1x717": "row=1x1x300", "chunk=4x30x9x717": "chunk=4x20x100"},
        # A row's three chunks fit the small cache: 3 x 1x10x100 x 4 bytes.
        "chunk": {"1x30x9x717": "1x10x100"},
        "filter": {"stored": "stored"},
        "cache": {
            "1MiB": str(32000 // 2),
            # A row goes through 3 chunks.
            "3097439": str(3 * 32000 - 1),
            "3097440": str(3 * 32000),
            # Row after row, until a chunk's four indexes of the slowest dimension are done.
            "3MiB": str(6 * 32000),
        },
    }


def test_data_that_is_not_compressed_is_compressed_for_comparison(mine: str) -> None:
    target, values = own.values_for(STUDY, mine, "plain")
    assert values["filter"] == {"stored": "deflate:6"}
    space = own.adapted(STUDY, values).experiments[0].runs[0].spaces["quick"]
    assert {one.variant.filters for one in spell_out(target, space).planned} == {
        "deflate:6",
        "none",
    }


def test_the_study_is_the_same_with_other_values(mine: str) -> None:
    _, values = own.values_for(STUDY, mine, "a")
    found = own.adapted(STUDY, values)
    assert [one.id for one in found.experiments] == ["tables", "default", "threshold"]
    assert all(not one.published and not one.note for one in found.experiments)
    collapse = found.experiments[0].claims[0].settings
    assert collapse["slow"]["cache"] == collapse["fast"]["cache"] == "16000"
    assert collapse["slow"]["access"] == "row=1x1x300"
    assert found.experiments[0].plots[2].where["cache"] == ("16000", "default")
    probe = next(run for run in found.experiments[0].runs if run.probe)
    assert probe.settings["quick"] == {"chunk": "1x10x100"}
    # Again, with what is then in the place of the study's: nothing is left to replace.
    assert own.adapted(found, values) == found


@pytest.mark.parametrize(
    ("dataset", "why"),
    [
        ("contiguous", "contiguous, not chunked"),
        ("line", "one dimension"),
        ("rows", "no two rows lie in the same chunk"),
        ("long", "the chunks of one row take 3.8 MiB and more"),
        ("none", "no dataset '/none'"),
    ],
)
def test_what_makes_no_sense_is_refused(mine: str, dataset: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=why):
        run(STUDY, Options("quick", tmp_path / "out", file=mine, dataset=dataset))
    assert not (tmp_path / "out").exists()


def test_other_studies_are_refused(mine: str) -> None:
    with pytest.raises(UsageError, match="measures what it generates"):
        own.values_for(replace(STUDY, own=None), mine, "a")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('"4MiB" = "@large-cache"', r'own\.cache: no run has "4MiB" \(did you mean .3MiB.\?\)'),
        ('"3MiB" = "@big-cache"', r"'@big-cache' is no placeholder \(did you mean '@large-cache'"),
    ],
)
def test_what_would_replace_nothing_is_an_error(tmp_path: Path, wrong: str, why: str) -> None:
    folder = tmp_path / "study"
    shutil.copytree(Path(str(files("chunkwise_lab.studies") / "cris")), folder)
    head = folder / "study.toml"
    text = head.read_text(encoding="utf-8")
    head.write_text(text.replace('"3MiB" = "@large-cache"', wrong), encoding="utf-8")
    with pytest.raises(UsageError, match=why):
        load(str(folder))


def test_end_to_end(mine: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["cris", "--file", mine, "--dataset", "a", "-o", str(out), "--repeat", "1"]
    done = CliRunner().invoke(command, [*arguments, "--only", "threshold"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    results = StudyResults.read(out / "results.json.gz")
    assert results.target is not None
    assert (results.target["dataset"], results.target["chunks"]) == ("a", [4, 20, 100])
    loads = {
        row.point["cache"]: row.values("chunk_loads")
        for row in results.outcomes["threshold"].rows()
    }
    # 480 rows of three chunks: none is kept; none, as the third drops the first; all of a row,
    # for 20 rows; all until they are no more needed.
    assert loads == {"16000": (1440,), "95999": (1440,), "96000": (72,), "192000": (18,)}
    assert own.study_of(STUDY, results).experiments[2].runs[0].spaces["quick"].axes["cache"] == (
        *loads,
    )
    # The file itself is as it was.
    assert Path(mine).exists()


def test_a_dataset_needs_a_file() -> None:
    done = CliRunner().invoke(command, ["cris", "--dataset", "a"])
    assert isinstance(done.exception, UsageError)
