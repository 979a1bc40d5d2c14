"""Do ranks that write one file together make the file that one process would have made?"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise import parallel
from chunkwise.errors import (
    AlreadyExistsError,
    CannotWriteError,
    SelectionError,
    UsageError,
)
from chunkwise.grammar.boxes import Box
from chunkwise.mpi.boxes import Owners, chosen, covered, in_chunks, overlapping
from chunkwise.mpi.session import described
from tests.parallel.test_ranks import HEAD, Run, by_rank, run, several
from tests.support.golden import assert_golden, refused
from tests.support.mpi import LAUNCHER, environment, mpirun, needs_mpi
from tests.support.mpi_h5py import PYTHON, needs_parallel_h5py

OPEN = """
import numpy as np, h5py, chunkwise
from chunkwise import parallel
path = sys.argv[1]
"""


def ranks_run(n_ranks: int, path: Path, body: str, *more: str | Path, **variables: Any) -> Run:
    return run(n_ranks, OPEN + textwrap.dedent(body), path, *more, **variables)


# Arithmetic -------------------------------------------------------------------------------


@st.composite
def boxes_apart(draw: Any, shape: tuple[int, ...], n_ranks: int) -> list[Box | None]:
    """Boxes of ranks with no element in common: parts of a box that is cut again and again."""
    left = [Box((0,) * len(shape), shape)]
    while len(left) < n_ranks:
        at = draw(st.integers(0, len(left) - 1))
        box = left.pop(at)
        axis = draw(st.integers(0, len(shape) - 1))
        cut = draw(st.integers(box.start[axis], box.end[axis]))
        end, begin = list(box.end), list(box.start)
        end[axis] = begin[axis] = cut
        left += [Box.between(box.start, tuple(end)), Box.between(tuple(begin), box.end)]
    kept: list[Box | None] = []
    for box in left:
        begin = [draw(st.integers(a, b)) for a, b in zip(box.start, box.end, strict=True)]
        end = [draw(st.integers(a, b)) for a, b in zip(begin, box.end, strict=True)]
        small = Box.between(tuple(begin), tuple(end)) if draw(st.booleans()) else box
        kept.append(small if small.size else None)
    mixed: list[Box | None] = draw(st.permutations(kept))
    return mixed


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_each_chunk_has_one_owner_that_covers_most_of_it(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    chunk = tuple(data.draw(st.integers(1, n)) for n in shape)
    n_ranks = data.draw(st.integers(1, 5))
    owners = Owners(shape, chunk)
    grid = tuple(-(-n // c) for n, c in zip(shape, chunk, strict=True))
    expected = np.zeros(grid, int)
    for _ in range(data.draw(st.integers(1, 3))):
        boxes = data.draw(boxes_apart(shape, n_ranks))
        assert overlapping(boxes) is None
        owners.take(boxes)
        counts = np.zeros((n_ranks, *grid), int)
        for rank, box in enumerate(boxes):
            if box is not None:
                elements = np.zeros(shape, int)
                elements[box.slices] = 1
                for at in np.ndindex(*grid):
                    part = tuple(slice(n * c, (n + 1) * c) for n, c in zip(at, chunk, strict=True))
                    counts[(rank, *at)] = elements[part].sum()
                there = in_chunks(box, chunk).slices
                np.testing.assert_array_equal(covered(box, chunk), counts[rank][there])
        touched = counts.any(axis=0)
        # The first of equals is the lowest rank.
        new = (expected == 0) & touched
        expected[new] = counts.argmax(axis=0)[new] + 1
        np.testing.assert_array_equal(owners._ranks, expected)
        for rank, box in enumerate(boxes):
            written = np.zeros(shape, int)
            for owner in range(n_ranks):
                limit = data.draw(st.sampled_from([1, 10, 1000]))
                for piece in owners.pieces(box, owner, limit):
                    written[piece.slices] += 1
                    chunks = in_chunks(piece, chunk)
                    assert (expected[chunks.slices] == owner + 1).all()
                    assert piece.size <= limit or chunks.size == 1
            assert written.sum() == (0 if box is None else box.size)
            assert written.max() <= 1, rank


def test_an_index_is_one_block() -> None:
    shape = (10, 6)
    found = chosen(shape, (slice(2, 5), -1), "d")
    assert found == (Box((2, 5), (3, 1)), (3,), (False, True))
    assert chosen(shape, ..., "d") == (Box((0, 0), (10, 6)), (10, 6), (False, False))
    slab = chosen(shape, chunkwise.hyperslab((1, 2), (3, 4)), "d")
    assert slab is not None
    assert slab.box == Box((1, 2), (3, 4))
    assert chosen(shape, slice(4, 4), "d") is None
    for index in (slice(0, 9, 2), [1, 3], np.ones(shape, bool), "name"):
        with pytest.raises(SelectionError, match="one block of neighbouring"):
            chosen(shape, index, "d")
    with pytest.raises(SelectionError):
        chosen(shape, 10, "d")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(3), np.arange(1, 4)),
        (np.arange(3), np.arange(3.0)),
        (np.dtype("f4"), np.dtype(">f4")),
        (h5py.string_dtype(), h5py.vlen_dtype("i4")),
        ((None, 3), (2, 3)),
        ({"a": 1}, {"a": 2}),
        (h5py.h5t.STD_I32LE, h5py.h5t.STD_I32BE),
    ],
)
def test_arguments_that_differ_are_told_apart(one: Any, other: Any) -> None:
    assert described(one) != described(other)
    assert described(one) == described(one)


# One process ------------------------------------------------------------------------------


def test_one_process_needs_no_mpi(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    code = f"""
import sys
sys.modules["mpi4py"] = None
import chunkwise
assert "chunkwise.mpi.file" not in sys.modules
from chunkwise import parallel
with parallel.open({str(path)!r}) as f:
    d = f.create_dataset("d", (5, 7), "i2", chunks=(2, 3), filters="deflate:1")
    d[1:4, 2] = [1, 2, 3]
    d[4] = 9
    d[0] = None
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    expected = np.zeros((5, 7), "i2")
    expected[1:4, 2], expected[4] = [1, 2, 3], 9
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][...], expected)
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]


