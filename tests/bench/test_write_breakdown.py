"""Is the time of writing taken apart rightly, and are encoded chunks counted to the chunk?"""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from chunkwise import measure
from chunkwise.measure.render import show
from chunkwise.measure.schedule import measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.measure.tables import sentence
from chunkwise.trials.breakdown import Breakdown, bare_seconds
from chunkwise.trials.trial import Measurement
from tests.support.writing import counted, make, writing

# Of 20 planes in 5 chunks: written plane by plane, and chunk by chunk.
PLANES, CHUNKS = "1x12x10", "4x12x10"
CACHED = ("libhdf5", "h5py", "netcdf4")
NATIVE = ("chunkwise", "chunkwise-py")


# What libhdf5 would write at once, as it is small, is written like what is large.
NOTHING_IS_SMALL = (
    "from chunkwise.writing import direct; direct.SMALL_NBYTES = direct.ONE_CHUNK_NBYTES = 0;"
    "from chunkwise.trials.worker import main; main()"
)


def written(path: Path, reader: str, pattern: str, filters: str, **parameters: Any) -> Measurement:
    if reader == "netcdf4":
        pytest.importorskip("netCDF4")
    source = make(path / "a.h5", counted("<i4"), chunks=(4, 12, 10))
    with writing(source, pattern, reader, "stored", filters, **parameters) as trial:
        found = measure_in_worker(trial, (sys.executable, "-c", NOTHING_IS_SMALL))
    assert found.status == "ok", found.error
    assert not found.extrapolated
    return found


def told(found: Measurement) -> Breakdown:
    assert found.breakdown is not None
    return found.breakdown


def counts(found: Measurement) -> tuple[int | None, ...]:
    """Chunks encoded, those loaded, touches, different chunks."""
    spent = told(found)
    names = ("chunks_encoded", "chunk_loads", "chunk_touches", "chunks_touched")
    return tuple(spent[name] for name in names)  # type: ignore[literal-required]


def check_sums(found: Measurement) -> None:
    """Everything is told, and together it is the time that passed."""
    spent = told(found)
    phases = (found.create_s, found.elapsed_s, found.flush_s, found.close_s)
    assert spent["elapsed_s"] == pytest.approx(sum(s or 0.0 for s in phases))
    filters = list(spent["filters_s"].values())
    parts = (*filters, spent["index_s"], spent["storage_s"], spent["scatter_s"], spent["other_s"])
    assert None not in (*filters, spent["storage_s"], spent["other_s"])
    assert all(seconds is None or seconds >= 0 for seconds in parts)
    # What other threads did, they did while this one waited or worked.
    beside = (spent["waiting_s"] or 0.0) - (spent["other_threads_s"] or 0.0)
    assert sum(s or 0.0 for s in parts) + beside == pytest.approx(spent["elapsed_s"])


@pytest.mark.parametrize("filters", ["deflate:1", "shuffle+deflate:1"])
@pytest.mark.parametrize("reader", [*CACHED, *NATIVE])
def test_every_chunk_is_encoded_once_where_it_can_wait(
    tmp_path: Path, reader: str, filters: str
) -> None:
    found = written(tmp_path, reader, PLANES, filters)
    assert counts(found) == (5, 0, 20, 5)
    assert list(told(found)["filters_s"]) == [f.partition(":")[0] for f in filters.split("+")]
    assert min(s or 0.0 for s in told(found)["filters_s"].values()) > 0
    check_sums(found)
    assert "encode 5 chunks" in sentence(told(found), "write")
    assert "each of them once" in sentence(told(found), "write")


@pytest.mark.parametrize("reader", CACHED)
@pytest.mark.parametrize("cache", [{"cache_nbytes": 0}, {"cache_nslots": 0}])
def test_without_a_cache_each_write_encodes_and_loads_again(
    tmp_path: Path, reader: str, cache: dict[str, int]
) -> None:
    found = written(tmp_path, reader, PLANES, "deflate:1", **cache)
    assert 0 in (found.actual_cache_nbytes, found.actual_cache_nslots)
    # The first plane of a chunk has nothing to load.
    assert counts(found) == (20, 15, 20, 5)
    check_sums(found)
    assert "4.00 times: 15 were loaded again" in sentence(told(found), "write")
    whole = written(tmp_path, reader, CHUNKS, "deflate:1", **cache)
    assert counts(whole) == (5, 0, 5, 5)


def test_what_is_not_filtered_is_not_said_to_be_encoded(tmp_path: Path) -> None:
    found = written(tmp_path, "libhdf5", PLANES, "none")
    assert counts(found) == (None, None, 20, 5)
    # Storage is known all the same: each byte once.
    check_sums(found)
    assert "encode" not in sentence(told(found), "write")


def test_what_libhdf5_wrote_instead_is_not_taken_apart(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted())
    with writing(source, "all", "chunkwise") as trial:
        assert measure_in_worker(trial).breakdown is None


def test_bare_writing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    seconds = bare_seconds(str(tmp_path / "a"), 3000)
    assert seconds is not None
    assert seconds > 0
    (tmp_path / "empty").touch()
    assert bare_seconds(str(tmp_path / "empty"), 3000) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty"]


def test_records_and_the_report_have_it(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", counted(), chunks=(4, 12, 10), compression=1)
    space = Space.of(
        operation=["write", "read"], access=[PLANES], reader=["libhdf5"], cache=["0"], nslots=["0"]
    )
    results = measure.run(source, "g/x", space, repeat=1)
    records = {record["operation"]: record for record in results.records}
    assert records["write"]["time_chunks_encoded"] == 20
    assert records["read"]["time_chunks_encoded"] is None
    assert records["read"]["time_chunk_loads"] == 20
    for record in records.values():
        assert (record["actual_cache_nbytes"], record["actual_cache_nslots"]) == (0, 0)
        assert set(record["time_filters_s"]) == {"deflate"}
    said = io.StringIO()
    show(results, Console(file=said, width=200))
    assert "encode 20 chunks" in said.getvalue()
