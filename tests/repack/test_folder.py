"""Many files: where each one's result goes, and how a stopped run goes on."""

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.repacking import folder, run
from chunkwise.repacking.folder import FileResult, Unchanged, check, survey, work_of
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.render import batch_lines
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job
from tests.support.repacking import command, nobody, require_equal


def write(path: Path, chunk: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(chunk,), compression=1)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for name in ("a.h5", "sub/b.nc", "sub/deep/c.h5"):
        write(tmp_path / "archive" / name)
    (tmp_path / "archive" / "notes.txt").write_text("no HDF5")
    return tmp_path / "archive"


def results(
    archive: Path, *, chunk: int = 100, unchanged: Unchanged = "copy", resume: bool = False
) -> list[FileResult]:
    batch = gather([str(archive)], archive.parent / "out")
    job = Job(Rules.of(f"x:{chunk}", None), resume=resume)
    work = work_of(job, unchanged)
    check(batch, work, force=False)
    every = survey(batch, work, force=False, watch=lambda *_: nobody)
    return list(every)


def test_results_lie_as_their_sources_do(archive: Path) -> None:
    found = results(archive)
    assert [one.outcome for one in found] == ["repacked"] * 3
    out = archive.parent / "out"
    made = {path.relative_to(out).as_posix() for path in out.rglob("*.*") if path.name[0] != "."}
    assert made == {"a.h5", "sub/b.nc", "sub/deep/c.h5"}
    for name in made:
        require_equal(archive / name, out / name)
        with h5py.File(out / name) as file:
            assert file["x"].chunks == (100,)


@pytest.mark.parametrize(
    ("arguments", "targets"),
    [
        (["archive"], ["a.h5", "sub/b.nc", "sub/deep/c.h5"]),
        (["archive/a.h5", "archive/sub/b.nc"], ["a.h5", "b.nc"]),
        (["archive/**/*.h5"], ["a.h5", "sub/deep/c.h5"]),
        (["archive/sub"], ["b.nc", "deep/c.h5"]),
        (["archive/s*/*.nc"], ["sub/b.nc"]),
    ],
)
def test_places_of_results(
    archive: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], targets: list[str]
) -> None:
    monkeypatch.chdir(archive.parent)
    batch = gather(arguments, "out")
    assert sorted(target.relative_to("out").as_posix() for _, target in batch.pairs) == targets


def test_two_files_in_one_place_are_refused(archive: Path) -> None:
    write(archive / "sub" / "a.h5")
    with pytest.raises(UsageError, match="would both become"):
        gather([str(archive / "a.h5"), str(archive / "sub" / "a.h5")], archive.parent / "out")


def test_results_within_the_folder_are_no_sources(archive: Path) -> None:
    write(archive / "out" / "a.h5")
    batch = gather([str(archive)], archive / "out")
    assert len(batch.pairs) == 3


@pytest.mark.parametrize("unchanged", ["copy", "link", "skip"])
def test_files_that_are_as_asked(archive: Path, unchanged: Unchanged) -> None:
    right = write(archive / "right.h5", chunk=100)
    os.utime(right, (1e9, 1e9))
    outcome = next(
        one for one in results(archive, unchanged=unchanged) if one.source == str(right)
    )
    target = archive.parent / "out" / "right.h5"
    assert outcome.outcome == {"copy": "copied", "link": "linked", "skip": "skipped"}[unchanged]
    if unchanged == "skip":
        assert not target.exists()
        return
    assert target.read_bytes() == right.read_bytes()
    assert target.samefile(right) is (unchanged == "link")
    assert target.stat().st_mtime == 1e9


def test_existing_results_are_not_replaced(archive: Path) -> None:
    results(archive)
    with pytest.raises(UsageError, match="2 more: exists already; --resume"):
        results(archive)


