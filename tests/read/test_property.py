"""Whatever the shape, chunks, filters, type and index: do h5py and we read the same?"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from tests.support.filtered import values
from tests.support.reading import by_libhdf5, same

DTYPES = ["u1", ">i2", "<i4", ">f4", "<f8", "<c16", "S3", "V5", "?", ("<i2", (3,))]
RECORD = np.dtype([("a", "<i2"), ("b", ">f4")])

SLOW = settings(derandomize=True)


Box = tuple[slice, ...]


@dataclass(frozen=True)
class Spec:
    """A dataset to be written; printed by Hypothesis when an example fails."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    maxshape: tuple[int | None, ...] | None
    dtype: Any
    filters: dict[str, Any]
    fill: bool
    written: list[Box]
    user_block: int
    libver: str
    resized: tuple[int, ...] | None
    seed: int = field(default=0)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    rank = draw(st.integers(1, 5))
    most = {1: 60, 2: 25, 3: 12, 4: 7, 5: 5}[rank]
    shape = draw(st.tuples(*[st.integers(0, most)] * rank))
    chunked = draw(st.integers(0, 4)) > 0
    libver = draw(st.sampled_from(["earliest", "latest"]))
    chunks = maxshape = resized = None
    filters: dict[str, Any] = {}
    if chunked:
        maxshape = tuple(draw(st.sampled_from([None, size + 3, max(size, 1)])) for size in shape)
        # h5py refuses a chunk larger than a dimension that cannot grow to hold it.
        chunks = tuple(
            draw(st.integers(1, most + 4 if limit is None else limit)) for limit in maxshape
        )
        if draw(st.booleans()):
            filters["shuffle"] = True
        if draw(st.booleans()):
            filters["compression"] = draw(st.sampled_from([1, 6]))
        if draw(st.booleans()):
            filters["fletcher32"] = True
        if draw(st.integers(0, 3)) == 0:
            resized = tuple(
                draw(st.integers(0, size + 3 if limit is None else limit))
                for size, limit in zip(shape, maxshape, strict=True)
            )
    written: list[Box] = [()]
    if draw(st.booleans()):
        written = draw(st.lists(boxes(shape), max_size=3))
    return Spec(
        shape,
        chunks,
        maxshape,
        draw(st.sampled_from([*DTYPES, RECORD])),
        filters,
        draw(st.booleans()),
        written,
        draw(st.sampled_from([0, 0, 512, 2048])),
        libver,
        resized,
        draw(st.integers(0, 1000)),
    )


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[slice, ...]:
    ends = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    return tuple(slice(low, high) for low, high in ends)


@st.composite
def hyperslabs(draw: st.DrawFn, shape: tuple[int, ...]) -> chunkwise.Hyperslab:
    axes = []
    for size in shape:
        start = draw(st.integers(0, size))
        block = draw(st.integers(0, size - start))
        stride = draw(st.integers(max(block, 1), max(block, 1) + 4))
        most = (size - start - block) // stride + 1
        axes.append((start, draw(st.integers(0, most)), stride, block))
    start_, count, stride_, block_ = zip(*axes, strict=True)
    return chunkwise.hyperslab(start_, count, stride_, block_)


def write(path: Path, spec: Spec) -> None:
    dtype = np.dtype(spec.dtype)
    more: dict[str, Any] = {}
    if spec.fill and dtype.kind in "uif":
        more["fillvalue"] = 7
    # A new file each time, whoever still holds a lock on the old one.
    path.unlink(missing_ok=True)
    with h5py.File(path, "w", libver=spec.libver, userblock_size=spec.user_block) as f:
        d = f.create_dataset(
            "d",
            spec.shape,
            spec.dtype,
            chunks=spec.chunks,
            maxshape=spec.maxshape,
            **spec.filters,
            **more,
        )
        whole = values(dtype, spec.shape, "few", spec.seed)
        for box in spec.written:
            if whole[box].size:
                d[box] = whole[box]
        if spec.resized is not None:
            d.resize(spec.resized)


@contextmanager
def written(folder: Path, spec: Spec) -> Iterator[tuple[h5py.Dataset, chunkwise.Dataset]]:
    path = folder / "d.h5"
    write(path, spec)
    with h5py.File(path) as f:
        yield f["d"], chunkwise.wrap(f["d"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("property")


@SLOW
@given(data=st.data())
@pytest.mark.slow
def test_any_hyperslab_reads_as_libhdf5_and_numpy_do(folder: Path, data: st.DataObject) -> None:
    spec = data.draw(specs())
    with written(folder, spec) as (theirs, ours):
        whole = theirs[...]
        for _ in range(5):
            selection = data.draw(hyperslabs(theirs.shape))
            got = ours.read(selection)
            start, stride, count, block = selection.parts
            select = methodcaller("select_hyperslab", start, count, stride, block)
            assert same(got, by_libhdf5(theirs, select, *selection.shape)), selection
            assert same(got, by_numpy(whole, selection)), selection
            out = np.full(selection.shape + theirs.dtype.shape, 1, theirs.dtype.base)
            assert ours.read(selection, out=out) is out
            assert same(out, got), selection
            figures = ours.explain(selection)
            assert figures["selected_nbytes"] == got.nbytes


def by_numpy(whole: Any, selection: chunkwise.Hyperslab) -> Any:
    lists = [
        [start + i * stride + j for i, j in itertools.product(range(count), range(block))]
        for start, stride, count, block in zip(*selection.parts, strict=True)
    ]
    return whole[np.ix_(*[np.array(each, "i8") for each in lists])]
