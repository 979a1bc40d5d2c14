"""Does `chunkwise-format` say of a file's objects what libhdf5 says?

`cargo test` builds the program that prints what it says.  `python -m tests.read.test_format FILES`
compares any files.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.support import metadata_files
from tests.support.everything import write_everything
from tests.support.format_facts import Compared, compared, read
from tests.support.processes import ROOT
from tests.support.versions import needs_chunk_iter

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "debug" / "examples" / "dump"
CRATE = ROOT / "crates" / "chunkwise-format"

pytestmark = needs_chunk_iter


def dumped(*paths: Path) -> str:
    """What the program prints of files."""
    sources = [*CRATE.glob("src/**/*.rs"), *CRATE.glob("examples/*.rs")]
    newest = max(path.stat().st_mtime for path in sources)
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < newest:
        pytest.skip("cargo test builds the program")
    done = subprocess.run([str(PROGRAM), *map(str, paths)], capture_output=True, check=True)
    return done.stdout.decode()


def same(path: Path) -> Compared:
    """Compare a file with what h5py says; everything can be read."""
    found = compared(path, dumped(path))
    assert found.differences == []
    assert found.unread == []
    return found


@pytest.mark.parametrize("name", metadata_files.NAMES)
def test_each_kind_of_file(name: str, tmp_path: Path) -> None:
    found = same(metadata_files.write(tmp_path, name))
    assert found.objects > (150 if name in metadata_files.EVERYTHING else 0)
    assert found.chunks > 50 or name in metadata_files.KINDS


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_many_links_and_attributes(libver: str, tmp_path: Path) -> None:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w", libver=libver) as f:
        for number in range(3000):
            f[f"name {number * 7919 % 3000}" + "x" * (number % 50)] = h5py.SoftLink("/a" * 9)
        for name in list(f)[::3]:
            del f[name]
        d = f.create_dataset("d", data=1)
        for number in range(250):
            d.attrs[f"attribute {number}"] = np.arange(number % 60)
        for number in range(0, 250, 4):
            del d.attrs[f"attribute {number}"]
    same(path)


CHUNKS: list[tuple[Any, Any, Any]] = [
    ((3000,), (1,), (9000,)),
    ((30_000,), (1,), (None,)),
    ((40, 50), (1, 1), (None, 90)),
    ((40, 50), (1, 1), (40, None)),
    ((40, 50), (1, 1), (None, None)),
    ((3, 4, 5, 6), (2, 2, 2, 4), (None, 4, 9, 6)),
    ((4,), (4,), (9,)),
    ((0,), (4,), (None,)),
]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_chunks_of_every_index(libver: str, tmp_path: Path) -> None:
    path = tmp_path / "chunks.h5"
    with h5py.File(path, "w", libver=libver) as f:
        for number, (shape, chunk, most) in enumerate(CHUNKS):
            for level in (None, 1):
                options = {"chunks": chunk, "maxshape": most, "compression": level}
                f.create_dataset(f"some {number} {level}", shape, "u1", **options)[-5:] = 3
                d = f.create_dataset(f"all {number} {level}", shape, "u1", **options)
                d[...] = 7
                if None in most:
                    d.resize(tuple(n // 2 for n in shape))
        masked = f.create_dataset("masked", (8,), "u1", chunks=(2,), compression=1)
        masked.id.write_direct_chunk((2,), b"ab", filter_mask=1)
    assert same(path).chunks > 10_000


def test_references_that_h5py_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "all.h5"
    write_everything(path, libver=("latest", "latest"))
    _, objects = read(dumped(path))
    by_path = {name: facts for facts in objects.values() for name in facts["paths"]}
    holders = [a for a in by_path["/references"]["attributes"] if a["name"] == "holders"]
    if not holders:
        pytest.skip("this HDF5 has no such references")
    a, region, attribute, none = holders[0]["references"]
    addresses = [by_path[name]["address"] for name in ("/a", "/layouts/deflate", "/types/point")]
    assert [a[0], region[0], attribute[0]] == addresses
    assert region[1] == [[1, 1, 1, 3], [2, 1, 1, 4]]
    assert none is None
    assert by_path["/wide"]["comment"] == "a comment"


@pytest.mark.parametrize("name", ["groups-old", "many-new", "chunks-new", "shared-tree"])
def test_a_cut_file_gives_errors_that_say_where(name: str, tmp_path: Path) -> None:
    content = metadata_files.write(tmp_path, name).read_bytes()
    cuts = []
    for number in range(20):
        cuts.append(tmp_path / f"cut {number}.h5")
        cuts[-1].write_bytes(content[: len(content) * number // 20])
    printed = dumped(*cuts)
    assert printed.count('"file"') == len(cuts)
    assert " at address " in printed


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        result = compared(Path(argument), dumped(Path(argument)))
        print(argument, result.objects, result.differences, result.unread)
