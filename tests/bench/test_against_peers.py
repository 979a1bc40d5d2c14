"""Does every comparison of `make bench` run, read the same bytes, and say what came of it?

On tiny arrays, and mostly in this process: how fast anything is is `make bench`'s business.
"""

import contextlib
import importlib
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from chunkwise.measure import process
from chunkwise_lab import checkout
from chunkwise_lab.peers import __main__ as program
from chunkwise_lab.peers import programs, results, schedule, table
from chunkwise_lab.peers.boxes import random_boxes, runs
from chunkwise_lab.peers.comparisons import GROUPS, _filled
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Goal, Reader, Unit
from chunkwise_lab.peers.task import EVERYTHING, CannotReadError
from chunkwise_lab.peers.worker import answer
from tests.support.versions import needs_chunk_iter

# Those that bring a libhdf5 of their own need a process of their own, and limits are compiled.
ELSEWHERE = {"netCDF4", "hidefix", "limits"}
# Built by `cargo test`; `make bench` builds it with optimisation.
LIMITS = checkout.ROOT / "target/debug/examples/limits"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("bench"), small=True)


def run_here(reader: Reader) -> schedule.Samples:
    """One sample of a reader, in this process."""
    samples = schedule.Samples(reader, skipped="not here")
    module, _, name = reader.task.partition(":")
    if not {reader.name, module} & ELSEWHERE:
        prepare = getattr(importlib.import_module(f"chunkwise_lab.peers.{module}"), name)
        # Peers that are not installed, or that lack a filter.
        with (
            contextlib.suppress(CannotReadError, NotImplementedError),
            contextlib.contextmanager(prepare)(**reader.arguments) as measure,
        ):
            samples.take(answer(measure()))
    return samples


def test_lists_of_an_entry_are_shapes() -> None:
    names = {"chunk": [500, 500], "words": "500x500"}
    assert _filled("$chunk", names) == (500, 500)
    entry = {"shape": [10000, 3000], "chunk": "$chunk", "title": "in $words"}
    filled = {"shape": (10000, 3000), "chunk": (500, 500), "title": "in 500x500"}
    assert _filled(entry, names) == filled


@needs_chunk_iter
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.slow
def test_all_readers_read_the_same(store: Store, group: str) -> None:
    names = []
    for comparison in GROUPS[group](store):
        names.append(comparison.name)
        result = results.Result(comparison, tuple(map(run_here, comparison.readers)))
        assert result.differing == []
        if result.of("chunkwise").skipped:
            continue
        with_bytes = [one for one in result.samples if one.checksums]
        assert result.compared == len(with_bytes)
        assert all(one.values[0] > 0 for one in result.samples if one.skipped is None)
        if comparison.unit == "seconds":
            peers = [one for one in result.samples if one.skipped is None]
            assert len(with_bytes) >= min(2, len(peers))
    assert names
    assert len(set(names)) == len(names)


def compiled(argv: Sequence[Any]) -> schedule.Samples:
    comparison = Comparison("c", "g", "t", (Reader("chunkwise", "limits", {"argv": argv}),))
    (samples,) = schedule.measure(comparison, 1)
    return samples


def crc_of(array: npt.NDArray[Any]) -> dict[str, set[int]]:
    return {EVERYTHING: {zlib.crc32(array.tobytes())}}


@needs_chunk_iter
def test_limits_are_of_the_same_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LIMITS.exists():
        pytest.skip("cargo test builds the program")
    monkeypatch.setattr(schedule, "LIMITS", LIMITS)
    cube = np.random.default_rng(0).integers(0, 99, (6, 8, 8), "i4")
    path = store.folder / "limits.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=cube, chunks=(1, 8, 8), compression=5, shuffle=True)
        offset = f.create_dataset("flat", data=cube[:, :, 0]).id.get_offset()
    assert compiled([*store.chunks(Data(path, "x", cube.shape)), 2]).checksums == crc_of(cube)
    chosen = np.zeros((6, 8), bool)
    boxes = random_boxes((6, 8), 3, 1)
    for (row, column), (rows, columns) in boxes:
        chosen[row : row + rows, column : column + columns] = True
    found = runs((6, 8), 4, boxes, offset)
    expected = crc_of(cube[:, :, 0][chosen])
    for threads in (1, 2, 5):
        argv = ["copy", path, store.numbers("runs", found), threads]
        assert compiled(argv).checksums == expected
    assert compiled(["index", 1000]).values[0] >= 1000 * 12
    assert compiled(["stream", 24_000, 3]).values[0] > 0
    assert "beyond the end" in str(
        compiled(["copy", path, store.numbers("far", [(0, 1 << 40)]), 1]).failed
    )


