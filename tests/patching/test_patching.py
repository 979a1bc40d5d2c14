"""Is h5py patched while it should be, and does nothing outlive a file?"""

import gc
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.routing import bindings, eligibility
from tests.support.damage import damage_chunk
from tests.support.patched import bound_always, engine_reads, left_to_h5py
from tests.support.processes import descriptors

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

ORIGINAL = h5py.Dataset.__getitem__
METHODS = [
    (h5py.Dataset, "__getitem__"),
    (h5py.Dataset, "__array__"),
    (h5py.Dataset, "read_direct"),
    (h5py.Dataset, "__setitem__"),
    (h5py.Dataset, "write_direct"),
    (h5py._hl.dataset, "make_new_dset"),
]


def is_patched() -> bool:
    patched = h5py.Dataset.__getitem__ is not ORIGINAL
    assert chunkwise.patch_stats()["patched"] is patched
    return bool(patched)


def write(path: Path, value: int, datasets: int = 1) -> Path:
    with h5py.File(path, "w") as f:
        for i in range(datasets):
            f.create_dataset(f"d{i}", (40, 50), "i4", chunks=(7, 11), compression=1)[...] = value
    return path


def test_patching_twice_is_patching_once() -> None:
    before = [owner.__dict__[name] for owner, name in METHODS]
    chunkwise.patch_h5py()
    during = [owner.__dict__[name] for owner, name in METHODS]
    chunkwise.patch_h5py()
    assert [owner.__dict__[name] for owner, name in METHODS] == during
    assert not any(a is b for a, b in zip(before, during, strict=True))
    chunkwise.unpatch_h5py()
    assert [owner.__dict__[name] for owner, name in METHODS] == before
    chunkwise.unpatch_h5py()
    assert not is_patched()


def test_blocks_nest_and_leave_what_was_there() -> None:
    with chunkwise.patch_h5py():
        with chunkwise.patch_h5py():
            assert is_patched()
        assert is_patched()
        chunkwise.unpatch_h5py()
        assert is_patched()
    assert not is_patched()
    chunkwise.patch_h5py()
    with pytest.raises(RuntimeError, match="within"), chunkwise.patch_h5py():
        raise RuntimeError("within")
    assert is_patched()
    chunkwise.unpatch_h5py()
    assert not is_patched()


def test_blocks_of_several_threads_overlap() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with chunkwise.patch_h5py():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with chunkwise.patch_h5py():
        thread.start()
        assert inside.wait(60)
    assert is_patched()
    leave.set()
    thread.join()
    assert not is_patched()


def test_another_patch_on_top_is_left_alone(tmp_path: Path) -> None:
    chunkwise.patch_h5py()
    ours = h5py.Dataset.__getitem__

    def on_top(self: Any, *rest: Any) -> Any:
        return ours(self, *rest)

    h5py.Dataset.__getitem__ = on_top
    try:
        with pytest.warns(RuntimeWarning, match="__getitem__ was replaced after"):
            chunkwise.unpatch_h5py()
        assert h5py.Dataset.__getitem__ is on_top
        with h5py.File(write(tmp_path / "a.h5", 3)) as f:
            before = engine_reads()
            assert (f["d0"][...] == 3).all()
            assert engine_reads() == before
    finally:
        h5py.Dataset.__getitem__ = ORIGINAL


def test_a_dataset_works_through_patching_and_unpatching(tmp_path: Path) -> None:
    with h5py.File(write(tmp_path / "a.h5", 3)) as f:
        d = f["d0"]
        for _ in range(3):
            before = engine_reads()
            assert (d[...] == 3).all()
            assert engine_reads() == before
            with chunkwise.patch_h5py():
                assert (d[...] == 3).all()
                assert engine_reads() == before + 1
                assert descriptors(tmp_path / "a.h5") == 2
            assert descriptors(tmp_path / "a.h5") == 1


@pytest.mark.parametrize("how", ["in place", "replaced"])
def test_a_file_written_anew_is_read_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.h5"
    chunkwise.patch_h5py()
    kept = []
    for value in range(6):
        if how == "replaced":
            write(tmp_path / "new.h5", value).replace(path)
        else:
            write(path, value)
        f = h5py.File(path)
        before = engine_reads()
        assert (f["d0"][...] == value).all()
        assert (f["d0"][3:5, 7] == value).all()
        assert engine_reads() == before + 2
        # Closed past h5py.File.close, now and then, or with a dataset that lives on.
        if value % 3 == 0:
            f.close()
        elif value % 3 == 1:
            f.id.close()
        else:
            kept.append(f["d0"])
            f.close()
            with pytest.raises((RuntimeError, ValueError), match="identifier"):
                kept[-1][0]


def test_reads_see_what_the_same_process_writes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", 1)
    chunkwise.patch_h5py()
    with h5py.File(path, "r+") as f:
        d = f["d0"]
        for value in range(3):
            d[2:30] = value
            assert (d[3] == value).all()
            with h5py.File(path) as reader:
                assert (reader["d0"][3] == value).all()
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (4,), "i4", maxshape=(None,), chunks=(2,))
        assert d[...].shape == (4,)
        d.resize((9,))
        d[...] = 5
        assert d[...].tolist() == np.asarray(d).tolist() == [5] * 9
    before = engine_reads()
    with h5py.File(path) as f:
        assert f["d"][...].tolist() == [5] * 9
    assert engine_reads() == before + 1


