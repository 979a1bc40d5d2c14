"""Do ``except`` clauses that were written for h5py catch what chunkwise raises in its place?

Every method that both have is called with arguments that make no sense, in h5py and here.
Where h5py raises a builtin exception, ours must be one of that class, too.
"""

import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5s, h5t

import chunkwise
from chunkwise import errors
from tests.support.processes import ran
from tests.support.versions import needs_errors_of_today

NESTED = np.dtype((np.dtype((">i2", (2,))), (3,)))
_SENSELESS: list[Any] = [
    *(None, 1.5, "x", "", b"x", True, -1, 99, 2**70, 1j, 1e400, (1, 2, 3, 4, 5), [], [[1]], ()),
    *({}, ("a",), [99], [-9], [3, 1], [1, 1], (0, 9), (9, 0), ([0], [0]), (..., ...), "no/such"),
    *("/", "g", "t", "soft", "a\0b", "a\nb", slice(None), slice(None, None, 0)),
]
BAD: dict[str, Any] = {
    **{repr(bad): bad for bad in _SENSELESS},
    **{"object": object(), "nan": np.nan, "int8": np.int8(3), "floats": np.zeros(3)},
    **{"empty": h5py.Empty("f4"), "full mask": np.zeros((5, 6), bool), "mask": np.ones(5, bool)},
    **{"other mask": np.zeros((5, 5), bool), "short mask": np.ones(4, bool), "many": ["x"] * 999},
}
VALUES: list[Any] = [1, [1, 2, 3], "x", None, object(), np.zeros((7, 7, 7))]
DATASETS = ["x", "contiguous", "scalar", "null", "text", "records", "arrays"]

Call = Callable[[Any, Any], Any]
READING: dict[str, Call] = {
    "f[{}]": lambda f, bad: f[bad],
    "{} in f": lambda f, bad: bad in f,
    "f.get({})": lambda f, bad: f.get(bad),
    "f['g'][{}]": lambda f, bad: f["g"][bad],
    "f.attrs[{}]": lambda f, bad: f.attrs[bad],
}
# In a file that is open for reading, these too are refused.
CHANGING: dict[str, Call] = {
    "del f[{}]": lambda f, bad: f.__delitem__(bad),
    "f[{}] = 1": lambda f, bad: f.__setitem__(bad, 1),
    "f['new'] = {}": lambda f, bad: f.__setitem__("new", bad),
    "f.attrs[{}] = 1": lambda f, bad: f.attrs.__setitem__(bad, 1),
    "f.attrs['new'] = {}": lambda f, bad: f.attrs.__setitem__("new", bad),
    "del f.attrs[{}]": lambda f, bad: f.attrs.__delitem__(bad),
    "f.attrs.create({}, 1)": lambda f, bad: f.attrs.create(bad, 1),
    "f.attrs.modify({}, 1)": lambda f, bad: f.attrs.modify(bad, 1),
    "f.create_group({})": lambda f, bad: f.create_group(bad),
    "f.require_group({})": lambda f, bad: f.require_group(bad),
    "f.create_dataset({}, (3,), 'i4')": lambda f, bad: f.create_dataset(bad, (3,), "i4"),
    "f.create_dataset('new', {}, 'i4')": lambda f, bad: f.create_dataset("new", bad, "i4"),
    "f.create_dataset('new', (3,), {})": lambda f, bad: f.create_dataset("new", (3,), bad),
    "f.create_dataset(..., data={})": lambda f, bad: f.create_dataset("new", data=bad),
    "f.require_dataset({}, (5, 6), 'i4')": lambda f, bad: f.require_dataset(bad, (5, 6), "i4"),
    "f.require_dataset('x', {}, 'i4')": lambda f, bad: f.require_dataset("x", bad, "i4"),
    "f.require_dataset('x', (5, 6), {})": lambda f, bad: f.require_dataset("x", (5, 6), bad),
    "f['x'].resize({})": lambda f, bad: f["x"].resize(bad),
    "f['x'].resize(3, {})": lambda f, bad: f["x"].resize(3, bad),
    "f['x'].resize({}, 0)": lambda f, bad: f["x"].resize(bad, 0),
    "f['contiguous'].resize({})": lambda f, bad: f["contiguous"].resize(bad),
    "f['scalar'].resize(3, {})": lambda f, bad: f["scalar"].resize(3, bad),
}