def test_a_target_is_replaced_when_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(b"before")
    with pytest.raises(AlreadyExistsError, match="mode 'w' replaces it"):
        parallel.open(path, "x")

    def fail() -> None:
        with parallel.open(path) as file:
            file.create_dataset("d", (4,), "f4", chunks=(2,))[...] = 1
            raise RuntimeError("own")

    with pytest.raises(RuntimeError, match="own"):
        fail()
    assert path.read_bytes() == b"before"
    with parallel.open(path) as file:
        file.create_dataset("d", (4,), "f4", chunks=(2,))[...] = 1
        assert path.read_bytes() == b"before"
    with h5py.File(path) as made:
        assert made["d"][...].tolist() == [1] * 4
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]


def test_what_cannot_be_is_refused_and_the_file_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("a.h5")
    with parallel.open(path) as file:
        made = file.create_dataset("d", (4, 6), "i2", chunks=(2, 3), maxshape=(8, 6))
        texts = file.create_dataset("texts", (3,), h5py.string_dtype(), chunks=(2,))
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: made[...],
            "[::2]": lambda: made.__setitem__(slice(None, None, 2), 1),
            "another shape": lambda: made.__setitem__(0, np.arange(5)),
            "smaller": lambda: made.resize((2, 6)),
            "too large": lambda: made.resize(9, 0),
            "too many rows": lambda: made.append(np.zeros((5, 6), "i2")),
            "longer rows": lambda: made.append(np.zeros((5, 7), "i2")),
            "another type": lambda: made.__setitem__(..., np.zeros((4, 6), [("a", "i2")])),
            "a name that is taken": lambda: file.create_dataset("d", (4,), "i2"),
            "chunks": lambda: file.create_dataset("e", (4, 6), "i2", chunks=(5, 3)),
            "text": lambda: texts.__setitem__(..., "a"),
        }
        assert_golden("mpi-refused", refused(lambda name: calls[name](), calls))
        file.on_first(lambda h5: h5["texts"].__setitem__(..., ["a", "b", "c"]))
        made.resize(6, 0)
        made[5] = 7
        made.append(np.full(6, 8))
    with pytest.raises(UsageError, match="is closed"):
        made[0] = 1
    with h5py.File(path) as found:
        assert found["d"][:, 0].tolist() == [0, 0, 0, 0, 0, 7, 8]
        assert found["texts"].asstr()[...].tolist() == ["a", "b", "c"]


