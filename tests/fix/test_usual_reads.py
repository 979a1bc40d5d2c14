"""Does `fix`, if nobody says what is read, make no usual read slower, and clear what it promises?

``CHUNKWISE_USUAL=300`` says how many files are made.
"""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import chunkwise
from chunkwise_lab.regret import usual as usual_reads
from chunkwise_lab.regret.reading import Cost
from tests.support import usual

COUNT = int(os.environ.get("CHUNKWISE_USUAL", "32"))


@pytest.mark.slow
def test_no_usual_read_is_slower_by_the_model() -> None:
    found = usual_reads.run(range(COUNT), measure=False)
    assert sum(found.files.values()) == COUNT
    assert found.slower == []


def test_reads_that_became_slower_are_named() -> None:
    slow, fast = Cost(1.0, 2.0), Cost(2.0, 1.0)
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
    for number in range(0, COUNT, 2):
        before, after = tmp_path / f"{number}.h5", tmp_path / f"{number}-fixed.h5"
        usual.make(before, number)
        promised = chunkwise.fix(before, dry_run=True)
        done = chunkwise.fix(before, after, seconds=0)
        if done.outcome == "fixed":
            left = {(one.code, one.path) for one in promised.left if not one.is_offer}
            # Other chunks may show what only the old ones hid from a sample, as an offer.
            found = {(one.code, one.path) for one in done.left if not one.is_offer}
            assert found == left, (number, done.changes)
