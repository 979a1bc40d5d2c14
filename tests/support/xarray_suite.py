"""Run xarray's own tests of netCDF engines, which write as they do and read by ours.

``python tests/support/xarray_suite.py OUTCOMES.json EXPRESSION [ENGINE...]``: the tests that the
expression names, with these engines of xarray replaced; writes down what came of each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

MODULES = ("xarray.tests.test_backends", "xarray.tests.test_backends_datatree")


class Outcomes:
    """A plugin of pytest that notes each test's worst outcome, and why it failed."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.why: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.lstrip(":").rpartition("xarray/tests/")[2]
        if report.outcome != "passed" or report.when == "call":
            self.of[name] = report.outcome
        if report.failed:
            self.why[name] = str(report.longrepr)[-500:]


def main() -> None:
    import xarray as xr

    into, expression, *replaced = sys.argv[1:]
    engines = xr.backends.list_engines()
    for name in replaced:
        engines[name] = engines["chunkwise"]
    outcomes = Outcomes()
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs", *MODULES]
    pytest.main([*options, "-k", expression], plugins=[outcomes])
    Path(into).write_text(json.dumps({"outcomes": outcomes.of, "why": outcomes.why}))


if __name__ == "__main__":
    main()
