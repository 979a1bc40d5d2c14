"""Does chunkwise, measured by bench, write what the others write, and say what it did not?"""

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chunkwise import measure
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.writing import direct
from tests.support.writing import SHAPE, counted, make, write, writing

NATIVE = ("chunkwise", "chunkwise-py")
PATTERNS = ("all", "3x5x10", "line:0@random", "plane:2@f", "1x12x10", "[0:6, ::2] | [4:9, :, 3]")
FILTERS = ("none", "deflate:1", "deflate:fast", "shuffle+deflate:4+fletcher32", "szip:nn:8", "lzf")


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What libhdf5 would write at once, as it is small, is written like what is large."""
    monkeypatch.setattr(direct, "SMALL_NBYTES", 0)
    monkeypatch.setattr(direct, "ONE_CHUNK_NBYTES", 0)


def elements_of(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["g/x"][...]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chunk=st.tuples(*(st.integers(1, length) for length in SHAPE)),
    filters=st.sampled_from(FILTERS),
    pattern=st.sampled_from(PATTERNS),
    reader=st.sampled_from(NATIVE),
    dtype=st.sampled_from(["<i4", ">i2", "<f8", "u1"]),
)
@pytest.mark.slow
def test_what_is_written_is_what_libhdf5_would_have_written(
    tmp_path_factory: pytest.TempPathFactory,
    chunk: tuple[int, ...],
    filters: str,
    pattern: str,
    reader: str,
    dtype: str,
) -> None:
    # szip refuses chunks of fewer elements than its blocks have.
    assume(not filters.startswith("szip") or math.prod(chunk) >= 8)
    folder = tmp_path_factory.mktemp("written")
    source = make(folder / "a.h5", counted(dtype), chunks=(4, 12, 10), fillvalue=7)
    shape = "x".join(map(str, chunk))
    checksums = []
    for by in (reader, "libhdf5"):
        plain = filters if by == reader else filters.replace("fast", "1")
        with writing(source, pattern, by, shape, plain) as trial:
            result, _ = write(trial, folder / f"{by}.h5")
        checksums.append(result["checksums"])
        assert "fallback" not in result
    assert checksums[0] == checksums[1]
    assert np.array_equal(elements_of(folder / f"{reader}.h5"), elements_of(folder / "libhdf5.h5"))
    with h5py.File(folder / f"{reader}.h5") as one, h5py.File(folder / "libhdf5.h5") as other:
        lists = [file["g/x"].id.get_create_plist() for file in (one, other)]
        assert lists[0].equal(lists[1])


@pytest.mark.parametrize(
    ("reader", "chunk", "filters", "reason"),
    [
        ("chunkwise", "contiguous", "none", "contiguous"),
        ("chunkwise-py", "contiguous", "none", "contiguous"),
        ("chunkwise", "4x12x10", "filter-32013:5,0,0,0,0,0", "encoded"),
    ],
)
def test_what_libhdf5_writes_instead_is_said(
    tmp_path: Path, reader: str, chunk: str, filters: str, reason: str
) -> None:
    pytest.importorskip("hdf5plugin")
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    with writing(source, "1x12x10", reader, chunk, filters) as trial:
        result, cache = write(trial, tmp_path / "b.h5")
        found = measure_in_worker(trial)
    assert reason in str(result.get("fallback"))
    assert found.status == "ok", found.error
    assert found.fallback == result.get("fallback")
    # That of libhdf5, which wrote.
    assert cache[1] == found.actual_cache_nbytes
    assert cache[1] is not None
    assert np.array_equal(elements_of(tmp_path / "b.h5"), counted())


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("reader", NATIVE)
def test_chunks_are_encoded_once_in_any_order(tmp_path: Path, reader: str) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10), compression=1)
    with writing(source, "line:0@random", reader) as trial:
        result: Any = write(trial, tmp_path / "b.h5")[0]
    assert (result["encoded_chunks"], result["read_back_chunks"]) == (5, 0)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("reader", NATIVE)
def test_the_effort_decides_how_deflate_is_made(tmp_path: Path, reader: str) -> None:
    """Both files say level 1; what is stored differs."""
    # Of integers that count, the fastest encoder makes far more than zlib.
    values = np.arange(np.prod(SHAPE), dtype="<i8").reshape(SHAPE)
    source = make(tmp_path / "a.h5", values, chunks=(5, 12, 10))
    encoders = {}
    for filters in ("deflate:1", "deflate:fast"):
        with writing(source, "all", reader, "stored", filters) as trial:
            result: Any = write(trial, tmp_path / f"{filters}.h5")[0]
        encoders[filters] = result["encoder"]
        with h5py.File(tmp_path / f"{filters}.h5") as file:
            assert file["g/x"].compression_opts == 1
    assert None not in encoders.values()
    assert encoders["deflate:1"] != encoders["deflate:fast"]


def test_all_writers_are_compared(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10))
    readers, filters = ["libhdf5", *NATIVE], ["deflate:1", "deflate:fast"]
    space = Space.of(operation=["write"], access=["1x12x10"], reader=readers, filter=filters)
    results = measure.run(source, "g/x", space, repeat=1)
    assert [cell.problem for cell in results.cells] == [None] * 5
    assert (results.mismatches, results.compared) == ([], 5)
    # A table for each way of storing the data; fast is one.
    assert [cell.trial.filters for cell in results.cells] == ["deflate:1"] * 3 + [filters[1]] * 2