def test_all_of_it_in_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / "figures.md"
    # Figures of other groups stay.
    others = "<!-- figures: write, repack -->\nof another day\n<!-- end -->\n"
    docs.write_text(f"{others}before\n<!-- figures -->\nold\n<!-- end -->\nafter\n")
    asked = ["--small", "--folder", str(tmp_path), "--repeat", "1", "--only", "rows"]
    assert program.main([*asked, "--docs", str(docs)]) == 0
    said = capsys.readouterr().out
    assert "2 targets: " in said
    saved = json.loads((tmp_path / "benchmarks.json").read_text())
    assert (saved["format"], saved["version"]) == ("chunkwise-benchmarks", 1)
    assert {"cpu", "hdf5", "chunkwise"} <= saved["environment"].keys()
    assert [c["name"] for c in saved["comparisons"]] == ["rows-contiguous", "rows-one-chunk"]
    for comparison in saved["comparisons"]:
        assert comparison["compared"] == 3
        for reader in comparison["readers"]:
            assert len(reader["values"]) == 1
            assert reader["median"] == reader["lowest"] == reader["highest"]
            assert {"others_share", "details", "skipped", "failed", "limit"} <= reader.keys()
        (target,) = comparison["targets"]
        assert (target["at_least"], target["against"]) == (1, "libhdf5, one read")
        assert target["word"] in ("reached", "cannot tell", "not reached")
    figures = docs.read_text()
    assert figures.startswith(f"{others}before\n<!-- figures -->\n")
    assert figures.endswith("<!-- end -->\nafter\n")
    assert "old" not in figures
    assert table.markdown(saved) in figures
    # What was kept can be shown again.
    assert program.main(["--from", str(tmp_path / "benchmarks.json")]) == 0
    assert capsys.readouterr().out == said
    assert program.main(["--small", "--folder", str(tmp_path), "--only", "none"]) == 2


def judged(
    values: dict[str, list[float]], target: Goal, limit: str = "", unit: Unit = "seconds"
) -> str:
    readers = tuple(Reader(name, "", limit=name == limit) for name in values)
    comparison = Comparison("c", "g", "t", readers, (target,), unit)
    samples = tuple(schedule.Samples(reader, values[reader.name]) for reader in readers)
    return str(results.judged(results.Result(comparison, samples), target)["word"])


@pytest.mark.parametrize(
    ("ours", "theirs", "limit", "wanted", "word"),
    [
        ([1.0, 1.01, 0.99], [4.6, 4.7, 4.5], [0.9] * 3, 4.0, "reached"),
        # The median is beyond the target, and not all of the interval.
        ([1.0, 1.01, 0.99], [4.1, 4.2, 4.0], [0.3] * 3, 4.0, "cannot tell"),
        ([1.0], [4.1], [0.3] * 3, 4.0, "cannot tell"),
        ([1.0], [13.0], [0.3] * 3, 4.0, "reached"),
        ([1.0, 1.0], [1.3], [0.3] * 3, 4.0, "not reached"),
        ([1.0, 1.2, 0.9], [3.9, 4.1, 3.7], [0.5] * 3, 4.0, "cannot tell"),
        ([1.0, 1.01, 0.99], [2.0, 2.1, 2.0], [0.3] * 3, 4.0, "not reached"),
        # The limit would be 2.2 times as fast: 4 times is beyond it, twice is near it.
        ([1.0, 1.01, 0.99], [2.0, 2.1, 2.0], [0.9] * 3, 4.0, "at the limit"),
        ([1.0, 1.01, 0.99], [2.0, 2.1, 2.0], [0.6] * 3, 4.0, "not reached"),
        ([], [2.0, 2.1, 2.0], [0.9] * 3, 4.0, "no figure"),
        ([1.0], [], [0.9] * 3, 4.0, "no figure"),
    ],
)
def test_what_came_of_a_target(
    ours: list[float], theirs: list[float], limit: list[float], wanted: float, word: str
) -> None:
    values = {"h5py": theirs, "chunkwise": ours, "bare": limit}
    assert judged(values, Goal(wanted, "h5py"), "bare") == word


def test_others_at_work_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "usable_cpus", lambda: 2)
    share = process.Share()
    assert share.of_others is None
    # Busy seconds of the machine, and of the reader.
    share.add((100.0, 5.0), (103.0, 6.0), 2.0)
    share.add(None, (0.0, 0.0), 1.0)
    # Of four processor seconds others had two; what nobody tells does not count.
    assert share.of_others == 0.5


