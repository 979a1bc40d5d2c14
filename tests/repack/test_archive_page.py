"""Does the script of docs/archive.md do what the page says?"""

import os
import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.processes import ran

PAGE = Path(__file__).parents[2] / "docs" / "archive.md"


@pytest.mark.slow
def test_the_script_of_the_page(tmp_path: Path) -> None:
    """Of an archive with a damaged file, and with one that still arrives."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for name in ("a.h5", "b.h5", "cut.h5", "new.h5", "left.tmp"):
        with h5py.File(archive / name, "w") as file:
            file["x"] = np.arange(40_000).reshape(200, 200)
    os.truncate(archive / "cut.h5", 4000)
    for path in archive.iterdir():
        os.utime(path, (0, 10**9))
    (archive / "new.h5").touch()
    (archive / "notes.txt").write_text("kept")
    found = re.search(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    script = found[1].replace("/data/", f"{tmp_path}/")
    # Not installed everywhere.
    script = re.sub(r"^rsync .*$", 'cp -an "$ARCHIVE/." "$NEW/" || true', script, flags=re.M)
    (tmp_path / "chunkwise").write_text(f'#!/bin/sh\nexec {sys.executable} -m chunkwise "$@"\n')
    (tmp_path / "chunkwise").chmod(0o755)
    search = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = ran(
        ["bash", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": search}, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with h5py.File(archive / "b.h5") as new, h5py.File(tmp_path / "archive.old" / "b.h5") as old:
        assert (new["x"].compression, old["x"].compression) == ("gzip", None)
        np.testing.assert_array_equal(new["x"], old["x"])
    assert {one.name for one in archive.iterdir() if not one.name.startswith(".")} == {
        one.name for one in (tmp_path / "archive.old").iterdir()
    }
