"""What is set holds, is read back, and changes nothing but time and memory."""

import multiprocessing
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
import chunkwise.settings
from chunkwise import _native
from chunkwise.cli.main import cli
from chunkwise.errors import UsageError
from tests.support.golden import assert_golden, refused
from tests.support.processes import ran

OF_ENGINE = ("threads", "cache_nbytes", "write_buffer_nbytes", "prefetch_nbytes")
NAMES = (*OF_ENGINE, "request_timeout_s")
KIB, MIB = 1 << 10, 1 << 20

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "threads": st.integers(1, 4),
    **dict.fromkeys(
        OF_ENGINE[1:], st.sampled_from([0, 1, 20 * KIB, MIB, 1 << 40]) | st.integers(0)
    ),
    "request_timeout_s": st.floats(0.001, 86_400),
}
COMBINATIONS = st.fixed_dictionaries(
    {},
    optional={
        name: values.filter(lambda n: n <= sys.maxsize) | st.just("default")
        for name, values in VALUES.items()
    },
)


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Whatever a test sets, the next one begins with the defaults."""
    yield
    chunkwise.settings(**dict.fromkeys(NAMES, "default"))  # type: ignore[arg-type]


def child(program: str, *arguments: str, **variables: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHUNKWISE_")}
    done = ran([sys.executable, "-c", program, *arguments], env=environment | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# What is set, and read back ---------------------------------------------------------


@given(COMBINATIONS)
def test_what_is_set_is_read_back_and_taken_back(wanted: dict[str, Any]) -> None:
    before = chunkwise.settings()
    with chunkwise.settings(**wanted) as chosen:
        assert chosen == chunkwise.settings()
        for name in NAMES:
            asked = wanted.get(name, "default")
            expected = getattr(before, name) if asked == "default" else asked
            assert getattr(chosen, name) == expected
        assert chunkwise.settings().threads == chosen.threads
        assert chunkwise.cache_stats()["budget_nbytes"] == chosen.cache_nbytes
    assert chunkwise.settings() == before


def test_the_record() -> None:
    found = chunkwise.settings(cache_nbytes="1.5MiB", prefetch_nbytes=np.int64(7))
    assert (found.cache_nbytes, found.prefetch_nbytes) == (3 * MIB // 2, 7)
    assert repr(found).startswith("Settings(threads=")
    assert tuple(found._asdict()) == NAMES
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.threads = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        chunkwise.settings(3)  # type: ignore[call-arg]


def test_only_what_a_call_has_changed_is_taken_back() -> None:
    with chunkwise.settings(threads=3):
        with chunkwise.settings(threads=2, cache_nbytes=10):
            chunkwise.settings(prefetch_nbytes=5)
        found = chunkwise.settings()
        assert (found.threads, found.prefetch_nbytes) == (3, 5)
        assert found.cache_nbytes > 10
    with pytest.raises(ZeroDivisionError), chunkwise.settings(prefetch_nbytes=6):
        _ = 1 / 0
    assert chunkwise.settings().prefetch_nbytes == 5


def test_a_record_holds_again_where_it_is_entered_again() -> None:
    before = chunkwise.settings()
    chosen = chunkwise.settings(threads=1)
    with chunkwise.settings(threads=3):
        with chosen:
            assert chunkwise.settings().threads == 1
        assert chunkwise.settings().threads == 3
    with chosen:
        pass
    chunkwise.settings(threads="default")
    assert chunkwise.settings() == before


def test_a_wrong_value_changes_nothing() -> None:
    before = chunkwise.settings()
    wrong: list[dict[str, Any]] = [
        {"threads": 0}, {"threads": 4097}, {"threads": 1.5}, {"threads": "many"},
        {"cache_nbytes": -1}, {"prefetch_nbytes": 1 << 63}, {"write_buffer_nbytes": "3M"},
        {"request_timeout_s": 0}, {"request_timeout_s": float("nan")}, {"request_timeout_s":
        float("inf")}, {"request_timeout_s": "soon"},
    ]  # fmt: skip

    def call(wanted: dict[str, Any]) -> None:
        try:
            chunkwise.settings(**{"cache_nbytes": 5, "threads": 3} | wanted)
        finally:
            assert chunkwise.settings() == before

    assert_golden("settings-refused", refused(call, wrong))
    assert issubclass(UsageError, ValueError)


def test_names_are_those_of_the_engine() -> None:
    assert set(VALUES) == set(NAMES)
    assert chunkwise.Settings._fields == NAMES
    with pytest.raises(ValueError, match="no setting"):
        _native.setting("nothing")
    with pytest.raises(ValueError, match="no setting"):
        _native.change_settings({"nothing": 1})


# What settings change, and what not -------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "d.h5"
    data = np.arange(60 * 70 * 80, dtype="i4").reshape(60, 70, 80)
    with h5py.File(path, "w") as f:
        f.create_dataset("filtered", data=data, chunks=(7, 20, 33), shuffle=True, compression=1)
        f.create_dataset("plain", data=data, chunks=(7, 20, 33))
        f.create_dataset("contiguous", data=data)
    return path


@given(COMBINATIONS, st.lists(st.sampled_from(["row", "plane", "all", "list"]), max_size=6))
def test_reads_are_the_same_under_any_settings(
    path: Path, wanted: dict[str, Any], walk: list[str]
) -> None:
    with h5py.File(path) as f, chunkwise.open(path) as ours, chunkwise.settings(**wanted):
        for name in f:
            dataset: Any = ours[name]
            for step, kind in enumerate(walk):
                index: Any = {
                    "row": np.s_[step, 5, :],
                    "plane": np.s_[:, 10 * step],
                    "all": ...,
                    "list": ([1, 5, 30], slice(2, 60, 7)),
                }[kind]
                assert np.array_equal(dataset[index], f[name][index])
                held = chunkwise.cache_stats()["held_nbytes"]
                budget = chunkwise.settings().cache_nbytes
                # The last chunk is kept even when it is larger.
                assert held <= max(budget, 7 * 20 * 33 * 4 + KIB if budget else 0)


@settings(max_examples=25)
@given(COMBINATIONS, st.randoms(use_true_random=False))
def test_writes_are_the_same_under_any_settings(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, Any], random: Any
) -> None:
    path = tmp_path_factory.mktemp("written") / "d.h5"
    expected = np.zeros((90, 100), "i4")
    with chunkwise.settings(**wanted), chunkwise.open(path, "w") as f:
        datasets = [
            f.create_dataset(name, (90, 100), "i4", chunks=(20, 30), filters="deflate:1")
            for name in ("a", "b")
        ]
        for number in range(20):
            rows = slice(start := random.randrange(90), start + random.randrange(1, 30))
            columns = slice(begin := random.randrange(100), begin + random.randrange(1, 80))
            expected[rows, columns] = number
            for dataset in datasets:
                dataset[rows, columns] = number
    with h5py.File(path) as f:
        assert all(np.array_equal(f[name], expected) for name in ("a", "b"))


def test_a_smaller_cache_lets_go_at_once(path: Path) -> None:
    with chunkwise.open(path) as f:
        dataset: Any = f["filtered"]
        with chunkwise.settings(threads=1):
            for row in range(0, 60, 7):
                _ = dataset[row, :, 5]
        held = chunkwise.cache_stats()["held_nbytes"]
        assert held > 100 * KIB
        chunkwise.settings(cache_nbytes=50 * KIB)
        stats = chunkwise.cache_stats()
        assert 0 < stats["held_nbytes"] <= stats["budget_nbytes"] == 50 * KIB
        chunkwise.cache_clear()
        after = chunkwise.cache_stats()
        assert after == stats | {"held_nbytes": 0}
        chunkwise.settings(cache_nbytes=0)
        for _ in range(3):
            _ = dataset[3, 5]
        assert chunkwise.cache_stats()["held_nbytes"] == 0
        assert chunkwise.cache_stats()["decoded"] - after["decoded"] == 3 * 3


def test_without_prefetch_no_chunk_is_decoded_that_nobody_wants(path: Path) -> None:
    with chunkwise.settings(threads=3, prefetch_nbytes=0), chunkwise.open(path) as f:
        dataset: Any = f["filtered"]
        before = chunkwise.cache_stats()["decoded"]
        # A walk along the chunks of one column, which would tell what comes next.
        for row in range(0, 42, 7):
            assert dataset[row, 5, 5] == (row * 70 + 5) * 80 + 5
        assert chunkwise.cache_stats()["decoded"] - before == 6


def test_what_waits_to_be_written_follows_the_setting(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "d.h5", "w") as f:
        datasets = [
            f.create_dataset(name, (64, 1024), "u1", chunks=(64, 64), filters="shuffle")
            for name in "ab"
        ]
        a, b = datasets
        a[:60] = 1
        assert a.explain_write()["held_nbytes"] > 64 * KIB
        chunkwise.settings(write_buffer_nbytes=20 * KIB)
        # From the next write on, of all datasets together.
        a[0, 0] = 2
        assert a.explain_write()["held_nbytes"] <= 20 * KIB
        b[:2] = 3
        assert sum(one.explain_write()["held_nbytes"] for one in datasets) <= 20 * KIB
        chunkwise.settings(write_buffer_nbytes=0)
        b[3] = 4
        assert b.explain_write()["held_nbytes"] == 0


def test_repack_leaves_what_was_chosen(path: Path, tmp_path: Path) -> None:
    with chunkwise.settings(threads=3):
        chunkwise.repack(path, tmp_path / "out.h5", filters="filtered:none", threads=1)
        assert chunkwise.settings().threads == 3


# Processes --------------------------------------------------------------------------

SHOW = "import chunkwise; print(*chunkwise.settings())"


def test_variables_are_read_and_may_be_overridden() -> None:
    sizes = {
        "CHUNKWISE_CACHE_NBYTES": "3MiB",
        "CHUNKWISE_WRITE_BUFFER_NBYTES": " 1e6 ",
        "CHUNKWISE_PREFETCH_NBYTES": "0",
    }
    assert child(SHOW, CHUNKWISE_THREADS="1", **sizes) == f"1 {3 * MIB} 1000000 0 30.0"
    program = (
        "import chunkwise\n"
        "with chunkwise.settings(cache_nbytes=7, threads=2): print(*chunkwise.settings())\n"
        "print(*chunkwise.settings(threads='default'))"
    )
    lines = child(program, CHUNKWISE_THREADS="1", **sizes).splitlines()
    assert lines == ["2 7 1000000 0 30.0", f"1 {3 * MIB} 1000000 0 30.0"]
    program = (
        "import chunkwise\n"
        "with chunkwise.settings(request_timeout_s=2): print(chunkwise.settings()[4])\n"
        "print(chunkwise.settings()[4])"
    )
    assert child(program, CHUNKWISE_REQUEST_TIMEOUT_S=" 4.5 ").split() == ["2.0", "4.5"]
    # Empty is as good as none; a number of threads is a limit.
    assert child(SHOW, CHUNKWISE_CACHE_NBYTES="", CHUNKWISE_THREADS="4000") == child(SHOW)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("CHUNKWISE_THREADS", "many", "CHUNKWISE_THREADS=many: it is no whole number"),
        ("CHUNKWISE_THREADS", "0", "CHUNKWISE_THREADS=0: give a number from 1 to 4096"),
        ("CHUNKWISE_CACHE_NBYTES", "256M", "CHUNKWISE_CACHE_NBYTES=256M: size"),
        ("CHUNKWISE_WRITE_BUFFER_NBYTES", "-1", "it cannot be negative"),
        ("CHUNKWISE_PREFETCH_NBYTES", "lots", "CHUNKWISE_PREFETCH_NBYTES=lots: size"),
        ("CHUNKWISE_REQUEST_TIMEOUT_S", "-1", "CHUNKWISE_REQUEST_TIMEOUT_S=-1: give seconds"),
    ],
)
def test_a_wrong_variable_is_one_clear_error(
    path: Path, variable: str, value: str, said: str
) -> None:
    program = """
