"""What must hold before any test runs, and which tests do `make test-quick` and others leave out?

`TIERS` says what each leaves out.  A test that starts such a process is skipped at the moment when
it does, so that nobody has to keep a list of them.
"""

import gc
import multiprocessing.util
import os
import signal
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import hdf5plugin
import pytest
from hypothesis import HealthCheck, settings

# Workers of xdist inherit HDF5_PLUGIN_PATH, by which libhdf5 loads plugins without telling them
# whose functions they are to call: only `register` tells it.  Not in processes that tests start,
# whose files may be open already.
hdf5plugin.register()

# How long an example takes says nothing on a machine that others use.  Examples share the fixtures
# of a test: each writes its file anew.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=60,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
settings.load_profile("any machine")

# A shell starts background jobs with SIGINT ignored, and children inherit that: the
# tests of Ctrl-C would then interrupt nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Tier:
    """A run that leaves something out."""

    option: str
    title: str  # What `pytest --help` says
    # Tests that start one of these programs; None: that start any process.
    programs: frozenset[str] | None
    files: frozenset[str] = frozenset()  # In this folder
    # A test that writes more must be marked slow, or it fails; None: as much as it likes.
    most_nbytes: int | None = None
    # Of a property that states no number of its own; None for Hypothesis's.
    examples: int | None = None


# Each leaves out the tests that are marked slow.
TIERS: Final = (
    Tier("--quick", "leave out slow tests and processes", None, most_nbytes=32 << 20, examples=25),
    Tier(
        "--middle",
        "leave out slow tests, MPI, browsers, and what is installed anew",
        frozenset({"chromium", "chromium-browser", "mpiexec", "mpirun", "node", "srun"}),
        frozenset(
            f"whole/test_{name}.py"
            for name in ("demo", "h5py_builds", "h5py_versions", "site", "wheel")
        ),
        examples=40,
    ),
)
# What Windows or wine cannot do: reasons, each with the files or functions of tests it is for.
WINDOWS: Final = Path(__file__).with_name("windows.toml")
# What Python reports to audit hooks when a process is to be started.
_UNNAMED: Final = frozenset({"_winapi.CreateProcess", "os.fork"})
_STARTS: Final = _UNNAMED | {"subprocess.Popen", "os.posix_spawn", "os.system"}


class Rules:
    """The rules of a run that leaves something out."""

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self._testing = False
        self._reason = ""  # Why the test that runs now is to be skipped
        sys.addaudithook(self._audit)
        if tier.programs is None:
            # Python reports nothing of how multiprocessing starts processes that do not fork.
            multiprocessing.util.spawnv_passfds = self._refuse  # type: ignore[assignment]

    def _audit(self, event: str, told: tuple[Any, ...]) -> None:
        if not self._testing or event not in _STARTS:
            return
        if self._tier.programs is None:
            self._refuse()
        elif event not in _UNNAMED and (name := _program(event, told)) in self._tier.programs:
            self._refuse(what=name)

    def _refuse(self, *_: object, what: str = "a process") -> NoReturn:
        self._reason = f"starts {what}: not with {self._tier.option}"
        raise pytest.skip.Exception(self._reason)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is marked slow, and whole files."""
        folder = Path(__file__).parent
        files = {folder / name for name in self._tier.files}
        left_out = [
            item for item in items if item.get_closest_marker("slow") or item.path in files
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """Look for processes while a test runs, with its fixtures."""
        self._testing, self._reason = True, ""
        try:
            return (yield)
        finally:
            self._testing = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a test that has written much."""
        result = yield
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        most = self._tier.most_nbytes
        if folder is not None and most is not None and _nbytes(folder) > most:
            pytest.fail(f"writes more than {most:,} bytes: mark it slow", pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a test also where a thread of it, or a handler, met the refusal."""
        report = yield
        if self._reason and report.failed:
            path, line, _ = item.location
            report.outcome, report.longrepr = "skipped", (path, line or 0, self._reason)
        return report


def skip_on_windows(items: list[pytest.Item]) -> None:
    """Skip what `windows.toml` lists, each with its reason."""
    import tomllib

    reasons = {
        name: reason
        for reason, names in tomllib.loads(WINDOWS.read_text("utf-8")).items()
        for name in names
    }
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        function = name.partition("[")[0]
        for listed in (name, function, function.partition("::")[0]):
            if listed in reasons:
                item.add_marker(pytest.mark.skip(reason=f"Windows: {reasons[listed]}"))


def _nbytes(folder: Path) -> int:
    # By `os` alone: a test may have methods of Path replaced.
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)  # noqa: PTH118
    # Windows does not say what a file takes.
    return sum(getattr(found, "st_blocks", 0) * 512 for found in map(os.lstat, files))


def _program(event: str, told: tuple[Any, ...]) -> str:
    """What is started, without its folder."""
    words = told[1] if event == "subprocess.Popen" else told[0]
    if isinstance(words, str | bytes | os.PathLike):
        words = os.fsdecode(words).split()[:1] if event != "os.posix_spawn" else [words]
    return os.path.basename(os.fsdecode(words[0])) if words else ""  # noqa: PTH119 (as `_nbytes`)


# Files with one test that takes long.  At the end, the other processors would wait for it.
FIRST = frozenset(
    Path(__file__).parent / name
    for name in ("whole/test_pages_run.py", "xarray/test_xarray_suite.py")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what Windows, or wine, cannot do, and begin with what takes longest."""
    items.sort(key=lambda item: item.path not in FIRST)
    if sys.platform == "win32":
        skip_on_windows(items)


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what is there: tests that call it go by what is new."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options."""
    for tier in TIERS:
        parser.addoption(tier.option, action="store_true", help=tier.title)


def pytest_configure(config: pytest.Config) -> None:
    """Explain the marker, and apply the rules of a run that leaves something out."""
    config.addinivalue_line("markers", "slow: takes a second or more, or writes much")
    for tier in TIERS:
        if config.getoption(tier.option):
            config.pluginmanager.register(Rules(tier), tier.option)
            if tier.examples is not None:
                settings.register_profile(
                    tier.option, settings.get_profile("any machine"), max_examples=tier.examples
                )
                settings.load_profile(tier.option)
