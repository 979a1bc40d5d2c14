"""Run h5py's own tests: plain, patched or on chunkwise's files; write down what came of each.

``python tests/support/h5py_suite.py OUTCOMES.json [--patched | --face]``, in a folder of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class Outcomes:
    """A plugin of pytest that notes each test's worst outcome."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed" or report.when == "call":
            self.of[report.nodeid.rpartition("h5py/tests/")[2]] = report.outcome


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


def main() -> None:
    patched = "--patched" in sys.argv
    if patched:
        import chunkwise
        from chunkwise.routing import eligibility
        from chunkwise.writing import at_once

        # Nearly everything in these tests is small.
        eligibility.SMALLEST_NBYTES = 0
        at_once.SMALLEST_NBYTES = at_once.SMALLEST_FAST_NBYTES = 0
        chunkwise.patch_h5py()
    outcomes = Outcomes()
    plugins: list[object] = [outcomes]
    if "--face" in sys.argv:
        plugins.append(Face())
    # None of our settings; in processes of their own two runs share no folder.
    options = ["-q", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider"]
    pytest.main([*options, "--basetemp", "tmp", "--pyargs", "h5py.tests"], plugins)
    record = {"outcomes": outcomes.of, "stats": chunkwise.patch_stats() if patched else None}
    Path(sys.argv[1]).write_text(json.dumps(record))


if __name__ == "__main__":
    main()
