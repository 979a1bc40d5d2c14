"""What tests of repack share: files, the command, and who says that two files are equal."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.files.objects import walk_datasets
from chunkwise.proof.compare import prove
from chunkwise.proof.records import Allowed
from chunkwise.repacking.progress import Moment
from tests.support.commands import ended


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``chunkwise repack`` as a user would."""
    return ended("repack", *arguments, **options)


def interrupted(source: Path, target: Path, **how: Any) -> None:
    """Repack, and end that when all is done but the proof."""

    def watch(moment: Moment) -> None:
        if moment.phase == "verifying":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunkwise.repack(source, target, **how, progress=watch)


def limited(nbytes: int) -> Callable[[], None]:
    """Give what lets files of a new process not grow beyond a size, as a full disk does."""

    def limit() -> None:
        import resource  # Windows has none.

        # Writes fail with EFBIG.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, nbytes))

    return limit


def nobody(_: Moment) -> None:
    """Watch nothing."""


def require_proof(source: Path, target: Path) -> None:
    """Have the proof (see tests/proof) find no difference."""
    with h5py.File(source) as mine:
        # Of merged data, the place is not compared.
        allowed = Allowed(moved=frozenset(path for path, _ in walk_datasets(mine)))
        prove(mine, target, str(target), allowed=allowed, memory_nbytes=64 << 20)


def require_equal(source: Path, target: Path, *, unread: tuple[str, ...] = ()) -> None:
    """Have libhdf5 through h5py, and h5diff, find no difference."""
    if not unread:
        require_proof(source, target)
    filters: set[str] = set()
    for path in (source, target):
        with h5py.File(path) as file:
            filters.update(name for _, one in walk_datasets(file) for name in one._filters)
    # It lacks the filters of plugins, and an old one what h5py does not know either.
    plugins = any(name.isdigit() or name == "lzf" for name in filters)
    if shutil.which("h5diff") and not plugins and not unread:
        words = ["h5diff", str(source), str(target)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "differences found" not in done.stdout, done.stdout


def text_of(path: Path, *options: str) -> str:
    """What ncdump prints of a file, without its name; how it is stored with ``-s``."""
    words = ["ncdump", *options, "-n", "x", str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


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