def _option(name: str) -> Call:
    return lambda f, bad: f.create_dataset("new", (3,), "i4", **{name: bad})


def _item(name: str) -> Call:
    return lambda f, bad: f[name][bad]


def _assigned(name: str, value: Any) -> Call:
    return lambda f, bad: f[name].__setitem__(bad, value)


def _array(name: str) -> Call:
    return lambda f, bad: np.asarray(f[name], "f4" if bad is None else bad)


for _one in ("chunks", "maxshape", "fillvalue", "compression", "shuffle", "nonsense"):
    CHANGING[f"f.create_dataset(..., {_one}={{}})"] = _option(_one)
for _one in DATASETS:
    READING[f"f[{_one!r}][{{}}]"] = _item(_one)
    READING[f"np.asarray(f[{_one!r}], {{}})"] = _array(_one)
    for _value in VALUES if _one == "x" else VALUES[:1]:
        CHANGING[f"f[{_one!r}][{{}}] = {_value!r:.20}"] = _assigned(_one, _value)

# Where ours differs on purpose: what is called, or the exception, and why.
ON_PURPOSE: dict[str, str] = {
    **{
        f"f[{name!r}][{index!r}]": "lists may be in any order and repeat, and several are taken"
        for name in DATASETS
        for index in ([3, 1], [1, 1], ([0], [0]))
    },
    **{f"np.asarray(f['records'], {none})": "no fields are none of them" for none in ("[]", "{}")},
    **{
        f"f.create_dataset({asked}": "a NumPy integer is an integer"
        for asked in ("'new', int8, 'i4')", "..., chunks=int8)", "..., maxshape=int8)")
    },
    "f.create_dataset(..., maxshape=True)": "it may grow in all dimensions",
    "OverflowError": "of numbers that make no sense ours is a ValueError, as of all others",
    "f.create_group(None)": "an object without a name cannot be found again",
    "f.require_dataset('x', floats, 'i4')": "NumPy's error, on the way to h5py's TypeError",
    "f.require_dataset('x', int8, 'i4')": "the same",
    "f.require_dataset('x', mask, 'i4')": "the same",
    "f.require_dataset('x', short mask, 'i4')": "the same",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exceptions") / "template.h5"
    numbers = np.arange(30, dtype="i4").reshape(5, 6)
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=numbers, chunks=(2, 3), maxshape=(9, 6), compression=1)
        f["contiguous"], f["scalar"], f["null"] = numbers, 3.5, h5py.Empty("f4")
        f["text"], f["g/y"], f["t"] = ["a", "b"], np.arange(4), np.dtype("i4")
        f["records"] = np.zeros(4, [("a", "i4"), ("b", "f8")])
        f["arrays"] = np.zeros(3, np.dtype(("i4", (2,))))
        f["soft"], f.attrs["a"] = h5py.SoftLink("/nowhere"), 1
    return path


def _outcome(call: Call, f: Any, bad: Any) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(f, bad)
        except Exception as error:
            return error
    return None


def _builtin(error: Exception) -> type[BaseException]:
    return next(one for one in type(error).__mro__ if one.__module__ == "builtins")


def _wrong(call: str, bad: str, theirs: Exception | None, ours: Exception | None) -> Iterator[str]:
    said = call.format(bad)
    if ours is not None:
        message = str(ours)
        if not message.isprintable() or len(message) > 500:
            yield f"{said}: says {message[:600]!r}"
    if theirs is None or said in ON_PURPOSE:
        return
    if ours is None:
        yield f"{said}: {theirs!r:.200} of h5py, and nothing here"
        return
    expected = _builtin(theirs)
    if not isinstance(ours, expected) and expected.__name__ not in ON_PURPOSE:
        yield f"{said}: {theirs!r:.200} of h5py, {type(ours).__name__}: {str(ours)[:200]}"