import sys, chunkwise
for call in (chunkwise.settings, lambda: chunkwise.open(sys.argv[1])):
    try:
        call()
    except chunkwise.ChunkwiseError as wrong:
        print(wrong)
"""
    lines = child(program, str(path), **{variable: value}).splitlines()
    assert len(lines) == 2
    assert all(said in line for line in lines)
    if variable != "CHUNKWISE_THREADS":
        return  # The others are read in the same place.
    environment = os.environ | {variable: value}
    script = path.with_name("program.py")
    script.write_text("print('it runs')")
    for arguments in (["inspect", str(path)], [str(script)]):
        command = [sys.executable, "-m", "chunkwise", *arguments]
        done = ran(command, env=environment)
        assert done.returncode == 2, done
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_the_variables_are_in_the_help_of_chunkwise_alone() -> None:
    variables = chunkwise.settings.__globals__["VARIABLES"].values()
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert all(variable in shown for variable in variables)
    assert max(map(len, shown.splitlines())) <= 80
    shown = CliRunner().invoke(cli, ["repack", "--help"]).output
    assert not any(variable in shown for variable in variables)


def values_here(_: int) -> tuple[float, ...]:
    return tuple(chunkwise.settings())


def test_a_forked_child_has_the_settings_a_spawned_one_the_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_first = tuple(chunkwise.settings())
    chosen = chunkwise.settings(
        threads=3, cache_nbytes=MIB, prefetch_nbytes=0, request_timeout_s=7
    )
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(values_here, [0]) == [tuple(chosen)]
        # Not by a signal, for which the runner of tests may have a handler.
        pool.close()
        pool.join()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(values_here, [0]) == [at_first]
    monkeypatch.setenv("CHUNKWISE_CACHE_NBYTES", "5MiB")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        [found] = pool.map(values_here, [0])
    assert found == (at_first[0], 5 * MIB, *at_first[2:])


FORK = """
import os, sys
import chunkwise
f = chunkwise.open(sys.argv[1])
d = f["filtered"]
for row in range(0, 60, 7):
    d[row, 5]
