"""Is what is found about a traced program found for its own HDF5, with lines for its language?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.running import finding, render
from chunkwise.running.trace import Decoded, Trace, TracedDataset
from tests.support.golden import assert_golden, steady
from tests.support.traces import dataset, walk

MIB = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "rows.h5"
    values = np.random.default_rng(0).normal(size=(1, 512, 512)).round(2)
    with h5py.File(found, "w") as file:
        file.create_dataset("t", data=values, chunks=(1, 512, 512), compression=1)
    return found


def traced(path: Path, cache_nbytes: int, version: str, operation: str = "read") -> TracedDataset:
    """Rows of one chunk of 2 MiB, as a program reads or writes them."""
    return dataset(
        (1, 512, 512), (1, 512, 512), [walk((0, 0, 0), (1, 1, 512), 512, ordered=True)],
        operation=operation, file=str(path), dataset="/t", seconds=5.0, cache_nslots=521,
        cache_nbytes=cache_nbytes, hdf5=version, chunks=1, loaded=512, touched=512,
        filters=(Decoded("deflate", 512, 4.6),),
    )  # fmt: skip


def test_it_names_the_programs_own_hdf5(path: Path) -> None:
    found = finding.worst(traced(path, MIB, "1.10.8"))
    assert found is not None
    assert "this program's HDF5 1.10.8 (1.0 MiB)" in found.summary
    assert h5py.version.hdf5_version not in found.summary
    # A program whose cache holds the chunk has no such finding, whatever library is here.
    other = finding.worst(traced(path, 4 * MIB, "1.10.8"))
    assert other is None or other.code != "chunk-exceeds-cache"


@pytest.mark.parametrize("operation", ["read", "write"])
def test_it_gives_the_lines_of_each_language_and_the_gain(
    path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    one = traced(Path(path.name), MIB, "1.10.8", operation)
    found = finding.worst(one)
    assert found is not None
    texts = dict(
        [*found.in_program, ("C", found.line)] if operation == "write" else found.in_program
    )
    assert "H5Pset_chunk_cache(dapl, " in texts["C"]
    assert "call h5pset_chunk_cache_f(dapl, " in texts["Fortran"]
    assert f"these {operation}s take about" in found.gain
    assert "in place of 5.00 s" in found.gain
    told = "\n".join(render.lines(Trace([one], {1: "program"}), found))
    page = "trace" if operation == "read" else "trace-of-writes"
    assert_golden(page, steady(told.replace("_size_t", " _size_t"), numbers=True))
