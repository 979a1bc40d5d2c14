"""Whatever stops a repack: the source is intact, and there is no damaged target."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import CannotWriteError, ChunkwiseError, FileChangedError
from chunkwise.files.identity import Identity
from chunkwise.repacking.folder import FileResult, check, survey, work_of
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job
from tests.support.damage import chunk_at, damage_attribute, damage_chunk, overwrite
from tests.support.repacking import (
    command,
    interrupted,
    limited,
    nobody,
    require_equal,
    write_example,
)

RULES: dict[str, Any] = {"chunk": {"cube": (40, 16, 16)}, "filters": "deflate:2"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_example(tmp_path / "in.h5")


def only_the_source(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {"in.h5"}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.99])
def test_a_full_disk(source: Path, share: float) -> None:
    before = source.read_bytes()
    whole = source.with_name("whole.h5")
    chunkwise.repack(source, whole, **RULES)
    limit = int(whole.stat().st_size * share)
    whole.unlink()
    rules = ("--chunk", "cube:40x16x16", "--filter", "deflate:2")
    done = command(source, source.with_name("out.h5"), *rules, preexec_fn=limited(limit))
    assert done.returncode == 2, done.stderr
    assert "out.h5" in done.stderr
    # Of metadata the system says it, of chunks the engine.
    assert "File too large" in done.stderr or "RLIMIT_FSIZE" in done.stderr
    assert done.stderr.count("\n") == 1
    assert source.read_bytes() == before
    assert only_the_source(source.parent)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_ctrl_c_is_clean(tmp_path: Path, number: signal.Signals) -> None:
    source = write_example(tmp_path / "in.h5", scale=40)
    words = [sys.executable, "-m", "chunkwise", "repack", "in.h5", "out.h5"]
    rules = ["--chunk", "cube:80x16x16", "--filter", "deflate:9"]
    run = subprocess.Popen([*words, *rules], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not list(tmp_path.glob(".out.h5.*.partial")):
        time.sleep(0.005)
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 128 + number
    assert said.strip() in ("chunkwise: interrupted", "")
    assert only_the_source(source.parent)


def test_whoever_watches_may_end_it(source: Path) -> None:
    interrupted(source, source.with_name("out.h5"), **RULES)
    assert only_the_source(source.parent)


def test_what_was_done_is_used_again(tmp_path: Path) -> None:
    source, out = write_example(tmp_path / "in.h5", scale=3), tmp_path / "out.h5"

    interrupted(source, out, **RULES, resume=True)
    assert not out.exists()
    done = chunkwise.repack(source, out, **RULES, resume=True)
    cube = next(one for one in done.datasets if one.path == "/again")
    assert cube.replayed == cube.chunks > 0
    assert cube.decodes == 0
    require_equal(source, out)
    assert {path.name for path in tmp_path.iterdir()} == {"in.h5", "out.h5"}


def test_what_was_done_by_other_rules_is_not_used(source: Path) -> None:
    out = source.with_name("out.h5")
    interrupted(source, out, **RULES, resume=True)
    done = chunkwise.repack(source, out, **{**RULES, "filters": "deflate:3"}, resume=True)
    assert sum(one.replayed for one in done.datasets) == 0
    require_equal(source, out)


def test_a_source_that_changes_midway(source: Path) -> None:
    def watch(moment: Moment) -> None:
        if moment.phase == "verifying":
            os.utime(source, (1, 1))

    with pytest.raises(FileChangedError, match=r"in\.h5: changed while"):
        chunkwise.repack(source, source.with_name("out.h5"), **RULES, progress=watch)
    assert only_the_source(source.parent)


def damaged(source: Path) -> tuple[int, ...]:
    """Damage one chunk of the cube; give where it begins."""
    info = chunk_at(source, "cube", (5, 0, 0))
    overwrite(source, info.byte_offset, bytes(info.size))
    return tuple(info.chunk_offset)


@pytest.mark.parametrize("count", [1, 12])
def test_a_damaged_attribute_is_one_line(source: Path, count: int) -> None:
    """Also where libhdf5 before 2.0 would crash as it lists attributes."""
    with h5py.File(source, "r+") as file:
        attributes = file.create_group("hurt").attrs
        for i in range(count):
            attributes[f"hurt-{i}"] = "K"
    damage_attribute(source, f"hurt-{count - 1}")
    done = command(source, source.with_name("out.h5"))
    # No checksum covers it: a newer HDF5 may have written it.
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert f"{source}: /hurt: an attribute of it: " in line
    assert "bad version number for attribute message" in line
    assert only_the_source(source.parent)


def test_salvage_goes_on(source: Path) -> None:
    with h5py.File(source) as file:
        expected = file["cube"][...]
    origin = damaged(source)
    expected[origin[0]] = 0
    out = source.with_name("out.h5")
    done = chunkwise.repack(source, out, **RULES, salvage=True)
    lost = next(one.lost_chunks for one in done.datasets if one.path == "/again")
    assert [at for at, _ in lost] == [origin]
    assert (done.lost, done.verified) == (1, "proof")
    with h5py.File(out) as file:
        np.testing.assert_array_equal(file["cube"][...], expected)
    said = command(source, out, "--force", "--salvage", "--chunk", "cube:40x16x16")
    assert said.returncode == 1
    assert "LOST: /again, chunk at (5, 0, 0)" in said.stdout


def test_damage_that_is_copied_as_it_is_stored_stays_what_it_is(source: Path) -> None:
    damaged(source)
    out = source.with_name("out.h5")
    chunkwise.repack(source, out)
    with h5py.File(source) as mine, h5py.File(out) as theirs:
        chunks = [one["cube"].id.read_direct_chunk((5, 0, 0)) for one in (mine, theirs)]
    assert chunks[0] == chunks[1]


def test_a_source_that_is_removed_midway(source: Path) -> None:
    def remove(moment: Moment) -> None:
        if moment.phase == "copying":
            source.unlink(missing_ok=True)

    with pytest.raises(FileChangedError, match=r"in\.h5: changed"):
        chunkwise.repack(source, source.with_name("out.h5"), **RULES, progress=remove)
    assert list(source.parent.iterdir()) == []


def test_a_file_that_is_open_for_writing_is_refused(source: Path) -> None:
    with h5py.File(source, "r+"), pytest.raises(ChunkwiseError):
        chunkwise.repack(source, source.with_name("out.h5"))
    assert only_the_source(source.parent)


def test_too_little_room_is_told_before(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: _Usage(1 << 30, 0, 1000))
    with pytest.raises(CannotWriteError, match="are free on this disk"):
        chunkwise.repack(source, source.with_name("out.h5"), filters="none")
    assert only_the_source(source.parent)


def test_a_file_system_that_does_not_tell_its_size_is_written_to(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: _Usage(0, 0, 0))
    done = chunkwise.repack(source, source.with_name("out.h5"), filters="none", salvage=True)
    assert done.warnings == ()
    require_equal(source, source.with_name("out.h5"))


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


# --- a run that goes on takes nothing of a source that has changed -----------------------


TO_GO_ON: dict[str, Any] = {"chunk": "x:40x50", "filters": "deflate:3"}


def write(path: Path, seed: int) -> Path:
    """Write a file whose size does not depend on the seed."""
    data = np.random.default_rng(seed).integers(0, 9, (80, 100), "i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(10, 100))
    return path


def restore(path: Path, before: os.stat_result) -> None:
    """Have a file look as old as it was."""
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replayed(summary: Any) -> int:
    return sum(one.replayed for one in summary.datasets)


@pytest.mark.parametrize("how", ["anew", "in its place"])
def test_a_source_that_was_rewritten_with_its_times_restored(tmp_path: Path, how: str) -> None:
    source, out = write(tmp_path / "in.h5", 1), tmp_path / "out.h5"
    before = source.stat()
    interrupted(source, out, **TO_GO_ON, resume=True)
    if how == "anew":
        write(source, 2)
    else:
        # Not even libhdf5's own metadata change.
        damage_chunk(source, "x", 3, bytes(400))
    restore(source, before)
    done = chunkwise.repack(source, out, **TO_GO_ON, resume=True)
    assert replayed(done) == 0
    require_equal(source, out)


def test_other_files_behind_a_virtual_dataset(tmp_path: Path) -> None:
    behind, source, out = tmp_path / "behind.h5", tmp_path / "in.h5", tmp_path / "out.h5"
    write(behind, 1)
    layout = h5py.VirtualLayout((80, 100), "i4")
    layout[:] = h5py.VirtualSource("behind.h5", "x", (80, 100))
    with h5py.File(source, "w") as file:
        file.create_virtual_dataset("x", layout)
    interrupted(source, out, **TO_GO_ON, merge=True, resume=True)
    # The virtual file itself does not change.
    write(behind, 2)
    done = chunkwise.repack(source, out, **TO_GO_ON, merge=True, resume=True)
    assert replayed(done) == 0
    with h5py.File(out) as file, h5py.File(behind) as real:
        np.testing.assert_array_equal(file["x"][...], real["x"][...])


def test_a_source_that_changes_and_looks_the_same(tmp_path: Path) -> None:
    source = write(tmp_path / "in.h5", 1)
    before = source.stat()

    def watch(moment: Moment) -> None:
        if moment.phase == "copying":
            with source.open("r+b") as stream:
                stream.seek(-400, os.SEEK_END)
                stream.write(bytes(400))
            restore(source, before)

    with pytest.raises(FileChangedError, match="changed"):
        chunkwise.repack(source, tmp_path / "out.h5", **TO_GO_ON, progress=watch)
    assert [path.name for path in tmp_path.iterdir()] == ["in.h5"]


def test_changes_within_a_tick_of_the_clock_show(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for number in range(50):
        path.write_bytes(b"%3d" % number)
        settled = Identity.settled(path)
        before = path.stat()
        with path.open("r+b") as stream:
            stream.write(b"%3d" % (number + 1))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert Identity.of(path.stat()) != settled


def all_of(folder: Path) -> list[FileResult]:
    batch = gather([str(folder)], folder.parent / "out")
    work = work_of(Job(Rules.of("x:40x50", None), resume=True), "copy")
    check(batch, work, force=False)
    return list(survey(batch, work, force=False, watch=lambda *_: nobody))


@pytest.mark.parametrize("which", ["source", "result"])
def test_many_files_of_which_one_was_rewritten(tmp_path: Path, which: str) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    for name in ("a.h5", "b.h5"):
        write(archive / name, 1)
    all_of(archive)
    assert [one.outcome for one in all_of(archive)] == ["done before"] * 2
    path = archive / "a.h5" if which == "source" else tmp_path / "out" / "a.h5"
    before = path.stat()
    with path.open("r+b") as stream:
        stream.seek(-40, os.SEEK_END)
        stream.write(bytes(40))
    restore(path, before)
    assert [one.outcome for one in all_of(archive)] == ["repacked", "done before"]
    require_equal(archive / "a.h5", tmp_path / "out" / "a.h5")
