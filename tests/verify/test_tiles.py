"""Does the sum of values depend on anything but the values?  Is it as the page says?"""

import hashlib
import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.manifest import summing, tiles
from chunkwise.manifest.canonical import canonical, is_exact, packed
from chunkwise.manifest.summing import sum_values
from chunkwise.manifest.tiles import Tiles, boxes, tile_shape

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"


def by_definition(values: Any) -> str:
    """The definition, of an array in memory."""
    values = np.asarray(values)
    tile = tile_shape(values.shape, values.dtype.itemsize)
    whole = hashlib.sha256()
    ranges = (range(0, n, t) for n, t in zip(values.shape, tile, strict=True))
    for start in itertools.product(*ranges):
        part = values[tuple(slice(s, s + t) for s, t in zip(start, tile, strict=True))]
        whole.update(hashlib.sha256(part.tobytes()).digest())
    return whole.hexdigest()


@given(
    shape=st.lists(st.integers(0, 20), max_size=4),
    data=st.data(),
    tile_nbytes=st.integers(1, 200),
    most_nbytes=st.integers(1, 3000),
)
def test_boxes_of_any_chunks_give_the_sum_of_the_definition(
    shape: list[int], data: st.DataObject, tile_nbytes: int, most_nbytes: int
) -> None:
    chunk = tuple(data.draw(st.integers(1, n + 1)) for n in shape)
    values = np.arange(np.prod(shape, dtype=int), dtype="<i4").reshape(shape)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(tiles, "TILE_NBYTES", tile_nbytes)
        found = Tiles(values.shape, 4, lambda part: part.tobytes(), pool)
        seen = np.zeros(shape, int)
        for box in boxes(values.shape, found.tile, chunk, 4, most_nbytes):
            found.add(box, values[box.slices])
            seen[box.slices] += 1
        assert (seen == 1).all()
        assert found.hexdigest() == by_definition(values)


@given(
    shape=st.lists(st.integers(1, 3000), min_size=1, max_size=4), nbytes=st.integers(1, 1 << 24)
)
def test_a_tile_has_at_most_4_mib_and_no_less_than_a_fourth_for_nothing(
    shape: list[int], nbytes: int
) -> None:
    tile = tile_shape(tuple(shape), nbytes)
    took = int(np.prod(tile, dtype=object)) * nbytes
    assert took <= 4 << 20 or set(tile) == {1}
    assert all(1 <= t <= max(1, n) for t, n in zip(tile, shape, strict=True))
    assert tile == tuple(shape) or took > 1 << 20 or set(tile) == {1} or max(tile) < 4


def test_a_chunk_is_decoded_once_where_memory_allows() -> None:
    shape, chunk = (365, 721, 1440), (365, 16, 16)
    tile = tile_shape(shape, 4)
    for one in boxes(shape, tile, chunk, 4, 512 << 20):
        assert (one.start[0], one.shape[0]) == (0, 365)
        assert all(a % 16 == 0 or a % t == 0 for a, t in zip(one.start, tile, strict=True))
    maps = list(boxes(shape, tile, (1, 721, 1440), 4, 64 << 20))
    assert all(one.slices[1:] == (slice(0, 721), slice(0, 1440)) for one in maps)
    assert len(maps) == -(-365 // ((64 << 20) // (4 * 721 * 1440)))


def test_the_order_of_bytes_and_room_between_fields_do_not_count() -> None:
    little = np.array([(1, 2.5), (3, -1.0)], dtype=[("a", "<i2"), ("b", "<f8")])
    aligned = np.dtype([("a", ">i2"), ("b", ">f8")], align=True)
    assert aligned.itemsize > little.dtype.itemsize
    other = little.astype(aligned)
    paths: Any = None
    assert bytes(canonical(little, paths)) == bytes(canonical(other, paths)) == little.tobytes()
    assert packed(aligned) == little.dtype
    # Windows has no longer one.
    if np.dtype(np.longdouble) != np.float64:
        assert not is_exact(np.dtype(np.longdouble))
    assert canonical(np.zeros((0, 3)), paths) == b""


def test_what_has_a_length_of_its_own_stands_behind_it() -> None:
    paths: Any = None
    words = np.array([b"ab", b"", b"c"], object)
    expected = b"".join(len(word).to_bytes(8, "little") + word for word in words)
    assert canonical(words, paths) == expected
    rows = np.empty(2, object)
    rows[0], rows[1] = np.array([1, 2], ">i4"), np.array([], ">i4")
    expected = (2).to_bytes(8, "little") + np.array([1, 2], "<i4").tobytes() + bytes(8)
    assert canonical(rows, paths) == expected


def test_the_lines_of_the_page_compute_the_same(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```python\n(import hashlib.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert lines.count("\n") <= 20
    given: dict[str, Any] = {}
    exec(lines, given)
    rng = np.random.default_rng(3)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["big"] = rng.integers(0, 99, (300, 2000, 3)).astype(">i4")
        file["flat"] = rng.random(3_000_000)
        file["one"] = 5.0
        file["none"] = np.zeros((0, 4))
    with h5py.File(path) as file:
        sums = sum_values(file)
        for name, dataset in file.items():
            assert given["checksum"](dataset) == sums[f"/{name}"]["sha256"]


@given(
    shape=st.one_of(
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        st.lists(st.integers(1, 40), min_size=1, max_size=1),
    ),
    data=st.data(),
    tile_nbytes=st.integers(4, 200),
)
def test_what_was_never_written_is_summed_as_if_it_had_been(
    shape: list[int], data: st.DataObject, tile_nbytes: int, tmp_path_factory: Any
) -> None:
    chunk = tuple(data.draw(st.integers(1, n)) for n in shape)
    contiguous = data.draw(st.booleans())
    places = data.draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in shape)), max_size=3))
    path = tmp_path_factory.mktemp("sparse") / "a.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "x", shape, "<i4", chunks=None if contiguous else chunk, fillvalue=7
        )
        text = file.create_dataset(
            "t", shape, h5py.string_dtype(), chunks=None if contiguous else chunk, fillvalue=b"ab"
        )
        for number, place in enumerate([] if contiguous else places):
            made[place] = number
            text[place] = str(number)
    with pytest.MonkeyPatch.context() as patch, h5py.File(path) as file:
        patch.setattr(tiles, "TILE_NBYTES", tile_nbytes)
        patch.setattr(summing, "_FEW", 0)
        patch.setattr(tiles, "_RUN", 5)
        found = sum_values(file)
        assert found["/x"]["sha256"] == by_definition(file["x"][...])
        patch.setattr(summing, "written_tiles", lambda *_: None)
        assert found == sum_values(file)


def test_only_tiles_with_values_and_one_of_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (1 << 40,), "u1", chunks=(1 << 16,))
        made[1 << 39] = 1
    read: list[int] = []
    with h5py.File(path) as file:
        whole = hashlib.sha256()
        blank = hashlib.sha256(bytes(4 << 20)).digest()
        values = hashlib.sha256(b"\1" + bytes((4 << 20) - 1)).digest()
        for number in range(1 << 18):
            whole.update(values if number == 1 << 17 else blank)
        assert sum_values(file, read.append)["/x"]["sha256"] == whole.hexdigest()
    assert sum(read) == 4 << 20
