"""Run h5py's own tests, plain or patched, and write down what came of each.

``python tests/h5py_suite.py OUTCOMES.json [--patched]``, in a folder of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


class Outcomes:
    """A plugin of pytest that notes each test's worst outcome."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed" or report.when == "call":
            self.of[report.nodeid.rpartition("h5py/tests/")[2]] = report.outcome


def main() -> None:
    patched = "--patched" in sys.argv
    if patched:
        import chunkwise
        from chunkwise.patching import bindings

        # Nearly everything in these tests is small.
        bindings.SMALLEST_NBYTES = 0
        chunkwise.patch_h5py()
    outcomes = Outcomes()
    # None of our settings; in processes of their own two runs share no folder.
    options = ["-q", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider"]
    pytest.main([*options, "--basetemp", "tmp", "--pyargs", "h5py.tests"], [outcomes])
    record = {"outcomes": outcomes.of, "stats": chunkwise.patch_stats() if patched else None}
    Path(sys.argv[1]).write_text(json.dumps(record))


if __name__ == "__main__":
    main()