chunkwise.settings(cache_nbytes=200_000, threads=2)
pid = os.fork()
if pid == 0:
    ok = chunkwise.cache_stats()["budget_nbytes"] == 200_000 and chunkwise.settings().threads == 2
    whole = d[...]
    chunkwise.settings(cache_nbytes=0, threads=3)
    ok = ok and (d[...] == whole).all() and chunkwise.settings().threads == 3
    os._exit(0 if ok else 1)
assert os.waitpid(pid, 0)[1] == 0
print(*chunkwise.settings()[:2])
"""


def test_a_forked_child_changes_its_own(path: Path) -> None:
    assert child(FORK, str(path)) == "2 200000"


def test_a_worker_of_dask_takes_its_share() -> None:
    """As `distributed` keeps its workers; one of another version, or none, is no limit."""
    program = """
import sys, types
class State: nthreads = 1
class One: state = State
class Worker: _instances = INSTANCES
sys.modules["distributed.worker"] = types.SimpleNamespace(Worker=Worker)
import chunkwise
print(chunkwise.settings().threads)
"""
    most = int(child("import chunkwise; print(chunkwise.settings().threads)"))
    for instances, threads in (("[One]", 1), ("[One, One]", min(2, most)), ("[]", most)):
        assert int(child(program.replace("INSTANCES", instances))) == threads
    for other in ("None", "[1]"):
        assert int(child(program.replace("INSTANCES", other))) == most
