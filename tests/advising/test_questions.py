"""Before there is a file, many files, one shape for two patterns, and which codec pays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.advice.before import advise_new
from chunkwise.advice.questions import ask_bandwidth, ask_tradeoff
from chunkwise.advice.ranking import rank
from chunkwise.cli.main import main
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.model.tradeoff import READERS
from tests.support.golden import assert_golden, mistakes
from tests.support.processes import ran

MAP, SERIES = "map=1x40x60", "series=400x1x1"


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = ran([Path(sys.executable).with_name("chunkwise"), "advise", *words], timeout=120)
    assert done.returncode == code, done.stderr
    return done


# --- before there is a file ------------------------------------------------------------------


def test_a_new_dataset_gets_chunks_for_what_will_be_read(daily: Path) -> None:
    access = ("map=1x180x360", "series=2000x1x1")
    advice = advise_new("2000x180x360", "f4", access, like=f"{daily}:t2m")
    assert advice.present is None
    assert not advice.verified
    assert "no file yet" in advice.reason
    assert advice.best.chunks is not None
    assert 1 < advice.best.chunks[0] < 2000
    assert {fix.tool for fix in advice.fixes} >= {"h5py", "netCDF4", "xarray", "C", "Fortran"}
    assert all(fix.writing for fix in advice.fixes)


def test_data_that_compresses_otherwise_gets_another_size(daily: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.h5"
    with h5py.File(noise, "w") as file:
        file["x"] = np.random.default_rng(0).normal(size=(300, 40, 60)).astype("f4")
    sizes = [
        advise_new((500, 40, 60), "f4", (MAP,), like=f"{path}:{name}").best_nbytes
        for path, name in ((daily, "t2m"), (noise, "x"))
    ]
    assert sizes[0] < 0.9 * sizes[1]


def test_without_data_like_it_the_answer_says_so() -> None:
    advice = advise_new("400x40x60", "i2", (SERIES,))
    assert "made-up" in advice.reason


@pytest.mark.parametrize(
    ("shape", "dtype", "access", "said"),
    [
        ("0x10", "f4", (), "at least 1"),
        ("auto", "f4", (), "--shape"),
        ("10x10", "speed", (), "--type"),
        ("10x10", "S8", (), "only numbers"),
        ("10x10", "f4", ("1x1x1",), "dimension"),
        ("10x10", "f4", ("20x1",), "leaves the array"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    shape: str, dtype: str, access: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ChunkwiseError, match=said):
        advise_new(shape, dtype, access)


def test_a_share_of_nothing_and_data_of_another_type_are_refused(daily: Path) -> None:
    with pytest.raises(UsageError, match="no file yet"):
        advise_new("400x40x60", "f4", (MAP,), max_size="+10%")
    with pytest.raises(UsageError, match="4 bytes"):
        advise_new("400x40x60", "f8", (MAP,), like=f"{daily}:t2m")


# --- many ------------------------------------------------------------------------------------


def test_what_gains_most_for_its_copy_comes_first(daily: Path, tmp_path: Path) -> None:
    with h5py.File(daily, "r+") as file:
        good = np.random.default_rng(0).integers(0, 9, (300, 64, 64)).astype("i4")
        options = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        file.create_dataset("good", data=good, chunks=(38, 32, 32), **options)
        file.create_dataset("words", data=["a"] * 10)
    found = rank([tmp_path], reads_a_year=50)
    assert found.files == 1
    names = [kind.dataset for kind in found.kinds]
    assert names[0] == "/t2m"
    first = found.kinds[0]
    assert first.is_worth_it
    assert first.gained_s == pytest.approx(50 * (first.present_s - first.best_s))
    assert first.copy_s > 0
    worth = [kind.worth for kind in found.kinds if kind.is_worth_it]
    assert worth == sorted(worth, reverse=True)
    record = json.loads(json.dumps(found.as_dict()))
    assert record["format"] == "chunkwise-advise-ranking"
    assert found.too_small >= 1


def test_files_that_are_alike_are_one_kind(daily: Path, tmp_path: Path) -> None:
    for name in ("b.nc", "c.nc"):
        (tmp_path / name).write_bytes(daily.read_bytes())
    found = rank([tmp_path], (SERIES,))
    assert found.files == 3
    (kind,) = found.kinds
    assert kind.files == 3
    assert kind.gained_s == pytest.approx(300 * (kind.present_s - kind.best_s))


def test_no_file_and_no_reads_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ChunkwiseError, match="without any HDF5 file"):
        rank([tmp_path / "empty"])
    with pytest.raises(UsageError, match="more than 0"):
        rank([tmp_path], reads_a_year=0)


def test_the_ranking_is_printed(daily: Path) -> None:
    said = run(daily, "--for", "libhdf5-1.10").stdout
    assert "worth touching" in said
    assert "/t2m" in said
    assert all(len(line) <= 80 for line in said.splitlines())


# --- two questions ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_frontier_goes_from_one_pattern_to_the_other(daily: Path) -> None:
    found = ask_tradeoff(daily, "t2m", ("map", "series"), (MAP, SERIES))
    assert set(found.fronts) == {
        (storage, name) for storage in ("warm", "cold", "remote") for name in READERS
    }
    for points in found.fronts.values():
        firsts = [point.first_s for point in points]
        seconds = [point.second_s for point in points]
        assert firsts == sorted(firsts)
        assert seconds == sorted(seconds, reverse=True)
    # Nothing is faster from afar.
    for name in READERS:
        warm, remote = (found.fronts[storage, name][0] for storage in ("warm", "remote"))
        assert warm.first_s < remote.first_s


def test_the_slower_the_storage_the_more_a_codec_pays(daily: Path) -> None:
    found = ask_bandwidth(daily, "t2m", (MAP,))
    for name in READERS:
        assert found.fastest(name, 0) != "none"
        for (who, _), seconds in found.seconds.items():
            if who == name:
                assert list(seconds) == sorted(seconds, reverse=True)
    record = json.loads(json.dumps(found.as_dict()))
    assert len(record["readers"]) == len(READERS)


@pytest.mark.slow
@pytest.mark.parametrize("question", [("--tradeoff", "map,series"), ("--bandwidth",)])
def test_questions_are_printed(daily: Path, question: tuple[str, ...]) -> None:
    words: tuple[str | Path, ...] = (daily, "t2m", "--access", MAP, "--access", SERIES, *question)
    said = run(*words).stdout
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "by chunkwise" in said
    assert json.loads(run(*words, "--json").stdout)


def test_mistakes_are_one_line(daily: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(daily.parent)
    said = mistakes("""
advise daily.nc t2m --tradeoff map
advise daily.nc t2m --access map=1x40x60 --tradeoff map,none
advise daily.nc t2m --access map=1x40x60 --access 'w=1x40x60 write' --tradeoff map,w
advise daily.nc t2m --tradeoff a,b --bandwidth
advise daily.nc --bandwidth
advise daily.nc t2m --like b.nc
advise daily.nc t2m --shape 10x10
""")
    assert_golden("advise-questions-mistakes", said)


def test_a_shape_alone_needs_a_type(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["chunkwise", "advise", "--shape", "10x10"])
        with pytest.raises(SystemExit):
            main()
    assert "--type" in capsys.readouterr().err
