"""Do ranks get answers from rank 0 while all work, and end together when one fails?"""

from __future__ import annotations

import pytest

from tests.parallel.test_ranks import by_rank, run, several
from tests.support.mpi import needs_mpi


@needs_mpi
@several
def test_every_question_is_answered_once(n_ranks: int) -> None:
    done = run(
        n_ranks,
        """
        from chunkwise.mpi.serving import serving
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
    )
    assert by_rank(done) == ["again"] * n_ranks


@needs_mpi
@pytest.mark.parametrize("failing", [0, 1, 3])
@pytest.mark.parametrize("when", ["asking", "working"])
def test_one_rank_that_fails_fails_all(failing: int, when: str) -> None:
    done = run(
        4,
        f"""
        from chunkwise.mpi.serving import serving
        failing = {failing}
        def answer(asking, question):
            if asking == failing and {when!r} == "asking" and question > 3:
                raise CannotWriteError("no room")
            return question
        try:
            with serving(comm, answer) as ask:
                for n in range(10_000):
                    ask(n)
                    if rank == failing and n == 5:
                        raise ValueError("tired")
            said("done")
        except ranks.OtherRankFailedError as error:
            said(["other", error.rank, error.reason])
        except (ValueError, CannotWriteError) as error:
            said(["own", rank, str(error)])
        """,
    )
    reason = "no room" if when == "asking" else "tired"
    for rank, (kind, first, said) in enumerate(by_rank(done)):
        assert (kind, first) == ("own" if rank == failing else "other", failing)
        assert reason in said
