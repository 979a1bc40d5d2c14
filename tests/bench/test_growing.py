"""Do appends and updates leave what a program leaves that grows, or changes, its data?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.measure.planning import trial_of
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.patterns import parse
from chunkwise.trials.readers import READERS
from chunkwise.trials.trial import Operation, Trial

IN_PYTHON = ("h5py", "chunkwise-py")


def made(folder: Path, shape: tuple[int, ...], chunks: tuple[int, ...], kind: str) -> Path:
    rng = np.random.default_rng(0)
    path = folder / "old.h5"
    with h5py.File(path, "w") as file:
        # As many different sizes of chunks as there are chunks.
        values = (rng.random(shape) * np.linspace(1, 30, math.prod(shape)).reshape(shape)) // 1
        file.create_dataset("g/x", data=values.astype(kind), chunks=chunks, compression=1)
    return path


def done(path: Path, operation: Operation, access: str, reader: str, **bounds: float) -> Path:
    """Carry out a trial in this process, and return the file that it leaves."""
    target = look(path, "g/x")
    with h5py.File(path) as file:
        data = path.parent / "elements"
        np.asarray(file["g/x"][...]).tofile(data)
    trial: Trial = trial_of(
        target, parse(access, target.shape, target.itemsize, target.where), reader,
        operation=operation, data=str(data), max_seconds=bounds.get("max_seconds", 100.0),
    )  # fmt: skip
    new = path.parent / f"new-{operation}-{reader}.h5"
    result, _ = READERS[reader].writer()(trial, trial.pattern.walk(trial.shape), str(new))
    assert result["operations"] > 0
    return new


SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 7), st.integers(1, 5))


@settings(max_examples=40, deadline=None)
@given(
    shape=SHAPES,
    data=st.data(),
    kind=st.sampled_from(["<f4", ">i2", "u1", "<c8"]),
    reader=st.sampled_from(IN_PYTHON),
)
def test_every_element_is_appended_and_updated(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, ...],
    data: st.DataObject,
    kind: str,
    reader: str,
) -> None:
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    block = "x".join(str(data.draw(st.integers(1, n))) for n in shape)
    path = made(tmp_path_factory.mktemp("grow"), shape, chunks, kind)
    with h5py.File(path) as file:
        values = file["g/x"][...]
    with h5py.File(done(path, "append", block, reader)) as file:
        assert file["g/x"].maxshape[0] is None
        assert file["g/x"].chunks == chunks
        assert np.array_equal(file["g/x"][...], values)
    with h5py.File(done(path, "update", block, reader)) as file:
        assert np.array_equal(file["g/x"][...], values[::-1, ::-1, ::-1])
    with h5py.File(path) as file:  # a copy was updated
        assert np.array_equal(file["g/x"][...], values)


@pytest.mark.parametrize("reader", IN_PYTHON)
def test_what_is_not_updated_stays(tmp_path: Path, reader: str) -> None:
    path = made(tmp_path, (20, 10), (4, 5), "<i4")
    with h5py.File(path) as file:
        values = file["g/x"][...]
    with h5py.File(done(path, "update", "random:7:1x3", reader)) as file:
        found = file["g/x"][...]
    changed = found != values
    assert 0 < changed.sum() <= 21
    assert np.array_equal(found[changed], values[::-1, ::-1][changed])


@pytest.mark.parametrize("reader", IN_PYTHON)
def test_an_append_that_ends_early_leaves_what_it_wrote(tmp_path: Path, reader: str) -> None:
    path = made(tmp_path, (400, 10), (4, 5), "<i4")
    with h5py.File(path) as file:
        values = file["g/x"][...]
    with h5py.File(done(path, "append", "1x10", reader, max_seconds=1e-9)) as file:
        found = file["g/x"][...]
    assert 0 < len(found) < 400
    assert np.array_equal(found, values[: len(found)])


def test_a_run_tells_how_far_files_grew_and_leaves_nothing(tmp_path: Path) -> None:
    path = made(tmp_path, (60, 40, 30), (10, 10, 10), "<f4")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    space = Space.of(
        operation=["write", "append", "update"], access=["1x40x30", "random:50:1x1x5"],
        reader=["h5py"], cache=["0", "8MiB"],
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"does not go through .* in C order"):
        measure.run(path, "g/x", space, repeat=1, seconds=4, scratch=str(scratch))
    space = replace(space, axes={**space.axes, "operation": ("update",)})
    results = measure.run(
        path, "g/x", space, repeat=1, seconds=60, trial_seconds=20, scratch=str(scratch)
    )
    assert list(scratch.iterdir()) == []
    rows = {(row["access"], row["cache"]): row for row in results.summary()}
    assert {row["status"] for row in rows.values()} == {"ok"}, [r["error"] for r in rows.values()]
    for row in rows.values():
        assert row["file_before_nbytes"] > 0
        assert row["file_nbytes"] >= row["file_before_nbytes"]
    # Without a cache each write of a step encodes its chunks, ten times each.
    once, again = rows["1x40x30", "8MiB"], rows["1x40x30", "0"]
    encoded = {r["cache_nbytes"]: r["time_chunks_encoded"] for r in results.records
               if r["access"] == "1x40x30"}  # fmt: skip
    assert not once["extrapolated"]
    assert not again["extrapolated"]
    assert encoded == {8 << 20: 72, 0: 720}
    assert results.mismatches == []


@pytest.mark.parametrize("operation", ["append", "update"])
@pytest.mark.parametrize("reader", ["libhdf5", "netcdf4", "chunkwise"])
def test_readers_that_cannot_are_refused(tmp_path: Path, operation: str, reader: str) -> None:
    path = made(tmp_path, (6, 4), (2, 2), "<i4")
    space = Space.of(operation=[operation], access=["1x4"], reader=[reader])
    with pytest.raises(UsageError, match=f"and not by {reader}: leave {reader} out"):
        measure.run(path, "g/x", space, repeat=1, seconds=2)


def test_what_has_no_chunks_does_not_grow(tmp_path: Path) -> None:
    path = made(tmp_path, (6, 4), (2, 2), "<i4")
    space = Space.of(
        operation=["append"],
        access=["1x4"],
        reader=["h5py"],
        chunk=["contiguous"],
        filter=["none"],
    )
    with pytest.raises(UsageError, match="only data in chunks grows"):
        measure.run(path, "g/x", space, repeat=1, seconds=2)
