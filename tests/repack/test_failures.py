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
from chunkwise.errors import CannotWriteError, ChunkwiseError, CorruptDataError, FileChangedError
from chunkwise.repacking.progress import Moment
from tests.support.damage import chunk_at, damage_attribute, overwrite
from tests.support.repacking import command, interrupted, limited, require_equal, write_example

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


def test_a_damaged_chunk_is_named(source: Path) -> None:
    origin = damaged(source)
    before = source.read_bytes()
    with pytest.raises(CorruptDataError) as wrong:
        chunkwise.repack(source, source.with_name("out.h5"), **RULES)
    assert "in.h5" in str(wrong.value)
    assert "again" in str(wrong.value)
    assert ", ".join(map(str, origin)) in str(wrong.value)
    assert "--salvage" in str(wrong.value)
    assert source.read_bytes() == before
    assert only_the_source(source.parent)


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
