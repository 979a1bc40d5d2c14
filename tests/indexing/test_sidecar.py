"""Are chunks read by a sidecar the same, and is one that does not hold any more never used?"""

import os
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import AlreadyExistsError, FileChangedError, FileFormatError, UsageError
from chunkwise.indexing import api
from tests.support.reading import same


def write(path: Path, seed: int = 0, *, libver: str = "latest", user_block: int = 0) -> Path:
    """Write a file with every kind of index, each of several pages of entries."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        data = rng.integers(0, 1 << 30, (60, 40))
        options: dict[str, Any] = {"chunks": (1, 2), "compression": 1}
        file.create_dataset("fixed", data=data, **options)
        file.create_dataset("growing", data=data, maxshape=(None, 40), **options)
        file.create_dataset("two growing", data=data, maxshape=(None, None), **options)
        sparse = file.create_dataset("sparse", (900, 900), "i4", chunks=(9, 9), fillvalue=5)
        for place in rng.integers(0, 900, (800, 2)):
            sparse[tuple(place)] = 7
        masked = file.create_dataset("masked", data=data[:4], **options)
        masked.id.write_direct_chunk((0, 4), np.array([1, 2]).tobytes(), filter_mask=1)
        file.create_dataset("contiguous", data=data)
    # Version 1 B-trees, beside it.
    with h5py.File(path.with_name("old.h5"), "w", libver="earliest") as file:
        file.create_dataset("btree", data=data, **options)
    return path


@pytest.mark.parametrize("user_block", [0, 512])
def test_reads_are_those_without_it(tmp_path: Path, user_block: int) -> None:
    path = write(tmp_path / "new.h5", user_block=user_block)
    for one in (path, tmp_path / "old.h5"):
        found = chunkwise.index(one)
        assert found.target == f"{one}.cwi"
        assert not found.left_out
        with h5py.File(one) as theirs, chunkwise.open(one) as ours:
            assert found.datasets == len(theirs) - ("contiguous" in theirs)
            for name in theirs:
                told = f"{one}.cwi" if name != "contiguous" else None
                dataset = ours[name]
                assert dataset.explain(np.s_[3, :5])["sidecar"] == told
                assert dataset.explain()["path"] != "libhdf5"
                for key in (np.s_[3, 2:9], np.s_[1:, 7], np.s_[-1, -1], np.s_[...]):
                    assert same(dataset[key], theirs[name][key]), (name, key)
            sums = [ours[name].explain() for name in theirs]
        with chunkwise.open(one, index=False) as ours:
            for name, known in zip(theirs_names(one), sums, strict=True):
                assert {**ours[name].explain(), "sidecar": known["sidecar"]} == known


def theirs_names(path: Path) -> list[str]:
    with h5py.File(path) as file:
        return list(file)


def test_a_file_that_was_changed_is_read_without_it(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    chunkwise.index(path)
    with chunkwise.open(path, "r+") as file:
        growing: Any = file["growing"]
        growing[5] = 3
    with pytest.warns(RuntimeWarning, match=r"of it before it was changed.*chunkwise index"):
        file = chunkwise.open(path)
    with file:
        assert file["growing"].explain()["sidecar"] is None
        assert (file["growing"][5] == 3).all()
    for named in (True, tmp_path / "new.h5.cwi"):
        with pytest.raises(FileChangedError, match="make it anew"):
            chunkwise.open(path, index=named)


@pytest.mark.parametrize("elements", [1000, 100_000])
def test_a_file_whose_time_was_set_back_is_another(tmp_path: Path, elements: int) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(elements), chunks=(100,), maxshape=(None,))
    chunkwise.index(path)
    before = path.stat()
    with h5py.File(path, "r+") as file:
        file["d"].resize((elements - 150,))
    # Of a small file all is compared, of a large one the headers of datasets at least.
    os.truncate(path, before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with chunkwise.open(path) as ours:
            assert ours["d"].explain()["sidecar"] is None
            assert same(ours["d"][...], np.arange(elements - 150))


def test_a_copy_with_its_time_is_the_same_file(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    chunkwise.index(path, tmp_path / "elsewhere.cwi")
    copy = Path(shutil.copy2(path, tmp_path / "copy.h5"))
    with chunkwise.open(copy, index=tmp_path / "elsewhere.cwi") as file:
        assert file["fixed"].explain()["sidecar"] == str(tmp_path / "elsewhere.cwi")
        again = pickle.loads(pickle.dumps(file))
        assert again["fixed"].explain()["sidecar"] == str(tmp_path / "elsewhere.cwi")
        again.close()
    other = write(tmp_path / "other.h5", seed=1)
    with pytest.raises(FileChangedError, match="is of another file than"):
        chunkwise.open(other, index=tmp_path / "elsewhere.cwi")


def test_what_is_damaged_is_never_believed(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    chunkwise.index(path)
    sidecar = tmp_path / "new.h5.cwi"
    sound = sidecar.read_bytes()
    with h5py.File(path) as file:
        wanted = {name: file[name][...] for name in file if name != "sparse"}
    rng = np.random.default_rng(0)
    places = [0, 9, 20, 40, *map(int, rng.integers(24, len(sound), 25)), len(sound) - 1]
    for at in places:
        content = bytearray(sound)
        content[at] ^= 1 << int(rng.integers(8))
        sidecar.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with chunkwise.open(path) as file:
                for name, values in wanted.items():
                    assert same(file[name][3], values[3]), (at, name)
                    assert same(file[name][...], values), (at, name)
    for other in (b"", sound[:10], sound[:200], b"{}" * 30, sound[:-5]):
        sidecar.write_bytes(other)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with chunkwise.open(path) as file:
                assert same(file["growing"][...], wanted["growing"])
    sidecar.write_bytes(b"nothing of ours")
    with pytest.raises(FileFormatError, match="is no index that chunkwise has made"):
        chunkwise.open(path, index=True)
    with pytest.raises(FileFormatError, match="No such file"):
        chunkwise.open(path, index=tmp_path / "none.cwi")


def test_files_that_are_written_have_none(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    chunkwise.index(path)
    with chunkwise.open(path, "r+") as file:
        assert file["growing"].explain()["sidecar"] is None
    with pytest.raises(UsageError, match="for files opened for reading"):
        chunkwise.open(path, "r+", index=True)


def test_nothing_is_left_of_what_was_stopped(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    before = sorted(tmp_path.iterdir())

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    def stop_at_last(chunks: int) -> None:
        if chunks:
            raise KeyboardInterrupt

    for target in (None, tmp_path / "a.json"):
        for progress in (stop, stop_at_last):
            with pytest.raises(KeyboardInterrupt):
                chunkwise.index(path, target, progress=progress)
            assert sorted(tmp_path.iterdir()) == before


def test_what_exists_is_replaced_when_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "new.h5")
    for _ in range(2):
        chunkwise.index(path)
    target = tmp_path / "a.json"
    target.write_text("mine")
    with pytest.raises(AlreadyExistsError, match="--force"):
        chunkwise.index(path, target)
    with pytest.raises(AlreadyExistsError):
        chunkwise.index(path, target, format="sidecar")
    assert target.read_text() == "mine"
    chunkwise.index(path, target, force=True)
    with pytest.raises(chunkwise.ChunkwiseError, match="is the file itself"):
        chunkwise.index(path, path, format="json", force=True)
    with pytest.raises(UsageError, match=r"OUT\.json"):
        chunkwise.index(path, tmp_path / "a.txt")
    with pytest.raises(FileFormatError, match="no such file"):
        chunkwise.index(tmp_path / "none.h5")
    assert api.INLINE_NBYTES == 64 << 10