def test_a_figure_of_its_own_has_a_most() -> None:
    assert judged({"chunkwise": [2.0, 2.2, 2.1]}, Goal(3.0)) == "reached"
    # The median is beyond the target, and not all of the interval; or nobody knows one.
    assert judged({"chunkwise": [2.9, 2.8, 3.0]}, Goal(3.0)) == "cannot tell"
    assert judged({"chunkwise": [2.0, 2.2]}, Goal(3.0)) == "cannot tell"
    assert judged({"chunkwise": [0.8]}, Goal(3.0)) == "reached"
    assert judged({"chunkwise": [2.0, 5.0, 6.0]}, Goal(3.0)) == "cannot tell"
    assert judged({"chunkwise": [4.0, 5.0, 4.5]}, Goal(3.0)) == "not reached"
    # What is counted needs no repeats.
    assert judged({"chunkwise": [3.0]}, Goal(3.0), unit="bytes") == "reached"
    assert judged({"chunkwise": [0.0]}, Goal(3.0), unit="rounds") == "reached"
    assert judged({"chunkwise": [4.0]}, Goal(3.0), unit="rounds") == "not reached"


def test_other_bytes_are_named() -> None:
    readers = (Reader("h5py", ""), Reader("chunkwise", ""), Reader("pyfive", ""))
    samples = [schedule.Samples(reader, [1.0]) for reader in readers]
    for one, crc in zip(samples, (1, 1, 2), strict=True):
        one.take({"value": 1.0, "checksums": {EVERYTHING: crc}})
    comparison = Comparison("c", "g", "t", readers, (Goal(1, "h5py"),))
    result = results.Result(comparison, tuple(samples))
    # A peer's other values are told; they are no failure of ours.
    assert (result.differing, result.failed) == (["pyfive"], False)
    samples[0].take({"value": 1.0, "checksums": {EVERYTHING: 3}})
    assert results.Result(comparison, tuple(samples)).failed
    shown = table.markdown(results.to_json([result]))
    assert "OTHER BYTES" in shown


def test_a_target_may_be_that_of_another_reader() -> None:
    readers = tuple(Reader(name, "") for name in ("h5repack", "chunkwise", "fast"))
    values = {"h5repack": [8.0, 8.0, 8.0], "chunkwise": [4.0, 4.0, 4.0], "fast": [2.0, 2.0, 2.0]}
    samples = tuple(schedule.Samples(reader, values[reader.name]) for reader in readers)
    targets = (Goal(3, "h5repack"), Goal(3, "h5repack", by="fast"))
    result = results.Result(Comparison("c", "g", "t", readers, targets), samples)
    (saved,) = results.to_json([result])["comparisons"]
    assert [one["word"] for one in saved["targets"]] == ["not reached", "reached"]
    shown = {row[0]: row[5:] for row in table.rows(saved)}
    assert shown["h5repack"] == ("2.00x", "2.00x", "3.00x", "not reached")
    assert shown["h5repack, beside fast"] == ("4.00x", "4.00x", "3.00x", "reached")


def test_what_takes_minutes_is_run_less_often(store: Store) -> None:
    data = store.sampled("counting", (20, 20), (5, 5), "deflate:1")
    asked = {"reader": "h5py", **data.arguments}
    readers = (
        Reader("chunkwise", "peers:whole", asked),
        Reader("h5py", "peers:whole", asked, most=1),
    )
    often, once = schedule.measure(Comparison("c", "g", "t", readers), 3)
    assert (len(often.values), len(once.values)) == (3, 1)


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo broken >&2; exit 3", "{in}", "{out}"]
    measure = next(programs.repacked(argv, "in", str(tmp_path / "out"), "x"))
    with pytest.raises(RuntimeError, match="ended with code 3: broken"):
        measure()
    with pytest.raises(CannotReadError, match="not installed"):
        next(programs.repacked(["no-such-program"], "in", "out", "x"))
    with pytest.raises(CannotReadError, match="the comparison before"):
        next(programs.size(str(tmp_path / "out")))


def test_a_worker_that_cannot_says_why(store: Store) -> None:
    data = store.sampled("counting", (20, 20), (5, 5), "deflate:1")
    readers = tuple(
        Reader(name, "peers:whole", {"reader": name, **data.arguments})
        for name in ("b2h5py", "chunkwise")
    )
    asked = Comparison("c", "g", "t", readers)
    peer, ours = schedule.measure(asked, 1)
    assert peer.values == []
    assert "Blosc2" in str(peer.skipped) or "not installed" in str(peer.skipped)
    assert len(ours.values) == 1
    missing = Reader("chunkwise", "peers:whole", {"reader": "h5py", "file": "none", "dataset": ""})
    (samples,) = schedule.measure(Comparison("c", "g", "t", (missing,)), 1)
    assert "FileNotFoundError" in str(samples.failed)
