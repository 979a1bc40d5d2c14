"""What does `chunkwise bench` print, and with which exit code does it end?"""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise.measure
from chunkwise.cli.signals import ending
from tests.support.commands import run
from tests.support.golden import assert_golden, mistakes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.h5"
    rng = np.random.default_rng(0)
    data = rng.integers(0, 50, (40, 30, 20)).astype(">f4")
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=data, chunks=(1, 30, 20), compression=4, shuffle=True)
        f.create_dataset("flat", data=data)
        f.create_dataset("scalar", data=1.0)
    return path


def test_plain(file: Path) -> None:
    done = run("bench", file, "--budget", "6s")
    assert done.code == 0, done.err
    assert done.err == ""
    before, _, after = done.out.partition("What helps:\n")
    shown = before.splitlines()[1:] + after.splitlines()[1:]  # paths and commands stay whole
    assert max(map(len, shown)) <= 80
    for word in ("step", "line", "all", "h5py", "chunkwise", "Bytes equal in all", "Why: "):
        assert word in done.out
    assert "chunkwise-py" not in done.out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_pipe_that_closes_early_is_no_error(file: Path, options: list[str]) -> None:
    command = [sys.executable, "-c", "from chunkwise.cli import main; main()", "bench", str(file)]
    command += ["t", "--access", "all", "--repeat", "1", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_every_reader_and_cache_as_json(file: Path) -> None:
    done = run("bench",
        file, "t", "--access", "row=1x1x20", "--access", "all", "--cache", "default,1MiB",
        "--reader", "libhdf5,h5py,chunkwise,chunkwise-py", "--repeat", 1, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["format"], found["version"]) == ("chunkwise-bench", 2)
    assert found["bytes_equal"] is True
    assert len(found["records"]) == len(found["summary"]) == 2 * (2 * 2 + 2)
    assert {record["status"] for record in found["records"]} == {"ok"}
    assert {record["page_cache"] for record in found["records"]} == {"warm"}
    assert {row["speed"] for row in found["summary"] if row["reader"] == "libhdf5"} >= {1.0}
    assert found["advice"]["why"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sum = 1 if trial['reader'] == 'h5py' else 2", "DIFFERENT BYTES: h5py and libhdf5"),
        ("sys.exit('no luck')", "failed: 'all' by h5py"),
    ],
)
def test_a_run_that_failed_ends_with_1(
    file: Path, code: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = (
        f"import json, sys; trial = json.load(sys.stdin); {code}; "
        "print(json.dumps({'status': 'ok', 'operations': 1, 'total_operations': 1,"
        " 'elapsed_s': 1.0, 'total_s': 1.0, 'first_s': 1.0, 'checksums': {'1': sum}}))"
    )
    by_worker = partial(chunkwise.measure.run, worker=(sys.executable, "-c", worker))
    monkeypatch.setattr("chunkwise.cli.bench.measure.run", by_worker)
    arguments = ["bench", file, "t", "--access", "all"]
    printed = run(*arguments, "--reader", "h5py,libhdf5", "--repeat", 1)
    assert printed.code == 1
    assert said in printed.out
    assert "Bytes equal" not in printed.out
    assert ("do not trust" in printed.err) == ("DIFFERENT" in said)


def test_mistakes_are_one_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    said = mistakes("""
bench none.h5
bench small.h5 scalar
bench small.h5 tt
bench small.h5 t --access 1x1
bench small.h5 t --cache lots
bench small.h5 t --reader netcdf
bench small.h5 t --reader chunkwise --cache 8MiB
bench small.h5 t --repeat 0
""")
    assert_golden("bench-mistakes", said)


class Finalised:
    """What meets Ctrl-C where no exception gets out."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError


def test_ctrl_c_in_a_finaliser_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(lost.exc_type))
    with pytest.raises(KeyboardInterrupt), ending():
        Finalised()
    assert reported == []
    hook = sys.unraisablehook
    with ending():
        # What else gets lost is told as ever.
        monkeypatch.setattr(os, "kill", lambda *_: None)
        Finalised()
    assert reported == [ValueError]
    assert sys.unraisablehook is hook
