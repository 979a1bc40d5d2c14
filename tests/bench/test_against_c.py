"""Does the C program that bench is measured against read the same bytes, and fail cleanly?

How long either takes is not tested here: that is what `make bench-c` measures.
"""

import itertools
import json
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from chunkwise_lab.peers import against_c
from chunkwise_lab.peers.task import EVERYTHING, CannotReadError
from tests.support.processes import ran


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        built = against_c.build(tmp_path_factory.mktemp("built"))
    except CannotReadError as missing:
        pytest.skip(f"{missing} (`make tools`)")
    return built


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "arrays.h5"
    cube = np.random.default_rng(0).normal(size=(12, 10, 9)).astype("<f4")
    with h5py.File(path, "w") as f:
        f.create_dataset("deflate", data=cube, chunks=(5, 4, 9), compression=4, shuffle=True)
        f.create_dataset("contiguous", data=cube)
        f.create_dataset("g/big-endian", data=cube.astype(">f8"), chunks=(4, 10, 2))
        f.create_dataset("one", data=np.arange(1000, dtype=">i2"), chunks=(64,), compression=1)
        f.create_dataset("four", data=cube.reshape(3, 4, 10, 9).astype("u1"), chunks=(2, 2, 10, 9))
        partly = f.create_dataset("partly", (20, 30), "<i4", chunks=(6, 7), fillvalue=7)
        partly[3:9, 5:11] = 1
        # More than 4 MiB at once: in huge pages.
        f.create_dataset("large", data=np.arange(3 << 19, dtype="<i4"), chunks=(1 << 16,))
        f.create_dataset("scalar", data=1.0)
        f.create_dataset("empty", shape=(0, 3), dtype="f4")
        f.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype())
    return path


def bytes_in_blocks(data: npt.NDArray[Any], block: Sequence[int]) -> bytes:
    corners = itertools.product(*(range(0, n, b) for n, b in zip(data.shape, block, strict=True)))
    return b"".join(
        data[tuple(slice(at, at + b) for at, b in zip(corner, block, strict=True))].tobytes()
        for corner in corners
    )


@pytest.mark.parametrize(
    ("dataset", "block", "cache_nbytes", "operations"),
    [
        ("deflate", (1, 10, 9), None, 12),
        ("deflate", (5, 4, 9), 720, 9),  # whole chunks, those at the edges clipped
        ("deflate", (7, 3, 4), 1 << 20, 24),
        ("deflate", (50, 50, 50), None, 1),  # larger than the array
        ("contiguous", (12, 1, 1), None, 90),
        ("contiguous", (5, 5, 5), None, 12),
        ("g/big-endian", (3, 4, 5), 0, 24),
        ("one", (7,), None, 143),
        ("four", (2, 3, 4, 5), None, 24),
        ("partly", (3, 4), None, 56),
        ("large", (3 << 19,), None, 1),
        ("large", ((1 << 20) + 1,), None, 2),
    ],
)
def test_reads_what_bench_reads(
    program: Path,
    file: Path,
    dataset: str,
    block: tuple[int, ...],
    cache_nbytes: int | None,
    operations: int,
) -> None:
    library = against_c.h5py_library()
    by_c = against_c.run_c(program, library, file, dataset, block, cache_nbytes)
    by_bench = against_c.run_bench(file, dataset, block, cache_nbytes)
    with h5py.File(file) as f:
        expected = bytes_in_blocks(f[dataset][...], block)
    for run in (by_c, by_bench):
        assert run.details["operations"] == operations
        assert run.details["selected_nbytes"] == len(expected)
        assert run.details["checksums"][EVERYTHING] == zlib.crc32(expected)
        assert 0 < run.details["first_s"] <= run.value
    for name in ("cache", "hdf5", "zlib"):
        assert by_c.details[name] == by_bench.details[name]


def test_stops_after_the_read_that_takes_too_long(program: Path, file: Path) -> None:
    library = against_c.h5py_library()
    options = ["--library", library, "--max-seconds", "0", "--nslots", "17", "--w0", "0.5"]
    command = [str(program), *options, str(file), "deflate", "1x1x1"]
    env = against_c.beside(library)
    details = json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert (details["operations"], details["total_operations"]) == (1, 1080)
    assert (details["cache_nslots"], details["cache_w0"]) == (17, 0.5)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.h5", "x", "1"], "H5Fopen: "),
        (["{file}", "none", "1"], "H5Dopen2: "),
        (["{file}", "g", "1"], "H5Dopen2: "),
        (["{file}", "deflate", "1x1"], "the block has 2 dimensions, the dataset 3"),
        (["{file}", "deflate", "1x0x1"], "'0x1' is no whole number from 1 on"),
        (["{file}", "deflate", "1x1x"], "'' is no whole number from 1 on"),
        (["{file}", "deflate", "1,1,1"], "'1,1,1' is no shape: write a block as 1x30x717"),
        (["{file}", "deflate", "x".join("1" * 33)], "a block has at most 32 dimensions"),
        (["{file}", "scalar", "1"], "the block has 1 dimensions, the dataset 0"),
        (["{file}", "empty", "1x1"], "empty has no elements"),
        (["{file}", "words", "1"], "words does not hold numbers"),
        (["--cache-nbytes", "-1", "{file}", "one", "1"], "'-1' is no whole number from 0 on"),
        (["--w0", "2", "{file}", "one", "1"], "H5Pset_chunk_cache: "),
        (["--max-seconds", "soon", "{file}", "one", "1"], "'soon' is no number from 0 on"),
        (["--library", "/none.so", "{file}", "one", "1"], "/none.so: "),
        (["{file}", "one"], "usage: "),
        (["--none", "{file}", "one", "1"], "usage: "),
    ],
)
def test_errors_are_one_line(
    program: Path, file: Path, arguments: list[str], says: str, tmp_path: Path
) -> None:
    library = against_c.h5py_library()
    command = [str(program), "--library", library]
    command += [argument.format(file=file) for argument in arguments]
    env = against_c.beside(library)
    done = ran(command, env=env, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    if says != "usage: ":
        assert done.stderr.startswith("walk: ")
        assert done.stderr.count("\n") == 1


def test_a_damaged_chunk_is_an_error(program: Path, file: Path, tmp_path: Path) -> None:
    with h5py.File(file) as f:
        at = f["deflate"].id.get_chunk_info(0).byte_offset
    damaged = bytearray(file.read_bytes())
    damaged[at : at + 16] = bytes(16)
    (tmp_path / "damaged.h5").write_bytes(damaged)
    with pytest.raises(RuntimeError, match=r"^walk: H5Dread: .* (returned|failed)"):
        against_c.run_c(
            program, against_c.h5py_library(), tmp_path / "damaged.h5", "deflate", (1, 1, 1)
        )


def test_bench_and_c_are_compared_in_all_that_both_say(
    program: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(against_c, "build", lambda: program)
    by_c, by_bench = (
        next(against_c.walked(by, str(file), "deflate", (0, 4, 9), 720))() for by in ("c", "bench")
    )
    assert {EVERYTHING, "operations", "cache"} <= by_c.details["checksums"].keys()
    assert by_c.details["checksums"] == by_bench.details["checksums"]


def test_a_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    with pytest.raises(CannotReadError, match=r"^no C compiler: there is no no-such-compiler"):
        against_c.build(tmp_path)
