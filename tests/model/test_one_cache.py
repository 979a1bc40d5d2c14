"""Do inspect, bench, advise and trace name the same chunk cache for the same reads?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.advice.api import advise
from chunkwise.inspection import inspect
from chunkwise.measure import explain
from chunkwise.measure.planning import trial_of
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.target import look
from chunkwise.model.cost import Stored
from chunkwise.model.held import MIB, suited
from chunkwise.model.readers import LIBHDF5_1
from chunkwise.model.traffic import Pattern
from chunkwise.patterns import parse
from chunkwise.running import finding
from chunkwise.running.trace import Decoded
from chunkwise.trials.trial import Measurement
from tests.advising.conftest import known_machine
from tests.support.traces import dataset, walk

__all__ = ["known_machine"]

# Shape, chunks, what is done in order, and the MiB that hold what each read comes back to.
WALKS = [
    ((16, 30, 9, 717), (2, 30, 9, 717), (1, 1, 1, 717), 3),
    pytest.param((2, 1200, 1100), (1, 1200, 1100), (1, 1, 1100), 11, marks=pytest.mark.slow),
    pytest.param((120, 150, 150), (1, 150, 150), (120, 1, 1), 21, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("shape", "chunks", "block", "mib"), WALKS)
def test_four_name_one_cache(
    tmp_path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    block: tuple[int, ...],
    mib: int,
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(0).integers(0, 9, shape).astype("f8")
        file.create_dataset("x", data=values, chunks=chunks, compression=1)
    text = "x".join(map(str, block)) + "@walk"
    who = LIBHDF5_1.name

    (inspected,) = {
        size
        for one in inspect(path, access=(text,), readers=(who,)).findings
        if one.code in ("chunk-exceeds-cache", "reads-exceed-cache")
        for size in named(fix.text for fix in one.fixes if not fix.writing)
    }

    target, access = look(path, "x"), parse(text, shape, 8, "/x")
    trial = trial_of(target, access, "h5py", cache_nbytes=LIBHDF5_1.cache_nbytes)
    measured = Measurement(
        trial, "ok", operations=1, total_operations=access.walk(shape).operations,
        total_s=99.0, actual_cache_nslots=521, actual_cache_nbytes=LIBHDF5_1.cache_nbytes,
    )  # fmt: skip
    said = explain(Results(target, (Cell(access, trial, (measured,)),), 30.0, 1.0))
    (explained,) = named([said.fix or ""] if said else [])

    cache = advise(path, "x", (text,), reader=who, budget_s=0.5).cache
    advised = None if cache is None else cache.nbytes

    traced = {}
    for operation in ("read", "write"):
        number = int(np.prod([-(-n // b) for n, b in zip(shape, block, strict=True)]))
        one = dataset(
            shape, chunks, [walk((0,) * len(shape), block, number, ordered=True)],
            operation=operation, file=str(path), dataset="/x", seconds=99.0, cache_nslots=521,
            cache_nbytes=LIBHDF5_1.cache_nbytes, hdf5="1.10.8", chunks=4, loaded=9999,
            touched=9999, filters=(Decoded("deflate", 9999, 90.0),),
        )  # fmt: skip
        found = finding.worst(one)
        assert found is not None
        if found.code == "access-mismatch":
            continue  # other chunks come first
        (traced[operation],) = named([found.line, *(lines for _, lines in found.in_program)])

    assert {inspected, explained, advised, *traced.values()} == {mib * MIB}


def named(lines: Iterable[str]) -> set[int]:
    """Read the bytes of the caches that lines in Python or C set."""
    found = set()
    for line in lines:
        in_python = re.search(r"rdcc_nbytes=(\d+)(?: \* 2\*\*(\d+))?", line)
        in_c = re.search(r"H5Pset_chunk_cache\(dapl, \d+, (\d+)", line)
        if in_python:
            found.add(int(in_python[1]) << int(in_python[2] or 0))
        elif in_c:
            found.add(int(in_c[1]))
    return found


def test_what_no_cache_helps_gets_none() -> None:
    planes = Pattern("planes", (1, 600, 600))
    one_by_one = Stored((730, 600, 600), (1, 600, 600), 4)
    # Each chunk is one read; or no cache of 512 MiB holds the thousand MiB of a line's chunks.
    assert suited(one_by_one, (planes,), (LIBHDF5_1,)) is None
    assert suited(one_by_one, (Pattern("lines", (730, 1, 1)),), (LIBHDF5_1,)) is None
