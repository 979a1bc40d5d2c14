"""Does `fix`, if nobody says what is read, make no usual read slower, and clear what it promises?

``CHUNKWISE_USUAL=300`` says how many files are made.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import chunkwise
from chunkwise.fixing.choose import choose
from chunkwise.inspection import inspect
from chunkwise.inspection.promise import promised_s
from chunkwise.model.readers import LIBHDF5_1, this_process
from chunkwise.patterns import as_pattern
from tests.support import usual

COUNT = int(os.environ.get("CHUNKWISE_USUAL", "32"))
# What is read at least as fast as this share of before is not slower.
LEAST = 0.95


@pytest.mark.slow
def test_no_usual_read_is_slower_by_the_model(tmp_path: Path) -> None:
    slower = []
    for number in range(COUNT):
        path = tmp_path / "a.h5"
        made = usual.make(path, number)
        facts = inspect(path)
        datasets = {one.path: one.dataset for one in facts.objects}
        for change in choose(facts).changes:
            dataset = datasets[change.path]
            assert dataset is not None
            after = change.chunk or change.chunk_before
            for read in made.reads if change.path == made.path else ():
                for reader in (this_process(), LIBHDF5_1):
                    before_s, after_s = (
                        promised_s(
                            dataset,
                            as_pattern(read, dataset.shape or ()),
                            chunk=chunk,
                            filters=filters,
                            reader=reader,
                        )
                        for chunk, filters in (
                            (change.chunk_before, dataset.filters),
                            (after, change.filters or dataset.filters),
                        )
                    )
                    assert before_s
                    assert after_s
                    if before_s < LEAST * after_s:
                        slower.append((number, made.kind, read.name, change, before_s / after_s))
    assert slower == []


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
