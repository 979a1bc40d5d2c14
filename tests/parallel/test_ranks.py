"""Do ranks fail together, end together, and wait without using a core?"""

import itertools
import json
import os
import tempfile
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.mpi import ranks
from chunkwise.mpi.ranks import ALONE, OtherRankFailedError
from chunkwise_lab.mpi_check.environment import require_shared_folder
from tests.support.mpi import mpirun, needs_mpi

HEAD = """
import json, os, sys, time
from chunkwise.mpi import ranks
from chunkwise_lab.mpi_check.environment import require_shared_folder
from chunkwise.errors import *
comm = ranks.world()
rank, size = comm.rank, comm.size
def said(value):
    # Lines that several ranks print come in pieces.
    with open(os.path.join(os.environ["SAID"], f"{rank}.json"), "w") as file:
        json.dump(value, file)
"""


class Run(NamedTuple):
    """What became of a program."""

    returncode: int
    stderr: str
    said: dict[int, Any]


def run(n_ranks: int, body: str, *arguments: str | Path, **more: Any) -> Run:
    source = HEAD + textwrap.dedent(body)
    with tempfile.TemporaryDirectory() as folder:
        done = mpirun(n_ranks, "-c", source, *arguments, SAID=folder, **more)
        files = Path(folder).iterdir()
        said = {int(file.stem): json.loads(file.read_text()) for file in files}
    return Run(done.returncode, done.stderr, said)


def by_rank(done: Run) -> list[Any]:
    assert done.returncode == 0, done.stderr
    assert sorted(done.said) == list(range(len(done.said)))
    return [value for _, value in sorted(done.said.items())]


several = pytest.mark.parametrize("n_ranks", [1, 3])


@needs_mpi
@several
def test_values_are_exchanged_and_questions_answered(n_ranks: int, tmp_path: Path) -> None:
    """Whatever their sizes; and all ranks see a folder that they share."""
    done = run(
        n_ranks,
        """
        from chunkwise.mpi.serving import serving
        ranks._MOST_NBYTES = 1000  # In many pieces.
        values = ranks.exchange(comm, (rank, "x" * (rank * 777)))
        assert values == [(one, "x" * (one * 777)) for one in range(size)]
        assert ranks.broadcast(comm, "y" * 5000 if rank == 0 else None) == "y" * 5000
        assert ranks.broadcast(comm, rank, root=size - 1) == size - 1
        ranks.barrier(comm)
        assert ranks.on_first(comm, lambda: [size, rank]) == [size, 0]
        require_shared_folder(comm, sys.argv[1])

        # Rank 0 answers, each question once.
        taken = []
        def answer(asking, question):
            taken.append((asking, question))
            return len(taken)
        with serving(comm, answer if rank == 0 else None) as ask:
            got = [ask("x" * (100_000 if n == 7 else n)) for n in range(50)]
        numbers = ranks.exchange(comm, got)
        assert sorted(sum(numbers, [])) == list(range(1, 50 * size + 1))
        if rank == 0:
            asked = {one for one, _ in taken}
            assert asked == set(range(size))
        with serving(comm, lambda *_: "again") as ask:
            said(ask(None))
        """,
        tmp_path,
    )
    assert by_rank(done) == ["again"] * n_ranks
    assert list(tmp_path.iterdir()) == []


@needs_mpi
def test_one_failure_is_the_failure_of_all() -> None:
    errors = ["UsageError", "KeyboardInterrupt", "SystemExit", "KeyError"]
    done = run(
        4,
        """
        def outcome(work):
            try:
                work()
            except BaseException as wrong:
                return [type(wrong).__name__, getattr(wrong, "rank", None), str(wrong)]

        def agreed(error):
            def work():
                if rank in (1, 3):
                    raise eval(error)("no room")
            return lambda: ranks.agree(comm, work)

        def nested():
            with ranks.together(comm):
                if rank == 2:
                    raise CannotWriteError("full")

        told = [outcome(agreed(error)) for error in sys.argv[1:]]
        # Of a failure within a failure, the rank that failed itself is named.
        told.append(outcome(lambda: ranks.agree(comm, nested)))
        for work in (lambda: 1 / 0, lambda: lambda: None):  # The second cannot be sent.
            told.append(outcome(lambda: ranks.on_first(comm, work)))
        said(told)
        """,
        *errors,
    )
    everyone = by_rank(done)
    for told in everyone[1::2]:
        assert [name for name, *_ in told[:4]] == errors
    for told in everyone[::2]:
        assert [one[:2] for one in told[:4]] == [["OtherRankFailedError", 1]] * 4
        for _, _, text in told[:4]:
            assert text.startswith(f"rank 1 on {os.uname().nodename} failed: ")
            assert "no room" in text
    other = ["OtherRankFailedError", 2]
    assert [told[4][:2] for told in everyone] == [other, other, ["CannotWriteError", None], other]
    for first, *others in zip(*(told[5:] for told in everyone), strict=True):
        assert first[0] != "OtherRankFailedError"
        assert [one[:2] for one in others] == [["OtherRankFailedError", 0]] * 3


