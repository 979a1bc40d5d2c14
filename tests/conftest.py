"""What must hold before any test runs, and which tests does `make test-quick` leave out?

With ``--quick``, tests marked ``slow`` are left out, and so is each test that starts a process:
it is skipped at the moment when it does, so that nobody has to keep a list of them.  A test that
writes much must be marked ``slow``, or it fails.
"""

from __future__ import annotations

import multiprocessing.util
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from hypothesis import settings

# How long an example takes says nothing on a machine that others use.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# A shell starts background jobs with SIGINT ignored, and children inherit that: the
# tests of Ctrl-C would then interrupt nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_NBYTES: Final = 32 << 20
# What Python reports to audit hooks when a process is to be started.
_STARTS: Final = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"})
_REASON: Final = "starts a process: not in a quick run"


class Quick:
    """The rules of a quick run."""

    def __init__(self) -> None:
        self._testing = False
        self._started = False
        sys.addaudithook(self._audit)
        # Python reports nothing of how multiprocessing starts processes that do not fork.
        multiprocessing.util.spawnv_passfds = self._refuse  # type: ignore[assignment]

    def _audit(self, event: str, _: object) -> None:
        if self._testing and event in _STARTS:
            self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        self._started = True
        raise pytest.skip.Exception(_REASON)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is marked slow."""
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """Look for processes while a test runs, with its fixtures."""
        self._testing, self._started = True, False
        try:
            return (yield)
        finally:
            self._testing = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a test that has written much."""
        result = yield
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        if folder is not None and _nbytes(folder) > MOST_NBYTES:
            pytest.fail(f"writes more than {MOST_NBYTES:,} bytes: mark it slow", pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a test also where a thread of it, or a handler, met the refusal."""
        report = yield
        if self._started and report.failed:
            path, line, _ = item.location
            report.outcome, report.longrepr = "skipped", (path, line or 0, _REASON)
        return report


def _nbytes(folder: Path) -> int:
    # By `os` alone: a test may have methods of Path replaced.
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)  # noqa: PTH118
    return sum(os.lstat(file).st_blocks * 512 for file in files)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option."""
    parser.addoption("--quick", action="store_true", help="leave out slow tests and processes")


def pytest_configure(config: pytest.Config) -> None:
    """Explain the marker, and apply the rules of a quick run to one."""
    config.addinivalue_line("markers", "slow: takes a second or more, or writes much")
    if config.getoption("quick"):
        config.pluginmanager.register(Quick(), "quick")
