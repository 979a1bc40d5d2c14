"""A union of hyperslabs reads as libhdf5 and NumPy read it, whatever the layout."""

from pathlib import Path
from time import perf_counter_ns
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5s
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise import _lib, _native
from chunkwise.errors import SelectionError
from chunkwise.selecting import lowlevel
from chunkwise.trials.unions import Laps, read_by_chunkwise, read_by_h5py, union_of
from tests.read.test_property import SLOW, hyperslabs, specs, written
from tests.support.reading import by_libhdf5, same


def mask_of(shape: tuple[int, ...], selection: chunkwise.Hyperslab | chunkwise.Union) -> Any:
    mask = np.zeros(shape, bool)
    for one in selection.hyperslabs:
        lists = [
            [start + i * stride + j for i in range(count) for j in range(block)]
            for start, stride, count, block in zip(*one.parts, strict=True)
        ]
        mask[np.ix_(*[np.array(each, "i8") for each in lists])] = True
    return mask


def low_level(dataset: h5py.Dataset, union: chunkwise.Union) -> Any:
    """What H5Sselect_hyperslab with H5S_SELECT_OR and H5Dread give."""

    def select(space: Any) -> None:
        space.select_none()
        for start, stride, count, block in union.parts:
            space.select_hyperslab(start, count, stride, block, op=h5s.SELECT_OR)

    return by_libhdf5(dataset, select)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unions")


@SLOW
@given(data=st.data())
@pytest.mark.slow
def test_any_union_reads_as_libhdf5_and_numpy_do(folder: Path, data: st.DataObject) -> None:
    spec = data.draw(specs())
    with written(folder, spec) as (theirs, ours):
        whole = theirs[...]
        for _ in range(4):
            slabs = data.draw(st.lists(hyperslabs(theirs.shape), max_size=5))
            union = chunkwise.union(slabs)
            got = ours.read(union)
            assert got.shape == union.shape + theirs.dtype.shape
            assert same(got, low_level(theirs, union)), union
            assert same(got, whole[mask_of(theirs.shape, union)]), union
            assert same(got, read_by_h5py(theirs, union, Laps(perf_counter_ns)))
            assert same(got, lowlevel.read(theirs, union.resolve(theirs.shape)))
            out = np.full(union.shape + theirs.dtype.shape, 1, theirs.dtype.base)
            assert ours.read(union, out=out) is out
            assert same(out, got), union
            figures = ours.explain(union)
            assert figures["selected_nbytes"] == got.nbytes


@SLOW
@given(data=st.data())
@pytest.mark.slow
def test_walks_read_the_same_bytes(folder: Path, data: st.DataObject) -> None:
    spec = data.draw(specs())
    with written(folder, spec) as (theirs, ours):
        if ours.explain()["reason"] is not None:
            return
        slabs = st.lists(hyperslabs(theirs.shape), max_size=4)
        unions = data.draw(st.lists(slabs.map(chunkwise.union), min_size=1, max_size=3))
        whole = data.draw(hyperslabs(theirs.shape))
        walk = _native.Walk.listed(theirs.shape, [*(one.parts for one in unions), whole.parts])
        for number, one in enumerate(unions):
            got = read_by_chunkwise(ours, union_of(walk[number]), Laps(perf_counter_ns))
            assert same(got, ours.read(one))
        n = walk.operations
        name = theirs.name
        assert name is not None
        opened = _native.OpenDataset(_lib.library(), theirs.file.filename, name, {})
        by_libhdf5 = opened.walk(walk, n, 1e9)
        by_engine = opened.engine_walk(walk, n, 1e9)
        assert by_engine["checksums"] == by_libhdf5["checksums"]
        assert by_engine["selected_nbytes"] == by_libhdf5["selected_nbytes"]
        crc = 0
        selections: list[chunkwise.Hyperslab | chunkwise.Union] = [*unions, whole]
        for each in selections:
            array = np.ascontiguousarray(ours.read(each))
            crc = _native.crc32(array.reshape(-1).view(np.uint8), crc)
        assert by_engine["checksums"][n] == crc