@needs_mpi
@pytest.mark.parametrize(
    ("n_ranks", "where"),
    [(1, "agreed"), (3, "agreed"), (3, "everywhere"), (3, "alone"), (3, "first")],
)
def test_one_message_and_code_2(n_ranks: int, where: str) -> None:
    done = run(
        n_ranks,
        """
        last = size - 1
        with ranks.ending(comm, patience_s=1):
            if sys.argv[1] == "agreed":
                def work():
                    if rank == last:
                        raise UsageError("the grid does not match")
                ranks.agree(comm, work)
            elif sys.argv[1] == "everywhere":
                raise UsageError("the grid does not match")
            elif sys.argv[1] == "alone":
                # The others wait for it in vain.
                if rank == last:
                    raise UsageError("the grid does not match")
                ranks.barrier(comm)
            else:
                def work():
                    raise UsageError("the grid does not match")
                ranks.on_first(comm, work)
        """,
        where,
    )
    assert done.returncode == 2
    assert done.stderr.count("the grid does not match") == 1
    if where != "alone":
        assert done.stderr == "chunkwise: the grid does not match\n"


@needs_mpi
@pytest.mark.parametrize("seed", range(4))
def test_wherever_a_rank_fails_all_end(seed: int) -> None:
    done = run(
        4,
        """
        import random
        shared, mine = random.Random(int(sys.argv[1])), random.Random(f"{sys.argv[1]} {rank}")
        failing, at = shared.randrange(size), shared.randrange(40)
        kinds = shared.choices(["agree", "first", "exchange", "barrier", "alone"], k=41)
        def work(step):
            time.sleep(mine.random() * 0.005)
            if (rank, step) == (failing, at):
                raise UsageError(f"at step {step}")
            return "x" * mine.randrange(1000)
        # A busy machine may keep a rank from the others for seconds.
        with ranks.ending(comm, patience_s=6):
            for step, kind in enumerate(kinds):
                if kind == "agree":
                    ranks.agree(comm, lambda: work(step))
                elif kind == "first":
                    ranks.on_first(comm, lambda: None)
                    ranks.agree(comm, lambda: work(step))
                elif kind == "exchange":
                    ranks.exchange(comm, work(step))
                elif kind == "barrier":
                    work(step)
                    ranks.barrier(comm)
                else:
                    work(step)
        """,
        str(seed),
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr.count("chunkwise: at step ") == 1


@needs_mpi
def test_a_rank_that_fails_after_all_is_done_fails_all() -> None:
    done = run(
        4,
        """
        with ranks.ending(comm):
            if rank == 3:
                sys.exit(1)
        said("not reached")
        """,
    )
    assert done == Run(1, "", {})


@needs_mpi
def test_a_traceback_is_printed_once() -> None:
    done = run(
        4,
        """
        with ranks.ending(comm, patience_s=1):
            if rank in (1, 2):
                raise ZeroDivisionError("of rank")
            ranks.barrier(comm)
        """,
    )
    assert done.returncode == 2
    # Both failed for themselves, so both may be heard before all are ended.
    assert 1 <= done.stderr.count("ZeroDivisionError: of rank") <= 2


@needs_mpi
def test_a_rank_that_dies_ends_the_others() -> None:
    done = run(
        4,
        """
        with ranks.ending(comm):
            if rank == 1:
                os.kill(os.getpid(), 9)
            ranks.barrier(comm)
        """,
        timeout=120,
    )
    assert done.returncode != 0


@needs_mpi
def test_an_interrupt_of_all_ends_all_with_its_code() -> None:
    done = run(
        2,
        """
        import signal
        with ranks.ending(comm):
            if rank == 0:
                ranks.exchange(comm, None)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
            else:
                ranks.exchange(comm, None)
                # In the middle of what is exchanged.
                signal.signal(signal.SIGALRM, signal.default_int_handler)
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                ranks.barrier(comm)
        """,
        timeout=120,
    )
    assert done.returncode == 130
    assert done.stderr.count("chunkwise: interrupted") == 1


@needs_mpi
def test_waiting_uses_no_core() -> None:
    done = run(
        2,
        """
        if rank == 1:
            time.sleep(1.0)
        begun, before = time.monotonic(), time.process_time()
        ranks.barrier(comm)
        said([time.monotonic() - begun, time.process_time() - before])
        """,
    )
    # A second that is waited through costs a fraction of one; on a busy machine it may be many.
    waited_s, used_s = by_rank(done)[0]
    assert used_s < 0.5 * max(waited_s, 1.0)


@needs_mpi
def test_a_folder_of_one_rank_is_one_error(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number % 2}").mkdir(exist_ok=True)
    done = run(
        4,
        """
        with ranks.ending(comm):
            os.chdir(os.path.join(sys.argv[1], str(rank % 2)))
            require_shared_folder(comm, ".")
        """,
        tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "ranks 1, 3 on " in done.stderr
    assert "No such file or directory" in done.stderr
    assert not list(tmp_path.glob("*/*"))


@needs_mpi
def test_another_library_than_the_launchers_is_said() -> None:
    body = "with ranks.ending(ranks.ALONE): ranks.world()"
    # As if mpirun of another library had started 4 of these.
    done = mpirun(1, "-c", "import os\nos.environ['OMPI_COMM_WORLD_SIZE'] = '4'\n"
                  "from chunkwise.mpi import ranks\n" + body)  # fmt: skip
    assert done.returncode == 2
    assert "mpirun with 4 processes, of which MPI sees one" in done.stderr


def test_one_process_needs_no_mpi(tmp_path: Path) -> None:
    assert ranks.exchange(ALONE, 3) == [3]
    assert ranks.broadcast(ALONE, 3) == 3
    assert ranks.agree(ALONE, lambda: 4) == 4
    assert ranks.on_first(ALONE, lambda: 5) == 5
    ranks.barrier(ALONE)
    require_shared_folder(ALONE, tmp_path)
    with pytest.raises(CannotWriteError, match="cannot write there"):
        require_shared_folder(ALONE, tmp_path / "none")
    with pytest.raises(UsageError), ranks.together(ALONE):
        raise UsageError("own")
    with ranks.ending(ALONE):
        pass


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (CannotWriteError("full"), 2, "chunkwise: full\n"),
        (KeyboardInterrupt(), 130, "chunkwise: interrupted\n"),
        (SystemExit(0), 0, ""),
        (SystemExit(None), 0, ""),
        (SystemExit(7), 7, ""),
        (SystemExit("so"), 1, "so\n"),
    ],
)
def test_one_process_ends_with_a_code(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, ranks.ending(ALONE):
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == text


def test_a_traceback_ends_with_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, ranks.ending(ALONE):
        raise ZeroDivisionError("here")
    assert ended.value.code == 2
    assert "ZeroDivisionError: here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, False),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, True),
        ({"PMI_RANK": "0"}, True),
        ({"PMIX_RANK": "0"}, True),
        ({"MV2_COMM_WORLD_RANK": "0"}, True),
    ],
)
def test_a_launcher_is_known_by_its_variables(
    variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("OMPI_", "PMI", "MV2_", "PALS_", "SLURM_")):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ranks.under_mpi() is expected


