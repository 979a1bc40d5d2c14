"""Does a crash in a child stay there, and does everything else come back?"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

from chunkwise.errors import CrashedError, FileFormatError
from chunkwise.files.contained import batches, contained, contained_each, contained_files
from tests.support.processes import descriptors


def crash() -> None:
    ctypes.string_at(0)


def refuse() -> None:
    raise FileFormatError("a.h5: no such file")


def test_results_come_back() -> None:
    parent = os.getpid()
    assert contained(os.getpid, "x") != parent
    assert contained(lambda: b"x" * (8 << 20), "x") == b"x" * (8 << 20)


def test_errors_come_back() -> None:
    with pytest.raises(FileFormatError, match="no such file"):
        contained(refuse, "x")


def test_a_crash_is_one_error() -> None:
    with pytest.raises(CrashedError, match=r"a\.h5: HDF5 .* crashed on it \(SIGSEGV\)"):
        contained(crash, "a.h5")


def test_one_crash_among_small_files_is_theirs_alone(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.h5") for i in range(40)]
    for path in paths:
        Path(path).write_bytes(bytes(1000))

    def work(path: str) -> int:
        number = int(Path(path).stem)
        if number == 20:
            crash()
        if number == 21:
            refuse()
        return os.getpid()

    found = list(contained_files(work, paths, 2))
    assert [one.error is None for one in found] == [i not in (20, 21) for i in range(40)]
    assert isinstance(found[20].error, CrashedError)
    assert str(found[20].error).startswith(paths[20])
    assert isinstance(found[21].error, FileFormatError)
    # The others of its process were worked on again, each alone.
    assert len({one.result for one in found[:16]}) == 1
    assert len({one.result for one in found[16:32]}) == 15


@pytest.mark.parametrize(
    ("count", "at_once", "most"),
    [(0, 2, 0), (10, 2, 10), (100, 2, 16), (300, 2, 37), (2700, 2, 64), (2700, 64, 16)],
)
def test_of_many_small_files_more_share_a_child(count: int, at_once: int, most: int) -> None:
    files = [(str(number), 1000) for number in range(count)]
    found = list(batches(files, at_once))
    assert max(map(len, found), default=0) == most
    assert [file for batch in found for file in batch] == files


def test_large_files_have_a_child_alone() -> None:
    files = [("a", 1), ("b", 9 << 20), ("c", 1), ("d", 2 << 20), ("e", 3 << 20)]
    assert [[name for name, _ in batch] for batch in batches(files, 1)] == [
        ["a"],
        ["b"],
        ["c", "d"],
        ["e"],
    ]


def children() -> set[int]:
    """Processes that this one has started, those of other tests among them, also ended ones."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # Behind the name, which may hold anything: state and parent.
            if int(entry.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(entry.parent.name))
    return found


def assert_no_more(before: tuple[int, set[int]]) -> None:
    """Fewer may be left: what other tests have begun may have ended meanwhile."""
    assert descriptors() <= before[0]
    assert children() <= before[1]


def test_no_child_and_no_descriptor_is_left() -> None:
    before = descriptors(), children()
    for _ in range(3):
        contained(os.getpid, "x")
        with pytest.raises(CrashedError):
            contained(crash, "x")
    assert_no_more(before)


def test_ctrl_c_ends_the_child(tmp_path: Path) -> None:
    program = f"""
import os, time
from chunkwise.files.contained import contained, contained_each, contained_files
from tests.support.processes import descriptors
def work():
    open({str(tmp_path / "child")!r}, "w").write(str(os.getpid()))
    time.sleep(600)
contained(work, "x")
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    child = tmp_path / "child"
    while not child.exists() or not child.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=120)
    assert b"KeyboardInterrupt" in message
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


def test_ctrl_c_as_a_child_is_let_go_of_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number is nobody's then, or another process's: nothing is ended by it."""
    wait, before = os.waitpid, children()

    def interrupted(process: int, options: int) -> None:
        wait(process, options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "waitpid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        contained(os.getpid, "x")
    assert children() <= before


# --- several at a time ---------------------------------------------------------------------


def slow(number: int) -> int:
    """Work the longer, the earlier it was asked for."""
    time.sleep(0.05 * (4 - number % 4))
    return number


def test_outcomes_come_in_order() -> None:
    works = [(partial(slow, number), "x") for number in range(9)]
    assert [outcome.get() for outcome in contained_each(works, 3)] == list(range(9))


def test_several_are_at_work_at_once(tmp_path: Path) -> None:
    def meet(number: int) -> int:
        """Wait until another one is there."""
        (tmp_path / str(number)).touch()
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return number

    works = [(partial(meet, number), "x") for number in range(2)]
    assert [outcome.get() for outcome in contained_each(works, 2)] == [0, 1]


@pytest.mark.slow
def test_no_more_is_begun_than_may_wait() -> None:
    begun = []

    def works() -> Iterator[tuple[Callable[[], bytes], str]]:
        for number in range(100):
            begun.append(number)
            yield (lambda: b"x" * (1 << 20)), "x"

    for done, outcome in enumerate(contained_each(works(), 2), 1):
        assert len(outcome.get()) == 1 << 20
        assert len(begun) <= done + 8
    assert len(begun) == 100


def test_crashes_errors_and_limits_are_outcomes() -> None:
    works: list[tuple[Callable[[], object], str]] = [
        (crash, "a.h5"), (refuse, "b.h5"), (partial(time.sleep, 60), "c.h5"), (os.getpid, "d.h5"),
    ]  # fmt: skip
    first, second, third, fourth = contained_each(works, 2, limit_s=5.0)
    assert "a.h5: HDF5" in str(first.error)
    assert isinstance(second.error, FileFormatError)
    assert "c.h5: HDF5" in str(third.error)
    assert "did not come to an end with it in 5 s" in str(third.error)
    assert fourth.error is None


def test_stopping_early_ends_all_children() -> None:
    before = descriptors(), children()
    works = [(partial(time.sleep, 0 if number == 0 else 60), "x") for number in range(9)]
    each = contained_each(works, 3)
    next(each)
    assert isinstance(each, Generator)
    each.close()
    assert_no_more(before)
