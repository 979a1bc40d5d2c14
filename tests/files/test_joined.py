"""Are many files, read as one array, what NumPy makes of their arrays?"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import (
    FileChangedError,
    MismatchError,
    SelectionError,
    UsageError,
)
from chunkwise.handles import handle
from chunkwise.routing.reading import counts
from tests.support.golden import assert_golden, refused

LENGTHS = (4, 0, 7, 1, 5)
RNG = np.random.default_rng(6)
PARTS = [RNG.integers(0, 9999, (length, 6, 5), dtype="i4") for length in LENGTHS]


def write(path: Path, values: Any, **options: Any) -> Path:
    options = {"chunks": (2, 3, 5), "compression": 1} | options
    with h5py.File(path, "w") as f:
        f.create_dataset("g/x", data=values, maxshape=(None,) * np.ndim(values) or None, **options)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("joined")
    # In the order of the numbers, which is not that of the names as text.
    for number, part in zip((2, 9, 10, 11, 100), PARTS, strict=True):
        write(made / f"run{number}.h5", part)
        write(made / f"last{number}.h5", part.transpose(1, 2, 0), chunks=(3, 5, 2))
    return made


@pytest.fixture(scope="module", params=[0, -1])
def joined(folder: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    name = "last" if request.param else "run"
    whole = [part.transpose(1, 2, 0) if request.param else part for part in PARTS]
    with chunkwise.open_many(str(folder / f"{name}*.h5"), "g/x", axis=request.param) as found:
        yield found, np.concatenate(whole, request.param)


def test_it_is_an_array(joined: Any) -> None:
    found, whole = joined
    assert (found.shape, found.dtype, found.ndim) == (whole.shape, whole.dtype, whole.ndim)
    assert (found.size, found.nbytes, len(found)) == (whole.size, whole.nbytes, len(whole))
    assert found.lengths == LENGTHS
    np.testing.assert_array_equal(np.asarray(found), whole, strict=True)
    np.testing.assert_array_equal(np.asarray(found, "f8"), whole.astype("f8"), strict=True)
    np.testing.assert_array_equal(list(found)[3], whole[3])
    assert "5 files" in repr(found)


def entries(size: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    return (
        st.integers(-size, size - 1)
        | st.builds(slice, bound, bound, st.none() | st.integers(-4, 4).filter(bool))
        | st.lists(st.integers(-size, size - 1), min_size=1, max_size=9)
        | st.lists(st.booleans(), min_size=size, max_size=size)
    )


@given(data=st.data())
def test_all_kinds_of_indices(joined: Any, data: st.DataObject) -> None:
    found, whole = joined
    count = data.draw(st.integers(0, 3))
    index = tuple(data.draw(entries(size)) for size in whole.shape[:count])
    if data.draw(st.booleans()):
        index = (*index, Ellipsis)
    expected = whole
    # Each with each, from the last dimension on, as earlier ones may vanish.
    for axis in reversed(range(count)):
        expected = expected[(slice(None),) * axis + (index[axis],)]
    result = found.oindex[index] if data.draw(st.booleans()) else found[index]
    np.testing.assert_array_equal(result, expected, strict=True)
    assert type(result) is type(expected)


def test_a_hyperslab(joined: Any) -> None:
    found, whole = joined
    # Two blocks of two along the first dimension, two elements apart, and so on.
    box = chunkwise.hyperslab((1, 1, 0), (2, 2, 1), stride=(3, 3, 1), block=(2, 1, 4))
    np.testing.assert_array_equal(found[box], whole[[1, 2, 4, 5]][:, [1, 4], :4])


def test_only_files_that_are_needed_are_read(folder: Path) -> None:
    with chunkwise.open_many(str(folder / "run*.h5"), "g/x") as found:
        before = counts.engine
        assert found[3:6, 0, 0].tolist() == [PARTS[0][3, 0, 0], *PARTS[2][:2, 0, 0]]
        assert counts.engine - before == 2
        assert found[5:5].shape == (0, 6, 5)
        assert counts.engine - before == 2


def test_more_files_than_stay_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "MOST", 2)
    paths = [folder / f"run{number}.h5" for number in (2, 10, 100)] * 3
    whole = np.concatenate([PARTS[0], PARTS[2], PARTS[4]] * 3)
    with chunkwise.open_many(paths, "g/x") as found:
        np.testing.assert_array_equal(found[...], whole)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found))[::-2], whole[::-2])


def test_no_file_is_opened_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[str] = []
    monkeypatch.setattr(handle, "open_h5", lambda path, **_: again.append(path))
    monkeypatch.setattr(handle, "MOST", 1)
    with chunkwise.open_many(f"{folder}/run*.h5", "g/x") as joined:
        assert len(joined.paths) > 1
    assert again == []


def test_chunks_where_they_meet(tmp_path: Path) -> None:
    def chunks(*lengths: int, **last: Any) -> Any:
        paths = [
            write(tmp_path / f"{at}.h5", np.zeros((length, 6, 5)), **(last if at else {}))
            for at, length in enumerate(lengths)
        ]
        with chunkwise.open_many(paths, "g/x") as found:
            return found.chunks

    assert chunks(4, 6, 3) == (2, 3, 5)
    assert chunks(4, 3, 4) is None
    assert chunks(4, 4, chunks=(4, 3, 5)) is None


def test_dask_takes_it(folder: Path) -> None:
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    with chunkwise.open_many(str(folder / "run*.h5"), "g/x") as found:
        lazily = da.from_array(found, chunks=(3, 6, 5))
        np.testing.assert_array_equal(lazily.sum(axis=0), np.concatenate(PARTS).sum(axis=0))
        assert da.from_array(found).name == da.from_array(found).name
    with pytest.raises(UsageError, match="closed"):
        _ = found[0]


def test_what_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("first.h5"), PARTS[0])
    for name, values in {
        "other": np.zeros((3, 6, 4), "i4"), "flat": np.zeros((6, 5), "i4"),
        "float": np.zeros((3, 6, 5)), "fits": PARTS[2], "scalar": np.int32(3),
    }.items():  # fmt: skip
        write(Path(f"{name}.h5"), values, chunks=None, compression=None)
    files: list[Any] = [
        ["first.h5", "other.h5"], ["first.h5", "flat.h5"], ["first.h5", "float.h5"], "nothing*",
        [], ["first.h5", "none.h5"], "scalar.h5",
    ]  # fmt: skip
    assert_golden(
        "joined-refused",
        refused(lambda paths: chunkwise.open_many(paths, "g/x"), files),
        refused(lambda name: chunkwise.open_many(["first.h5"], name), ["g/y", "g"]),
        refused(
            lambda axis: chunkwise.open_many(["first.h5", "fits.h5"], "g/x", axis),
            [3, -4, 1.0, None],
        ),
    )
    # What was opened before something did not fit is closed.
    with h5py.File("first.h5", "r+"):
        pass


MEANINGS: dict[str, tuple[Any, Any]] = {
    "scale_factor": (0.01, 0.02),
    "add_offset": (np.float32(0.1), 0.1),
    "units": ("m s-1", np.bytes_(b"km h-1")),
    "calendar": ("noleap", None),
    "_FillValue": (np.array([-1], "i2"), np.array([-1, -2], "i2")),
    "missing_value": (np.nan, -9999.0),
    "_Unsigned": ("true", h5py.Empty("S1")),
}


@pytest.mark.parametrize("name", MEANINGS)
@pytest.mark.parametrize("turned", [False, True])
def test_values_of_different_meanings_are_not_joined(
    name: str, turned: bool, tmp_path: Path
) -> None:
    files = []
    for number, value in enumerate(MEANINGS[name][:: -1 if turned else 1]):
        files.append(write(tmp_path / f"a{number}.h5", np.full((2, 3, 5), number), chunks=None))
        if value is not None:
            with h5py.File(files[-1], "r+") as file:
                file["g/x"].attrs[name] = value
    with pytest.raises(MismatchError, match=rf"a1\.h5.*its {name} is .*that of .*a0\.h5"):
        chunkwise.open_many(files, "g/x")
    with chunkwise.open_many(files, "g/x", differing=True) as joined:
        assert joined[:, 0, 0].tolist() == [0, 0, 1, 1]
        again = pickle.loads(pickle.dumps(joined))
        assert again.shape == joined.shape
        again.close()


def test_attributes_that_state_the_same_differ_in_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path / f"a{n}.h5", np.zeros((2, 3, 5)), chunks=None) for n in range(2)]
    stated: list[dict[str, Any]] = [
        {"units": "K", "missing_value": np.nan, "scale_factor": 2},
        {"units": np.bytes_(b"K"), "missing_value": np.array([np.nan]), "scale_factor": 2.0},
    ]
    for path, attributes in zip(files, stated, strict=True):
        with h5py.File(path, "r+") as file:
            file["g/x"].attrs.update(attributes)
            file["g/x"].attrs["history"] = path.name
    with chunkwise.open_many(files, "g/x") as joined:
        assert joined.attrs["history"] == "a0.h5"


def test_indices_that_do_not_fit(joined: Any) -> None:
    found, whole = joined
    for index in ((0, 0, 0, 0), whole.shape[0], [whole.shape[0]]):
        with pytest.raises(SelectionError, match="5 files"):
            found[index]
    for index in (whole > 3, chunkwise.points([(0, 0, 0)])):
        with pytest.raises(SelectionError, match="file by file"):
            found[index]


def test_a_file_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "MOST", 1)
    paths = [write(tmp_path / f"{at}.h5", np.full((2, 6, 5), at)) for at in range(3)]
    with chunkwise.open_many(paths, "g/x") as found:
        write(tmp_path / "new.h5", np.full((2, 6, 5), 9))
        (tmp_path / "new.h5").replace(paths[0])
        with pytest.raises(FileChangedError, match=r"0\.h5"):
            found[0]
        assert (found[4] == 2).all()


def test_names_with_marks_of_a_pattern(tmp_path: Path) -> None:
    path = write(tmp_path / "a[1].h5", PARTS[0])
    with chunkwise.open_many(path, "g/x") as found:
        np.testing.assert_array_equal(found[...], PARTS[0])


def master(path: Path, sources: list[tuple[str, str, int]], name: str = "g/x") -> Path:
    """Write a virtual dataset over (file, dataset, length) along the first dimension."""
    layout = h5py.VirtualLayout((sum(length for *_, length in sources), 6, 5), "i4")
    begin = 0
    for file, dataset, length in sources:
        layout[begin : begin + length] = h5py.VirtualSource(file, dataset, (length, 6, 5))
        begin += length
    with h5py.File(path, "w") as f:
        f.create_virtual_dataset(name, layout)
    return path


def test_a_master_over_the_others_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "run1.h5", PARTS[0])
    write(tmp_path / "run2.h5", PARTS[2])
    over = [("run1.h5", "g/x", 4), ("run2.h5", "/g/x", 7)]
    made = master(tmp_path / "all.h5", over)
    said = r"all\.h5: dataset g/x: it is virtual and has the data of .*run1\.h5.*leave .*all\.h5"
    with pytest.raises(UsageError, match=said):
        chunkwise.open_many(str(tmp_path / "*.h5"), "g/x")
    # Through another virtual dataset.
    made.rename(tmp_path / "run2.hdf")
    master(tmp_path / "all.h5", [("run1.h5", "other", 4), ("run2.hdf", "g/x", 11)])
    with pytest.raises(UsageError, match=r"all\.h5: dataset"):
        chunkwise.open_many([tmp_path / name for name in ("all.h5", "run1.h5")], "g/x")
    # By numbers in names.
    write(tmp_path / "run0.h5", PARTS[3])
    layout = h5py.VirtualLayout((2, 6, 5), "i4", maxshape=(None, 6, 5))
    layout[0 : h5py.h5s.UNLIMITED] = h5py.VirtualSource("run%b.h5", "g/x", (1, 6, 5))
    with h5py.File(tmp_path / "all.h5", "w") as f:
        f.create_virtual_dataset("g/x", layout)
    with pytest.raises(UsageError, match=r"all\.h5: dataset .*run0\.h5"):
        chunkwise.open_many(str(tmp_path / "*.h5"), "g/x")
    for name in ("all.h5", "run0.h5"):
        (tmp_path / name).unlink()
    with chunkwise.open_many(str(tmp_path / "*.h5"), "g/x") as found:
        np.testing.assert_array_equal(found[...], np.concatenate([PARTS[0], PARTS[2]]))


def test_virtual_datasets_of_other_data_are_joined(tmp_path: Path) -> None:
    write(tmp_path / "raw.h5", PARTS[2])
    # One leads to a file that is not joined, one to another dataset of a file that is.
    one = master(tmp_path / "one.h5", [("raw.h5", "g/x", 7)])
    with h5py.File(one, "r+") as f:
        f["other"] = PARTS[0]
    two = master(tmp_path / "two.h5", [("one.h5", "other", 4)])
    with chunkwise.open_many([one, two], "g/x") as found:
        np.testing.assert_array_equal(found[...], np.concatenate([PARTS[2], PARTS[0]]))
