"""What must come out alike on every system, as JSON: `python -m tests.support.everywhere`.

Files are written, repacked and read in a folder whose name no code page has.  It prints sums of
their values, of their stored chunks and of all their bytes; and how each of some commands ended.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import h5py
import hdf5plugin  # noqa: F401
import numpy as np

import chunkwise
from tests.support.commands import ended

# Which encoder stores deflate's chunks depends on the build: there only values are equal.
DEFLATED: Final = "shuffle+deflate:4"
FILTERS: Final = (
    "none", "shuffle", "fletcher32", "shuffle+lzf", "bitshuffle", "bitshuffle+lz4", "lz4",
    "zstd:3", "shuffle+zstd:3", DEFLATED,
)  # fmt: skip
DATA: Final = (np.arange(60 * 70 * 5).reshape(60, 70, 5) ** 2 % 997).astype("<i4")
BOX: Final = np.s_[2:50:3, 2:, 1::2]
COMMANDS: Final = (
    ("sample", "cube", "a.h5", "--shape", "20x50x50"),
    ("inspect", "a.h5", "--json"),
    ("fix", "a.h5", "-o", "fixed.h5", "--access", "20x1x1"),
    ("repack", "a.h5", "b.h5", "--chunk", "10x25x25"),
    ("repack", "b.h5", "--in-place", "--chunk", "20x25x25"),
    ("verify", "b.h5", "--write-manifest", "m.json"),
    ("verify", "b.h5", "--manifest", "m.json"),
    ("index", "b.h5", "-o", "b.json"),
    ("study", "--list"),
    ("mpi-model",),
)


def written(folder: Path) -> Iterator[Path]:
    """Write files with the engine's encoders."""
    with chunkwise.open(folder / "written.h5", "w") as f:
        for name in FILTERS:
            f.create_dataset(name, data=DATA, chunks=(16, 16, 5), filters=name)
        grows = f.create_dataset(
            "grows", (0, 7), "f8", maxshape=(None, 7), chunks=(4, 7), filters="shuffle+lzf"
        )
        for _ in range(3):
            grows.resize(len(grows) + 5, axis=0)
            grows[-5:] = np.linspace(0, 1, 35).reshape(5, 7)
    yield folder / "written.h5"
    chunkwise.repack(folder / "written.h5", folder / "repacked.h5", chunk="30x7x5")
    yield folder / "repacked.h5"
    chunkwise.repack(folder / "repacked.h5", in_place=True, filters="shuffle+lzf", force=True)
    yield folder / "repacked.h5"


def facts(path: Path) -> dict[str, str]:
    """Sums of what is in a file."""
    found = {"all bytes": _sum(path.read_bytes())}
    with chunkwise.open(path) as ours, h5py.File(path) as theirs:
        for name, dataset in theirs.items():
            values = ours[name][...]
            assert np.array_equal(values, dataset[...]), name
            box = BOX[: values.ndim]
            assert np.array_equal(ours[name][box], dataset[box]), name
            found[name] = _sum(values.tobytes())
            if dataset.compression != "gzip":
                found[f"{name}, stored"] = _stored(dataset)
    return found


def _stored(dataset: h5py.Dataset) -> str:
    chunks = map(dataset.id.get_chunk_info, range(dataset.id.get_num_chunks()))
    return _sum(b"".join(dataset.id.read_direct_chunk(one.chunk_offset)[1] for one in chunks))


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "données 温度")
        folder.mkdir()
        files = [facts(path) for path in written(folder)]
        ends = {" ".join(words): ended(*words, cwd=folder).returncode for words in COMMANDS}
    print(json.dumps({"files": files, "ends": ends}))


if __name__ == "__main__":
    main()
