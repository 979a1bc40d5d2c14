"""Does the C program that bench is measured against read the same bytes, and fail cleanly?

How long either takes is not tested here: that is what `make bench-c` measures.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from chunkwise_lab import against_c
from tests.support.damage import damage_chunk


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        built = against_c.build(tmp_path_factory.mktemp("built"))
    except against_c.CannotRunError as missing:
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
        assert run.operations == operations
        assert run.selected_nbytes == len(expected)
        assert run.checksum == zlib.crc32(expected)
        assert 0 < run.first_s <= run.elapsed_s
    assert by_c.cache == by_bench.cache
    assert (by_c.hdf5, by_c.zlib) == (by_bench.hdf5, by_bench.zlib)


def test_stops_after_the_read_that_takes_too_long(program: Path, file: Path) -> None:
    library = against_c.h5py_library()
    options = ["--library", library, "--max-seconds", "0", "--nslots", "17", "--w0", "0.5"]
    command = [str(program), *options, str(file), "deflate", "1x1x1"]
    env = against_c.beside(library)
    told = json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert (told["operations"], told["total_operations"]) == (1, 1080)
    assert (told["cache_nslots"], told["cache_w0"]) == (17, 0.5)


def test_a_damaged_chunk_is_an_error(program: Path, file: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copy(file, tmp_path))
    damage_chunk(damaged, "deflate", 0, bytes(16))
    with pytest.raises(against_c.CannotRunError, match=r"^walk: H5Dread: .* (returned|failed)"):
        against_c.run_c(program, against_c.h5py_library(), damaged, "deflate", (1, 1, 1))


def test_all_of_it_on_small_files(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--folder", str(tmp_path), "--length", "6", "--repeat", "1", "--tolerance", "1e9"]
    assert program.exists()  # or skipped
    assert against_c.main(asked) == 0
    said = capsys.readouterr().out
    assert "All 5 patterns agree within" in said
    assert "zlib differs" not in said
    assert against_c.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agree"] is True
    assert [p["name"] for p in told["patterns"]] == ["row", "line", "chunk", "cell", "all"]
    assert all(len(p["c"]["elapsed_s"]) == 1 for p in told["patterns"])


def run(elapsed_s: float, **other: Any) -> Any:
    usual = against_c.Run(elapsed_s, 0.1, 10, 400, 7, (521, 1 << 20, 0.75), "2.0.0", "1.2.13")
    return replace(usual, **other)


def row(c: Sequence[Any], bench: Sequence[Any]) -> Any:
    return against_c.Row(against_c.PATTERNS[0], (1, 1, 1, 717), tuple(c), tuple(bench))


def test_the_medians_decide() -> None:
    near = row([run(1.0), run(1.1), run(9.0)], [run(1.13), run(0.1), run(1.15)])
    assert near.ratio == pytest.approx(1.13 / 1.1)
    assert not against_c.apart(near, 5)
    assert against_c.apart(near, 2)
    assert against_c.verdict([near, near], 5).startswith("All 2 patterns agree within 5%: ")
    far = row([run(1.0)], [run(0.9)])
    assert against_c.verdict([near, far], 5) == (
        "Bench differs from the C program by more than 5%: row by -10.0%."
    )


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"checksum": 8}, "row: checksum differ: 7, 8"),
        ({"operations": 9}, "row: operations differ: 9, 10"),
        ({"cache": (521, 8, 0.75)}, "row: cache differ: (521, 8, 0.75), (521, 1048576, 0.75)"),
        ({"first_s": 0.2, "zlib": "1.3"}, None),
    ],
)
def test_a_difference_is_named(other: dict[str, Any], says: str | None) -> None:
    assert row([run(1.0)], [run(1.0), run(1.0, **other)]).difference == says
    told = against_c.as_json([row([run(1.0)], [run(1.0, **other)])], "libhdf5.so", 5.0)
    assert told["agree"] is (says is None)
