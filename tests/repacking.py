"""What tests of repack share: files, the command, and who says that two files are equal."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise.repacking.moment import Moment, Teller
from chunkwise.repacking.verify import compare_files


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``chunkwise repack`` as a user would."""
    words = [sys.executable, "-m", "chunkwise", "repack", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **options)


def nobody(_: Moment) -> None:
    """Watch nothing."""


def require_equal(source: Path, target: Path) -> None:
    """Have h5diff, and libhdf5 through h5py, find no difference."""
    with h5py.File(source) as mine, h5py.File(target) as theirs:
        assert compare_files(mine, theirs, Teller(nobody, "verifying", 0)) == []
    if shutil.which("h5diff"):
        words = ["h5diff", "--follow-symlinks", str(source), str(target)]
        found = subprocess.run(words, capture_output=True, text=True)
        # Its own library may lack a filter; then it compares nothing and says so (2).
        if found.returncode == 2 and "not comparable" not in found.stdout:
            return
        assert (found.returncode, found.stdout) == (0, "")


def write_example(path: Path, *, scale: int = 1) -> Path:
    """Write a file of some datasets that compress, a few MB at scale 1."""
    random = np.random.default_rng(0)
    noise = random.integers(0, 50, (40 * scale, 64, 64), "i4").cumsum(axis=0, dtype="i4")
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["title"] = "an example"
        shuffled = {"compression": 4, "shuffle": True}
        file.create_dataset("cube", data=noise, chunks=(1, 64, 64), **shuffled)
        file["cube"].attrs["units"] = "K"
        group = file.create_group("a/b", track_order=True)
        group.create_dataset("plane", data=random.random((300, 200), "f4"))
        line = {"maxshape": (None,), "chunks": (50,), "fletcher32": True}
        group.create_dataset("line", data=np.arange(120, dtype=">i2"), **line)
        file["scalar"] = 1.5
        file["words"] = ["one", "two", "three"]
        file["again"] = file["cube"]
        file["soft"] = h5py.SoftLink("/a/b/plane")
        file["a"].attrs["points to"] = file["cube"].ref
    with path.open("r+b") as stream:
        stream.write(b"a user block")
    return path
