"""Is the answer right, and one, where chunks reach beyond the array?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.advice import sampling
from chunkwise.grammar import format_shape
from chunkwise.inspection import inspect
from chunkwise.measure.target import look
from chunkwise.model.seconds import Codec, Machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_machine: Path) -> None:
    """Answers of no other test."""
    folder = tmp_path / "cache"
    (folder / "chunkwise").mkdir(parents=True)
    (folder / "chunkwise" / known_machine.name).write_bytes(known_machine.read_bytes())
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def noise(
    path: Path, maxshape: tuple[int | None, ...] = (None, None), filters: str = "deflate:4"
) -> Path:
    """A row of noise in chunks of 300 rows."""
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x",
            data=np.random.default_rng(0).random((1, 1000)),
            chunks=(300, 100),
            maxshape=maxshape,
            compression=4 if filters == "deflate:4" else None,
        )
    return path


@pytest.mark.parametrize("filters", ["none", "deflate:4"])
def test_the_size_that_is_promised_is_what_the_copy_takes(tmp_path: Path, filters: str) -> None:
    path = noise(tmp_path / "a.h5", filters=filters)
    advice = chunkwise.advise(path, "x", ["all"], budget_s=0.2)
    assert not advice.leave
    chunkwise.repack(
        path, tmp_path / "b.h5", chunk=advice.best.chunks, filters=advice.best.filters
    )
    stored = look(tmp_path / "b.h5", "x").stored_nbytes
    assert advice.best_nbytes == pytest.approx(stored, rel=0.1)


def test_what_chunks_have_beyond_the_array_is_no_sample(tmp_path: Path) -> None:
    with h5py.File(noise(tmp_path / "a.h5")) as file:
        taken = sampling.take(
            file["x"], ["deflate:1"], [(300, 100), (1, 1000)], Machine({}, {}), str(tmp_path),
            deadline=float("inf"),
        )  # fmt: skip
    assert [shape for shape, _ in taken.codecs["deflate:1"].ratios] == [(1, 100), (1, 1000)]
    assert taken.codecs["deflate:1"].ratio((300, 100)) > 0.8


@pytest.mark.parametrize("extent", [300, 280, 100])
def test_sizes_are_corrected_by_what_the_chunks_hold(tmp_path: Path, extent: int) -> None:
    """Little beyond the array counts for nothing; of much nothing can be told."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = np.random.default_rng(0).random((extent, 1000))
        file.create_dataset(
            "x", data=data, chunks=(300, 100), compression=1, maxshape=(None, 1000)
        )
    target = look(tmp_path / "a.h5", "x")
    ratio = target.stored_nbytes / target.nbytes
    codecs = {name: Codec(name, (((), ratio),)) for name in ("deflate:1", "lzf")}
    found = sampling.corrected(codecs, target)
    assert found["lzf"].ratio((1, 1)) == pytest.approx(ratio, rel=0.01)


# --- one answer --------------------------------------------------------------------------


@pytest.mark.parametrize("maxshape", [(None, None), (None, 1000), (300, 1000)])
@pytest.mark.parametrize(("access", "chunks"), [("all", "1x1000"), ("1x500", None)])
def test_all_say_the_same(
    tmp_path: Path, maxshape: tuple[int | None, ...], access: str, chunks: str | None
) -> None:
    path = noise(tmp_path / "a.h5", maxshape)
    found = {
        str(one.evidence["offered_chunks"])
        for one in inspect(path, access=[access]).findings
        if "offered_chunks" in one.evidence
    }
    fixed = chunkwise.fix(path, access=[access], dry_run=True)
    found |= {format_shape(one.chunk) for one in fixed.changes if one.chunk}
    (step,) = chunkwise.plan_repack(path, chunk="auto", access=[access]).steps
    assert step.wanted.chunk is not None
    found.add(format_shape(step.wanted.chunk))
    found.add(format_shape(chunkwise.advise(path, "x", [access], budget_s=0.2).best.chunks or ()))
    assert len(found) == 1
    if chunks is not None:
        assert found == {chunks}
    pairs = zip(step.wanted.chunk, maxshape, strict=True)
    assert all(most is None or side <= most for side, most in pairs)