def test_closing_lets_go(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", 3)
    chunkwise.patch_h5py()
    f = h5py.File(path)
    d = f["d0"]
    assert d[0, 0] == 3
    assert descriptors(path) == 2
    f.close()
    assert descriptors(path) == 0
    # Of two handles the other goes on, and a dataset of it too.
    one, other = h5py.File(path), h5py.File(path)
    theirs = other["d0"]
    assert one["d0"][0, 0] == theirs[0, 0] == 3
    one.close()
    before = engine_reads()
    assert theirs[0, 0] == 3
    assert engine_reads() == before + 1
    other.close()
    assert descriptors(path) == 0


@pytest.mark.parametrize(
    ("how", "rounds"), [("close", 1500), ("with", 100), ("collected", 200), ("identifier", 200)]
)
@pytest.mark.slow
def test_files_opened_again_and_again_leave_nothing(tmp_path: Path, how: str, rounds: int) -> None:
    paths = [write(tmp_path / f"{i}.h5", i) for i in range(20)]
    chunkwise.patch_h5py()
    most = 0
    before = engine_reads()
    for n in range(rounds):
        f = h5py.File(paths[n % 20])
        assert f["d0"][3, 4] == n % 20
        if how == "with":
            with f:
                pass
        elif how == "close":
            f.close()
        elif how == "identifier":
            f.id.close()
        del f
        most = max(most, len(bindings._bindings.files))
    assert engine_reads() == before + rounds
    assert most <= 1 if how in ("close", "with") else most <= 16
    gc.collect()
    assert sum(map(descriptors, paths)) <= most


def test_many_open_files_are_each_bound_once(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{i}.h5", i) for i in range(60)]
    chunkwise.patch_h5py()
    files = [h5py.File(path) for path in paths]
    for _ in range(2):
        for i, f in enumerate(files):
            assert f["d0"][3, 4] == i
    assert len(bindings._bindings.files) == 60
    for f in files:
        f.close()
    assert not bindings._bindings.files
    assert not bindings._bindings._recent


def test_few_datasets_are_kept_without_their_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "MOST_KEPT", 3)
    chunkwise.patch_h5py()
    with h5py.File(write(tmp_path / "a.h5", 3, datasets=8)) as f:
        held = f["d0"]
        for name in f:
            assert f[name][3, 4] == 3
        kept = [bindings.binding_of(f[name]) for name in ("d5", "d6", "d7")]
        assert list(bindings._bindings._recent.values()) == kept
        first = bindings.binding_of(held)
        assert bindings.binding_of(f["d0"]) is first
    assert first.bound is None


def test_each_reason_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.h5", 3)
    monkeypatch.setattr(eligibility, "SMALLEST_NBYTES", 8001)
    chunkwise.patch_h5py()

    def counted(read: Any, mode: str = "r") -> set[str]:
        before = left_to_h5py()
        with h5py.File(path, mode) as f:
            read(f)
        after = left_to_h5py()
        return {reason for reason in after if after[reason] != before.get(reason, 0)}

    assert counted(lambda f: f["d0"][...]) == {eligibility.SMALL}
    assert counted(lambda f: f["d0"][...], "r+") == {eligibility.WRITABLE}
    monkeypatch.setattr(eligibility, "SMALLEST_NBYTES", 8000)
    assert counted(lambda f: f["d0"][...]) == set()
    assert counted(lambda f: f["d0"].astype(">f2")[...]) == {
        "a conversion, a destination or an index that libhdf5 alone handles"
    }


def test_a_damaged_chunk_is_an_error_for_h5py_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", 3)
    damage_chunk(path, "d0", 0)
    chunkwise.patch_h5py()
    with h5py.File(path) as f:
        assert (f["d0"][20:] == 3).all()
        with pytest.raises(OSError, match="dataset /d0: the chunk at element"):
            f["d0"][...]


def test_a_damaged_file_that_is_open_harms_no_other(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.h5"
    with h5py.File(damaged, "w", libver="latest") as f:
        f["x"] = np.arange(3)
    content = bytearray(damaged.read_bytes())
    # The signature of the root group's header.
    content[48] = 0
    damaged.write_bytes(content)
    with chunkwise.patch_h5py():
        bad = h5py.File(damaged)
        held = [h5py.File(write(tmp_path / f"{number}.h5", number)) for number in range(40)]
        for number, good in enumerate(held):
            assert good["d0"][0, 0] == number
        bad.close()
        assert not bad
        with h5py.File(damaged):
            pass
        for good in held:
            good.close()


def test_a_file_that_a_dataset_holds_open_stays_bound(tmp_path: Path) -> None:
    with chunkwise.patch_h5py():
        datasets = [h5py.File(write(tmp_path / f"{n}.h5", n))["d0"] for n in range(40)]
        for _ in range(2):
            assert [d[0, 0] for d in datasets] == list(range(40))
        bound = {id(bindings.binding_of(d)) for d in datasets}
        assert [d[0, 0] for d in datasets] == list(range(40))
        assert {id(bindings.binding_of(d)) for d in datasets} == bound
        for d in datasets:
            d.file.close()
