"""Many small datasets go side by side, and the result is as if they went one after another."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import CorruptDataError
from chunkwise.repacking.progress import Moment
from tests.support.damage import damage_chunk
from tests.support.repacking import interrupted, require_equal

COUNT = 70  # more than go together at a time
RULES: dict[str, Any] = {"chunk": "8x16x16", "filters": "shuffle+deflate:6"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        for number in range(COUNT):
            walk = random.normal(size=(8, 32, 32)).cumsum(axis=1).round(2).astype("f4")
            chunks = (1, 32, 32) if number % 3 else None
            fletcher = bool(chunks) and number % 2 == 0
            file.create_dataset(f"d{number:02}", data=walk, chunks=chunks, fletcher32=fletcher)
        counts = np.arange(36 << 16, dtype="i4").reshape(36, 256, 256)
        # Not small: goes alone, between the others.
        file.create_dataset("d35large", data=counts, chunks=(1, 256, 256))
        file.create_dataset("d36counts", data=counts[:8, :32, :32], chunks=(8, 16, 16))
    return path


def addresses(path: Path) -> dict[str, list[int]]:
    with h5py.File(path) as file:
        return {
            name: [one.id.get_chunk_info(i).byte_offset for i in range(one.id.get_num_chunks())]
            for name, one in file.items()
        }


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.slow
def test_the_result_is_the_same(source: Path, threads: int) -> None:
    out = source.with_name("out.h5")
    moments: list[Moment] = []
    done = chunkwise.repack(source, out, **RULES, threads=threads, progress=moments.append)
    require_equal(source, out)
    assert all(one.action == "rechunked" and one.elapsed_s > 0 for one in done.datasets)
    assert [one.stored_nbytes for one in done.datasets] == stored(out)
    together = {moment.path for moment in moments if "datasets" in moment.path}
    assert together == ({"64 datasets", "7 datasets"} if threads > 1 else set())
    copied = [moment.total_done_nbytes for moment in moments if moment.phase == "copying"]
    assert copied == sorted(copied)
    assert copied[-1] == sum(one.nbytes for one in done.datasets)


def stored(path: Path) -> list[int]:
    with h5py.File(path) as file:
        return [one.id.get_storage_size() for one in file.values()]


@pytest.mark.slow
def test_chunks_lie_as_one_thread_writes_them(source: Path) -> None:
    found = []
    for threads in (1, 4):
        out = source.with_name(f"{threads}.h5")
        # Of this filter there is one encoder.
        chunkwise.repack(source, out, chunk="8x16x16", filters="lzf", threads=threads)
        found.append(addresses(out))
    assert found[0] == found[1]


def test_files_are_hardly_larger_than_with_zlib(source: Path) -> None:
    out, zlib = source.with_name("out.h5"), source.with_name("zlib.h5")
    done = chunkwise.repack(source, out, **RULES)
    with h5py.File(source) as file, h5py.File(zlib, "w") as written:
        for name, one in file.items():
            options = {"shuffle": True, "compression": 6}
            written.create_dataset(name, data=one[...], chunks=(8, 16, 16), **options)
    for one, nbytes in zip(done.datasets, stored(zlib), strict=True):
        assert one.stored_nbytes <= 1.02 * nbytes, one.path
    # Numbers that count are not like the others, and have an encoder of their own.
    counts = next(one for one in done.datasets if one.path == "/d36counts")
    assert counts.encoder is not None


def test_stored_chunks_go_side_by_side_as_well(source: Path) -> None:
    out = source.with_name("out.h5")
    chunkwise.repack(source, out, chunk="d00:8x16x16", threads=3)
    require_equal(source, out)


def test_little_memory_has_them_go_alone(source: Path) -> None:
    moments: list[Moment] = []
    out = source.with_name("out.h5")
    chunkwise.repack(source, out, **RULES, memory="2MiB", threads=8, progress=moments.append)
    assert not [moment for moment in moments if "datasets" in moment.path]
    require_equal(source, out)


def test_one_that_is_damaged_is_named(source: Path) -> None:
    damage_chunk(source, "d40", 3, bytes(100))
    out = source.with_name("out.h5")
    with pytest.raises(CorruptDataError, match=r"'/d40'.*--salvage"):
        chunkwise.repack(source, out, **RULES, threads=3)
    assert [path.name for path in source.parent.iterdir()] == ["in.h5"]
    done = chunkwise.repack(source, out, **RULES, threads=3, salvage=True)
    assert [one.path for one in done.datasets if one.lost_chunks] == ["/d40"]


@pytest.mark.slow
def test_whoever_watches_may_end_it_and_go_on(source: Path) -> None:
    out = source.with_name("out.h5")
    interrupted(source, out, **RULES)
    assert [path.name for path in source.parent.iterdir()] == ["in.h5"]
    interrupted(source, out, **RULES, resume=True)
    done = chunkwise.repack(source, out, **RULES, resume=True)
    assert all(one.replayed == one.chunks > 0 for one in done.datasets)
    require_equal(source, out)


def test_ended_while_they_go_side_by_side(source: Path) -> None:
    def watch(moment: Moment) -> None:
        if "datasets" in moment.path and moment.done_nbytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunkwise.repack(source, source.with_name("out.h5"), **RULES, progress=watch, threads=2)
    assert [path.name for path in source.parent.iterdir()] == ["in.h5"]
