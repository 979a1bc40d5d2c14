"""Which other builds and versions of h5py do tests run with?

Made by `make h5pys` and `make tools`; where one is missing, tests skip and say so.  None of
them has chunkwise installed: it is offered by its path, with what pip has recorded of it, as the
extension module fits every Python from 3.10 on.
"""

import contextlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "target" / "h5pys"


@dataclass(frozen=True)
class H5py:
    """A Python that has h5py: by what it is called, started, and made."""

    name: str
    python: Path
    made_by: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: object, limit_s: float = 120) -> str:
        """Run this Python with chunkwise within reach, and give what it prints.

        Skips the test where there is no such Python.
        """
        if not is_there(self):
            pytest.skip(f"{self.name} is missing ({self.made_by})")
        done = ran(
            [str(self.python), *map(str, arguments)],
            env={**_environment(self), "PYTHONPATH": f"{ROOT / 'python'}:{_records()}"},
            timeout=limit_s,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@cache
def _records() -> Path:
    """A folder with the names of chunkwise's commands, and nothing else that is installed."""
    folder = MADE / "records"
    folder.mkdir(parents=True, exist_ok=True)
    installed = Path(str(distribution("chunkwise").locate_file("")))
    for found in installed.glob("chunkwise-*.dist-info"):
        with contextlib.suppress(FileExistsError):
            (folder / found.name).symlink_to(found)
    return folder


def _environment(one: H5py) -> dict[str, str]:
    return {**os.environ, **one.environment}


@cache
def _imports(python: Path, wanted: str, environment: tuple[tuple[str, str], ...]) -> bool:
    code = f"import click, h5py, rich; assert {wanted!r} in h5py.h5.__file__"
    command = [str(python), "-c", code]
    env = {**os.environ, **dict(environment)}
    return (
        python.exists()
        and not subprocess.run(command, env=env, capture_output=True, check=False).returncode
    )


def is_there(one: H5py) -> bool:
    """Whether there is such a Python, with the h5py that is meant."""
    wanted = "mpi" if "H5PY_ALWAYS_USE_MPI" in one.environment else ""
    return _imports(one.python, wanted, tuple(one.environment.items()))


# One process, which mpiexec has not started.
_ALONE = {"OMPI_MCA_btl": "self", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
_SYSTEM = Path("/usr/bin/python3")


def _made(name: str) -> Path:
    return MADE / name / "bin" / "python"


DEBIAN = H5py("Debian's python3-h5py", _SYSTEM, "make tools")
DEBIAN_MPI = H5py(
    "Debian's python3-h5py-mpi", _SYSTEM, "make h5pys", {"H5PY_ALWAYS_USE_MPI": "1", **_ALONE}
)
AS_NEEDED = H5py("h5py linked with --as-needed", _made("as-needed"), "make h5pys")
MPI = H5py("h5py built for MPI", ROOT / ".venv-mpi" / "bin" / "python", "make mpi", _ALONE)
OLDEST = H5py("the oldest h5py that is allowed", _made("oldest"), "make target/h5pys/oldest/.made")
BUILDS = (DEBIAN, DEBIAN_MPI, AS_NEEDED, MPI, OLDEST)
