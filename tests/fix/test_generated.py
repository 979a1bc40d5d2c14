"""Does one fix leave no finding that a layout mends, every value as it was, and reads as fast?

``CHUNKWISE_FIXES=200`` says how many files are made; ``CHUNKWISE_USUAL=300`` of usual reads.
"""

import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.inspection import inspect
from chunkwise_lab.regret import usual as usual_reads
from chunkwise_lab.regret.reading import Cost
from tests.model.test_every_fix import nothing_lost
from tests.support import usual
from tests.support.fixable import ACCESSES, datasets, make

COUNT = int(os.environ.get("CHUNKWISE_FIXES", "5"))


def mendable(path: Path, access: tuple[str, ...]) -> list[tuple[str, str | None]]:
    """What of a file another layout would mend, for these patterns."""
    found = inspect(path, access=access).findings
    return [(one.code, one.path) for one in found if one.layout is not None]


@pytest.mark.slow
@settings(
    max_examples=COUNT,
    deadline=None,
    derandomize=COUNT < 50,
    # Smaller examples take minutes to find, each of several seconds.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(datasets(), min_size=1, max_size=3), st.sampled_from(ACCESSES))
def test_one_fix_mends_all_and_loses_nothing(
    told: list[dict[str, Any]], access: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "a.h5"), Path(folder, "b.h5")
        make(before, told)
        done = chunkwise.fix(before, after, access=access, seconds=0)
        if done.outcome == "nothing to mend":
            assert not after.exists()
            assert mendable(before, access) == []
            return
        nothing_lost(before, after)
        left = mendable(after, access)
        assert left == [], (done.changes, left)
        again = chunkwise.fix(after, in_place=True, access=access, seconds=0)
        assert again.outcome == "nothing to mend"


# --- usual reads, if nobody says what is read --------------------------------------------


USUAL = int(os.environ.get("CHUNKWISE_USUAL", "32"))


@pytest.mark.slow
def test_no_usual_read_is_slower_by_the_model() -> None:
    found = usual_reads.run(range(USUAL), measure=False)
    assert sum(found.files.values()) == USUAL
    assert found.slower == []


def test_reads_that_became_slower_are_named() -> None:
    slow, fast = Cost([1.0] * 5, [2.0] * 5), Cost([2.0] * 5, [1.0] * 5)
    read = usual_reads.Read(3, "maps", "maps", ((1, 9), (3, 3)), {"here": 1.0}, {})
    reads = (read, replace(read, measured={"h5py": fast, "chunkwise": slow}))
    found = usual_reads.UsualResults(Counter(maps=2), Counter(maps=2), reads)
    assert found.slower == [reads[1]]
    assert replace(read, model={"here": 0.9}).is_slower
    assert (
        list(usual_reads.lines(found))[-1]
        == "2 files, 2 changed: 1 of their 2 usual reads are slower"
    )


@pytest.mark.slow
def test_what_is_promised_is_what_is_left(tmp_path: Path) -> None:
    for number in range(0, USUAL, 2):
        before, after = tmp_path / f"{number}.h5", tmp_path / f"{number}-fixed.h5"
        usual.make(before, number)
        promised = chunkwise.fix(before, dry_run=True)
        done = chunkwise.fix(before, after, seconds=0)
        if done.outcome == "fixed":
            left = {(one.code, one.path) for one in promised.left if not one.is_offer}
            # Other chunks may show what only the old ones hid from a sample, as an offer.
            found = {(one.code, one.path) for one in done.left if not one.is_offer}
            assert found == left, (number, done.changes)
