"""What does `chunkwise compare` find between saved runs, print, and end with?"""

import json
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from rich.console import Console

from chunkwise.errors import UsageError
from chunkwise.measure import compare_render
from chunkwise.measure.compare import Comparison, judge
from chunkwise.measure.saved import AS_STORED, PARAMETERS, load
from chunkwise.trials.trial import Measurement, Trial
from tests.support.commands import run
from tests.support.golden import assert_golden, mistakes

TRIAL = Trial(
    "data.h5", "t", "row", (1, 8), "libhdf5", chunks=(4, 8), filters="deflate:4", timeout_s=9.0
)
ENVIRONMENT: dict[str, str | int] = {"cpu": "A processor", "cpu_count": 2, "hdf5": "2.0.0"}
TARGET = {
    "file": "data.h5", "dataset": "t", "shape": [40, 8], "dtype": "<f4", "chunks": [4, 8],
    "filters": "deflate:4", "stored_nbytes": 900,
}  # fmt: skip
Write = Callable[..., str]


def measured(
    total_s: float | None,
    trial: Trial = TRIAL,
    busy: float = 1.0,
    environment: dict[str, str | int] = ENVIRONMENT,
    **values: Any,
) -> Measurement:
    """Make up a repeat; `busy` is how many times as long it took as it worked."""
    found = {"status": "ok", "page_cache": "warm", "operations": 40, "total_operations": 40}
    if total_s is not None:
        found |= {"elapsed_s": total_s, "total_s": total_s, "cpu_s": 1.05 * total_s / busy}
    return Measurement(trial, environment=environment, **{**found, **values})


def row(times: list[float], **values: Any) -> list[Measurement]:
    return [measured(time, **values) for time in times]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    # By their names alone, as lines hold the whole path.
    monkeypatch.chdir(tmp_path)

    def written(name: str, measurements: list[Measurement], **target: Any) -> str:
        document = {
            "format": "chunkwise-bench",
            "version": 2,
            "target": {**TARGET, **target},
            "records": [m.to_record() for m in measurements],
        }
        Path(name).write_text(json.dumps(document))
        return name

    return written


QUIET = [1.0, 1.01, 1.03]
TWICE = [2.0, 2.02, 2.05]


def words(comparison: Comparison) -> list[str]:
    return [m.word for m in comparison.matches.values()]


def shown(comparison: Comparison) -> str:
    console = Console(width=80, record=True, file=sys.stderr)
    compare_render.show(comparison, console)
    return console.export_text()


def test_every_parameter_counts_but_for_those_that_measure_nothing(write: Write) -> None:
    assert {field.name for field in fields(Trial)} - {field.name for field in PARAMETERS} == {
        # Where files lie, what is told of the data, how a trial is bounded and looked at.
        "file", "storage", "data", "scratch", "shape", "itemsize", "dtype", "stored_nbytes",
        "native_order", "filter_ids", "comparable", "access", "max_seconds", "timeout_s",
        "warm_first", "check",
    }  # fmt: skip
    elsewhere = replace(
        TRIAL, file="/tmp/x.h5", access="line", max_seconds=3.0, timeout_s=4.0, warm_first=True
    )
    a, b = write("a.json", row(QUIET)), write("b.json", row(TWICE, trial=elsewhere))
    assert words(judge(load(a), load(b))) == ["slower"]
    for other in (
        replace(TRIAL, reader="h5py"),
        replace(TRIAL, cache_nbytes=1 << 20),
        replace(TRIAL, block=(2, 8)),
        replace(TRIAL, seed=0),
        replace(TRIAL, page_cache="cold"),
        replace(TRIAL, filters="none"),
    ):
        with pytest.raises(UsageError, match="no trial in common"):
            # The first trial says how the data of the run is stored.
            judge(load(a), load(write("b.json", row(TWICE, trial=other))))


def test_a_file_from_before_a_parameter_has_its_default(write: Write) -> None:
    a, b = write("a.json", row(QUIET)), write("b.json", row(TWICE))
    document = json.loads(Path(b).read_text())
    for record in document["records"]:
        for name in ("seed", "limit", "slabs", "cache_w0", "cpu_s", "asked_page_cache"):
            del record[name]
    Path(b).write_text(json.dumps(document))
    assert words(judge(load(a), load(b))) == ["slower"]