@SLOW
@given(data=st.data())
def test_selections_combine_as_masks_do(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple))
    some = st.lists(hyperslabs(shape), max_size=4)
    left, right = (chunkwise.union(data.draw(some)) for _ in range(2))
    one = data.draw(hyperslabs(shape))
    for other in (right, one):
        theirs = mask_of(shape, other)
        for us in (left, one):
            ours = mask_of(shape, us)
            for got, wanted in (
                (us | other, ours | theirs),
                (us & other, ours & theirs),
                (us - other, ours & ~theirs),
            ):
                assert np.array_equal(mask_of(shape, got), wanted)
                assert got.shape == (wanted.sum(),)


FULL = chunkwise.hyperslab((0, 0), (4, 6))


def test_wrong_unions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="not int"):
        chunkwise.union([FULL, 3])  # type: ignore[list-item]
    with pytest.raises(SelectionError, match="1 and of 2 dimensions"):
        FULL | chunkwise.hyperslab(0, 1)
    with pytest.raises(SelectionError, match="1 and of 2 dimensions"):
        FULL - chunkwise.hyperslab(0, 1)
    with pytest.raises(TypeError):
        FULL | 3
    with h5py.File(tmp_path / "wrong.h5", "w") as f:
        f["engine"] = np.arange(24).reshape(4, 6)
        f["text"] = np.full((4, 6), "x", object)
        f["scalar"] = 7
    with h5py.File(tmp_path / "wrong.h5") as f:
        for name in ("engine", "text"):
            d = chunkwise.wrap(f[name])
            with pytest.raises(SelectionError, match="ends at 7 in dimension 1"):
                d.read(FULL | chunkwise.hyperslab((0, 1), (1, 6)))
            with pytest.raises(SelectionError, match="1 dimension, the dataset has 2"):
                d.read(chunkwise.union([chunkwise.hyperslab(0, 1)]))
            with pytest.raises(SelectionError, match="shape"):
                d.read(FULL | FULL, out=np.zeros((4, 6), d.dtype))
            assert d.read(chunkwise.union([])).shape == (0,)
            assert d.read(FULL | FULL).shape == (24,)


def test_what_libhdf5_reads_is_read_through_it_and_said_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "text.h5", "w") as f:
        f.create_dataset(
            "text", data=np.array([[b"a", b"b"], [b"c", b"d"]], object), chunks=(1, 2)
        )
        f["scalar"] = 7
    corners = chunkwise.hyperslab((0, 0), (1, 1)) | chunkwise.hyperslab((1, 1), (1, 1))
    with h5py.File(tmp_path / "text.h5") as f:
        d = chunkwise.wrap(f["text"])
        assert d.read(corners).tolist() == [b"a", b"d"]
        plan = d.explain(corners)
        assert (plan["path"], plan["chunks"], plan["reason"]) == ("libhdf5", 2, plan["reason"])
        assert plan["selected_nbytes"] == 2 * d.dtype.itemsize
        scalar = chunkwise.wrap(f["scalar"])
        point = chunkwise.hyperslab((), ())
        assert scalar.read(point | point).tolist() == [7]
        assert scalar.read(chunkwise.union([])).shape == (0,)


def test_a_union_of_many_boxes_touches_few_chunks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 99, (300, 200), "i4")
    with h5py.File(tmp_path / "boxes.h5", "w") as f:
        f.create_dataset("d", data=whole, chunks=(20, 30), compression=1)
    boxes = [chunkwise.hyperslab((i, i // 2), (3, 2)) for i in range(0, 290, 7)]
    union = chunkwise.union(boxes)
    with h5py.File(tmp_path / "boxes.h5") as f:
        d = chunkwise.wrap(f["d"])
        assert same(d.read(union), whole[mask_of(whole.shape, union)])
        plan = d.explain(union)
    touched = {(i // 20, j // 30) for i, j in np.argwhere(mask_of(whole.shape, union))}
    assert plan["chunks"] == len(touched)
    assert plan["path"] == "chunked"