@needs_errors_of_today
def test_reading_and_changing_what_is_read_only(template: Path) -> None:
    wrong: list[str] = []
    with h5py.File(template) as theirs, chunkwise.open(template) as ours:
        for name, call in {**READING, **CHANGING}.items():
            for said, bad in BAD.items():
                outcomes = _outcome(call, theirs, bad), _outcome(call, ours, bad)
                wrong += _wrong(name, said, *outcomes)
    assert not wrong, "\n".join(wrong)


@needs_errors_of_today
@pytest.mark.parametrize("part", range(4))
@pytest.mark.slow
def test_changing(template: Path, tmp_path: Path, part: int) -> None:
    wrong: list[str] = []
    paths = tmp_path / "theirs.h5", tmp_path / "ours.h5"
    for name, call in list(CHANGING.items())[part::4]:
        files: list[Any] = []
        for said, bad in BAD.items():
            if not files:
                for path in paths:
                    shutil.copyfile(template, path)
                files = [h5py.File(paths[0], "r+"), chunkwise.open(paths[1], "r+", sync=False)]
            outcomes = [_outcome(call, f, bad) for f in files]
            wrong += _wrong(name, said, *outcomes)
            # Also where h5py fails it may leave a dataset behind.
            if None in outcomes or "new" in files[0]:
                for f in files:
                    f.close()
                files = []
        for f in files:
            f.close()
    assert not wrong, "\n".join(wrong)