def test_another_run_does_not_write_the_same_target(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with parallel.open(path) as file:
        with pytest.raises(OSError, match="another run is writing it"):
            parallel.open(path)
        file.attrs["a"] = 1
    with h5py.File(path) as found:
        assert found.attrs["a"] == 1


def test_contiguous_data_where_other_data_was_reads_as_zero(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with parallel.open(path) as file:
        noise = np.random.default_rng(0).integers(0, 256, (8, 4096), "u1")
        made = file.create_dataset("d", noise.shape, "u1", chunks=(8, 4096), filters="deflate:1")
        made[...] = noise
        file.flush()
        made[...] = 0  # What the chunk took before is free now.
        file.flush()
        flat = file.create_dataset("flat", (30000,), "u1")
        flat[10:20] = 1
        file.create_dataset("filled", (2, 3), "f4", fillvalue=5)[1] = 2
    with h5py.File(path) as found:
        assert found["flat"][...].sum() == 10
        assert found["filled"][...].tolist() == [[5] * 3, [2] * 3]


EXAMPLE = Path(__file__).parents[2] / "docs" / "mpi.md"


@needs_mpi
@pytest.mark.parametrize("n_ranks", [1, 2])
def test_the_example_of_the_page_runs(n_ranks: int, tmp_path: Path) -> None:
    page = EXAMPLE.read_text("utf-8").partition("This is `write_field.py`:\n\n")[2]
    code = textwrap.dedent(page.partition("\n\nIt is started with")[0])
    assert "parallel.open" in code
    done = mpirun(n_ranks, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "field.h5") as found:
        values = found["t"][...]
        expected = np.arange(10, dtype="f4")[:, None] + np.repeat(
            np.arange(n_ranks) / 10, 1200 // n_ranks
        )
        np.testing.assert_array_equal(values, np.repeat(expected[..., None], 360, 2).astype("f4"))
        assert found["t"].dims[2][0] == found["lon"]


# Several ranks ----------------------------------------------------------------------------

FILTERS = ["none", "deflate:1", "shuffle+deflate:1", "lzf", "deflate:1+fletcher32"]
TYPES = ["i2", ">f8", "u1", "f4"]


@st.composite
def histories(draw: Any, n_ranks: int) -> dict[str, Any]:
    """A dataset, and what ranks write to it, as JSON."""
    shape = draw(st.lists(st.integers(1, 14), min_size=1, max_size=3))
    layout = draw(st.sampled_from(["chunks", "chunks", "chunks", "flat"]))
    chunks = [draw(st.integers(1, n)) for n in shape] if layout == "chunks" else None
    steps: list[Any] = []
    now = list(shape)
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["write", "write", "write", "flush", "grow", "append"]))
        if kind == "write":
            boxes = draw(boxes_apart(tuple(now), n_ranks))
            steps.append(
                ["write", [None if box is None else [box.start, box.end] for box in boxes]]
            )
        elif kind == "flush":
            steps.append(["flush"])
        elif chunks is not None and kind == "grow":
            now = [n + draw(st.integers(0, 6)) for n in now]
            steps.append(["grow", list(now)])
        elif chunks is not None:
            axis = draw(st.integers(0, len(now) - 1))
            rows = [draw(st.integers(0, 3)) for _ in range(n_ranks)]
            now[axis] += sum(rows)
            steps.append(["append", axis, rows])
    return {
        "shape": shape,
        "chunks": chunks,
        "dtype": draw(st.sampled_from(TYPES)),
        "filters": draw(st.sampled_from(FILTERS)) if chunks is not None else "none",
        "fillvalue": draw(st.sampled_from([None, 3])),
        "steps": steps,
        "seed": draw(st.integers(0, 99)),
    }


