"""Do ranks that keep the indexes of shards make what one process makes, and what if one dies?"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.cli.repack import EXAMPLES
from tests.parallel.test_repack_ranks import RULES, _ranks, _start, repack, source
from tests.support.mpi import environment, mpirun, needs_mpi
from tests.support.repacking import require_equal
from tests.support.tools import require_tool

__all__ = ["source"]
pytestmark = needs_mpi


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("n_ranks", [1, 2, 4])
def test_ranks_make_what_one_process_makes(source: Path, tmp_path: Path, n_ranks: int) -> None:
    one, many = tmp_path / "one.h5", tmp_path / "many.h5"
    rules = ["t2m:60x30x30", "flat:20x100x100"]
    chunkwise.repack(source, one, chunk=rules, filters="shuffle+deflate:1")
    done = repack(n_ranks, source, many, *RULES, "--shards", "3", "--json")
    assert done.returncode == 0, done.stderr
    require_equal(one, many)
    subprocess.run([require_tool("h5diff"), one, many], check=True, timeout=60)
    told = json.loads(done.stdout)
    paths = [tmp_path / shard["path"] for shard in told["shards"]]
    assert [path.stat().st_size for path in paths] == [one["nbytes"] for one in told["shards"]]
    assert len(paths) == 3
    with h5py.File(one) as whole, h5py.File(many) as master:
        for name in ("g/t2m", "noisy", "sparse", "flat"):
            assert master[name].is_virtual
            counts = []
            for path in paths:
                with h5py.File(path) as shard:
                    counts.append(shard[name].id.get_num_chunks())
            assert sum(counts) == whole[name].id.get_num_chunks(), name
            if name != "sparse":
                assert min(counts) > 0
    assert _names(tmp_path) == ["many.h5", "many.h5.shards", "one.h5"]


def test_each_of_several_ranks_keeps_indexes(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    # Each rank says which files libhdf5 writes in its process.
    telling = (
        "import chunkwise.repacking.rank as rank, chunkwise.cli as cli, os, sys\n"
        "keep = rank.Rank._keep\n"
        "def kept(self, work):\n"
        "    keep(self, work)\n"
        "    said = f'KEPT {self.comm.rank} {sorted(self._indexes)}\\n'\n"
        "    os.write(2, said.encode())\n"
        "rank.Rank._keep = kept\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    done = mpirun(2, "-c", telling, "repack", source, out, *RULES, "--shards", "3")
    assert done.returncode == 0, done.stderr
    kept = sorted(line for line in done.stderr.splitlines() if line.startswith("KEPT"))
    assert kept == ["KEPT 0 [1, 3]", "KEPT 1 [2]"]
    require_equal(source, out)


def test_the_command_of_page_and_help_is_run_as_it_stands(source: Path, tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "mpi.md"
    found = r"^ +(mpirun -n 4 chunkwise repack .* --shards 4)$"
    [command] = re.findall(found, page.read_text("utf-8"), re.MULTILINE)
    assert re.findall(found, EXAMPLES, re.MULTILINE) == [command]
    shutil.copy(source, tmp_path / "in.nc")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(PATH=path), capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(_names(tmp_path / "out.nc.shards")) == 4
    require_equal(source, tmp_path / "out.nc")


@pytest.mark.parametrize("moment", range(3))
def test_a_rank_that_is_killed_leaves_no_target(source: Path, tmp_path: Path, moment: int) -> None:
    rng = random.Random(moment)
    out, before = tmp_path / "out.h5", source.read_bytes()
    shards = ("--shards", "3")
    running = _start(source, out, *shards, "--resume")
    time.sleep(rng.uniform(0.5, 2.0))
    for rank in _ranks(running.pid)[moment % 2 :][:1]:
        os.kill(rank, signal.SIGKILL)
    _, told = running.communicate(timeout=30)
    assert source.read_bytes() == before
    if not out.exists():
        assert running.returncode != 0, told
        done = repack(2, source, out, *RULES, *shards, "--resume")
        assert done.returncode == 0, done.stderr
        assert _names(tmp_path) == ["out.h5", "out.h5.shards"]
        assert len(_names(tmp_path / "out.h5.shards")) == 3
    require_equal(source, out)


def test_ranks_go_on_from_shards_that_were_left(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    stopping = (
        "import chunkwise.repacking.rank as rank, chunkwise.cli as cli, os, time, sys\n"
        "rank._NOTED_S = 0.0\n"
        "def stop(self, what, tell=None):\n"
        "    time.sleep(0.5); os._exit(3)\n"
        "rank.Rank.compare = stop\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    words = ("repack", source, out, *RULES, "--shards", "3", "--resume")
    done = mpirun(2, "-c", stopping, *words)
    assert done.returncode != 0
    assert not out.exists()
    done = repack(2, *words[1:], "--json")
    assert done.returncode == 0, done.stderr
    replayed = {one["path"]: one["replayed"] for one in json.loads(done.stdout)["datasets"]}
    assert replayed["/g/t2m"] == 100
    assert replayed["/noisy"] > 0
    require_equal(source, out)
    assert _names(tmp_path) == ["out.h5", "out.h5.shards"]
    assert len(_names(tmp_path / "out.h5.shards")) == 3


def test_a_full_disk_in_a_shard_is_told_by_one_rank(source: Path, tmp_path: Path) -> None:
    limited = 'ulimit -f 1000; exec "$0" -m chunkwise repack "$@"'
    out = tmp_path / "out.h5"
    words = ("--filter", "none", "--shards", "2")
    done = mpirun(2, "-c", limited, sys.executable, source, out, *words, python="bash")
    assert done.returncode == 2
    assert done.stderr.count("chunkwise: ") == 1, done.stderr
    assert "out.h5" in done.stderr
    assert _names(tmp_path) == []


def test_early_allocation_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((10, 300, 300))
        dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((60, 300, 300))
        made = h5py.h5d.create(file.id, b"early", h5py.h5t.NATIVE_INT32, space, dcpl)
        h5py.Dataset(made)[...] = np.arange(60 * 300 * 300).reshape(60, 300, 300)
    for number, more in enumerate(((), ("--shards", "2"))):
        out = tmp_path / f"out{number}.h5"
        done = repack(2, path, out, *more)
        assert done.returncode == 0, done.stderr
        require_equal(path, out)
