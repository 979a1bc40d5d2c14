"""Run the tests of h5py or of xarray in a process of its own; write down what came of each.

Its arguments: ``h5py [--patched | --face]``, for plain, patched or on chunkwise's files; or
``xarray EXPRESSION [ENGINE...]``: the tests that the expression names, with these engines of
xarray replaced; they write as they do and read by ours.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# A minute on a busy machine; a hang is what this ends.
HANG_S = 900
OUTCOMES = "outcomes.json"
BACKENDS = ("xarray.tests.test_backends", "xarray.tests.test_backends_datatree")


def start(folder: Path, *words: str, **given: str) -> subprocess.Popen[bytes]:
    """Run a suite in a folder."""
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, __file__, *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            # The tests make files there under fixed names.
            env=os.environ | {"TMPDIR": str(folder)} | given,
        )


def finish(run: subprocess.Popen[bytes], folder: Path, *, may_crash: bool = False) -> Any:
    """Give what came of it: outcomes by test, why some failed, and statistics of the patch."""
    try:
        code = run.wait(HANG_S)
    finally:
        run.kill()
    if may_crash and code < 0:
        return {"outcomes": {}}
    assert code == 0, (folder / "log").read_text()[-2000:]
    return json.loads((folder / OUTCOMES).read_text())


class Outcomes:
    """A plugin of pytest that notes each test's worst outcome, and why it failed."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.of: dict[str, str] = {}
        self.why: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.lstrip(":").rpartition(f"{self.package}/tests/")[2]
        if report.outcome != "passed" or report.when == "call":
            self.of[name] = report.outcome
        if report.failed:
            self.why[name] = str(report.longrepr)[-500:]


class Face:
    """A plugin of pytest by which h5py's tests open `chunkwise.File` for `h5py.File`.

    The module itself stays as it is, since chunkwise opens files by it.
    """

    def __init__(self) -> None:
        import h5py

        import chunkwise

        class Stand(ModuleType):
            """h5py, but for its File."""

            File = chunkwise.File

            def __getattr__(self, name: str) -> Any:
                return getattr(h5py, name)

        self._instead = {id(h5py): Stand("h5py"), id(h5py.File): chunkwise.File}

    def pytest_collection_modifyitems(self) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("h5py.tests"):
                for at, value in list(vars(module).items()):
                    if id(value) in self._instead:
                        setattr(module, at, self._instead[id(value)])


def _patch() -> None:
    import chunkwise
    from chunkwise.routing import eligibility
    from chunkwise.writing import at_once

    # Nearly everything in these tests is small.
    eligibility.SMALLEST_NBYTES = 0
    at_once.SMALLEST_NBYTES = at_once.SMALLEST_FAST_NBYTES = 0
    chunkwise.patch_h5py()


def main() -> None:
    package, *words = sys.argv[1:]
    outcomes = Outcomes(package)
    plugins: list[object] = [outcomes]
    options = ["-q", "-p", "no:cacheprovider"]
    stats = None
    if package == "h5py":
        if "--patched" in words:
            _patch()
        if "--face" in words:
            plugins.append(Face())
        # None of our settings; in processes of their own two runs share no folder.
        options += ["-c", "/dev/null", "--rootdir", ".", "--basetemp", "tmp"]
        # Where plugins lie they ask of libhdf5 alone, and a process for each question.
        options += ["--pyargs", "h5py.tests", "-k", "not h5pl"]
    else:
        import xarray as xr

        engines = xr.backends.list_engines()
        engines.update(dict.fromkeys(words[1:], engines["chunkwise"]))
        options += ["-W", "ignore", "--pyargs", *BACKENDS, "-k", words[0]]
    pytest.main(options, plugins)
    if "--patched" in words:
        import chunkwise

        stats = chunkwise.patch_stats()
    record = {"outcomes": outcomes.of, "why": outcomes.why, "stats": stats}
    Path(OUTCOMES).write_text(json.dumps(record))


if __name__ == "__main__":
    main()
