"""Do several ranks write, read and end a walk as they should?  With the h5py of `make mpi`."""

import csv
import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import Combination, combinations
from tests.studies.test_iotest import THEIRS, stored
from tests.support.mpi import mpirun, needs_mpi
from tests.support.mpi_h5py import PYTHON, chunkwise, needs_parallel_h5py, start
from tests.support.processes import ran

SIZES = {"steps": 2, "arrays": 3, "rows": 4, "columns": 6}
WORDS = [f"--{name}={size}" for name, size in SIZES.items()]

# Writes the combinations of the plan, a file each, and leaves them.
WRITE = """
import json, sys
from dataclasses import replace
from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest.lists import lists
from chunkwise_lab.studies.iotest.measure import measure
from chunkwise_lab.studies.iotest.pattern import Geometry, Values
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import combinations
from chunkwise_lab.studies.iotest.world import world
plan = json.loads(sys.argv[1])
filters = Pipeline.parse(plan["filters"])
ranks = world(mpi_alone=True)
settings = replace(Settings(**plan["settings"]), filters=filters, single_process="mpi-io-uni")
settings = settings.on(ranks.size)
values = Values(settings, ranks.rank)
for one in list(combinations(settings, ranks.size))[:: plan["step"]]:
    geometry = Geometry(settings, one)
    told = lists(geometry, filters, ranks.comm)
    measure(ranks, geometry, told, values, f"{plan['folder']}/{one.number}.h5")
"""


