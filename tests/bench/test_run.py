"""Do trials that go wrong become rows, and are differing bytes found?"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.errors import CannotJudgeError, SelectionError, UsageError
from chunkwise.measure.planning import trial_of
from chunkwise.measure.schedule import Step, measure_in_worker
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.measure.verdict import spread
from chunkwise.patterns.pattern import Access
from chunkwise.trials.pagecache import drop, storage_nbytes, verdict, warm
from chunkwise.trials.trial import Measurement, Trial, from_worker
from tests.support.filtered import Case, create

# Stand-ins for the worker: each reads the trial and ends in its own way.
READ = "import json, sys, os, time; trial = json.load(sys.stdin); "
ANSWER = (
    "print(json.dumps({'status': 'ok', 'operations': n, 'total_operations': 12,"
    " 'elapsed_s': 1.0, 'total_s': 1.0, 'first_s': 0.1, 'extrapolated': n < 12,"
    " 'checksums': checksums, 'environment': {}}))"
)
SURPRISE = "json.dumps({'status': 'ok', 'surprise': 1})"


def stand_in(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", READ + code)


def run(
    path: Path,
    name: str,
    access: list[str],
    reader: list[str],
    axes: dict[str, list[str]] | None = None,
    **options: Any,
) -> measure.Results:
    """Time patterns by readers, once unless `repeat` says otherwise."""
    space = Space.of("product", access=access, reader=reader, **(axes or {}))
    return measure.run(path, name, space=space, **{"repeat": 1, **options})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.h5"
    data = np.arange(12 * 10 * 8, dtype=">f4").reshape(12, 10, 8)
    with h5py.File(path, "w") as f:
        f.create_dataset("g/cube", data=data, chunks=(4, 10, 8), compression=4, shuffle=True)
        f.create_dataset("plain", data=data)
        f.create_dataset("scalar", data=1.0)
        f.create_dataset("empty", shape=(0, 3), maxshape=(None, 3), dtype="f4")
        f.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype())
        f["null"] = h5py.Empty("f4")
        padded = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8]})
        f.create_dataset("padded", data=np.zeros((4, 4), padded), chunks=(2, 4))
    return path


@pytest.fixture
def trial(file: Path) -> Trial:
    return trial_of(look(file, "g/cube"), Access("step", (1, 10, 8)), "h5py", timeout_s=60.0)


def test_a_real_worker_measures(trial: Trial) -> None:
    measurement = measure_in_worker(trial)
    assert measurement.status == "ok", measurement.error
    assert measurement.operations == measurement.total_operations == 12
    assert not measurement.extrapolated
    assert measurement.total_s == measurement.elapsed_s
    assert measurement.selected_nbytes == 12 * 10 * 8 * 4
    assert sorted(measurement.checksums) == [1, 2, 4, 8, 12]
    assert measurement.environment["hdf5"] == h5py.version.hdf5_version
    record = json.loads(json.dumps(measurement.to_record()))
    assert record["reader"] == "h5py"
    assert record["block"] == [1, 10, 8]
    assert record["checksums"]["12"] == measurement.checksums[12]


@pytest.mark.parametrize(
    ("nbytes", "nslots", "w0"), [(None, None, None), (1 << 20, None, None), (123_456, 77, 0.5)]
)
@pytest.mark.parametrize("reader", ["h5py", "libhdf5"])
def test_the_cache_asked_for_is_the_cache_in_force(
    file: Path, reader: str, nbytes: int | None, nslots: int | None, w0: float | None
) -> None:
    with h5py.File(file) as f:
        defaults = f["g/cube"].id.get_access_plist().get_chunk_cache()
    given: Any = {"cache_nbytes": nbytes, "cache_nslots": nslots, "cache_w0": w0}
    everything = Access("all", (12, 10, 8))
    found = measure_in_worker(
        trial_of(look(file, "g/cube"), everything, reader, timeout_s=60, **given)
    )
    actual = (found.actual_cache_nslots, found.actual_cache_nbytes, found.actual_cache_w0)
    asked = (nslots, nbytes, w0)
    assert actual == tuple(d if a is None else a for a, d in zip(asked, defaults, strict=True))


@pytest.mark.parametrize(("nbytes", "decoded"), [(None, 3), (0, 6)])
def test_without_its_cache_chunkwise_decodes_a_chunk_for_each_read(
    tmp_path: Path, nbytes: int | None, decoded: int
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.zeros((6, 500)), chunks=(2, 500), compression=1)
    rows = Access("rows", (1, 500))
    found = measure_in_worker(
        trial_of(look(path, "x"), rows, "chunkwise", timeout_s=60, engine_cache_nbytes=nbytes)
    )
    assert (found.status, found.operations) == ("ok", 6)
    assert found.decoded_chunks == decoded


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.abort()", "ended by SIGABRT"),
        ("os.kill(os.getpid(), 9)", "out of memory"),
        ("sys.exit('no luck')", "code 1: no luck"),
        ("1 / 0", "ZeroDivisionError"),
        *((f"print({text})", "makes no sense") for text in ("'hello'", "'[]'", SURPRISE)),
    ],
)
def test_a_worker_that_dies_is_a_row(trial: Trial, code: str, said: str) -> None:
    measurement = measure_in_worker(trial, stand_in(code))
    assert measurement.status == "failed"
    assert said in (measurement.error or "")
    assert json.dumps(measurement.to_record())


def test_errors_inside_the_worker_are_told(file: Path) -> None:
    measurement = measure_in_worker(Trial(str(file), "gone", "step", (1,), "h5py", shape=(1,)))
    assert measurement.status == "failed"
    assert "Traceback" not in (measurement.error or "Traceback")


def test_differing_bytes_are_found(file: Path) -> None:
    code = "n = 12; checksums = {'1': 5, '12': 7 if trial['reader'] == 'h5py' else 8}; " + ANSWER
    results = run(file, "g/cube", ["step=1x10x8"], ["h5py", "libhdf5"], worker=stand_in(code))
    (mismatch,) = results.mismatches
    assert (mismatch.first, mismatch.second, mismatch.operations) == ("h5py", "libhdf5", 12)
    assert "different bytes" in str(mismatch)


def test_runs_that_ended_apart_are_compared_where_both_have_been(file: Path) -> None:
    code = (
        "n, checksums = (12, {'1': 1, '2': 2, '4': 4, '8': 8, '12': 12})"
        " if trial['reader'] == 'h5py' else (5, {'1': 1, '2': 2, '4': LAST, '5': 99}); "
    ) + ANSWER
    for last, found in (("4", 0), ("3", 1)):
        worker = stand_in(code.replace("LAST", last))
        results = run(file, "g/cube", ["step=1x10x8"], ["h5py", "libhdf5"], worker=worker)
        assert [m.operations for m in results.mismatches] == [4] * found


def test_a_failing_reader_leaves_the_others_their_figures(file: Path) -> None:
    code = "trial['reader'] == 'libhdf5' and os.abort(); n = 12; checksums = {'12': 1}; " + ANSWER
    results = run(file, "g/cube", ["all"], ["h5py", "libhdf5"], repeat=2, worker=stand_in(code))
    good, bad = results.cells
    assert len(good.succeeded) == 2
    assert bad.problem is not None
    assert len(bad.measurements) == 1  # what failed is not repeated
    assert [row["status"] for row in results.summary()] == ["ok", "failed"]
    assert not results.mismatches


@pytest.mark.parametrize(
    ("dataset", "pattern"),
    [
        ("plain", "5x10x8"),
        ("g/cube", "1x3x8@f"),
        ("g/cube", "line:0@random"),
        ("g/cube", "random:9"),
        ("g/cube", "[::3, 1:9:2, 5]"),
        ("g/cube", "[:, 2:7] | [::3, 5:9, 1:] | [11]"),
    ],
)
def test_every_reader_reads_the_same_in_any_order(file: Path, dataset: str, pattern: str) -> None:
    readers = ["libhdf5", "chunkwise", "h5py", "chunkwise-py"]
    results = run(file, dataset, [pattern], readers, seconds=20)
    assert [cell.problem for cell in results.cells] == [None] * 4
    assert results.compared == 4
    assert results.mismatches == []
    assert len({cell.total_operations for cell in results.cells}) == 1


def test_a_list_of_selections_is_read_by_every_reader(file: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.txt"
    chosen.write_text("[0, :, 2]\n[4:9:2, 3, :]\n")
    results = run(file, "g/cube", [f"list:{chosen}"], ["libhdf5", "chunkwise", "h5py"])
    assert [cell.operations for cell in results.cells] == [2, 2, 2]
    assert results.mismatches == []
    assert results.records[0]["selected_nbytes"] == 4 * (10 + 3 * 8)


def test_netcdf_reads_what_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        group = file.createGroup("g")
        group.createDimension("x", 30)
        group.createDimension("y", 20)
        made = group.createVariable("t", "f4", ("x", "y"), compression="zlib", chunksizes=(7, 6))
        made[:] = np.arange(600).reshape(30, 20)
    readers = ["netcdf4", "libhdf5", "chunkwise"]
    for pattern in ("4x20", "line:0@random", "[::3, 2:9]"):
        results = run(path, "g/t", [pattern], readers, {"cache": ["default", "2MiB"]})
        assert [cell.problem for cell in results.cells] == [None] * 5
        assert results.compared == 5
        assert results.mismatches == []
        default, given = results.cells[0].measurements[0], results.cells[1].measurements[0]
        assert default.actual_cache_nbytes is not None
        assert default.actual_cache_nbytes >= 16 << 20
        assert given.actual_cache_nbytes == 2 << 20
        assert default.environment["netcdf"]
    results = run(path, "g/t", ["[:3] | [:, 5]"], ["netcdf4", "libhdf5"])
    problems = [cell.problem and cell.problem.error for cell in results.cells]
    assert "a union of 2 hyperslabs: netCDF-C reads one block" in (problems[0] or "")
    assert problems[1] is None


def test_bytes_in_another_order_are_not_compared_with_netcdf(file: Path) -> None:
    with netCDF4.Dataset(file.with_suffix(".nc"), "w") as made:
        made.createDimension("x", 30)
        made.createVariable("t", ">i4", ("x",), endian="big", chunksizes=(7,))[:] = range(30)
    path = file.with_suffix(".nc")
    results = run(path, "t", ["all"], ["netcdf4", "libhdf5"])
    assert [cell.problem for cell in results.cells] == [None, None]
    assert (results.compared, results.mismatches) == (0, [])


def test_what_netcdf_may_crash_on_is_refused(file: Path) -> None:
    with h5py.File(file, "r+") as f:
        f.create_dataset("names", data=np.full((10,), b"abc"), chunks=(5,))
    results = run(file, "names", ["all"], ["netcdf4", "h5py"])
    refused, read = results.cells
    assert refused.problem is not None
    assert "netCDF-C reads and writes numbers" in (refused.problem.error or "")
    assert read.problem is None


def test_trials_alternate(file: Path) -> None:
    seen: list[Step] = []
    worker = stand_in("n = 12; checksums = {'12': 1}; " + ANSWER)
    options: Any = {"repeat": 2, "progress": seen.append, "worker": worker}
    run(file, "g/cube", ["all", "step=1x10x8"], ["h5py", "libhdf5"], **options)
    made = [step.text.partition(",")[0] for step in seen if step.total]
    assert made == ["all: h5py", "all: libhdf5", "step: h5py", "step: libhdf5"] * 2


def test_a_walk_that_is_cut_short_is_marked(file: Path) -> None:
    element = Access("element", (1, 1, 1))
    trial = trial_of(look(file, "g/cube"), element, "h5py", max_seconds=1e-9)
    measurement = measure_in_worker(trial)
    assert (measurement.status, measurement.extrapolated) == ("ok", True), measurement.error
    assert (measurement.operations or 0) < 960 == measurement.total_operations
    assert (measurement.total_s or 0) > (measurement.elapsed_s or 0) > 0


def test_the_largest_chunked_dataset_is_taken(file: Path) -> None:
    code = "n = 12; checksums = {'12': 1}; " + ANSWER
    results = measure.run(file, repeat=1, worker=stand_in(code))
    assert results.target.dataset == "/g/cube"
    assert [c.access.name for c in results.cells] == ["step", "step", "line", "line", "all", "all"]


def test_padding_is_not_compared(file: Path) -> None:
    results = run(file, "padded", ["all"], ["h5py"], repeat=2)
    assert not results.target.comparable
    assert results.cells[0].succeeded
    assert results.compared == 0


@pytest.mark.parametrize("name", ["scalar", "empty", "null", "words"])
def test_what_cannot_be_timed_is_refused(file: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        measure.run(file, name)
    assert f"'{name}' in {file}" in str(caught.value)


@pytest.mark.parametrize("used", [True, False])
def test_a_filter_that_is_not_installed(tmp_path: Path, used: bool) -> None:
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as f:
        made = create(f, "x", "<i4", (4,), (4,), [Case(33333)])
        made.id.write_direct_chunk((0,), np.arange(4, dtype="<i4").tobytes(), 0 if used else 1)
    if used:
        with pytest.raises(CannotJudgeError, match="filter 33333"):
            measure.run(path, "x", repeat=1)
    else:
        results = run(path, "x", ["all"], ["h5py"])
        assert results.cells[0].problem is None


def test_layouts_are_named_truly(tmp_path: Path) -> None:
    path = tmp_path / "layouts.h5"
    data = np.arange(12, dtype="<i4")
    with h5py.File(path, "w") as f:
        f.create_dataset("chunked", data=data, chunks=(4,))
        f.create_dataset("contiguous", data=data)
        external = [(str(tmp_path / "raw"), 0, data.nbytes)]
        f.create_dataset("external", data=data, external=external)
        virtual = h5py.VirtualLayout((12,), "<i4")
        virtual[:] = h5py.VirtualSource(path, "contiguous", (12,))
        f.create_virtual_dataset("virtual", virtual)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((12,))
        h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32LE, space, properties)
    for name in ("chunked", "contiguous", "external", "virtual", "compact"):
        assert look(path, name).layout == name


def test_bad_arguments_are_refused_before_anything_runs(file: Path) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
        ({"reader": ["netcdf"]}, {}, UsageError, "unknown reader 'netcdf'"),
        ({"cache": ["small"]}, {}, UsageError, "small"),
        ({"access": ["1x1"]}, {}, SelectionError, "has 3"),
        ({}, {"repeat": 0}, UsageError, "repeat"),
        ({}, {"seconds": float("nan")}, UsageError, "seconds"),
    ]
    for axes, options, error, said in cases:
        with pytest.raises(error, match=said):
            measure.run(file, space=Space.of(**axes), worker=stand_in("os.abort()"), **options)


def test_warming_says_what_it_did(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warm(str(file)) == "warm"
    monkeypatch.setattr("chunkwise.trials.pagecache.free_nbytes", lambda: 100)
    assert warm(str(file)) == "uncontrolled"


def test_a_cold_trial_reads_from_storage(tmp_path: Path) -> None:
    path = tmp_path / "large.h5"
    with h5py.File(path, "w") as f:
        data = np.random.default_rng(1).integers(0, 255, (64, 1 << 16), "u1")
        f.create_dataset("x", data=data, chunks=(4, 1 << 16))
    warm(str(path))
    before = storage_nbytes()
    drop(str(path))
    path.read_bytes()
    after = storage_nbytes()
    if before is None or after is None or after == before:
        pytest.skip("this file system keeps what it is told to forget")
    results = run(
        path, "x", ["all"], ["h5py", "chunkwise-py"], {"page_cache": ["warm", "cold"]}, repeat=2
    )
    assert [cell.page_cache for cell in results.cells] == ["warm", "warm", "cold", "cold"]
    assert results.mismatches == []
    for cell in results.cells:
        for measurement in cell.succeeded:
            assert measurement.page_cache == cell.page_cache
            assert measurement.storage_nbytes is not None
            assert (measurement.storage_nbytes >= data.nbytes // 2) is (cell.page_cache == "cold")


def test_what_cannot_be_checked_is_not_called_cold() -> None:
    assert verdict(1000, 1000) == verdict(1000, 500) == "cold"
    assert verdict(1000, 499) == verdict(1000, None) == "cold, unverified"


def test_a_measurement_says_what_it_cost(trial: Trial) -> None:
    h5py_, ours = (measure_in_worker(replace(trial, reader=d)) for d in ("h5py", "chunkwise-py"))
    for measurement in (h5py_, ours):
        assert measurement.cpu_s is not None
        assert measurement.cpu_s >= 0
        assert measurement.median_s is not None
        assert measurement.p95_s is not None
        assert measurement.p99_s is not None
        assert measurement.median_s <= measurement.p95_s <= measurement.p99_s
    # One read of everything goes past the cache, and is counted all the same.
    assert (h5py_.decoded_chunks, ours.decoded_chunks) == (None, 3)


def test_spread_is_that_of_paper_001() -> None:
    found = spread([5.0, 1.0, 2.0, 9.0, 4.0])
    assert (found.median, found.lowest, found.highest) == (4.0, 1.0, 9.0)
    assert found.trimmed_mean == pytest.approx((5 + 2 + 4) / 3)
    assert spread([3.0, 1.0]).trimmed_mean == 2.0


# --- saving and going on ---------------------------------------------------------------


def test_trials_of_another_file_are_not_mixed_in(file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trials.jsonl"
    run(file, "g/cube", ["all"], ["h5py"], save=saved)
    with pytest.raises(UsageError, match="another file or dataset \\(dataset differ\\)"):
        run(file, "plain", ["all"], ["h5py"], save=saved)
    before, content = file.stat(), file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UsageError, match="\\(sample differ\\)"):
        run(file, "g/cube", ["all"], ["h5py"], save=saved)
    file.write_bytes(content)
    os.utime(file, (1, 1))
    with pytest.raises(UsageError, match="mtime_ns differ"):
        run(file, "g/cube", ["all"], ["h5py"], save=saved)
    other = tmp_path / "notes.txt"
    other.write_text("words\n")
    with pytest.raises(UsageError, match="not a file of trials"):
        run(file, "g/cube", ["all"], ["h5py"], save=other)
    assert other.read_text() == "words\n"
    with pytest.raises(UsageError, match="cannot be used for results"):
        run(file, "g/cube", ["all"], ["h5py"], save=tmp_path / "no" / "folder")


def test_a_worker_ends_when_its_reader_is_interrupted(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a trial leaves no process behind."""
    mark = tmp_path / "pid"
    child = f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    parent = (
        "from chunkwise.measure.schedule import measure_in_worker\n"
        "from chunkwise.trials.trial import Trial\n"
        f"measure_in_worker(Trial('f', 'd', 'a', (1,), 'h5py', timeout_s=600),"
        f" {stand_in(child)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 180
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(2)
    process.wait(60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_checksum_counts_become_numbers_again(trial: Trial) -> None:
    measurement: Measurement = from_worker(trial, {"status": "ok", "checksums": {"8": 3}})
    assert measurement.checksums == {8: 3}