HISTORY = """
# What is written follows from the seed, so that each rank, and the test, knows all of it.
def values(rng, shape, dtype):
    return rng.integers(0, 100, shape).astype(dtype)

def play(cases, write, resize, append, flush, make):
    for number, case in enumerate(cases):
        rng = np.random.default_rng(case["seed"])
        d = make(number, case)
        for kind, *what in case["steps"]:
            if kind == "write":
                for at, box in enumerate(what[0]):
                    if box is not None:
                        shape = [b - a for a, b in zip(*box)]
                        value = values(rng, shape, case["dtype"])
                        what[0][at] = (tuple(slice(a, b) for a, b in zip(*box)), value)
                write(d, what[0])
            elif kind == "grow":
                resize(d, what[0])
            elif kind == "append":
                axis, rows = what
                shape = list(d.shape)
                parts = []
                for n in rows:
                    shape[axis] = n
                    parts.append(values(rng, shape, case["dtype"]))
                append(d, axis, parts)
            else:
                flush(d)
"""


def by_h5py(cases: list[Any], path: Path) -> None:
    """What the histories come to, by h5py in one process."""
    names: dict[str, Any] = {"np": np}
    exec(compile(HISTORY, "history", "exec"), names)
    with h5py.File(path, "w") as file:

        def make(number: int, case: Any) -> h5py.Dataset:
            more = {} if case["chunks"] is None else {"maxshape": (None,) * len(case["shape"])}
            chunks = tuple(case["chunks"]) if case["chunks"] else None
            made = file.create_dataset(
                str(number),
                tuple(case["shape"]),
                case["dtype"],
                chunks=chunks,
                fillvalue=case["fillvalue"],
                **more,
            )
            assert isinstance(made, h5py.Dataset)
            return made

        def write(d: Any, parts: Any) -> None:
            for part in parts:
                if part is not None:
                    d[part[0]] = part[1]

        def append(d: Any, axis: int, parts: Any) -> None:
            for part in parts:
                begin = d.shape[axis]
                d.resize(begin + part.shape[axis], axis)
                if part.size:
                    d[(slice(None),) * axis + (slice(begin, None),)] = part

        names["play"](cases, write, lambda d, n: d.resize(n), append, lambda _: None, make)