def test_a_certain_interval_beside_cannot_tell_is_explained(write: Write) -> None:
    a = load(write("a.json", row([1.0, 1.01, 1.02, 1.03, 1.0])))
    slow = load(write("b.json", row([1.05, 4.0, 4.1, 4.05, 4.02])))
    comparison = judge(a, slow)
    (found,) = comparison.matches.values()
    assert found.word == "cannot tell"
    assert found.verdict is not None
    assert found.verdict.low is not None
    assert found.verdict.low > comparison.threshold
    said = " ".join(shown(comparison).split())
    assert "cannot tell+" in said
    assert "The threshold is 1.25 times either way" in said
    assert "the fastest repeats are not, and a verdict needs both" in said
    assert "B's fastest divided by A's: 'row' by libhdf5 1.05x." in said
    trial = compare_render.as_json(comparison)["others"][0]["trials"][0]
    assert trial["fastest_ratio"] == pytest.approx(1.05)
    # Threads that may have waited.
    threads = load(write("c.json", row(QUIET, busy=0.25)))
    fewer = load(write("d.json", row([5.0, 5.1, 5.2], busy=1.25)))
    said = " ".join(shown(judge(threads, fewer)).split())
    assert "cannot tell+" in said
    assert "threads of B or A may have waited for a processor" in said
    # What spreads over the threshold needs no mark.
    wide = load(write("e.json", row([1.1, 1.2, 1.25, 1.3, 1.4])))
    assert words(judge(a, wide)) == ["cannot tell"]
    assert "cannot tell+" not in shown(judge(a, wide))


def test_what_only_one_has_is_listed(write: Write) -> None:
    more = replace(TRIAL, reader="h5py", cache_nbytes=1 << 20, page_cache="cold")
    a, b = write("a.json", row(QUIET) + row(QUIET, trial=more)), write("b.json", row(QUIET))
    for first, second, said in ((a, b, "Only in A, not in B"), (b, a, "Only in B, not in A")):
        comparison = judge(load(first), load(second))
        assert f"{said}: 'row' by h5py, cache 1.0 MiB, page cache cold." in " ".join(
            shown(comparison).split()
        )
        assert not comparison.fails("different")


def test_waiting_for_a_processor_is_no_difference(write: Write) -> None:
    a = load(write("a.json", row(QUIET)))
    busy = load(write("b.json", row(TWICE, busy=2.0)))
    comparison = judge(a, busy)
    assert words(comparison) == ["same"]
    assert "2.02 s*" in shown(comparison)
    # Several threads at work before, less than one now: that may be either.
    threads = load(write("c.json", row(QUIET, busy=0.25)))
    fewer = load(write("d.json", row([5.0, 5.1, 5.2], busy=1.25)))
    assert words(judge(threads, fewer)) == ["cannot tell"]
    assert "the machine was busy" in " ".join(shown(judge(threads, fewer)).split())
    # Four threads before, one now: nobody waited, and that is slower.
    single = load(write("e.json", row([4.0, 4.1, 4.2])))
    assert words(judge(threads, single)) == ["slower"]
    # From storage, waiting is what is measured.
    cold = {"trial": replace(TRIAL, page_cache="cold"), "page_cache": "cold"}
    fast, slow = row(QUIET, **cold), row(TWICE, busy=2.0, **cold)
    assert words(judge(load(write("f", fast)), load(write("g", slow)))) == ["slower"]


def test_other_data_are_a_warning_and_other_shapes_an_error(write: Write) -> None:
    a = load(write("a.json", row(QUIET)))
    again = replace(TRIAL, chunks=(1, 8), filters="none")
    b = load(write("b.json", row(TWICE, trial=again), chunks=[1, 8], filters="none"))
    comparison = judge(a, b)
    assert words(comparison) == ["slower"]
    assert next(iter(b.samples.values())).parameters["chunks"] == AS_STORED
    text = " ".join(shown(comparison).split())
    assert "Warning: A and B read different data: chunks 4x8 and 1x8; filters deflate:4" in text
    with pytest.raises(UsageError, match=r"different shapes \(40x8 and 40x9\)"):
        judge(a, load(write("c.json", row(QUIET), shape=[40, 9])))


def test_the_worst_is_first(write: Write) -> None:
    trials = [replace(TRIAL, reader=name) for name in ("libhdf5", "h5py", "chunkwise", "netcdf4")]
    times = [QUIET, TWICE, [t / 3 for t in QUIET], [5 * t for t in QUIET]]
    a = load(write("a.json", [m for trial in trials for m in row(QUIET, trial=trial)]))
    b = load(
        write(
            "b.json",
            [m for t, trial in zip(times, trials, strict=True) for m in row(t, trial=trial)],
        )
    )
    comparison = judge(a, b)
    lines = [line.split() for line in shown(comparison).splitlines() if line.startswith("row")]
    assert [line[1] for line in lines] == ["netcdf4", "h5py", "chunkwise", "libhdf5"]
    text = " ".join(shown(comparison).split())
    assert "B against A: of 4 trials, 2 slower, 1 faster, 1 same; the worst: 'row' by" in text
    assert "Geometric mean of the ratios: 1.35x (5.00x to 0.33x)" not in text
    assert "(0.33x to 5.00x)" in text