def test_files_that_cannot_be_opened(template: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no HDF5")
    (tmp_path / "empty").touch()
    refused: list[tuple[Path, Any]] = [
        *((tmp_path / "absent.h5", mode) for mode in ("r", "r+")),
        *((tmp_path / "no" / "folder.h5", mode) for mode in ("r", "r+", "w", "a", "x")),
        *((tmp_path / "text" / "below.h5", mode) for mode in ("r", "w")),
        *((tmp_path, mode) for mode in ("r", "r+", "w", "a", "x")),
        *((tmp_path / "text", mode) for mode in ("r", "r+", "a", "x")),
        *((tmp_path / "empty", mode) for mode in ("r", "x")),
        (template, "x"),
        (template, "nonsense"),
    ]
    for path, mode in refused:
        try:
            h5py.File(path, mode)
        except Exception as error:
            theirs = error
        else:
            raise AssertionError(f"h5py opens {path}, {mode}")
        with pytest.raises(errors.ChunkwiseError) as ours:
            chunkwise.open(path, mode)
        builtin = _builtin(theirs)
        # libhdf5 has no number for the one, and h5py calls the other a folder that exists.
        assert isinstance(ours.value, builtin) or (path, mode) == (tmp_path, "x"), (path, mode)
    with pytest.raises(FileNotFoundError, match="no such file"):
        chunkwise.open(tmp_path / "absent.h5")
    with pytest.raises(IsADirectoryError, match="a directory"):
        chunkwise.open(tmp_path)


def test_errors_of_two_classes_can_be_sent_to_another_process(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        chunkwise.open(tmp_path / "absent.h5")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
    assert isinstance(again, errors.FileFormatError)
    assert errors.like(errors.UsageError, ValueError()) is errors.UsageError
    # No class can be both of these.
    unicode = UnicodeDecodeError("utf-8", b"", 0, 1, "")
    assert errors.like(errors.FileFormatError, unicode) is errors.FileFormatError


def test_selections_between_the_brackets(template: Path, tmp_path: Path) -> None:
    path = shutil.copyfile(template, tmp_path / "selections.h5")
    box, other = chunkwise.hyperslab((0, 1), (2, 2)), chunkwise.hyperslab((3, 0), (1, 6))
    some: list[Any] = [box, box | other, chunkwise.points([(4, 5), (0, 0), (4, 5)])]
    for mode in ("r", "r+"):
        with chunkwise.open(path, mode) as f:
            for name in ("x", "contiguous"):
                d: Any = f[name]
                for selection in some:
                    assert d[selection].tolist() == d.read(selection).tolist()
                if mode == "r+":
                    d[box | other] = np.arange(10)
                    d[chunkwise.points([(4, 5), (0, 0)])] = [-1, -2]
                    assert d[box].tolist() == [[0, 1], [2, 3]]
                    assert (d[3].tolist(), d[4, 5], d[0, 0]) == ([4, 5, 6, 7, 8, 9], -1, -2)
    with chunkwise.open(path) as f:
        d = f["x"]
        pieces = (chunkwise.hyperslab((n % 2, 0), (1, 1)) for n in range(50_000))
        many = chunkwise.union(pieces)
        assert repr(many) == "<union of 50,000 hyperslabs>"
        assert len(repr(chunkwise.points(np.zeros((50_000, 2), int)))) < 100
        for wrong in ((many,), [many], np.array([many], object), chunkwise.hyperslab(0, 99)):
            with pytest.raises(errors.SelectionError) as caught:
                d[wrong]
            assert len(str(caught.value)) < 500


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_arrays_keep_their_type(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "types.h5"
    with h5py.File(path, "w") as f:
        f["bytes"], f["big"] = np.array(b"ab", "S9"), np.array(1.5, ">f8")
        f["row"], f["wide"] = np.array([b"ab", b""], "S9"), np.array([300, -5, 7], ">i4")
        f["record"], f["null"] = np.ones((), [("a", ">i2"), ("b", "S3")]), h5py.Empty("f4")
    with h5py.File(path) as plain:
        expected = {name: np.asarray(plain[name]) for name in plain if name != "null"}
        # libhdf5 clips: 300 is 127.
        expected |= {f"{name} as i1": np.asarray(plain[name], "i1") for name in ("big", "wide")}
        expected["wide as f8"] = np.asarray(plain["wide"], "f8")
    with chunkwise.open(path, mode) as f:
        with pytest.raises(TypeError):  # each h5py words it differently
            np.asarray(f["null"])
        for label, want in expected.items():
            name, _, dtype = label.partition(" as ")
            got = np.asarray(f[name], dtype or None)
            assert got.dtype == want.dtype, label
            assert got.shape == want.shape, label
            assert got.tobytes() == want.tobytes(), label


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_arrays_of_arrays(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "nested.h5"
    whole = np.arange(15 * 6, dtype=">i2").reshape(15, 3, 2)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (15,), NESTED, chunks=(5,))
        d.id.write(h5s.ALL, h5s.ALL, whole, h5t.py_create(NESTED))
    with chunkwise.open(path, mode) as f:
        ours: Any = f["d"]
        mask = np.arange(15) % 4 == 1
        for index in ([3, 1], [1, 3], [7, 7], mask, np.s_[2:9:3], np.s_[::-2], ..., 4):
            assert np.asarray(ours[index]).tolist() == whole[index].tolist()
        points = chunkwise.points([(3,), (1,)])
        assert ours.read(points).tolist() == ours.vindex[[3, 1]].tolist() == whole[[3, 1]].tolist()
        out = np.zeros((4, 3, 2), ">i2")
        assert ours.read(chunkwise.hyperslab(2, 4), out=out) is out
        assert out.tolist() == whole[2:6].tolist()
        assert np.asarray(ours).tolist() == whole.tolist()
        if mode == "r+":
            ours.write(chunkwise.hyperslab(2, 4), whole[:4])
            assert ours[1:6].tolist() == [whole[1].tolist(), *whole[:4].tolist()]


# Bad input ------------------------------------------------------------------------------------

CHUNKWISE = Path(sys.executable).with_name("chunkwise")


def test_a_name_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "names.h5", "w") as f:
        f["höhe"] = 1
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = ran([CHUNKWISE, "inspect", tmp_path / "names.h5"], env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "h\\xf6he" in done.stdout
