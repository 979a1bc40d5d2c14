"""Do patched reads into other types and into arrays of the caller's do as libhdf5 does?"""

from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import assert_same_outcome, bound_always
from tests.support.patched_file import SHAPE, into, item, of, path
from tests.support.versions import H5PY

__all__ = ["bound_always", "path"]
pytestmark = pytest.mark.usefixtures("bound_always")

WANTED = ["i1", "<i2", ">i4", "i8", "u1", "u8", "<f4", ">f4", "<f8", "f2", "c16", "S3", "?"]


@pytest.mark.parametrize("name", ["f4", "f8", "f4be", "i2be", "i4", "u4", "u8", "bool", "enum"])
@pytest.mark.slow
def test_conversions_are_those_of_libhdf5(path: Path, name: str) -> None:
    for wanted in WANTED:
        for index in (..., 3, (1, 2, 3), np.s_[2:7, 1:, ::3], np.s_[5:5], [1, 4], 99):
            assert_same_outcome(path, partial(item, name, index, wanted), (wanted, index))
        for read in (view_as_array, into):
            assert_same_outcome(path, partial(of, name, read, SHAPE, wanted), wanted)


def view_as_array(dataset: Any, _: Any, dtype: Any) -> Any:
    return np.asarray(dataset.astype(dtype))


TRANSFERS: list[Any] = [
    (SHAPE, None, None),
    ((20, 9, 10), None, np.s_[3:15]),
    ((12,), np.s_[:, 1, 2], None),
    ((30,), np.s_[:, 1, 2], np.s_[4:28:2]),
    ((3, 4), np.s_[2, 3, 4], np.s_[1, 2]),
    ((9, 10), 3, ...),
    ((1, 9, 10), 3, None),
    ((9, 1), np.s_[3, :, 1], None),
    ((9,), np.s_[3, :, 1:2], None),
    ((24, 9, 10), None, None),
    ((2, 9, 10), 3, None),
    ((7,), np.s_[:, 1, 2], None),
    ((12,), np.s_[:, 1, 2], np.s_[5:99]),
    ((9, 10), 99, None),
    ((9, 10), 3, 99),
    ((9, 10), np.s_[::-1], None),
    ((3, 9, 10), [1, 4, 5], None),
    ((3, 9, 10), np.s_[1:4], [0, 1, 2]),
    ((0, 9, 10), np.s_[4:4], None),
]
if H5PY < (3, 12):  # which divides by the number of elements
    TRANSFERS.pop()


@pytest.mark.parametrize("dtype", ["<i4", "<i8", ">i4", "<f4", "i1"])
@pytest.mark.parametrize("name", ["i4", "contiguous", "zfp", "virtual", "filled", "unfilled"])
def test_read_direct(path: Path, name: str, dtype: str) -> None:
    for shape, source, target in TRANSFERS:
        transfer = (shape, dtype, source, target)
        assert_same_outcome(path, partial(of, name, into, *transfer), transfer)


def unusual(kind: str) -> Any:
    dest = np.ones(SHAPE, "i4")
    match kind:
        case "Fortran order":
            return np.asfortranarray(dest)
        case "read-only":
            dest.flags.writeable = False
        case "strided":
            return np.ones((24, 9, 10), "i4")[::2]
        case "list":
            return dest.tolist()
        case "unaligned":
            return np.ones(4 * dest.size + 1, "i1")[1:].view("i4").reshape(SHAPE)
        case "subclass":
            return dest.view(np.recarray)
    return dest


KINDS = ["Fortran order", "read-only", "strided", "list", "unaligned", "subclass"]


@pytest.mark.parametrize("kind", KINDS)
def test_read_direct_into_unusual_arrays(path: Path, kind: str) -> None:
    def read(f: h5py.File) -> Any:
        dest = unusual(kind)
        f["i4"].read_direct(dest)
        return np.array(dest)

    assert_same_outcome(path, read)


def test_large_conversions_are_cut_along_chunks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nbytes in (1, 100, 1000):
        monkeypatch.setattr("chunkwise.routing.transfers._PIECE_NBYTES", nbytes)
        for index in (..., np.s_[2:11:2, 1:8, 3], np.s_[::7, ::2, ::5], (1, 2, 3)):
            for name in ("i4", "contiguous"):
                assert_same_outcome(path, partial(item, name, index, "f8"), index)
        for wanted in ("i4", "f8", ">i2"):
            strided = partial(of, "i4", into, (24, 9, 10), wanted, None, np.s_[::2])
            assert_same_outcome(path, strided, wanted)
        # Without chunks that are decoded before anybody asks.
        quiet = chunkwise.settings(prefetch_nbytes=0)
        with quiet, h5py.File(path) as f, chunkwise.patch_h5py():
            before = chunkwise.cache_stats()["decoded"]
            f["i4"].read_direct(np.zeros((24, 9, 10)), None, np.s_[::2])
            decoded = chunkwise.cache_stats()["decoded"] - before
        assert decoded == 3 * 3 * 4
