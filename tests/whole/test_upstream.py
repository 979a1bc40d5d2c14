"""Does libhdf5 still get wrong what we avoid?  Its programs are ready to be sent upstream."""

import signal
from pathlib import Path

from tests.support.processes import ran
from tests.support.tools import require_tool

HERE = Path(__file__).parents[1] / "upstream"


def _compiled(source: str, tmp_path: Path) -> Path:
    program = tmp_path / "program"
    ran([require_tool("h5cc"), HERE / source, "-o", program], cwd=tmp_path, check=True)
    return program


def test_a_chunk_at_the_edge_loses_its_filter_mask_when_a_dataset_grows(tmp_path: Path) -> None:
    """When this fails, `unfiltered_edges.lengthen` may be needed no more."""
    program = _compiled("edge_mask_lost.c", tmp_path)
    done = ran([program], cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    # What `lengthen` does about it.
    done = ran([program, "longer"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rewritten_chunk_keeps_its_old_filter_mask(tmp_path: Path) -> None:
    """As a program in C, with the system's libhdf5."""
    program = _compiled("filter_mask_kept.c", tmp_path)
    done = ran([program], cwd=tmp_path)
    # When this fails libhdf5 is mended: say so in docs/writing.md, and in the committer.
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith("expected 1, read 84\n")


def test_closing_a_dataset_that_cannot_be_flushed_crashes(tmp_path: Path) -> None:
    """When this fails, `files/unwritten.py` and `abandoned.rs` may be needed no more."""
    program = _compiled("close_unflushed.c", tmp_path)
    done = ran([program, "x.h5"], cwd=tmp_path)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
    # What they do about it.
    done = ran([program, "y.h5", "flushed"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_chunk_that_is_too_short_is_read_beyond_its_end(tmp_path: Path) -> None:
    """Why libhdf5 is not given chunks whose filters may make them shorter."""
    program = _compiled("short_chunk.c", tmp_path)
    done = ran([program, "x.h5"], cwd=tmp_path)
    assert done.returncode in (1, -signal.SIGSEGV, -signal.SIGBUS), done.stdout + done.stderr


def test_what_was_never_written_cannot_grow(tmp_path: Path) -> None:
    """When this fails, `unfiltered_edges.make_index` may be needed no more."""
    program = _compiled("grow_unwritten.c", tmp_path)
    done = ran([program, "x.h5"], cwd=tmp_path, timeout=60)
    assert done.returncode in (1, -signal.SIGSEGV), done.stdout