@given(st.integers(0, 9), st.text(), st.text(), st.text())
def test_another_ranks_failure_survives_pickle(
    rank: int, host: str, kind: str, reason: str
) -> None:
    import pickle

    error = OtherRankFailedError(rank, host, kind, reason)
    again = pickle.loads(pickle.dumps(error))
    assert (again.rank, again.host, again.kind, again.reason) == (rank, host, kind, reason)
    assert str(again) == str(error)


# Answers of rank 0 ----------------------------------------------------------------------------


@needs_mpi
def test_one_rank_that_fails_fails_all() -> None:
    """Once, and again: what is left of a failure is in nobody's way."""
    cases = list(itertools.product([0, 1, 3], ["asking", "working"]))
    done = run(
        4,
        """
        from chunkwise.mpi.serving import serving

        told = []
        for failing, when in json.loads(sys.argv[1]):
            def answer(asking, question):
                if asking == failing and when == "asking" and question > 3:
                    raise CannotWriteError("no room")
                return question

            try:
                with serving(comm, answer) as ask:
                    for n in range(10_000):
                        ask(n)
                        if rank == failing and n == 5:
                            raise ValueError("tired")
                told.append("done")
            except ranks.OtherRankFailedError as error:
                told.append(["other", error.rank, error.reason])
            except (ValueError, CannotWriteError) as error:
                told.append(["own", rank, str(error)])
        said(told)
        """,
        json.dumps(cases),
        timeout=240,  # Each of them takes its time on a busy machine.
    )
    for rank, told in enumerate(by_rank(done)):
        for (failing, when), (kind, first, said) in zip(cases, told, strict=True):
            assert (kind, first) == ("own" if rank == failing else "other", failing)
            assert ("no room" if when == "asking" else "tired") in said
