"""Data that is reached by a detour is what was written, whoever holds it still.

`tests/attack/aliases.py` tries such ways at random; here each is named.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import repack
from chunkwise.errors import FileChangedError, UsageError
from chunkwise.handles import handle
from chunkwise.inspection import inspect
from chunkwise.measure.target import look
from tests.support.threads import run_in_threads

VALUES = np.arange(100, dtype="i4")


def made(path: Path, **options: Any) -> tuple[chunkwise.File, Any]:
    """A file open for writing, and a dataset in it that holds a chunk back."""
    file = chunkwise.open(path, "w", sync=False, **options)
    d = file.create_dataset("x", (100,), "i4", chunks=(10,), filters="deflate:1")
    d[3:58] = VALUES[3:58]
    assert d.explain_write()["dirty_chunks"] > 0
    return file, d


def expected() -> Any:
    return np.where((VALUES >= 3) & (VALUES < 58), VALUES, 0)


def virtual(file: h5py.File, path: str, name: str = "x", dtype: str = "i4") -> None:
    layout = h5py.VirtualLayout((100,), dtype)
    layout[:] = h5py.VirtualSource(path, name, (100,))
    file.create_virtual_dataset("v", layout)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(5),
        np.array([1.5, -2.7, 3e20, -1e20, np.nan]),
        np.array([1, 2, 3, 4, 5], ">i2"),
        np.array([2**40, -(2**40), 0, 1, 2]),
        np.float64(7.9),
        np.array([True, False, True, True, False]),
        [1, 2, 3, 4, 5],
        np.array(3, "u8"),
    ],
)
def test_what_is_written_into_a_virtual_dataset_is_converted(tmp_path: Path, value: Any) -> None:
    """libhdf5 puts the bytes there as they are (1.10.8 to 2.0)."""
    file, d = made(tmp_path / "x.h5")
    with file:
        virtual(file.h5py, ".")
        plain = file.h5py.create_dataset("plain", data=d[...])
        v: Any = file["v"]
        plain[10:15] = value
        v[10:15] = value
        np.testing.assert_array_equal(d[...], plain[...])
        if np.shape(value):
            v.write(chunkwise.hyperslab((40,), (5,)), value)
            plain[40:45] = value
            np.testing.assert_array_equal(d[...], plain[...])


REACHED: dict[str, Callable[[Any], Any]] = {
    "name": lambda file: file.h5py["x"][...],
    "object reference": lambda file: file.h5py[file["refs"][0]][...],
    "region reference": lambda file: file.h5py["x"][file["regions"][0]],
    "copy": lambda file: copied(file),
    "dimension scale": lambda file: file.h5py["scaled"].dims[0]["x"][...],
    "h5py.File": lambda file: beside(file),
}


def copied(file: Any) -> Any:
    file.h5py.copy("x", "copy")
    return file["copy"][...]


def beside(file: Any) -> Any:
    file.flush()
    with h5py.File(file.filename) as second:
        return second["x"][...]


@pytest.mark.parametrize("way", REACHED)
def test_h5py_reads_what_was_written_before_it_was_asked_for(tmp_path: Path, way: str) -> None:
    file, d = made(tmp_path / "x.h5")
    with file:
        h5 = file.h5py
        h5.create_dataset("refs", data=[h5["x"].ref], dtype=h5py.ref_dtype)
        h5.create_dataset("regions", data=[h5["x"].regionref[:]], dtype=h5py.regionref_dtype)
        h5["x"].make_scale("x")
        h5.create_dataset("scaled", (100,), "f4").dims[0].attach_scale(h5["x"])
        d[4] = 77
        want = expected()
        want[4] = 77
        np.testing.assert_array_equal(REACHED[way](file), want)


def test_a_second_reader_does_not_remember_what_a_name_meant(tmp_path: Path) -> None:
    file, _ = made(tmp_path / "x.h5")
    with file, chunkwise.open(tmp_path / "x.h5") as second:
        former: Any = second["x"]
        np.testing.assert_array_equal(former[...], expected())
        del file["x"]
        file.create_dataset("x", data=VALUES[:7], filters="deflate:1")
        latter: Any = second["x"]
        np.testing.assert_array_equal(latter[...], VALUES[:7])


def test_a_second_file_object_writes_on_when_the_first_is_closed(tmp_path: Path) -> None:
    file, d = made(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as second:
        ours, other = chunkwise.wrap(second["x"]), chunkwise.wrap(second["x"])
        ours[1] = 5
        d[2] = 6
        file.close()
        np.testing.assert_array_equal(ours[:4], [0, 5, 6, 3])
        ours[1] = 7
        np.testing.assert_array_equal(other[:4], [0, 7, 6, 3])
        other[2] = 8
        np.testing.assert_array_equal(ours[:4], [0, 7, 8, 3])
    with h5py.File(tmp_path / "x.h5") as read:
        np.testing.assert_array_equal(read["x"][:4], [0, 7, 8, 3])


@pytest.mark.parametrize("ending", ["flush", "close"])
def test_a_file_flushes_what_its_links_led_to(tmp_path: Path, ending: str) -> None:
    with h5py.File(tmp_path / "there.h5", "w") as there:
        there.create_dataset("x", (100,), "i4", chunks=(10,), compression=1)
    file = chunkwise.open(tmp_path / "x.h5", "w", sync=False)
    file["link"] = h5py.ExternalLink("there.h5", "/x")
    linked: Any = file["link"]
    linked[3:58] = VALUES[3:58]
    getattr(file, ending)()
    # As another process would find it, while `linked` is still there.
    (tmp_path / "copy.h5").write_bytes((tmp_path / "there.h5").read_bytes())
    with h5py.File(tmp_path / "copy.h5") as read:
        np.testing.assert_array_equal(read["x"][...], expected())
    file.close()


def test_a_parked_file_that_is_being_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x", "y", "z"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as one:
            one.create_dataset("x", data=VALUES, chunks=(10,), compression=1)
    monkeypatch.setattr(handle, "MOST", 1)
    reader = chunkwise.open(tmp_path / "x.h5")
    d: Any = reader["x"]
    assert d[5] == 5
    with chunkwise.open(tmp_path / "y.h5"), chunkwise.open(tmp_path / "z.h5"):
        with chunkwise.open(tmp_path / "x.h5", "r+", sync=False) as writer:
            written: Any = writer["x"]
            written[5] = 50
            with pytest.raises(FileChangedError, match="open it again"):
                d[5]
        reader.close()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_inspect_sees_what_waits(tmp_path: Path, libver: str) -> None:
    file, d = made(tmp_path / "x.h5", libver=libver)
    with file:
        facts = inspect(tmp_path / "x.h5")
        (dataset,) = (each.dataset for each in facts.objects if each.dataset is not None)
        assert dataset.chunks is not None
        assert dataset.chunks.allocated == 6
        assert facts.nbytes == (tmp_path / "x.h5").stat().st_size
        # Its mark is not one that a writer has left: nobody is to clear it.
        assert "not-closed" not in [finding.code for finding in facts.findings]
        assert d.explain_write()["dirty_chunks"] == 0


def test_repack_and_bench_want_the_file_closed(tmp_path: Path) -> None:
    file, _ = made(tmp_path / "x.h5")
    with h5py.File(tmp_path / "link.h5", "w") as link:
        link["x"] = h5py.ExternalLink("x.h5", "/x")
    with file:
        with pytest.raises(UsageError, match="open for writing in this process; close it first"):
            repack(tmp_path / "x.h5", tmp_path / "y.h5")
        for name in ("x", "link"):
            with pytest.raises(UsageError, match=r"x\.h5: is open for writing in this process"):
                look(tmp_path / f"{name}.h5", "x")


def test_datasets_assigned_to_each_other_wait_for_nobody(tmp_path: Path) -> None:
    with chunkwise.open(tmp_path / "x.h5", "w", sync=False) as file:
        pair: list[Any] = [
            file.create_dataset(name, (100,), "i4", chunks=(7,), filters="deflate:1")
            for name in "ab"
        ]

        def assign(to: Any, of: Any) -> None:
            for number in range(60):
                to[number] = number
                to[...] = of

        run_in_threads([partial(assign, *pair), partial(assign, *pair[::-1])])


@pytest.mark.parametrize("what", ["dataset", "file", "name"])
def test_a_copy_by_h5py_has_what_waits(tmp_path: Path, what: str) -> None:
    with (
        chunkwise.open(tmp_path / "x.h5", "w") as ours,
        h5py.File(tmp_path / "copies.h5", "w") as theirs,
    ):
        d = ours.create_dataset("x", (500,), "i4", chunks=(100,), compression=1)
        # Half a chunk waits for the other half.
        d[:250] = np.arange(250) + 1
        assert d.explain_write()["dirty_chunks"]
        if what == "dataset":
            theirs.copy(d, "y")
        elif what == "file":
            theirs.copy(ours, "all")
        else:
            h5py.Group.copy(ours, "x", theirs, "y")
        got = theirs["all/x" if what == "file" else "y"]
        assert got[:251].tolist() == [*range(1, 251), 0]
