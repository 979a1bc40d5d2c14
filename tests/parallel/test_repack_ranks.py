"""Is a file that several ranks repack what one process makes of it, and what if one fails?"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.damage import damage_chunk
from tests.support.mpi import mpirun, needs_mpi
from tests.support.repacking import require_equal
from tests.support.tools import require_tool

pytestmark = needs_mpi
SHAPE = (60, 300, 300)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "in.h5"
    rng = np.random.default_rng(1)
    smooth = np.add.outer(np.arange(60), np.add.outer(np.arange(300), np.arange(300))) / 7
    with h5py.File(path, "w") as file:
        t2m = file.create_dataset(
            "g/t2m", data=smooth.astype("f4"), chunks=(1, 300, 300), compression=1, shuffle=True
        )
        t2m.attrs["units"] = "K"
        noisy = rng.integers(0, 9, SHAPE, "i2")
        file.create_dataset("noisy", data=noisy, chunks=(7, 100, 90), maxshape=(None, 300, 300))
        sparse = file.create_dataset("sparse", SHAPE, "f8", chunks=(10, 60, 60), fillvalue=-1)
        sparse[3, 100:150, 200:] = 5
        file.create_dataset("small", data=np.arange(10))
        file.create_dataset("flat", data=noisy)
        file["refers"] = np.array([t2m.ref], dtype=h5py.ref_dtype)
    return path


RULES = ("--chunk", "t2m:60x30x30", "--chunk", "flat:20x100x100", "--filter", "shuffle+deflate:1")


def repack(n_ranks: int, *arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    return mpirun(n_ranks, "-m", "chunkwise", "repack", *arguments, timeout=180, **more)


def _clean(folder: Path, *names: str) -> None:
    assert sorted(one.name for one in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("n_ranks", [1, 3])
def test_ranks_make_what_one_process_makes(source: Path, tmp_path: Path, n_ranks: int) -> None:
    one, many = tmp_path / "one.h5", tmp_path / "many.h5"
    alone = chunkwise.repack(
        source, one, chunk=["t2m:60x30x30", "flat:20x100x100"], filters="shuffle+deflate:1"
    )
    done = repack(n_ranks, source, many, *RULES, "--json")
    assert done.returncode == 0, done.stderr
    require_equal(source, many)
    subprocess.run([require_tool("h5diff"), one, many], check=True, timeout=60)
    told = json.loads(done.stdout)
    assert told["verified"] == "proof"
    with h5py.File(one) as first, h5py.File(many) as second:
        for dataset in alone.datasets:
            a, b = first[dataset.path], second[dataset.path]
            assert (a.chunks, a.maxshape, a.compression) == (b.chunks, b.maxshape, b.compression)
            if a.chunks is not None:
                assert a.id.get_num_chunks() == b.id.get_num_chunks()
    by_path = {one["path"]: one for one in told["datasets"]}
    for dataset in alone.datasets:
        assert by_path[dataset.path]["chunks"] == dataset.chunks
        if n_ranks == 1:
            assert by_path[dataset.path]["decodes"] == dataset.decodes
    _clean(tmp_path, "one.h5", "many.h5")


@pytest.mark.parametrize("verify", ["proof", "none"])
def test_other_ways_to_verify_and_in_place(source: Path, tmp_path: Path, verify: str) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(source.read_bytes())
    done = repack(2, path, "--in-place", *RULES, "--verify", verify)
    assert done.returncode == 0, done.stderr
    require_equal(source, path)
    _clean(tmp_path, "a.h5")


def _damage(source: Path, path: Path) -> None:
    """Copy, and overwrite a part of a chunk in the middle of t2m."""
    shutil.copy(source, path)
    damage_chunk(path, "g/t2m", 41)


def test_damage_is_told_once_and_nothing_is_left(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.h5"
    _damage(source, path)
    done = repack(2, path, tmp_path / "out.h5", *RULES)
    assert done.returncode == 1
    assert done.stderr.count("chunkwise: ") == 1, done.stderr
    assert "g/t2m" in done.stderr
    assert "--salvage" in done.stderr
    assert "Traceback" not in done.stderr
    _clean(tmp_path, "in.h5")


def test_what_cannot_be_read_is_passed_over_when_asked(source: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    _damage(source, path)
    done = repack(2, path, out, *RULES, "--salvage", "--json")
    assert done.returncode == 1, done.stderr
    lost = {one["path"]: one["lost_chunks"] for one in json.loads(done.stdout)["datasets"]}
    assert [origin for origin, _ in lost["/g/t2m"]] == [[41, 0, 0]]
    with h5py.File(source) as before, h5py.File(out) as after:
        expected = before["g/t2m"][...]
        expected[41] = 0
        np.testing.assert_array_equal(after["g/t2m"][...], expected)


def test_a_full_disk_is_told_by_one_rank(source: Path, tmp_path: Path) -> None:
    limited = f'ulimit -f 1000; exec {sys.executable} -m chunkwise repack "$@"'
    done = mpirun(
        2, "-c", limited, "bash", source, tmp_path / "out.h5", "--filter", "none", python="bash"
    )
    assert done.returncode == 2
    assert done.stderr.count("chunkwise: ") == 1, done.stderr
    assert "out.h5" in done.stderr
    _clean(tmp_path)


def test_usage_that_makes_no_sense_is_refused_once(source: Path, tmp_path: Path) -> None:
    for arguments in ((source, "-o", tmp_path), (source, source), (tmp_path / "no.h5", "a.h5")):
        done = repack(2, *arguments)
        assert done.returncode == 2
        assert done.stderr.count("chunkwise: ") == 1, done.stderr
    _clean(tmp_path)


def _ranks(launcher: int) -> list[int]:
    """Processes that mpirun has started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == launcher:
            found.append(int(entry.name))
    return sorted(found)