@needs_mpi
@several
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_random_histories_give_what_one_process_writes(
    n_ranks: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("histories")
    # Many at a time, as mpirun takes half a second.
    cases = data.draw(st.lists(histories(n_ranks), min_size=20, max_size=40))
    (folder / "cases.json").write_text(json.dumps(cases))
    done = ranks_run(
        n_ranks,
        folder / "many.h5",
        HISTORY
        + textwrap.dedent(
            """
            with open(sys.argv[2]) as file:
                cases = json.load(file)
            with parallel.open(path, "w", comm) as f:
                def make(number, case):
                    more = {"maxshape": True} if case["chunks"] is not None else {}
                    return f.create_dataset(
                        str(number), case["shape"], case["dtype"], chunks=case["chunks"],
                        filters=case["filters"], fillvalue=case["fillvalue"], **more)
                def write(d, parts):
                    mine = parts[rank]
                    d[None if mine is None else mine[0]] = None if mine is None else mine[1]
                def append(d, axis, parts):
                    d.append(parts[rank], axis)
                play(cases, write, lambda d, n: d.resize(n), append, lambda d: f.flush(), make)
            said("done")
            """
        ),
        folder / "cases.json",
        # So little that chunks are written with something missing, and read again.
        CHUNKWISE_WRITE_BUFFER_NBYTES=data.draw(st.sampled_from(["1", "64MiB"])),
    )
    assert by_rank(done) == ["done"] * n_ranks
    by_h5py(cases, folder / "one.h5")
    with (
        h5py.File(folder / "many.h5") as many,
        h5py.File(folder / "one.h5") as one,
        chunkwise.open(folder / "many.h5") as ours,
    ):
        for number, case in enumerate(cases):
            expected = one[str(number)][...]
            for file in (many, ours):
                found = file[str(number)][...]
                assert np.array_equal(found, expected), (case, found, expected)
    assert sorted(one.name for one in folder.iterdir()) == ["cases.json", "many.h5", "one.h5"]


@needs_mpi
def test_groups_of_ranks_write_files_of_their_own_and_are_warned_once(tmp_path: Path) -> None:
    done = ranks_run(
        4,
        tmp_path,
        """
        import warnings
        from chunkwise.mpi import target
        from chunkwise.mpi.filesystems import FileSystem
        target.filesystem_of = lambda _: FileSystem("nfs4", "/net", "server:/a")
        group = comm.Split(rank % 2, -rank)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with parallel.open(os.path.join(path, f"{rank % 2}.h5"), "x", group) as f:
                d = f.create_dataset("d", (4, 100), "i4", chunks=(3, 70), filters="lzf")
                d[2 * group.rank : 2 * group.rank + 2] = rank
        said([group.rank, [str(one.message) for one in caught]])
        """,
    )
    told = by_rank(done)
    assert [rank for rank, _ in told] == [1, 1, 0, 0]
    assert [len(warned) for _, warned in told] == [0, 0, 1, 1]
    assert "is nfs4 (server:/a)" in told[2][1][0]
    for number in (0, 1):
        with h5py.File(tmp_path / f"{number}.h5") as found:
            assert found["d"][:, 0].tolist() == [number + 2] * 2 + [number] * 2


@needs_mpi
@several
def test_what_the_ranks_disagree_about_is_named(n_ranks: int, tmp_path: Path) -> None:
    done = ranks_run(
        n_ranks,
        tmp_path / "a.h5",
        """
        told = []
        def refused(work):
            try:
                work()
            except ranks.OtherRankFailedError as error:
                told.append([error.kind, error.reason])
            except ChunkwiseError as error:
                told.append([type(error).__name__, str(error)])
            else:
                told.append(None)
        last = rank == size - 1
        with parallel.open(path) as f:
            d = f.create_dataset("d", (8, 8), "i2", chunks=(3, 3))
            refused(lambda: f.create_dataset("e", (8 + last, 8), "i2"))
            refused(lambda: d.__setitem__(slice(rank, rank + 2), 1))
            refused(lambda: d.attrs.__setitem__("a", rank))
            refused(lambda: f.flush() if last else d.__setitem__(..., None))
            refused(lambda: d.__setitem__(9 if last else slice(0, 0), 1))
            d[rank] = rank
        said(told)
        """,
    )
    everyone = by_rank(done)
    if n_ranks == 1:
        assert [one is None for one in everyone[0]] == [True, True, True, True, False]
        return
    for told in everyone:
        words = [reason for _, reason in told]
        assert "arguments must be equal" in words[0]
        assert "shape=(8, 8)" in words[0]
        assert "shape=(9, 8)" in words[0]
        assert "ranks 0 and 1 both write [1:2, 0:8]" in words[1]
        assert "arguments must be equal" in words[2]
        assert f"rank 0 is at writing to /d, rank {n_ranks - 1} at flush" in words[3]
        assert "9" in words[4]
        assert {kind for kind, _ in told} <= {"UsageError", "SelectionError"}
    with h5py.File(tmp_path / "a.h5") as found:
        assert found["d"][:, 0].tolist() == [*range(n_ranks), *[0] * (8 - n_ranks)]


@needs_mpi
def test_one_rank_that_fails_fails_all_and_leaves_no_target(tmp_path: Path) -> None:
    whens = ["before a write", "within a write", "before close"]
    cases = list(itertools.product([0, 3], whens))
    done = ranks_run(
        4,
        tmp_path / "a.h5",
        """
        import resource

        unlimited, told = resource.getrlimit(resource.RLIMIT_FSIZE), []
        for number, when in json.loads(sys.argv[2]):
            failing = rank == number
            try:
                with parallel.open(path) as f:
                    d = f.create_dataset("d", (16, 100), "f8", chunks=(4, 10), filters="deflate:1")
                    d[4 * rank : 4 * (rank + 1), :50] = 1
                    if failing and when == "before a write":
                        raise ValueError("tired")
                    if failing and when == "within a write":
                        # As on a full disk.
                        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
                    d[4 * rank : 4 * (rank + 1), 50:] = 1
                    d[...] = None
                    if failing and when == "before close":
                        raise ValueError("tired")
                told.append("done")
            except ranks.OtherRankFailedError as error:
                told.append(["other", error.rank, os.listdir(os.path.dirname(path))])
            except (ValueError, CannotWriteError) as error:
                told.append(["own", rank, os.listdir(os.path.dirname(path))])
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
            ranks.barrier(comm)
        said(told)
        """,
        json.dumps(cases),
        timeout=240,  # Each of them takes its time on a busy machine.
    )
    for rank, told in enumerate(by_rank(done)):
        for (failing, _), (kind, first, left) in zip(cases, told, strict=True):
            assert (kind, first) == ("own" if rank == failing else "other", failing)
            assert "a.h5" not in left
    assert not list(tmp_path.iterdir())


@needs_mpi
@pytest.mark.parametrize("wrong", ["index", "folder"])
def test_a_program_that_ends_as_commands_do_prints_one_message(wrong: str, tmp_path: Path) -> None:
    done = ranks_run(
        3,
        tmp_path / "a.h5" if wrong == "index" else tmp_path / "none" / "a.h5",
        """
        with ranks.ending(comm), parallel.open(path) as f:
            d = f.create_dataset("d", (8, 8), "f4", chunks=(2, 2))
            d[9 if rank == 1 else 0] = 1
        """,
    )
    assert done.returncode == 2
    said = "index 9 is out of range" if wrong == "index" else "there is no folder"
    lines = [line for line in done.stderr.splitlines() if "chunkwise" in line]
    assert len(lines) == 1, done.stderr
    assert said in lines[0]
    assert not list(tmp_path.iterdir())


@needs_mpi
def test_a_rank_that_ends_alone_ends_all(tmp_path: Path) -> None:
    """Without a with statement, and where the others wait for it outside, for ever."""
    done = ranks_run(
        2,
        tmp_path / "a.h5",
        """
        f = parallel.open(path)
        d = f.create_dataset("d", (4, 4), "f8", chunks=(2, 2))
        if rank == 1:
            raise ValueError("tired")
        comm.Barrier()
        """,
    )
    assert done.returncode != 0
    assert "the program ended without closing it" in done.stderr
    assert not (tmp_path / "a.h5").exists()


@needs_mpi
@pytest.mark.parametrize("interrupted", [0, 1])
def test_a_rank_that_is_interrupted_while_it_waits_ends_all(
    interrupted: int, tmp_path: Path
) -> None:
    # Else the other one sleeps until the time for all is up, which fails here.
    done = ranks_run(
        2,
        tmp_path / "a.h5",
        f"""
        import signal
        def stop(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        with parallel.open(path) as f:
            d = f.create_dataset("d", (4, 4), "f8", chunks=(2, 2))
            if rank == {interrupted}:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
            else:
                time.sleep(600)
            d[rank] = 1
        """,
    )
    assert done.returncode != 0
    assert not (tmp_path / "a.h5").exists()


KILLED = """
rng = np.random.default_rng(0)
full = rng.integers(0, 1000, (64, 200, 50)).astype("f8")
said(os.getpid())
while True:
    with parallel.open(path) as f:
        filters = "shuffle+deflate:1"
        d = f.create_dataset("d", full.shape, "f8", chunks=(5, 50, 50), filters=filters)
        for at in range(0, 64, 8):
            part = slice(at, at + 8), slice(rank * 200 // size, (rank + 1) * 200 // size)
            d[part] = full[part]
"""


def kill_one(folder: Path, n_ranks: int, victim: int, after_s: float) -> float:
    """Kill a rank of a program that writes the same file again and again."""
    assert LAUNCHER is not None
    (folder / "said").mkdir()
    code = HEAD + OPEN + KILLED
    path = folder / "out" / "a.h5"
    path.parent.mkdir()
    program = subprocess.Popen(
        [LAUNCHER, "-n", str(n_ranks), sys.executable, "-c", code, str(path)],
        env=environment(SAID=str(folder / "said")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told = folder / "said" / f"{victim}.json"
        until = time.monotonic() + 60
        while not (told.exists() and told.read_text()):
            assert time.monotonic() < until
            assert program.poll() is None
            time.sleep(0.01)
        time.sleep(after_s)
        os.kill(int(told.read_text()), signal.SIGKILL)
        begun = time.monotonic()
        assert program.wait(60) != 0
        took = time.monotonic() - begun
    finally:
        if program.poll() is None:
            program.kill()
            program.wait()
    full = np.random.default_rng(0).integers(0, 1000, (64, 200, 50)).astype("f8")
    if path.exists():
        with h5py.File(path) as found:
            np.testing.assert_array_equal(found["d"][...], full)
    # The next run removes what is left; mpirun may end a little before the ranks do.
    until = time.monotonic() + 60
    left: list[str] = []
    while left != ["a.h5"]:
        assert time.monotonic() < until, left
        with contextlib.suppress(CannotWriteError), parallel.open(path) as again:
            again.attrs["again"] = True
        left = sorted(one.name for one in path.parent.iterdir())
        time.sleep(0.05)
    return took


# What is wrapped ------------------------------------------------------------------------------

PROGRAM = """
import sys, h5py, numpy as np
from mpi4py import MPI
import chunkwise
comm = MPI.COMM_WORLD
count = 1 << 15
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    packed = file.create_dataset("packed", (2, count), "i4", chunks=(1, count), compression=1)
    # Each rank has half of each chunk.
    shared = file.create_dataset("shared", (2, count), "i4", chunks=(1, count))
    values = np.arange(2 * count).reshape(2, count)
    d = chunkwise.wrap(packed)
    assert "ranks of MPI" in d.explain_write()["reason"], d.explain_write()
    with d.collective:
        d[comm.rank] = values[comm.rank].astype("i4")
    d = chunkwise.wrap(shared)
    mine = np.s_[:, comm.rank * count // 2 : (comm.rank + 1) * count // 2]
    for kind in ("i4", "i8"):
        d[mine] = values[mine].astype(kind)
"""


@needs_parallel_h5py
@pytest.mark.slow
def test_ranks_write_what_they_have_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    done = mpirun(2, "-c", PROGRAM, path, python=PYTHON)
    assert done.returncode == 0, done.stderr
    expected = np.arange(1 << 16).reshape(2, 1 << 15)
    with h5py.File(path) as file:
        for name in ("packed", "shared"):
            np.testing.assert_array_equal(file[name][...], expected)
