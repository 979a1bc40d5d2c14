"""Does libhdf5 still get wrong what we avoid?  Its programs are ready to be sent upstream."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "upstream"


def _compiled(source: str, tmp_path: Path) -> Path:
    h5cc = shutil.which("h5cc")
    if h5cc is None:
        pytest.skip("h5cc is not installed")
    program = tmp_path / "program"
    subprocess.run(
        [h5cc, HERE / source, "-o", program], cwd=tmp_path, check=True, capture_output=True
    )
    return program


def test_a_chunk_at_the_edge_loses_its_filter_mask_when_a_dataset_grows(tmp_path: Path) -> None:
    """When this fails, `unfiltered_edges.lengthen` may be needed no more."""
    program = _compiled("edge_mask_lost.c", tmp_path)
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    # What `lengthen` does about it.
    done = subprocess.run([program, "longer"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rewritten_chunk_keeps_its_old_filter_mask(tmp_path: Path) -> None:
    """As a program in C, with the system's libhdf5."""
    program = _compiled("filter_mask_kept.c", tmp_path)
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True)
    # When this fails libhdf5 is mended: say so in docs/writing.md, and in the committer.
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith("expected 1, read 84\n")


def test_closing_a_dataset_that_cannot_be_flushed_crashes(tmp_path: Path) -> None:
    """When this fails, `files/unwritten.py` and `abandoned.rs` may be needed no more."""
    program = _compiled("close_unflushed.c", tmp_path)
    done = subprocess.run([program, "x.h5"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
    # What they do about it.
    words = [str(program), "y.h5", "flushed"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_chunk_that_is_too_short_is_read_beyond_its_end(tmp_path: Path) -> None:
    """Why libhdf5 is not given chunks whose filters may make them shorter."""
    program = _compiled("short_chunk.c", tmp_path)
    done = subprocess.run([program, "x.h5"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (1, -signal.SIGSEGV, -signal.SIGBUS), done.stdout + done.stderr
