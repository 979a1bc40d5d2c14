"""Are the costs of the canonical access patterns those of reading so?"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.inspection import DatasetFacts, dataset_facts
from chunkwise.inspection.facts import SampleFacts
from chunkwise.inspection.patterns import blocks, pattern_facts, pieces, row, survival
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2, LIBRARIES, reader
from chunkwise.model.traffic import Pattern
from tests.support.versions import in_memory


def facts_of(
    shape: tuple[int, ...], chunks: tuple[int, ...] | None, **options: Any
) -> DatasetFacts:
    """How a dataset of zeros is stored."""
    with in_memory() as file:
        data = np.zeros(shape, options.pop("dtype", "f4"))
        return dataset_facts(file.create_dataset("x", data=data, chunks=chunks, **options).id)


@pytest.fixture(scope="module")
def cris() -> DatasetFacts:
    """Paper 004's dataset, as far as shapes tell."""
    return facts_of((60, 30, 9, 717), (4, 30, 9, 717), dtype=">f4", compression="gzip")


def test_patterns_of_the_paper(cris: DatasetFacts) -> None:
    found = {each.name: each for each in pattern_facts(cris, LIBRARIES)}
    assert list(found) == [
        *(f"line along {d}" for d in range(4)),
        *(f"plane across {d}" for d in range(4)),
        "chunk",
        "all",
    ]
    rows = found["line along 3"]
    assert rows.block == (1, 1, 1, 717)
    assert (rows.chunks, rows.selected_nbytes, rows.decoded_nbytes) == (1, 2868, 3_097_440)
    assert rows.amplification == 1080
    assert rows.read_s is None
    # Table 5: with 1 MB each chunk is decoded for each of its 4x30x9 rows; with more, once.
    assert [each.decodes for each in rows.survival] == [1080, 1, 1]
    assert [each.reloads for each in rows.survival] == [1, 0, 0]
    assert found["chunk"].block == (4, 30, 9, 717)
    assert found["chunk"].survival[0].decodes == 1
    assert found["all"].chunks == 15
    assert found["line along 0"].chunks == 15


def test_seconds_follow_from_the_sample(cris: DatasetFacts) -> None:
    # 10 chunks in a second.
    sample = SampleFacts(1, 3_097_440, 2_900_000, 0.1, ())
    rows = {p.name: p for p in pattern_facts(replace(cris, sample=sample), LIBRARIES)}[
        "line along 3"
    ]
    assert rows.read_s == pytest.approx(0.1)
    assert [each.total_s for each in rows.survival] == pytest.approx([0.1 * 15 * 1080, 1.5, 1.5])
    # chunkwise decodes at another speed, which this sample does not tell.
    here = survival(
        replace(cris, sample=sample), Pattern("", rows.block), reader("chunkwise"), 3.1e7
    )
    assert (here.decodes, here.total_s) == (1, None)


def test_unfiltered_chunks_that_do_not_fit_are_not_read_whole() -> None:
    facts = facts_of((60, 30, 9, 717), (4, 30, 9, 717))
    # Paper 004, Recommendations: without compression only what is selected is read then.
    assert survival(facts, Pattern("", (1, 1, 1, 717)), LIBHDF5_1).decodes == 1
    assert survival(facts, Pattern("", (1, 1, 1, 717)), LIBHDF5_2).decodes == 1


def test_collisions_count_as_lost() -> None:
    # A line along 0 has 1024 chunks of 1 KiB: they fit 1 MiB, and not 521 slots.
    facts = facts_of((1024, 1024), (1, 1024), dtype="u1")
    found = survival(facts, Pattern("", (1024, 1)), LIBHDF5_1)
    assert found.collisions == found.reloads == 2 * (1024 - 521)
    assert found.decodes == pytest.approx(1 + found.collisions / 1024 * 1023)
    assert survival(facts, Pattern("", (1024, 1)), LIBHDF5_2).decodes == 1


def test_small_ranks() -> None:
    line = facts_of((5000,), (100,))
    assert dict(blocks(line)) == {"piece": (1024,), "chunk": (100,), "all": (5000,)}
    assert dict(blocks(facts_of((3, 1, 4), (3, 1, 2)))) == {
        "line along 0": (3, 1, 1),
        "line along 2": (1, 1, 4),
        "chunk": (3, 1, 2),
        "all": (3, 1, 4),
    }
    assert row(facts_of((3, 1, 4), None)) == (1, 1, 4)
    assert row(facts_of((3, 4, 1), None)) == (1, 4, 1)


def test_datasets_without_patterns(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = [
            file.create_dataset("scalar", data=1),
            file.create_dataset("null", data=h5py.Empty("f4")),
            file.create_dataset("empty", (0, 3), "f4", chunks=(1, 3), maxshape=(None, 3)),
            file.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype()),
            file.create_dataset("raw", (100,), "i4", external=[("raw.bin", 0, 400)]),
        ]
        for dataset in made:
            assert pattern_facts(dataset_facts(dataset.id), LIBRARIES) == (), dataset.name


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4))
def test_pieces_are_the_runs_of_a_contiguous_dataset(axes: list[tuple[int, int]]) -> None:
    shape = tuple(n for n, _ in axes)
    block = tuple(min(b, n) for n, b in axes)
    taken = np.zeros(shape, bool)
    taken[tuple(slice(b) for b in block)] = True
    starts = np.flatnonzero(np.diff(taken.ravel().astype(int), prepend=0) == 1)
    # Blocks that fill a dimension may meet the next one's: runs are then longer.
    assert len(starts) <= pieces(shape, block)
    partial = [d for d in range(len(shape)) if block[d] < shape[d]]
    if partial:
        assert pieces(shape, block) == math.prod(block[: partial[-1]]) == len(starts)
