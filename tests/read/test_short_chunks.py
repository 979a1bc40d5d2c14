"""Is a last chunk that holds only the elements that exist read as h5py reads it?"""

import itertools
import math
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import CorruptDataError
from tests.support.verifying import command

hdf5plugin = pytest.importorskip("hdf5plugin")

FILTERS: dict[str, dict[str, Any]] = {
    "masked": {"compression": 1},
    "deflate": {"compression": 1},
    "shuffle+deflate": {"shuffle": True, "compression": 4},
    "deflate+fletcher32": {"compression": 1, "fletcher32": True},
    "fletcher32": {"fletcher32": True},
    "shuffle": {"shuffle": True},
    "lzf": {"compression": "lzf"},
    "shuffle+lzf+fletcher32": {"shuffle": True, "compression": "lzf", "fletcher32": True},
    "zstd": dict(hdf5plugin.Zstd()),
    "lz4": dict(hdf5plugin.LZ4()),
    "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="lz4")),
    "bitshuffle:none": dict(hdf5plugin.Bitshuffle(cname="none")),
    "blosc": dict(hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE)),
    "bzip2": dict(hdf5plugin.BZip2()),
}


def stored_as(encoder: h5py.File, part: np.ndarray[Any, Any], name: str) -> tuple[int, bytes]:
    """Let libhdf5 encode some elements as a chunk of just these."""
    if name in ("masked", "none"):
        return 1, part.tobytes()
    made = encoder.create_dataset(None, data=part.ravel(), chunks=(part.size,), **FILTERS[name])
    made.id.flush()
    mask, stored = made.id.read_direct_chunk((0,))
    return int(mask), bytes(stored)


def needed(shape: tuple[int, ...], chunk: tuple[int, ...], origin: tuple[int, ...]) -> int:
    """Elements of a chunk up to the last that exists."""
    within = [min(c, n - at) for c, n, at in zip(chunk, shape, origin, strict=True)]
    at = 0
    for n, c in zip(within, chunk, strict=True):
        at = at * c + n - 1
    return at + 1


def write(
    path: Path,
    values: np.ndarray[Any, Any],
    chunk: tuple[int, ...],
    name: str,
    lacking: dict[tuple[int, ...], int] | None = None,
    maxshape: tuple[int | None, ...] | None = None,
    dataset: str = "d",
    **options: Any,
) -> None:
    """Write chunks that end with their last element, or `lacking` so many of these."""
    padded = np.pad(values, [(0, -n % c) for n, c in zip(values.shape, chunk, strict=True)])
    filters = {} if name == "none" else FILTERS[name]
    with (
        h5py.File(path, "a", **options) as file,
        h5py.File("encoder", "w", driver="core", backing_store=False) as encoder,
    ):
        made = file.create_dataset(
            dataset,
            values.shape,
            values.dtype,
            chunks=chunk,
            maxshape=maxshape,
            fillvalue=7,
            **filters,
        )
        steps = [range(0, n, c) for n, c in zip(values.shape, chunk, strict=True)]
        for origin in itertools.product(*steps):
            box = tuple(slice(at, at + c) for at, c in zip(origin, chunk, strict=True))
            held = needed(values.shape, chunk, origin) - (lacking or {}).get(origin, 0)
            mask, stored = stored_as(encoder, padded[box].ravel()[: max(1, held)], name)
            made.id.write_direct_chunk(origin, stored, mask)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return (np.arange(math.prod(shape)) * 37 % 251).reshape(shape).astype(dtype)


@given(
    dims=st.lists(st.tuples(st.integers(1, 23), st.integers(1, 9)), min_size=1, max_size=3),
    name=st.sampled_from([*FILTERS]),
    dtype=st.sampled_from(["u1", "<i2", ">f4", "<f8"]),
    latest=st.booleans(),
    data=st.data(),
)
def test_reads_are_those_of_h5py(
    tmp_path_factory: Any, dims: Any, name: str, dtype: str, latest: bool, data: Any
) -> None:
    shape, chunk = (tuple(int(n) for n in column) for column in zip(*dims, strict=True))
    chunk = tuple(min(c, n) for c, n in zip(chunk, shape, strict=True))
    path = tmp_path_factory.mktemp("short") / "a.h5"
    values = numbers(shape, dtype)
    write(path, values, chunk, name, libver="latest" if latest else "earliest")
    part = tuple(
        slice(*sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))) for n in shape
    )
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][()], values)
    with chunkwise.open(path) as file:
        np.testing.assert_array_equal(file["d"][part], values[part])
        np.testing.assert_array_equal(file["d"][()], values)
        # Out of the cache, and not.
        np.testing.assert_array_equal(file["d"][part], values[part])
        assert file["d"].explain()["path"] == "chunked"


def test_every_command_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = numbers((1993,), "<f8")
    for name in ("none", *FILTERS):
        write(path, values, (1032,), name, dataset=name)
    assert chunkwise.verify(path).verdict == "sound"
    assert command(path, "--salvage", tmp_path / "rest.h5").returncode == 0
    chunkwise.repack(path, tmp_path / "raw.h5")
    chunkwise.repack(path, tmp_path / "other.h5", chunk="*:100", filters="shuffle+deflate:4")
    chunkwise.repack(path, tmp_path / "kept.h5", chunk="*:100", filters="none", salvage=True)
    for made in ("rest", "raw", "other", "kept"):
        with h5py.File(tmp_path / f"{made}.h5") as file:
            assert {*file} == {"none", *FILTERS}
            for name in file:
                np.testing.assert_array_equal(file[name][()], values, err_msg=f"{made} {name}")
        assert chunkwise.verify(tmp_path / f"{made}.h5").verdict == "sound", made


