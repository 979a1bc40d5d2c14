"""A run that goes on takes nothing of a source that has changed."""

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import FileChangedError
from chunkwise.files.identity import Identity
from chunkwise.repacking.folder import FileResult, check, survey, work_of
from chunkwise.repacking.gathering import gather
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job
from tests.support.damage import damage_chunk
from tests.support.repacking import interrupted, nobody, require_equal

RULES: dict[str, Any] = {"chunk": "x:40x50", "filters": "deflate:3"}


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
    interrupted(source, out, **RULES, resume=True)
    if how == "anew":
        write(source, 2)
    else:
        # Not even libhdf5's own metadata change.
        damage_chunk(source, "x", 3, bytes(400))
    restore(source, before)
    done = chunkwise.repack(source, out, **RULES, resume=True)
    assert replayed(done) == 0
    require_equal(source, out)


def test_other_files_behind_a_virtual_dataset(tmp_path: Path) -> None:
    behind, source, out = tmp_path / "behind.h5", tmp_path / "in.h5", tmp_path / "out.h5"
    write(behind, 1)
    layout = h5py.VirtualLayout((80, 100), "i4")
    layout[:] = h5py.VirtualSource("behind.h5", "x", (80, 100))
    with h5py.File(source, "w") as file:
        file.create_virtual_dataset("x", layout)
    interrupted(source, out, **RULES, merge=True, resume=True)
    # The virtual file itself does not change.
    write(behind, 2)
    done = chunkwise.repack(source, out, **RULES, merge=True, resume=True)
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
        chunkwise.repack(source, tmp_path / "out.h5", **RULES, progress=watch)
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
