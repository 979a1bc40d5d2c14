"""The command line, run in this process: its exit code, and what it prints."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from typing import Any, NamedTuple
from unittest import mock

import pytest

from chunkwise.cli.main import main
from tests.support.processes import ran


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


def run(*words: object) -> Done:
    """Run ``chunkwise`` with these words."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["chunkwise", *map(str, words)]),
        # The command line sets these for its process.
        mock.patch.object(sys, "excepthook", sys.excepthook),
        mock.patch.object(warnings, "formatwarning", warnings.formatwarning),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        main()
    return Done(int(left.value.code or 0), out.getvalue(), err.getvalue())


def ended(*words: object, cwd: Any = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``chunkwise`` in a folder; with options of a process, in one of its own."""
    if options:
        command = [sys.executable, "-m", "chunkwise", *map(str, words)]
        return ran(command, cwd=cwd, timeout=120, **options)
    with pytest.MonkeyPatch.context() as here:
        here.chdir(cwd or os.curdir)
        done = run(*words)
    return subprocess.CompletedProcess([*map(str, words)], done.code, done.out, done.err)
