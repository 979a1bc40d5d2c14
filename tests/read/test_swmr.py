"""Does the engine read what another process has written by SWMR, as soon as `refresh` says so?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError
from tests.support.processes import Program
from tests.support.reading import same

NAMES = ("rows", "both", "plain")
WIDTH = 40
# Appends so many rows, or overwrites some, each time it is told to; 0 is until it is stopped.
WRITER = """
import sys
import h5py
import numpy as np
file = h5py.File(sys.argv[1], "w", libver="latest")
width = int(sys.argv[2])
packed = {"compression": 1, "shuffle": True}
grows = {"maxshape": (None, width), "dtype": "i4"}
sets = [
    file.create_dataset("rows", (0, width), chunks=(7, 15), **grows, **packed),
    file.create_dataset("both", (0, width), "i4", maxshape=(None, None), chunks=(3, 25), **packed),
    file.create_dataset("plain", (0, width), chunks=(5, width), **grows),
]
file.swmr_mode = True
print("ready", flush=True)
count = 0
def append(rows):
    global count
    for one in sets:
        one.resize(count + rows, 0)
        for row in range(count, count + rows):
            one[row] = np.random.default_rng(row).integers(0, 1000, width)
        one.flush()
    count += rows
for line in sys.stdin:
    word, number = line.split()
    if word == "append":
        append(int(number))
    elif word == "overwrite":
        for one in sets:
            one[int(number)] = -1
            one.flush()
    elif word == "run":
        print("running", flush=True)
        while count < int(number):
            append(1)
    print(count, flush=True)
"""


def row(number: int) -> Any:
    return np.random.default_rng(number).integers(0, 1000, WIDTH)


class Writer(Program):
    """A process that writes by SWMR."""

    def do(self, word: str, number: int) -> int:
        self.tell(word, number)
        return int(self.hear())


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(WRITER, tmp_path / "a.h5", WIDTH)
    with made:
        assert made.hear() == "ready"
        yield made


@pytest.mark.filterwarnings("error")
def test_what_was_flushed_is_read_after_refresh(tmp_path: Path, writer: Writer) -> None:
    with chunkwise.open(tmp_path / "a.h5", swmr=True) as file:
        datasets = {name: file[name] for name in NAMES}
        others = {name: file[name] for name in NAMES}
        for name in NAMES:
            assert datasets[name][...].shape == (0, WIDTH)
            assert others[name].explain()["path"] == "chunked"
        for rows in (1, 2, 1, 30, 1, 700):
            count = writer.do("append", rows)
            wanted = np.array([row(number) for number in range(count)], "i4")
            for name, dataset in datasets.items():
                dataset.refresh()
                assert dataset.shape == (count, WIDTH)
                assert dataset.explain()["path"] == "chunked"
                # Looked up, then listed.
                assert same(dataset[count - 1], wanted[-1])
                assert same(dataset[...], wanted)
                assert same(dataset[...], dataset.h5py[...])
                # Another object of the same dataset sees it as well.
                assert same(others[name][count - 1], wanted[-1])
        # A chunk that is in our cache, and in libhdf5's, is written again.
        writer.do("overwrite", 3)
        wanted[3] = -1
        for dataset in datasets.values():
            dataset.refresh()
            assert same(dataset[...], wanted)


@pytest.mark.filterwarnings("error")
def test_a_writer_that_never_rests_is_followed(tmp_path: Path, writer: Writer) -> None:
    last = 400
    writer.tell("run", last)
    assert writer.hear() == "running"
    wanted = np.array([row(number) for number in range(last)], "i4")
    seen = set()
    with chunkwise.open(tmp_path / "a.h5", swmr=True) as file:
        datasets = [file[name] for name in NAMES]
        while len(file["rows"]) < last:
            for dataset in datasets:
                dataset.refresh()
                count = len(dataset)
                seen.add(count)
                begin = max(count - 20, 0)
                # Rows after the last flush may not be there yet: of those that are begun.
                assert same(dataset[begin : count - 1], wanted[begin : max(count - 1, 0)])
                assert dataset.explain()["path"] == "chunked"
    assert int(writer.hear()) == last
    assert len(seen) > 1


def test_what_is_wrapped_is_left_to_libhdf5(tmp_path: Path, writer: Writer) -> None:
    # Whoever has h5py's dataset refreshes it there, which nobody tells us.
    writer.do("append", 5)
    with h5py.File(tmp_path / "a.h5", swmr=True) as file:
        dataset = chunkwise.wrap(file["rows"])
        assert dataset.explain()["reason"] == "the file is open for SWMR"
        assert same(dataset[2], row(2).astype("i4"))
        count = writer.do("append", 2)
        file["rows"].refresh()
        assert len(dataset[...]) == count or len(dataset[...]) == 5


def test_a_writer_in_this_process_is_read_by_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("d", (4,), "i4", maxshape=(None,), chunks=(2,))
        file.swmr_mode = True
        with chunkwise.open(path, swmr=True) as reader:
            assert reader["d"].explain()["path"] == "libhdf5"
            dataset[...] = 3
            assert reader["d"][...].tolist() == [3] * 4


def test_a_library_without_swmr_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["d"] = [1, 2]

    def without(*_: object, **options: object) -> None:
        assert options.get("swmr")
        raise ValueError("The SWMR feature is not available in this version of the HDF5 library")

    monkeypatch.setattr("chunkwise.files.opening.h5py.File", without)
    with pytest.raises(UsageError, match=r"a\.h5: .*SWMR feature is not available"):
        chunkwise.open(path, swmr=True)


def test_a_file_that_is_written_is_not_indexed(tmp_path: Path, writer: Writer) -> None:
    with pytest.raises(chunkwise.ChunkwiseError, match=r"a\.h5: ") as raised:
        chunkwise.index(tmp_path / "a.h5")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "a.h5.cwi").exists()
    assert writer.do("append", 1) == 1
