"""Does a Dask array come into a file as h5py would have written it, whoever computes?"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("dask.array", reason="Dask is not installed")

import dask
import dask.array as da

from chunkwise.dask import to_hdf5
from chunkwise.dask.pieces import aligned, boxes, chosen_chunk
from chunkwise.errors import UsageError
from tests.support.clusters import cluster, left_in

FILTERS = ["none", "deflate:1", "shuffle+deflate:4", "lzf", "deflate:fast+fletcher32"]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster() as made:
        yield made


@st.composite
def _blocked(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    rank = draw(st.integers(1, 3))
    return tuple(
        tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))) for _ in range(rank)
    )


@given(blocks=_blocked(), data=st.data())
def test_blocks_are_of_whole_chunks_and_as_large_as_may_be(
    blocks: tuple[tuple[int, ...], ...], data: st.DataObject
) -> None:
    chunk = tuple(data.draw(st.integers(1, 6)) for _ in blocks)
    most = data.draw(st.integers(1, 3000))
    found = aligned(blocks, chunk, 4, most)
    assert [sum(one) for one in found] == [sum(one) for one in blocks]
    for lengths, side in zip(found, chunk, strict=True):
        assert all(n > 0 for n in lengths)
        assert all(n % side == 0 for n in lengths[:-1])
    for _, box in boxes(found):
        assert 4 * box.size <= max(most, 4 * math.prod(chunk))


def test_blocks_that_fit_stay() -> None:
    assert aligned(((10, 10, 3), (6,)), (5, 6), 8) == ((10, 10, 3), (6,))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (((100, 100, 50), (200,)), (100, 200)),  # Small enough: as they are.
        (((10, 7), (3,)), (17, 3)),  # Too small: the rule's, which is one chunk.
    ],
)
def test_chunks_are_the_blocks_or_the_rules(
    blocks: tuple[tuple[int, ...], ...], expected: tuple[int, ...]
) -> None:
    assert chosen_chunk(tuple(map(sum, blocks)), 8, blocks) == expected


def test_chunks_of_large_blocks_divide_them() -> None:
    chunk = chosen_chunk((360, 600, 600), 4, ((72,) * 5, (600,), (600,)))
    assert 72 % chunk[0] == 0
    assert 600 % chunk[1] == 0
    assert 1 << 18 <= 4 * math.prod(chunk) <= 1 << 21


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_threads_write_what_h5py_reads(data: st.DataObject, tmp_path: Path) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    blocks = tuple(data.draw(st.integers(1, n)) for n in shape)
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    dtype = data.draw(st.sampled_from(["<f4", ">i2", "u1", "?", "c8", "S3"]))
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    path = tmp_path / "a.h5"
    to_hdf5(
        da.from_array(values, chunks=blocks),
        path,
        "g/x",
        chunks=chunks,
        filters=data.draw(st.sampled_from(FILTERS)),
        maxshape=tuple(data.draw(st.sampled_from([None, n])) for n in shape),
        overwrite=True,
        client=data.draw(st.sampled_from(["threads", "sync"])),
    )
    with h5py.File(path) as file:
        assert file["g/x"].dtype == values.dtype
        assert file["g/x"].chunks == chunks
        np.testing.assert_array_equal(file["g/x"][...], values)
    assert left_in(tmp_path) == ["a.h5"]


def test_workers_write_several_arrays(client: Any, tmp_path: Path) -> None:
    values = np.arange(600_000, dtype="f4").reshape(60, 100, 100)
    x = da.from_array(values, chunks=(7, 100, 100))
    told: list[tuple[int, int]] = []
    done = to_hdf5(
        {"x": x, "deep/er": (x * 2).sum(axis=0), "one": x.max(), "none": x[:0]},
        tmp_path / "a.h5",
        chunks={"x": (5, 40, 40)},
        filters={"x": "shuffle+deflate:4", "deep/er": "lzf"},
        fillvalue=7,
        client=client,
        in_flight=3,
        progress=lambda done, total: told.append((done, total)),
    )
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"][...], values)
        np.testing.assert_allclose(file["deep/er"][...], (values * 2).sum(axis=0), rtol=1e-5)
        assert file["one"][()] == values.max()
        assert file["none"].shape == (0, 100, 100)
        assert file["x"].fillvalue == 7
        stored = sum(file[name].id.get_storage_size() for name in ("x", "deep/er", "one"))
    assert done.stored_nbytes == stored
    assert "one" in done.by_client
    assert told[-1] == (done.nbytes, done.nbytes)
    assert [one for one, _ in told] == sorted(one for one, _ in told)
    assert left_in(tmp_path) == ["a.h5"]


def test_tasks_have_names_that_the_dashboard_shows(client: Any, tmp_path: Path) -> None:
    to_hdf5(da.zeros((40, 40), chunks=20), tmp_path / "a.h5", "x", client=client)
    names = client.run_on_scheduler(lambda dask_scheduler: sorted(dask_scheduler.task_prefixes))
    assert {"chunkwise-encode", "chunkwise-sizes", "chunkwise-write"} <= set(names)


def test_what_is_persisted_is_written_where_it_lies(client: Any, tmp_path: Path) -> None:
    x = da.random.random((50, 200), chunks=(10, 200)).persist(scheduler=client)
    to_hdf5(x, tmp_path / "a.h5", "x", client=client, filters="shuffle+deflate:1")
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"][...], x.compute(scheduler=client))


def _broken(block: Any) -> Any:
    if block.mean() > 3:
        raise ZeroDivisionError("this block")
    return block


@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_a_block_that_fails_leaves_nothing(where: str, tmp_path: Path, request: Any) -> None:
    client = request.getfixturevalue("client") if where == "cluster" else where
    x = da.arange(100, chunks=10).map_blocks(_broken, dtype=int)
    with pytest.raises(ZeroDivisionError, match="this block"):
        to_hdf5(x, tmp_path / "a.h5", "x", client=client, chunks=(10,))
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_what_progress_raises_ends_the_run(where: str, tmp_path: Path, request: Any) -> None:
    client = request.getfixturevalue("client") if where == "cluster" else where
    (tmp_path / "a.h5").write_bytes(b"before")

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        to_hdf5(
            da.zeros((100, 10), chunks=10),
            tmp_path / "a.h5",
            "x",
            client=client,
            overwrite=True,
            progress=stop,
        )
    assert left_in(tmp_path) == ["a.h5"]
    assert (tmp_path / "a.h5").read_bytes() == b"before"


def _with(dtype: str) -> Any:
    return da.from_array(np.zeros(4, dtype), chunks=2)


@pytest.mark.parametrize(
    ("array", "more", "said"),
    [
        (_with("O"), {}, r"'x': its elements are Python objects.*astype\('S20'\)"),
        (_with("U3"), {}, r"'x': its elements are NumPy's strings"),
        (_with("M8[s]"), {}, r"'x': its elements are times.*int64"),
        (_with("f4"), {"chunks": (2, 2)}, "'x': chunks 2x2 have 2 dimensions"),
        (_with("f4"), {"filters": "nothing:1"}, "nothing"),
        (_with("f4"), {"libver": "newest"}, "libver 'newest'"),
        (_with("f4"), {"client": "processes"}, "scheduler 'processes' cannot write"),
        (_with("f4")[_with("f4") > 0], {}, "its shape is not known.*compute_chunk_sizes"),
        (da.ma.masked_equal(_with("f4"), 0), {}, "is masked"),
        (_with("f4"), {"filters": "filter-32013:1,2,3"}, "a.h5: 'x': .*filter"),
        (_with("f4"), {"maxshape": (3,)}, r"'x': maxshape \(3,\) is smaller than"),
        (_with("f4"), {"fillvalue": "red"}, "a.h5: 'x': cannot be made"),
    ],
)
def test_what_cannot_be_written_is_said(
    array: Any, more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        to_hdf5(array, tmp_path / "a.h5", "x", **more)
    assert left_in(tmp_path) == []


def test_a_target_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists already; overwrite=True"):
        to_hdf5(_with("f4"), path, "x")
    with pytest.raises(UsageError, match="there is no folder"):
        to_hdf5(_with("f4"), tmp_path / "no" / "a.h5", "x")
    assert path.read_bytes() == b"mine"


def test_workers_that_do_not_see_the_folder_are_named(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chunkwise.dask.cluster import Lease

    real = Lease.where.fget  # type: ignore[attr-defined]
    assert real is not None

    def elsewhere(self: Any) -> Any:
        found = real(self)
        return type(found)(found.path, found.lease + "-not-mounted", found.term)

    monkeypatch.setattr(Lease, "where", property(elsewhere))
    with pytest.raises(UsageError, match=r"2 workers \(tcp://127.0.0.1:.*do not see its folder"):
        to_hdf5(_with("f4"), tmp_path / "a.h5", "x", client=client)
    assert left_in(tmp_path) == []


def test_the_scheduler_is_found_as_dask_finds_it(tmp_path: Path) -> None:
    with dask.config.set(scheduler="processes"), pytest.raises(UsageError, match="processes"):
        to_hdf5(_with("f4"), tmp_path / "a.h5", "x")
    with dask.config.set(scheduler="sync"):
        to_hdf5(_with("f4"), tmp_path / "a.h5", "x")
