"""Are chunks that are wanted whole again and again decoded again and again?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise

# Large enough that a part of it is not kept at once.
DATA = np.arange(2048 * 1024, dtype="f4").reshape(2048, 1024)
CHUNKS = 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("d", data=DATA, chunks=(512, 256), compression=1)
    return tmp_path / "x.h5"


def decoded() -> int:
    return chunkwise.cache_stats()["decoded"]


@pytest.mark.parametrize("index", [..., np.s_[512:1536, :512]])
def test_the_third_time_nothing_is_decoded(path: Path, index: Any) -> None:
    with chunkwise.settings(prefetch_nbytes=0), chunkwise.open(path) as file:
        chunks = CHUNKS if index is ... else 4
        for expected in (chunks, chunks, 0, 0):
            before = decoded()
            assert (file["d"][index] == DATA[index]).all()
            assert decoded() - before == expected
        # Converted, too.
        assert (file["d"].astype("i4")[index] == DATA[index].astype("i4")).all()
        assert decoded() == before


def test_what_a_small_read_decodes_is_kept_at_once(path: Path) -> None:
    with chunkwise.settings(prefetch_nbytes=0), chunkwise.open(path) as file:
        for expected in (1, 0, 0):
            before = decoded()
            assert (file["d"][:512, :256] == DATA[:512, :256]).all()
            assert decoded() - before == expected


def test_what_takes_much_of_the_cache_is_not_kept(path: Path) -> None:
    small = chunkwise.settings(prefetch_nbytes=0, cache_nbytes=4 * DATA.nbytes - 1)
    with small, chunkwise.open(path) as file:
        for _ in range(4):
            before = decoded()
            assert (file["d"][...] == DATA).all()
            assert decoded() - before == CHUNKS
