"""Do files, groups and datasets have the face that h5py's have?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import DatasetNotFoundError, NotADatasetError, SelectionError, UsageError
from tests.support.reading import LEFT_TO_LIBHDF5, same

DATA = np.arange(8 * 10, dtype=">i4").reshape(8, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "face.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset(
            "a/b/chunked",
            data=DATA,
            chunks=(3, 4),
            maxshape=(None, 10),
            compression=1,
            fillvalue=9,
        )
        d.attrs["units"] = "K"
        f["a"].attrs["about"] = "a group"
        f.create_dataset("a/contiguous", data=DATA)
        f.create_dataset("zfp", data=DATA, **LEFT_TO_LIBHDF5)
        f.create_dataset("record", data=np.zeros(5, [("x", "i4"), ("y", "f8")]), chunks=(2,))
        f.create_dataset("scalar", data=2.5)
        f.create_dataset("null", data=h5py.Empty("f4"))
        f.create_dataset("words", data=["one", "two"])
        f["named"] = np.dtype("f4")
        f["soft"] = h5py.SoftLink("/a/contiguous")
        f["dangling"] = h5py.SoftLink("/nowhere")
    return path


@pytest.fixture
def file(path: Path) -> Iterator[chunkwise.File]:
    with chunkwise.open(path) as f:
        yield f


def test_the_same_object_twice(file: chunkwise.File) -> None:
    assert file["a/contiguous"] is file["a/contiguous"]
    assert file[b"a/contiguous"] is file["a/contiguous"]


def test_an_external_group_has_names_of_its_own(tmp_path: Path, path: Path) -> None:
    """The same path in another file is another dataset."""
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["a/contiguous"] = DATA + 1000
        f["a/only"] = 1
    with h5py.File(path, "r+") as f:
        f["elsewhere"] = h5py.ExternalLink("other.h5", "/a")
    with chunkwise.open(path) as ours:
        assert ours["a/contiguous"][0, 1] == 1
        there = ours["elsewhere"]
        assert there["contiguous"][0, 1] == 1001
        assert ours["elsewhere/contiguous"][0, 1] == 1001
        assert ours["a/contiguous"][0, 1] == 1
        with pytest.raises(DatasetNotFoundError, match=r"other\.h5.*'/a/only'"):
            there["onyl"]


def test_missing_names_offer_near_ones(file: chunkwise.File) -> None:
    with pytest.raises(DatasetNotFoundError, match="did you mean '/a/b/chunked'") as error:
        file["a/b/chunkd"]
    assert isinstance(error.value, KeyError)
    assert "\n" not in str(error.value)
    with pytest.raises(DatasetNotFoundError, match="did you mean '/a/b/chunked'"):
        file["chunked"]
    with pytest.raises(DatasetNotFoundError, match="soft link to '/nowhere'"):
        file["dangling"]
    with pytest.raises(DatasetNotFoundError):
        file["scalar/x"]
    assert file["named"].dtype == np.dtype("f4")
    with pytest.raises(NotADatasetError, match="not int"):
        file[3]


def test_wrap_takes_datasets_only(path: Path) -> None:
    with h5py.File(path) as f:
        for other in (f, f["a"], DATA, None):
            with pytest.raises(UsageError, match=r"wrap\(\) takes an h5py.Dataset"):
                chunkwise.wrap(other)
        wrapped = chunkwise.wrap(f["zfp"])
        assert chunkwise.wrap(wrapped) is wrapped


def test_nothing_is_read_from_a_closed_file(path: Path) -> None:
    file = chunkwise.open(path)
    ours = file["a/b/chunked"]
    group = file["a"]
    assert ours[1, 1] == 11
    file.close()
    file.close()
    with h5py.File(path) as f:
        wrapped = chunkwise.wrap(f["a/b/chunked"])
        never_read = chunkwise.wrap(f["a/contiguous"])
        assert wrapped[1, 1] == 11
    for closed in (ours, wrapped, never_read):
        for read in (
            lambda d: d[0],
            lambda d: d[[0, 1]],
            lambda d: d.read(),
            lambda d: d.explain(),
            lambda d: np.asarray(d),
            lambda d: d.vindex[[1], [2]],
        ):
            with pytest.raises(UsageError, match="closed"):
                read(closed)
        assert "Closed" in repr(closed)
    for look in (lambda: file["a"], lambda: list(file), lambda: len(file), lambda: group["b"]):
        with pytest.raises(UsageError, match="closed"):
            look()


@pytest.mark.parametrize("how", ["open", "wrap"])
def test_a_closed_file_can_be_written_while_a_dataset_lives(path: Path, how: str) -> None:
    """Our descriptor must not keep libhdf5's lock on the file."""
    if how == "open":
        with chunkwise.open(path) as f:
            kept = f["a/b/chunked"]
            assert kept[0, 1] == 1
    else:
        with h5py.File(path) as h:
            kept = chunkwise.wrap(h["a/b/chunked"])
            assert kept[0, 1] == 1
    with h5py.File(path, "r+") as h:
        h["a/b/chunked"][0, 1] = 77
    with chunkwise.open(path) as f:
        assert f["a/b/chunked"][0, 1] == 77
    with pytest.raises(UsageError):
        kept[0, 1]


def test_nothing_stale_after_a_change(path: Path) -> None:
    for value in (1, 70, 71, 72):
        with chunkwise.open(path) as f:
            d = f["a/b/chunked"]
            # A part of a chunk, so that the decoded chunk is kept.
            assert d[0, 1] == value
            assert d[0, 1] == value
            misses = chunkwise.cache_stats()["misses"]
            assert same(d[0, :3], d.h5py[0, :3])
            assert chunkwise.cache_stats()["misses"] == misses
            del d
        with h5py.File(path, "r+") as h:
            h["a/b/chunked"][0, 1] = max(value, 69) + 1
            assert chunkwise.wrap(h["a/b/chunked"])[0, 1] == max(value, 69) + 1


def test_a_file_opened_again_while_open_for_writing(path: Path) -> None:
    with h5py.File(path, "r+") as writer:
        with h5py.File(path) as reader:
            d = chunkwise.wrap(reader["a/b/chunked"])
            assert "open for writing" in str(d.explain()["reason"])
            writer["a/b/chunked"][0, 1] = 50
            assert d[0, 1] == 50
        with chunkwise.open(path) as f:
            writer["a/b/chunked"][0, 1] = 51
            assert f["a/b/chunked"][0, 1] == 51


@pytest.mark.parametrize("name", ["a/b/chunked", "a/contiguous", "zfp"])
def test_out_must_fit(file: chunkwise.File, name: str) -> None:
    d = file[name]
    part = chunkwise.hyperslab((2, 3), (2, 4))
    read_only = np.zeros((2, 4), ">i4")
    read_only.flags.writeable = False
    wrong: list[Any] = [
        np.zeros((2, 5), ">i4"),
        np.zeros(8, ">i4"),
        np.zeros((2, 4), "<i4"),
        np.zeros((2, 4), "f4"),
        np.zeros((4, 8), ">i4")[::2, ::2],
        np.zeros((2, 4), ">i4", order="F"),
        read_only,
        [[0] * 4] * 2,
    ]
    for out in wrong:
        with pytest.raises(SelectionError, match=r"face\.h5: dataset /.*out"):
            d.read(part, out=out)
    assert not read_only.any()
    out = np.zeros((3, 4), ">i4")
    assert same(d.read(part, out=out[:2]), DATA[2:4, 3:7])
    assert not out[2].any()
    with pytest.raises(SelectionError, match=r"chunkwise\.hyperslab, not int"):
        d.read(3)  # type: ignore[arg-type]