@needs_parallel_h5py
@pytest.mark.parametrize("n_ranks", [1, 2])
def test_a_walk_of_ranks(n_ranks: int, tmp_path: Path) -> None:
    done = chunkwise(n_ranks, "study", "iotest", *WORDS, "--csv", "a.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    settings = replace(Settings(), **SIZES).on(n_ranks)  # type: ignore[arg-type]
    assert told["ranks"] == n_ranks
    assert told["oversubscribed"] == (n_ranks > (os.cpu_count() or 1))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == THEIRS
    rows = list(csv.DictReader(lines))
    wanted = [one.point() for one in combinations(settings, n_ranks)]
    assert [{name: row[name] for name in wanted[0]} for row in rows] == wanted
    assert [one["file_nbytes"] for one in told["combinations"]] == [
        int(row["fsize [B]"]) for row in rows
    ]
    for row in rows:
        assert int(row["proc-rows"]) * int(row["proc-cols"]) == n_ranks
        for name in ("write-phase", "creat", "write", "read-phase", "read"):
            assert 0 <= float(row[f"{name}-min [s]"]) <= float(row[f"{name}-max [s]"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@needs_parallel_h5py
@pytest.mark.parametrize(
    ("n_ranks", "grid", "scaling", "filters"),
    [
        (1, (1, 1), "weak", "shuffle+deflate:1"),
        (2, (1, 2), "weak", "none"),
        (2, (2, 1), "strong", "shuffle+deflate:1"),
        (4, (2, 2), "weak", "deflate:1"),
        (4, (2, 2), "strong", "szip:nn:4"),
    ],
)
def test_files_of_ranks_hold_what_they_must(
    n_ranks: int, grid: tuple[int, int], scaling: str, filters: str, tmp_path: Path
) -> None:
    pattern = {**SIZES, "process_rows": grid[0], "process_columns": grid[1], "scaling": scaling}
    # More ranks than cores take long: every fifth has each value of each parameter.
    step = 5 if n_ranks > 2 else 1
    plan = {"filters": filters, "settings": pattern, "folder": str(tmp_path), "step": step}
    done = mpirun(n_ranks, "-c", WRITE, json.dumps(plan), python=PYTHON)
    assert done.returncode == 0, done.stderr
    settings = replace(
        Settings(),
        **pattern,  # type: ignore[arg-type]
        filters=Pipeline.parse(filters),
        single_process="mpi-io-uni",
    ).on(n_ranks)
    found = list(combinations(settings, n_ranks))
    assert len(found) == (96 if n_ranks > 1 else 48)
    for one in found[::step]:
        # Independent ranks cannot write what is filtered.
        has = "none" if one.io == "independent" else filters
        assert stored(tmp_path / f"{one.number}.h5", settings, one, has) * 8 == settings.nbytes


@needs_parallel_h5py
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--grid", "4x1"], "the process grid 4x1 needs 4 ranks, and there are 2"),
        (["--gird", "2x1"], "No such option '--gird'"),
        (["--hdf5-file", "/nonesuch/a.h5"], "/nonesuch: rank 0"),
    ],
)
def test_what_all_ranks_refuse_one_tells(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = chunkwise(2, "study", "iotest", "--quick", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(says) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@needs_mpi
def test_an_h5py_without_mpi_is_refused(tmp_path: Path) -> None:
    done = mpirun(2, "-m", "chunkwise", "study", "iotest", "--quick", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("an h5py for MPI is needed") == 1
    assert "make mpi" in done.stderr
    assert list(tmp_path.iterdir()) == []


TWO_LIBRARIES = """
from chunkwise_lab.studies.iotest import world
world._loaded = lambda: ["/usr/lib/libmpi.so.40", "/opt/mpich/libmpich.so.12"]
world.world(mpi_alone=True)
"""


@needs_parallel_h5py
def test_two_mpi_libraries_in_one_process_are_refused() -> None:
    done = mpirun(1, "-c", TWO_LIBRARIES, python=PYTHON)
    assert done.returncode != 0
    assert "load different MPI libraries (/usr/lib/libmpi.so.40 and /opt/mpich" in done.stderr


@needs_parallel_h5py
def test_the_mpi_libraries_that_are_loaded_are_seen() -> None:
    code = "from chunkwise_lab.studies.iotest import world as w; w.world(True); print(w._loaded())"
    done = mpirun(1, "-c", code, python=PYTHON)
    assert done.stdout.count("libmpi") == 1, done.stdout + done.stderr


@needs_parallel_h5py
def test_a_single_process_walks_by_mpi_io(tmp_path: Path) -> None:
    (tmp_path / "a.ini").write_text("single-process = mpi-io-uni\n")
    done = ran([PYTHON, "-m", "chunkwise", "study", "iotest", "--ini", "a.ini", *WORDS, "--json",
         "--filter", "deflate:1"], cwd=tmp_path, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["combinations"]
    assert {one["io"] for one in found} == {"mpi-io-uni"}
    filters = {(one["layout"], one["filters"]) for one in found}
    assert filters == {("contiguous", "none"), ("chunked", "deflate:1")}


@needs_parallel_h5py
def test_help_is_printed_once() -> None:
    done = chunkwise(2, "study", "iotest", "--help")
    assert done.returncode == 0
    assert done.stdout.count("Usage:") == 1


SPOILT = """
import sys
from chunkwise_lab.studies.iotest.pattern import Values
from chunkwise.mpi.ranks import launched
right = Values.fill
def spoil(self, tile, step, array):
    right(self, tile, step, array)
    if launched()[0] == 1 and tile is not self._expected and (step, array) == (1, 2):
        tile[0, 3] += 1
Values.fill = spoil
from chunkwise.cli.main import main
sys.argv = ["chunkwise", "study", "iotest", "--quick"]
main()
"""


@needs_parallel_h5py
def test_a_wrong_value_of_one_rank_ends_all(tmp_path: Path) -> None:
    done = mpirun(2, "-c", SPOILT, python=PYTHON, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("rank 1: step 1, array 2, row 0, column 3") == 1
    assert gone(tmp_path / "hdf5_iotest.h5")


# A file may not grow, for some of the ranks: as on a full disk.
FULL = """
import resource, sys
from chunkwise.mpi import ranks
if ranks.world().rank in (int(number) for number in sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
from chunkwise.cli.main import main
sys.argv = ["chunkwise", "study", "iotest", "--quick", *sys.argv[2:]]
main()
"""


@needs_parallel_h5py
@pytest.mark.parametrize(
    ("victims", "io"),
    [("01", "independent"), ("1", "independent"), ("0", "collective"), ("1", "collective")],
)
def test_a_file_that_cannot_grow_ends_all(victims: str, io: str, tmp_path: Path) -> None:
    done = mpirun(2, "-c", FULL, victims, f"--only=io={io}", python=PYTHON, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("chunkwise: hdf5_iotest.h5: rank ") == 1
    assert "Traceback" not in done.stderr
    assert gone(tmp_path / "hdf5_iotest.h5")


def ranks_of(launcher: subprocess.Popen[str], n_ranks: int) -> list[int]:
    """The processes that a launcher started, by their rank."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    until = time.monotonic() + 120
    while time.monotonic() < until:
        found = {}
        for pid in map(int, children.read_text().split()):
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            told = [w for w in words if w.startswith(b"OMPI_COMM_WORLD_RANK=")]
            if told:
                found[int(told[0].partition(b"=")[2])] = pid
        if len(found) == n_ranks:
            return [pid for _, pid in sorted(found.items())]
        time.sleep(0.02)
    raise AssertionError("the ranks did not start")


def wait_for(path: Path, launcher: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert launcher.poll() is None, launcher.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def gone(path: Path) -> bool:
    """Whether a file is removed soon."""
    until = time.monotonic() + 60
    while path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return not path.exists()


@needs_parallel_h5py
@pytest.mark.parametrize(
    ("victim", "number"),
    [(0, signal.SIGKILL), (1, signal.SIGKILL), (None, signal.SIGINT), (None, signal.SIGTERM)],
)
def test_a_rank_or_launcher_that_is_ended_leaves_no_file(
    victim: int | None, number: int, tmp_path: Path
) -> None:
    launcher = start(2, ["study", "iotest"], tmp_path)
    try:
        wait_for(tmp_path / "hdf5_iotest.h5", launcher)
        os.kill(launcher.pid if victim is None else ranks_of(launcher, 2)[victim], number)
        launcher.communicate(timeout=120)
        assert launcher.returncode != 0
        assert gone(tmp_path / "hdf5_iotest.h5")
    finally:
        launcher.kill()
        launcher.wait()


OWN = """
name = "mine"
paper = "None"
about = "Small."
setting = "Here."
statistic = "median"
repeat = {quick = 2, paper = 2}
minutes = {quick = 1, paper = 1}
disk = {quick = "1MiB", paper = "1MiB"}
files = ["all.toml"]
"""
QUESTIONS = """
[[experiment]]
id = "scaling"
title = "Scaling"
source = "-"
question = "?"
found = "-"
[[experiment.run]]
probe = "iotest"
settings = {kind = "walk", ranks = [1], filters = ["none", "deflate:1"], where = ["rank=4", \
"layout=chunked", "slowdim=step", "fill=false", "fmt=latest", "io=collective"], steps = 2, \
arrays = 2, rows = 20, columns = 20, scaling = "weak"}
[[experiment.claim]]
id = "smaller"
says = "Smaller"
rule = "ratio"
figure = "file_nbytes"
slow = {filter = "none"}
fast = {filter = "deflate:1"}
least = 1.2
[[experiment.claim]]
id = "grows"
says = "Grows"
rule = "trend"
figure = "file_nbytes"
axis = "ranks"
rises = true
where = {filter = "none"}
least = 1.2

[[experiment]]
id = "creation"
title = "Creation"
source = "-"
question = "?"
found = "-"
[[experiment.run]]
probe = "iotest"
settings = {kind = "creation", ranks = [1], filters = ["none", "deflate:1"], chunks = 3, \
rows = 4, columns = 8}

[[experiment]]
id = "refused"
title = "Refused"
source = "-"
question = "?"
found = "-"
[[experiment.run]]
probe = "iotest"
settings = {kind = "pitfalls", pitfall = "independent-with-filters", ranks = [2], \
any_ranks = false, columns = 100, filters = ["none", "deflate:1"]}
[[experiment.claim]]
id = "independent"
says = "Refused"
rule = "refused"
figure = "total_s"
where = {io = "independent", filter = "deflate:1"}
[[experiment.claim]]
id = "collective"
says = "Refused, too"
rule = "refused"
figure = "total_s"
where = {io = "collective", filter = "deflate:1"}
"""


@needs_parallel_h5py
def test_questions_start_the_ranks_that_they_need(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(OWN)
    (tmp_path / "all.toml").write_text(QUESTIONS.replace("\\\n", ""))
    done = ran(
        [PYTHON, "-m", "chunkwise", "study", ".", "--ranks", "1,2", "-o", "st", "--json"],
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    verdicts = {one["claim"]: one["verdict"] for one in told["verdicts"]}
    assert verdicts == {
        "smaller": "holds",
        "grows": "holds",
        "independent": "holds",
        "collective": "no longer holds",
    }
    said = next(one["sentence"] for one in told["verdicts"] if one["claim"] == "independent")
    assert "independent write with filters" in said
    records = {name: one["records"] for name, one in told["outcomes"].items()}
    # Each by one rank and by two, twice.
    assert len(records["scaling"]) == 2 * 2 * 2
    assert len(records["creation"]) == 2 * 2 * 3 * 2 * 2
    assert {one["point"]["ranks"] for one in records["creation"]} == {"1", "2"}
    fewest = [one["efficiency"] for one in records["scaling"] if one["point"]["ranks"] == "1"]
    assert min(fewest) <= 100 <= max(fewest)
    assert {len(one["records"]) for one in told["outcomes"].values()} == {8, 48}
    assert all(not one["skipped"] for one in told["outcomes"].values())
    left = sorted(path.name for path in (tmp_path / "st").iterdir())
    assert left == ["results.json.gz", "trials"]


def test_a_combination_says_which_it_is() -> None:
    assert Combination().label == "rank 4, step first, chunked, no fill, collective"