def test_ranks_go_on_from_what_was_left(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    stopping = "import chunkwise.repacking.crew as rank, chunkwise.cli as cli, os, time, sys\n" + (
        "rank._NOTED_S = 0.0\n"
        "def stop(self, what, report=None):\n"
        "    time.sleep(0.5); os._exit(3)\n"
        "rank.Rank.compare = stop\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    done = mpirun(2, "-c", stopping, "repack", source, out, *RULES, "--resume")
    assert done.returncode != 0
    assert not out.exists()
    done = repack(2, source, out, *RULES, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    replayed = {one["path"]: one["replayed"] for one in json.loads(done.stdout)["datasets"]}
    assert replayed["/g/t2m"] == 100
    assert replayed["/noisy"] > 0
    require_equal(source, out)
    _clean(tmp_path, "out.h5")


def test_a_rank_that_does_not_see_the_folder_is_named(source: Path, tmp_path: Path) -> None:
    blind = (
        "import chunkwise.repacking.crew as rank, chunkwise.cli as cli, sys\n"
        "opening = rank.Rank.open\n"
        "def elsewhere(self, source, target, *others):\n"
        "    if self.comm.rank:\n"
        "        target += '.elsewhere'\n"
        "    opening(self, source, target, *others)\n"
        "rank.Rank.open = elsewhere\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    done = mpirun(2, "-c", blind, "repack", source, tmp_path / "out.h5", *RULES)
    assert done.returncode == 2
    assert done.stderr.count("chunkwise: ") == 1, done.stderr
    assert "rank 1 on" in done.stderr
    assert "all hosts share" in done.stderr
    _clean(tmp_path)


# As on several machines, of which each has memory of its own.
APART = (
    "import chunkwise.repacking.crew as rank, chunkwise.cli as cli, sys\n"
    "rank.neighbours = lambda comm: 1\n"
    "sys.argv[0] = 'chunkwise'; cli.main()\n"
)


def test_ranks_without_common_memory_have_blocks_of_their_own(
    source: Path, tmp_path: Path
) -> None:
    out, n_ranks = tmp_path / "out.h5", 3
    # A small budget makes several blocks of each rank.
    words = ("repack", source, out, *RULES, "--memory", "24MiB", "--json")
    done = mpirun(n_ranks, "-c", APART, *words)
    assert done.returncode == 0, done.stderr
    decodes = {one["path"]: one["decodes"] for one in json.loads(done.stdout)["datasets"]}
    # Each of its chunks reaches into the blocks of all.
    assert decodes["/g/t2m"] >= n_ranks * 60
    require_equal(source, out)
    _clean(tmp_path, "out.h5")


def test_programs_repack_with_their_ranks(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    program = (
        "import sys, chunkwise\n"
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "rules = dict(chunk=['t2m:60x30x30'], filters='shuffle+deflate:1', comm=comm)\n"
        "made = chunkwise.repack(sys.argv[1], sys.argv[2], **rules)\n"
        "assert [one.path for one in made.datasets].count('/g/t2m') == 1\n"
        "try:\n"
        "    chunkwise.repack(sys.argv[1], sys.argv[2], **rules)\n"
        "except chunkwise.errors.ChunkwiseError as wrong:\n"
        "    assert 'exists already' in str(wrong), wrong\n"
        "else:\n"
        "    raise AssertionError('a target was replaced')\n"
        "made = chunkwise.repack(sys.argv[1], sys.argv[2], force=True, **rules)\n"
        "assert made.verified == 'proof'\n"
    )
    done = mpirun(2, "-c", program, source, out, timeout=120)
    assert done.returncode == 0, done.stderr
    require_equal(source, out)
    _clean(tmp_path, "out.h5")