@pytest.mark.parametrize("name", ["deflate", "shuffle+deflate", "lzf", "blosc"])
def test_missing_elements_are_an_error_that_names_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.h5"
    values = numbers((20, 30), "<f4")
    write(path, values, (8, 16), name, lacking={(16, 16): 3, (8, 0): 20})
    with chunkwise.open(path) as file:
        np.testing.assert_array_equal(file["d"][:8], values[:8])
        with pytest.raises(CorruptDataError, match=r"lacks 20 elements from \[14, 12\] on"):
            file["d"][8:16]
        with pytest.raises(CorruptDataError, match=r"lacks 3 elements from \[19, 27\] on"):
            file["d"][16:]
    found = chunkwise.verify(path)
    assert {(one.origin, one.kind) for one in found.damages} == {
        ((16, 16), "length"),
        ((8, 0), "length"),
    }
    # What is there of them is saved, and only what is missing is filled.
    expected = values.copy()
    expected[19, 27:] = expected[14, 12:16] = expected[15, :16] = 7
    ways: dict[str, dict[str, Any]]
    ways = {"raw": {}, "new": {"filters": "zstd:3"}, "anew": {"chunk": "*:5x7"}}
    for out, more in ways.items():
        done = chunkwise.repack(path, tmp_path / f"{out}.h5", salvage=True, **more)
        lost = {origin: why for one in done.datasets for origin, why in one.lost_chunks}
        assert set(lost) == {(16, 16), (8, 0)}
        with h5py.File(tmp_path / f"{out}.h5") as file:
            np.testing.assert_array_equal(file["d"][()], expected, err_msg=out)
        assert chunkwise.verify(tmp_path / f"{out}.h5").verdict == "sound"


@pytest.mark.parametrize("name", ["deflate", "shuffle+lzf+fletcher32"])
def test_a_dataset_that_grew_past_it_lacks_elements(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.h5"
    values = numbers((15,), "<i4")
    write(path, values, (10,), name, maxshape=(None,))
    with h5py.File(path, "r+") as file:
        file["d"].resize((18,))
    with chunkwise.open(path) as file:
        np.testing.assert_array_equal(file["d"][:10], values[:10])
        with pytest.raises(CorruptDataError, match=r"lacks 3 elements from \[15\] on"):
            file["d"][10:]


@pytest.mark.parametrize(
    "steps",
    [
        ["put"], ["grow"], ["grow", "put"], ["list"], ["flush", "grow", "put"], ["shrink"],
        ["put", "grow"], ["put", "shrink"], ["list", "grow"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("filters", [name for name in FILTERS if name != "masked"])
def test_libhdf5_writes_into_none(tmp_path: Path, steps: list[str], filters: str) -> None:
    """It would write behind the buffer that it has made too small."""
    path = tmp_path / "a.h5"
    values = numbers((15,), "<i4")
    write(path, values, (10,), filters, maxshape=(None,))
    with chunkwise.open(path, "r+") as file:
        dataset: Any = file["d"]
        assert dataset.explain_write()["by_libhdf5"] is None
        for step in steps:
            if step in ("grow", "shrink"):
                dataset.resize((18,) if step == "grow" else (12,))
            elif step == "flush":
                dataset.flush()
            else:
                dataset[13:15] = [4, 5] if step == "list" else np.array([4, 5], "i4")
    with h5py.File(path) as file:
        if {"put", "list"} & {*steps}:
            values[13:15] = 4, 5
        np.testing.assert_array_equal(file["d"][:15], values[: 12 if "shrink" in steps else 15])
        np.testing.assert_array_equal(file["d"][15:], [7] * (3 if "grow" in steps else 0))


@pytest.mark.parametrize("filters", ["deflate", "lzf", "zstd", "bitshuffle", "fletcher32"])
@pytest.mark.parametrize("shape", [(7, 9), (8, 9), (7, 10)])
def test_it_is_resized_again_and_again(
    tmp_path: Path, filters: str, shape: tuple[int, int]
) -> None:
    """With values that wait meanwhile, as h5py has them for a dataset without short chunks."""
    path, whole = tmp_path / "a.h5", tmp_path / "whole.h5"
    values = numbers(shape, "<i4")
    write(path, values, (4, 5), filters, maxshape=(None, None))
    with h5py.File(whole, "w") as file:
        file.create_dataset("d", data=values, chunks=(4, 5), maxshape=(None, None), fillvalue=7)
    with chunkwise.open(path, "r+") as ours, h5py.File(whole, "r+") as theirs:
        for number, new in enumerate([(9, 9), (9, 12), (6, 12), (6, 7), (13, 14), (5, 14)]):
            for file in (ours, theirs):
                d: Any = file["d"]
                n, m = d.shape
                d[n - 2 :, m - 3 :] = np.full((2, 3), number, "<i4")
                d.resize(new)
                d[-1] = np.full(new[1], -number, "<i4")
        expected = theirs["d"][()]
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][()], expected)
    assert chunkwise.verify(path).verdict == "sound"


def test_records_in_patched_h5py(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    kind = np.dtype([("a", "<i4"), ("b", "<f8")])
    rows = np.zeros(25, kind)
    rows["a"], rows["b"] = np.arange(25), np.arange(25) / 3
    with h5py.File(path, "w") as file:
        made = file.create_dataset("d", (25,), kind, chunks=(10,), compression=1)
        for begin in (0, 10, 20):
            made.id.write_direct_chunk((begin,), zlib.compress(rows[begin : begin + 10].tobytes()))
    with chunkwise.patch_h5py(), h5py.File(path) as file:
        np.testing.assert_array_equal(file["d"][()], rows)
        np.testing.assert_array_equal(file["d"]["b"], rows["b"])
        np.testing.assert_array_equal(file["d"][21:24], rows[21:24])
