"""Are the figures of `explain()` those of h5py's own chunk list?"""

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import SelectionError
from tests.support.reading import LEFT_TO_LIBHDF5, random_index

SHAPE, CHUNK = (23, 31), (5, 7)
FILTERS: dict[str, dict[str, Any]] = {
    "deflate": {"compression": 4},
    "shuffle+deflate": {"compression": 1, "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "zfp": LEFT_TO_LIBHDF5,
    "none": {},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain") / "explain.h5"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w", userblock_size=1024) as f:
        for name, filters in FILTERS.items():
            d = f.create_dataset(name, SHAPE, "f4", chunks=CHUNK, maxshape=(None, None), **filters)
            d[3:19, 9:] = rng.integers(0, 30, (16, 22))
        f.create_dataset("contiguous", data=rng.normal(size=SHAPE))
        f.create_dataset("never", SHAPE, "f4")
        f.create_dataset("scalar", data=1.0)
        f.create_dataset("null", data=h5py.Empty("f4"))
        f.create_dataset("empty", (0, 4), "f4", chunks=(2, 2), maxshape=(None, 4))
    return path


def wanted(selection: Any, d: h5py.Dataset) -> dict[tuple[int, ...], int]:
    """The chunks touched, by their first element, and how many elements of each."""
    marked = np.zeros(d.shape, "u1")
    marked[selection] = 1
    found = {}
    for origin in itertools.product(
        *[range(0, size, chunk) for size, chunk in zip(d.shape, d.chunks, strict=True)]
    ):
        box = tuple(slice(o, o + c) for o, c in zip(origin, d.chunks, strict=True))
        if count := int(marked[box].sum()):
            found[origin] = count
    return found


@pytest.mark.parametrize("name", FILTERS)
def test_figures_of_chunked_datasets(path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    with h5py.File(path) as f:
        d = f[name]
        infos = [d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks())]
        stored = {info.chunk_offset: info.size for info in infos}
        ours = chunkwise.wrap(d)
        for index in [..., *(random_index(rng, SHAPE) for _ in range(40))]:
            plan, touched = ours.explain(index), wanted(index, d)
            present = [origin for origin in touched if origin in stored]
            selected = sum(touched.values()) * d.dtype.itemsize
            assert plan["chunks"] == len(touched)
            assert plan["selected_nbytes"] == selected
            if name == "zfp":
                assert plan["path"] == "libhdf5"
                assert "filter 32013 (" in str(plan["reason"])
                assert plan["missing_chunks"] is None
                assert plan["stored_nbytes"] is None
                assert plan["threads"] == 1
                decoded = len(touched) * int(np.prod(CHUNK)) * 4
            else:
                assert plan["path"] == "chunked"
                assert plan["reason"] is None
                assert plan["missing_chunks"] == len(touched) - len(present)
                assert plan["threads"] == chunkwise.settings().threads
                if name == "none":
                    # Only the bytes wanted are read from chunks that have no filters.
                    decoded = sum(touched[origin] for origin in present) * 4
                    assert plan["stored_nbytes"] == decoded
                else:
                    decoded = len(present) * int(np.prod(CHUNK)) * 4
                    assert plan["stored_nbytes"] == sum(stored[origin] for origin in present)
            assert plan["decoded_nbytes"] == decoded
            if selected:
                assert plan["amplification"] == pytest.approx(decoded / selected)
            else:
                assert plan["amplification"] is None


def test_a_row_through_one_column_of_chunks(path: Path) -> None:
    with chunkwise.open(path) as f:
        d = f["deflate"]
        plan = d.explain(chunkwise.hyperslab((5, 10), (1, 4)))
        assert (plan["chunks"], plan["missing_chunks"]) == (1, 0)
        assert plan["amplification"] == 5 * 7 / 4
        assert d.explain(np.s_[5, 10:14]) == plan


def test_figures_without_chunks(path: Path) -> None:
    with h5py.File(path) as f:
        plan = chunkwise.wrap(f["contiguous"]).explain(np.s_[2, 3:13])
        assert plan["path"] == "contiguous"
        assert (plan["chunks"], plan["missing_chunks"]) == (0, 0)
        assert plan["stored_nbytes"] == plan["decoded_nbytes"] == plan["selected_nbytes"] == 80
        assert plan["amplification"] == 1
        for name in ("scalar", "null"):
            plan = chunkwise.wrap(f[name]).explain()
            assert plan["path"] == "libhdf5"
            assert name in str(plan["reason"])
            assert plan["chunks"] is None
        empty = chunkwise.wrap(f["empty"]).explain()
        assert (empty["path"], empty["chunks"], empty["selected_nbytes"]) == ("chunked", 0, 0)
        assert empty["amplification"] is None


def test_lists_masks_and_backward_slices(path: Path) -> None:
    rng = np.random.default_rng(2)
    rows, columns = [7, 1, 12], [30, 2, 3]
    with h5py.File(path) as f:
        d = f["deflate"]
        for ours in (chunkwise.wrap(d), chunkwise.wrap(f["zfp"])):
            mask = rng.random(SHAPE) < 0.02
            for index, same in (
                (rows, np.array(rows)),
                ((rows, slice(20, None, -3)), np.ix_(rows, range(20, -1, -3))),
                ((rows, columns), np.ix_(rows, columns)),
                (mask, mask),
                (mask[:, 0], mask[:, 0]),
            ):
                plan = ours.explain(index)
                touched = wanted(same, d)
                assert plan["chunks"] == len(touched)
                assert plan["selected_nbytes"] == sum(touched.values()) * 4
            plan = ours.vindex.explain((rows, columns))
            assert (plan["chunks"], plan["selected_nbytes"]) == (3, 12)
            assert ours.explain(chunkwise.points([(7, 30), (1, 2), (12, 3)])) == plan
            # Repeated elements are asked for each time, and decoded once.
            assert ours.explain([3] * 4)["selected_nbytes"] == 4 * SHAPE[1] * 4


def test_an_index_left_to_h5py(path: Path) -> None:
    with h5py.File(path) as f:
        plan = chunkwise.wrap(f["deflate"]).explain(h5py.MultiBlockSlice(count=2, stride=3))
        assert plan["path"] == "libhdf5"
        assert "left to h5py" in str(plan["reason"])


@pytest.mark.parametrize("name", ["deflate", "contiguous", "zfp"])
def test_what_does_not_fit_is_not_explained(path: Path, name: str) -> None:
    with h5py.File(path) as f:
        d = chunkwise.wrap(f[name])
        for selection in (
            chunkwise.hyperslab(0, 1),
            chunkwise.hyperslab((20, 0), (4, 1)),
            (0, 0, 0),
            99,
            slice(None, None, 0),
            [0, 23],
            np.ones((23, 30), bool),
            chunkwise.points([(23, 0)]),
        ):
            with pytest.raises(SelectionError, match=f"dataset /{name}"):
                d.explain(selection)


def test_explaining_reads_nothing(path: Path) -> None:
    with h5py.File(path) as f:
        d = chunkwise.wrap(f["deflate"])
        before = chunkwise.cache_stats()
        d.explain()
        assert chunkwise.cache_stats() == before