def test_failures_and_estimates(write: Write) -> None:
    h5py_too = replace(TRIAL, reader="h5py")
    fine, estimated = row(QUIET), row(QUIET, extrapolated=True)
    a = load(write("a.json", fine + row(QUIET, trial=h5py_too)))
    failed = measured(None, trial=h5py_too, status="failed", error="no luck")
    comparison = judge(a, load(write("b.json", [*estimated, failed])))
    assert words(comparison) == ["same", "failed"]
    assert comparison.fails("slower")
    text = shown(comparison)
    assert "~1.01 s" in text
    assert "failed in B: 'row' by h5py: no luck" in text
    # A baseline that failed is no regression; nor is a read for which there was no time.
    late = measured(None, trial=h5py_too, status="timeout", error="no figures within 3 s")
    for base, other in ((failed, measured(1.0, trial=h5py_too)), (measured(1.0), late)):
        b = load(write("b.json", [*fine, base]))
        assert not judge(b, load(write("c.json", [*fine, other]))).fails("different")


def test_json_has_what_the_table_has(write: Write) -> None:
    a = load(write("a.json", row(QUIET)))
    b = load(write("b.json", row(TWICE)))
    assert_golden("compare", run("compare", "a.json", "b.json").out)
    found = json.loads(json.dumps(compare_render.as_json(judge(a, b))))
    assert (found["format"], found["version"]) == ("chunkwise-compare", 2)
    assert found["verdict"] == "slower"
    (first,) = found["others"]
    assert first["verdict"] == "slower"
    assert first["counts"]["slower"] == 1
    trial = first["trials"][0]
    assert trial["base_total_s"] == QUIET
    assert trial["ratio"] == pytest.approx(2.0)
    assert trial["low"] < trial["ratio"] < trial["high"]
    assert (trial["access"], trial["reader"], trial["chunks"]) == ("row", "libhdf5", AS_STORED)


def test_real_runs(tmp_path: Path) -> None:
    file = tmp_path / "small.h5"
    with h5py.File(file, "w") as f:
        f.create_dataset("t", data=np.arange(4000.0).reshape(40, 100), chunks=(1, 100))
    asked = ["--access", "row=1x100", "--access", "line:0", "--reader", "libhdf5,h5py"]
    saved = tmp_path / "trials.jsonl"
    done = run("bench", file, "t", *asked, "--repeat", 3, "--json", "--save", saved)
    assert done.code == 0, done.err
    document = tmp_path / "run.json"
    document.write_text(done.out)
    # The two forms of one run hold the same.
    done = run("compare", document, saved, "--fail-on", "different")
    assert done.code == 0, done.err
    assert "B against A: no difference in 4 trials." in done.out
    # Neither has figures that the other lacks taken for facts of the machine.
    assert "A and B: the same machine and versions." in done.out
    assert max(map(len, done.out.splitlines()[2:])) <= 80
    # A kill cuts the last line short.
    saved.write_text(saved.read_text()[:-9])
    assert run("compare", saved, document, "--fail-on", "none").code == 0


def test_exit_codes(write: Write) -> None:
    a, b = write("a.json", row(QUIET)), write("b.json", row(TWICE))
    for arguments, code in (
        ((a, b), 1),
        ((b, a), 0),
        ((b, a, "--fail-on", "different"), 1),
        ((a, b, "--fail-on", "none"), 0),
        ((a, b, "--threshold", "2.5"), 0),
        ((a, b, "--json"), 1),
    ):
        done = run("compare", *arguments)
        assert (done.code, done.err) == (code, ""), arguments


BAD_FILES = (
    "",
    '{"format": "chunkwise-bench", "version": 2, "target": {',
    "[1, 2]",
    '{"format": "chunkwise-bench", "version": 99}',
    '{"format": "chunkwise-bench-trials", "version": 99}\n',
    '{"format": "chunkwise-bench", "version": 2}',
    '{"format": "chunkwise-bench", "version": 2, "target": 1, "records": [1]}',
    '{"format": "chunkwise-bench", "version": 2, "target": {}, "records": []}',
    '{"format": "chunkwise-bench-trials", "version": 1}\n{"trial": 1}\n',
    '{"format": "chunkwise-bench", "version": 2, "target": {"dataset": "t"}, '
    '"records": [{"reader": "h5py", "dataset": "t", "status": "ok", "total_s": 1}]}',
)


def test_mistakes_are_one_line(write: Write) -> None:
    write("good.json", row(QUIET))
    write("other.json", row(QUIET, trial=replace(TRIAL, dataset="u")), dataset="u")
    said = mistakes("""
compare good.json gone.json
compare good.json good.json --threshold 0.9
compare good.json other.json
""")
    for text in BAD_FILES:
        Path("bad.json").write_text(text)
        said += f"{text!r}\n{mistakes('compare good.json bad.json')}"
    assert_golden("compare-mistakes", said)