def test_a_stopped_run_goes_on(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = run.run_plan

    def stop(*arguments: object) -> object:
        if "b.nc" in str(arguments[1]):
            raise KeyboardInterrupt
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "run_plan", stop)
    with pytest.raises(KeyboardInterrupt):
        results(archive)
    monkeypatch.undo()
    assert [one.outcome for one in results(archive, resume=True)] == [
        "done before",
        "repacked",
        "repacked",
    ]
    assert {one.outcome for one in results(archive, resume=True)} == {"done before"}
    # Another source, another result, other rules: each is made again.
    write(archive / "a.h5", chunk=20)
    (archive.parent / "out" / "sub" / "b.nc").unlink()
    again = [one.outcome for one in results(archive, resume=True)]
    assert again == ["repacked", "repacked", "done before"]
    assert {one.outcome for one in results(archive, chunk=50, resume=True)} == {"repacked"}


def test_one_that_fails_does_not_stop_the_others(archive: Path) -> None:
    (archive / "b.h5").write_bytes((archive / "a.h5").read_bytes()[:1000])
    done = command(archive, "-o", archive.parent / "out", "--chunk", "x:100")
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "b.h5: truncated HDF5 file" in done.stdout
    assert "4 files: 3 repacked, 1 failed" in done.stdout
    lines = command(archive, "-o", archive.parent / "two", "--chunk", "x:100", "--json")
    records = [json.loads(line) for line in lines.stdout.splitlines()]
    assert sorted(record["outcome"] for record in records) == ["failed"] + ["repacked"] * 3


def test_one_for_which_memory_is_too_little_does_not_stop_the_others(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = run.run_plan

    def lack(*arguments: object) -> object:
        if "b.nc" in str(arguments[1]):
            raise MemoryError
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "run_plan", lack)
    found = results(archive)
    assert [one.outcome for one in found] == ["repacked", "failed", "repacked"]
    assert "not enough memory" in (found[1].reason or "")
    assert not (archive.parent / "out" / "sub" / "b.nc").exists()


def test_a_rule_that_means_nothing_in_any_file(archive: Path) -> None:
    done = command(archive, "-o", archive.parent / "out", "--chunk", "y:100")
    assert done.returncode == 2
    assert "rule 'y:100': means no dataset in any of the files" in done.stderr
    assert not (archive.parent / "out").exists()


def test_many_files_say_which_readers_lose_access(archive: Path) -> None:
    batch = gather([str(archive)], archive.parent / "out")
    job = Job(Rules.of(None, "shuffle+zstd:1"))
    work = work_of(job, "copy")
    check(batch, work, force=False)
    every = list(survey(batch, work, force=False, watch=lambda *_: nobody))
    said = " ".join(" ".join(batch_lines(every, 1.0)).split())
    assert said.count("readers of 3 files: ") == 3
    assert "readers of 3 files: it cannot be read any more by netCDF-Java" in said
    # What needs nothing new of its readers says nothing of them.
    assert not any("readers" in line for line in batch_lines(results(archive, resume=True), 1.0))


def test_a_dry_run_of_a_folder(archive: Path) -> None:
    write(archive / "right.h5", chunk=100)
    (archive / "cut.h5").write_bytes((archive / "a.h5").read_bytes()[:1000])
    done = command(archive, "--chunk", "x:100", "--filter", "zstd:3", "--dry-run")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert f"planned     {archive / 'a.h5'}  1 of 1 dataset change; " in done.stdout
    assert any(line.startswith(f"FAILED  {archive / 'cut.h5'}: truncated") for line in lines)
    assert "5 files: 4 planned, 1 failed" in lines
    assert any("(dry run: nothing is written)" in line for line in lines)
    assert any(line.startswith("readers of 4 files: ") for line in lines)
    out = archive.parent / "out"
    done = command(archive, "--chunk", "x:100", "--dry-run", "-o", out, "--json")
    records = {Path(one["source"]).name: one for one in map(json.loads, done.stdout.splitlines())}
    assert records["right.h5"]["outcome"] == "skipped"
    assert records["a.h5"]["summary"]["format"] == "chunkwise-repack-plan"
    assert records["a.h5"]["target"] == str(out / "a.h5")
    assert not out.exists()
