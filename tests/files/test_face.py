"""Is a chunkwise file an h5py file, with all that one has?"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import SelectionError
from tests.support.native import keep_without_links
from tests.support.reading import same

DATA = np.arange(60 * 40, dtype="f4").reshape(60, 40)
RECORDS = np.array([(1, 2.5, b"a"), (3, 4.5, b"b")], [("n", "i4"), ("x", "f8"), ("s", "S1")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "face.h5"
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["g/there"] = DATA + 1
    with h5py.File(path, "w") as f:
        d = f.create_dataset("g/x", data=DATA, chunks=(7, 9), compression="gzip", shuffle=True)
        d.attrs["units"] = "K"
        f["scale"] = np.arange(60)
        f["scale"].make_scale("time")
        d.dims[0].attach_scale(f["scale"])
        f["refs"] = np.array([d.ref, f["g"].ref], h5py.ref_dtype)
        f["regions"] = np.array([d.regionref[2:5]], h5py.regionref_dtype)
        f["records"], f["words"], f["type"] = RECORDS, ["one", "two"], np.dtype("i4")
        f["outside"], f["soft"] = h5py.ExternalLink("other.h5", "/g"), h5py.SoftLink("/g/x")
        layout = h5py.VirtualLayout((60, 40), "f4")
        layout[:] = h5py.VirtualSource(d)
        f.create_virtual_dataset("virtual", layout)
    return path


@pytest.fixture
def both(path: Path) -> Iterator[tuple[Any, Any]]:
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        yield ours, theirs


@pytest.mark.parametrize("name", ["File", "Group", "Dataset"])
def test_ours_has_each_public_member_of_h5pys(name: str) -> None:
    ours, theirs = getattr(chunkwise, name), getattr(h5py, name)
    assert issubclass(ours, theirs)
    assert {member for member in dir(theirs) if not member.startswith("_")} <= set(dir(ours))


def test_each_member_tells_what_h5pys_tells(both: tuple[Any, Any]) -> None:
    """All that can be asked without an argument: properties, and methods that only tell."""
    for find in (lambda f: f, lambda f: f["g"], lambda f: f["g/x"], lambda f: f["words"]):
        ours, theirs = map(find, both)
        for member in dir(theirs):
            if member.startswith("_") or callable(getattr(type(theirs), member)):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got, want = getattr(ours, member), getattr(theirs, member)
            if isinstance(want, str | int | float | bool | tuple | list | np.generic | np.dtype):
                assert got == want, member
            else:
                assert isinstance(got, type(want)), member
        assert ours == theirs
        assert hash(ours) == hash(theirs)
        assert str(list(ours.attrs.items())) == str(list(theirs.attrs.items()))


def found(file: Any) -> Iterator[Any]:
    """What is found in a file, by every way."""
    yield from (file["g"], file["g/x"], file[b"g/x"], file["soft"], file["virtual"], file["/"])
    yield from (file["outside"], file["outside/there"], file["outside"]["there"])
    yield from (file[ref] for ref in file["refs"][...])
    yield from (file.get("g"), file.get(b"g/x"), *file["g"].values())
    yield from (value for key, value in file.items() if key != "type")
    yield from (file["g/x"].file, file["g/x"].parent, file["g"].parent, file["g"].file, file.file)
    yield from (file["outside/there"].file, file["outside/there"].parent)
    yield from (file["g/x"].dims[0][0], file["g/x"].dims[0]["time"], *file["g/x"].dims[0].values())
    visited: list[Any] = []
    file.visititems(lambda name, one: visited.append(one) if name != "type" else None)
    yield from visited


def test_what_is_found_is_ours(both: tuple[Any, Any]) -> None:
    ours, theirs = (list(found(file)) for file in both)
    kinds = {h5py.File: chunkwise.File, h5py.Group: chunkwise.Group}
    assert [type(one) for one in ours] == [
        kinds.get(type(one), chunkwise.Dataset) for one in theirs
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert one == other
        assert one.name == other.name
        assert one.file.filename == other.file.filename
        if isinstance(other, h5py.Dataset) and not other.dtype.hasobject:
            assert same(one[()], other[()])
    assert isinstance(both[0]["type"], h5py.Datatype)
    assert both[0]["g"].get("x", getclass=True) is h5py.Dataset
    assert both[0].get("soft", getlink=True).path == "/g/x"
    assert both[0].get("none", 5) == 5


def test_what_is_made_is_ours(tmp_path: Path, path: Path) -> None:
    with chunkwise.open(tmp_path / "new.h5", "w", sync=False) as file, h5py.File(path) as old:
        layout = h5py.VirtualLayout((60, 40), "f4")
        layout[:] = h5py.VirtualSource(old["g/x"])
        with file.build_virtual_dataset("built", (60, 40), "f4") as built:
            built[:] = h5py.VirtualSource(old["g/x"])
        made = [
            file.create_dataset("a", data=DATA, filters="deflate:1", chunks=(20, 40)),
            file.create_dataset(None, (3,), "i4"),
            file.require_dataset("a", (60, 40), "f4"),
            file.require_dataset("b", (60, 40), "f4"),
            file.create_dataset_like("like", file["a"]),
            file.create_virtual_dataset("v", layout),
        ]
        assert {type(one) for one in made} == {chunkwise.Dataset}
        groups = [file.create_group("g/h"), file.require_group("g/h"), file.create_group(None)]
        assert {type(one) for one in groups} == {chunkwise.Group}
        a: Any = file["a"]
        a[30:32] = 5
        file.copy("a", "copied")
        file.move("copied", "moved")
        assert (file["moved"][30:32] == 5).all()
        a[0] = 7
        old.copy("g", file, "g2")
        assert same(file["g2/x"][...], DATA)
        file["a"].write_direct(np.full((1, 40), 9, "f4"), dest_sel=np.s_[1:2])
        assert file["a"][0:2, 0].tolist() == [7, 9]
        file["a"].shape = (60, 40)
    with h5py.File(tmp_path / "new.h5") as file:
        assert file["a"][0:2, 0].tolist() == [7, 9]
    with chunkwise.open(tmp_path / "new.h5") as file:
        for name in ("v", "built"):
            assert same(file[name][...], DATA)


@pytest.mark.parametrize("first", ["patch", "face"])
def test_the_patch_and_the_face_stand_together(path: Path, first: str) -> None:
    file = chunkwise.open(path) if first == "face" else None
    with chunkwise.patch_h5py():
        file = file or chunkwise.open(path)
        before = chunkwise.patch_stats()["engine"]
        assert same(file["g/x"][3:5], DATA[3:5])
        assert chunkwise.patch_stats()["engine"] == before + 1
        assert file["words"].asstr()[0] == "one"
        assert same(np.asarray(file["virtual"]), DATA)
    assert same(file["g/x"][3:5], DATA[3:5])
    file.close()


def test_unpatching_after_a_first_write_leaves_nothing_of_the_patch(tmp_path: Path) -> None:
    """Both have to know when h5py closes a file."""
    read = {name: vars(h5py.Dataset)[name] for name in ("__getitem__", "__array__", "read_direct")}
    path = tmp_path / "x.h5"
    chunkwise.patch_h5py()
    with h5py.File(path, "w") as file:
        d = chunkwise.wrap(file.create_dataset("x", (100,), "i4", chunks=(10,), compression=1))
        d[3:58] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chunkwise.unpatch_h5py()
        assert {name: vars(h5py.Dataset)[name] for name in read} == read
        d[58:60] = 2
    with h5py.File(path) as file:
        assert file["x"][56:62].tolist() == [1, 1, 2, 2, 0, 0]
    for _ in range(3):
        with chunkwise.patch_h5py():
            during = h5py.File.close
        # Replaced once, for writing, however often it is patched.
        assert h5py.File.close is during
        assert not hasattr(during.__wrapped__, "__wrapped__")


def test_other_drivers_and_file_objects(tmp_path: Path) -> None:
    with chunkwise.File(tmp_path / "core.h5", "w", "core", backing_store=False) as file:
        file["x"] = DATA
        assert file.driver == "core"
        assert same(file["x"][3:5], DATA[3:5])
        with pytest.raises(TypeError, match="open for writing"):
            file.__reduce__()
    with (tmp_path / "stream.h5").open("w+b") as stream, chunkwise.File(stream, "w") as file:
        file.create_dataset("x", data=DATA, chunks=(10, 10), compression=1)
        assert same(file["x"][3:5], DATA[3:5])


def test_a_dataset_keeps_its_chunks_however_it_is_found(path: Path) -> None:
    with chunkwise.open(path) as file:
        ref = file["refs"][0]
        file["g/x"][0, 0]
        before = chunkwise.cache_stats()["misses"]
        ways: list[Any] = [lambda: file["g/x"], lambda: file["g"]["x"], lambda: file[ref]]
        for find in ways:
            assert find()[0, 1] == 1
        assert chunkwise.cache_stats()["misses"] == before


def without_links(path: Path) -> None:
    """A file of JLD2's kind: only references lead to a group, whose names others have, too."""
    with h5py.File(path, "w") as file:
        file["x"], file["deep/x"] = [0, 1, 2], [3]
        inner = file.create_group("inner")
        inner["x"], inner["deep/x"] = [10, 11], [13]
        file["refs"] = np.array([inner.ref, inner["deep"].ref, inner["x"].ref], h5py.ref_dtype)
        file["named"] = np.array([file["deep/x"].ref, file["deep"].ref], h5py.ref_dtype)
        file["alias"] = file["deep/x"]
        keep_without_links(inner)
        del file["inner"]


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_what_only_references_lead_to_is_not_what_has_its_name(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "x.h5"
    without_links(path)
    with chunkwise.open(path, mode) as file:
        assert file["x"][:].tolist() == [0, 1, 2]
        assert file["deep/x"][:].tolist() == [3]
        group, deep, dataset = (file[ref] for ref in file["refs"][...])
        for found in (group, file[file["refs"][0]]):
            assert found["x"][:].tolist() == found.get("x")[:].tolist() == [10, 11]
            assert found["deep"]["x"][:].tolist() == found["deep/x"][:].tolist() == [13]
        assert deep["x"][:].tolist() == [13]
        assert dataset[:].tolist() == [10, 11]
        assert [group.name, deep.name, dataset.name] == [None] * 3
        with pytest.raises(KeyError):
            group["y"]
        with pytest.raises(SelectionError, match=r"x\.h5: dataset at address [0-9,]+"):
            dataset[7]
        if mode == "r+":
            x: Any = group["x"]
            x[0] = 77
            group["y"] = [5]
            assert file["x"][:].tolist() == [0, 1, 2]
            assert "y" not in file
    with h5py.File(path) as file:
        assert file[file["refs"][2]][:].tolist() == ([77, 11] if mode == "r+" else [10, 11])


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_what_references_lead_to_is_called_as_by_h5py(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "x.h5"
    without_links(path)
    with h5py.File(path) as theirs:
        names = [theirs[ref].name for ref in theirs["named"][...]]
    with chunkwise.open(path, mode) as file:
        for _ in range(2):
            assert [file[ref].name for ref in file["named"][...]] == names
        if mode == "r+":
            file.move("deep", "moved")
            assert file[file["named"][1]].name == "/moved"


def test_the_datasets_that_a_file_keeps_are_few(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunkwise.handles.handle.OpenDatasets.MOST", 2)
    with chunkwise.open(path) as file:
        names = ["g/x", "scale", "records", "words"]
        for name in names:
            assert file[name] is file[name]
        assert len(file._open_datasets) == 2


def test_a_second_name_is_told(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "names.h5", "w") as f:
        made: Any = f.create_dataset("a", (30,), "i4", chunks=(10,))
        f["g/b"] = made
        f["link"] = h5py.SoftLink("/g")
        other: Any = f["g/b"]
        third: Any = f["link/b"]
        assert (made.name, other.name, third.name) == ("/a", "/g/b", "/link/b")
        assert (made.parent.name, other.parent.name) == ("/", "/g")
        assert [one.name for one in f["g"].values()] == ["/g/b"]
        assert f.get("g/b") is other
        assert made == other == third
        # What waits to be written is one dataset's, by whatever name.
        made[:5], other[5:12] = 1, 2
        assert third[:].tolist() == made[:].tolist() == [1] * 5 + [2] * 7 + [0] * 18
        f.move("g/b", "c")
        assert f["c"].name == "/c"
