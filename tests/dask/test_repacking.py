"""Does repacking by workers make the file that one process makes?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")

import chunkwise
from chunkwise.dask import repack, repacking, tasks
from chunkwise.errors import ChunkwiseError, DatasetNotFoundError, UsageError, WrongValueError
from tests.support.clusters import cluster, left_in
from tests.support.damage import damage_chunk
from tests.support.repacking import require_equal

SHAPE = (60, 200, 200)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster() as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    rng = np.random.default_rng(3)
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["title"] = "a file"
        x = np.cumsum(rng.normal(size=SHAPE).astype("f4"), axis=0)
        file.create_dataset("g/x", data=x, chunks=(1, 200, 200), compression="gzip")
        file.create_dataset("flat", data=rng.integers(0, 99, SHAPE).astype(">i2"))
        sparse = file.create_dataset("sparse", SHAPE, "f8", chunks=(10, 50, 50), fillvalue=-1)
        sparse[:10, 60:90] = 5
        file["small"] = np.arange(50)
        file["words"] = ["some", "text"]
        file["link"] = h5py.SoftLink("/g/x")
        file["g/x"].attrs["refers"] = file["small"].ref
    with path.open("r+b") as raw:
        raw.write(b"user block")
    return path


RULES: dict[str, Any] = {
    "chunk": {"g/x": (20, 50, 50), "flat": (10, 100, 100), "sparse": (7, 60, 60)},
    "filters": "shuffle+deflate:4",
}


@pytest.mark.parametrize("where", ["cluster", "threads", "sync"])
@pytest.mark.slow
def test_the_result_is_what_one_process_makes(
    where: str, source: Path, tmp_path: Path, request: Any
) -> None:
    client = request.getfixturevalue("client") if where == "cluster" else where
    told: list[Any] = []
    done = repack(
        source, tmp_path / "out.h5", **RULES, memory="8MiB", client=client, progress=told.append
    )
    plain = chunkwise.repack(source, tmp_path / "plain.h5", **RULES)
    require_equal(source, tmp_path / "out.h5")
    assert (tmp_path / "out.h5").read_bytes()[:10] == b"user block"
    for mine, theirs in zip(done.datasets, plain.datasets, strict=True):
        assert (mine.path, mine.chunk, mine.filters) == (theirs.path, theirs.chunk, theirs.filters)
        # Which encoder serves best is found out anew by each worker.
        assert mine.stored_nbytes == pytest.approx(theirs.stored_nbytes, rel=0.03, abs=4096)
    with h5py.File(tmp_path / "out.h5") as a, h5py.File(tmp_path / "plain.h5") as b:
        assert a["sparse"].id.get_num_chunks() == b["sparse"].id.get_num_chunks()
    assert {one.phase for one in told} >= {"copying", "verifying", "syncing"}
    assert left_in(tmp_path) == ["in.h5", "out.h5", "plain.h5"]


def test_damage_is_found_before_the_file_comes_into_place(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tasks.encode

    def other(values: Any, form: Any, start: Any) -> Any:
        return real(values + 1 if start[0] else values, form, start)

    monkeypatch.setattr(repacking, "encode", other)
    with pytest.raises(WrongValueError, match=r"out.h5: '.*' differs from the source, at element"):
        repack(source, tmp_path / "out.h5", **RULES, client="sync", memory="4MiB")
    assert left_in(tmp_path) == ["in.h5"]


def test_a_source_that_is_damaged_is_one_error(client: Any, source: Path, tmp_path: Path) -> None:
    damage_chunk(source, "g/x", 30, bytes(40))
    with pytest.raises(ChunkwiseError, match="g/x"):
        repack(source, tmp_path / "out.h5", **RULES, client=client)
    assert left_in(tmp_path) == ["in.h5"]


def test_rules_are_those_of_repack(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="nothing"):
        repack(source, tmp_path / "out.h5", chunk={"nothing": (1,)}, client="threads")
    with pytest.raises(UsageError, match="is the source itself"):
        repack(source, source, **RULES, client="threads")


def test_sparse_arrays_whose_chunks_libhdf5_lists_wrongly(tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver="latest") as file:
        grown = file.create_dataset("x", (9, 40), "i4", chunks=(3, 4), maxshape=(90, None))
        grown[3:6, 8:21] = 5
    repack(source, target, chunk=(2, 4), client="sync")
    with h5py.File(source) as a, h5py.File(target) as b:
        np.testing.assert_array_equal(a["x"][...], b["x"][...])
        assert b["x"].id.get_num_chunks() == 2 * 4
