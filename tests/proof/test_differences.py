"""Does the proof notice each thing that a copy can get wrong, and nothing else?"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5o, h5p

from chunkwise.errors import CorruptDataError, WrongValueError
from chunkwise.proof.compare import prove
from chunkwise.proof.records import Allowed, Proved
from tests.support.damage import damage_chunk
from tests.support.everything import write_everything

MEMORY = 64 << 20


def proved(source: Path, made: Path, **words: Any) -> Proved:
    with h5py.File(source) as file:
        return prove(file, made, str(made), memory_nbytes=MEMORY, **words)


def write(path: Path) -> None:
    random = np.random.default_rng(0)
    with h5py.File(path, "w", track_order=True) as f:
        big = random.integers(0, 1000, (300, 400), "i4")
        f.create_dataset("big", data=big, chunks=(30, 400), compression=4, shuffle=True)
        f["big"].attrs["units"] = "K"
        f["big"].attrs["words"] = ["one", "two"]
        f["big"].attrs["to"] = f["big"].ref
        f.create_dataset("small", data=np.arange(5.0), maxshape=(None,), fillvalue=3.0)
        f.create_dataset("text", data=["a", "bc", "d"] * 100, chunks=(50,), compression=1)
        sequences = f.create_dataset("sequences", (3,), h5py.vlen_dtype("i2"))
        sequences[0], sequences[2] = [1, 2], [3]
        g = f.create_group("g", track_order=True)
        g["x"], g["y"] = 1, 2
        f["soft"] = h5py.SoftLink("/g/x")
        f["outside"] = h5py.ExternalLink("other.h5", "/x")
        f["again"] = f["big"]
        refs = f.create_dataset("refs", (4,), h5py.ref_dtype)
        refs[0], refs[1] = f["g"].ref, f["small"].ref
        regions = f.create_dataset("regions", (2,), h5py.regionref_dtype)
        regions[0] = f["big"].regionref[3:5, 7]
        f["named"] = np.dtype("f8")
        f.create_dataset("of named", (2,), f["named"])
        record = np.zeros(4, [("n", "i4"), ("to", h5py.ref_dtype)])
        record["to"][:] = h5py.Reference()
        record["to"][1] = f["g"].ref
        f["records"] = record
        f.create_dataset("wide", (50, 2000), "f8", chunks=(10, 500))[20:25, :700] = 1.5
        f["big"].dims[0].label = "time"
        f["scale"] = np.arange(300)
        f["scale"].make_scale("time")
        f["big"].dims[0].attach_scale(f["scale"])


def remade(f: h5py.File, name: str, **words: Any) -> h5py.Dataset:
    """Make a dataset anew, otherwise; the links and attributes of the former are lost."""
    old = f[name]
    given: dict[str, Any] = {"data": old[()], "dtype": old.dtype, "chunks": old.chunks, **words}
    attributes = dict(old.attrs)
    del f[name]
    made = f.create_dataset(name, **given)
    for key, value in attributes.items():
        made.attrs[key] = value
    return made


def moved(f: h5py.File) -> None:
    """Put the links of a group into another order of creation."""
    f.move("g/x", "g/tmp")
    f.move("g/tmp", "g/x")


def masked(f: h5py.File) -> None:
    """Store a chunk without its filters: the bytes mean the same values."""
    value = f["big"][:30].tobytes()
    f["big"].id.write_direct_chunk((0, 0), value, filter_mask=3)


def beyond(f: h5py.File) -> None:
    """Write a chunk that the source has not."""
    f["wide"][0, 0] = 1.5


def dropped(f: h5py.File) -> None:
    """Lose the written chunks of a dataset."""
    remade(f, "wide", data=None, shape=(50, 2000))


def swapped(f: h5py.File) -> None:
    f["refs"][0] = f["small"].ref


MUTATIONS: dict[str, Callable[[h5py.File], Any]] = {
    "value": lambda f: f["big"].__setitem__((299, 399), -1),
    "small value": lambda f: f["small"].__setitem__(4, 9),
    "sign of zero": lambda f: f["small"].__setitem__(0, -0.0),
    "text": lambda f: f["text"].__setitem__(299, "e"),
    "sequence": lambda f: f["sequences"].__setitem__(2, [4]),
    "sequence's length": lambda f: f["sequences"].__setitem__(1, [0]),
    "attribute": lambda f: f["big"].attrs.__setitem__("units", "C"),
    "text attribute": lambda f: f["big"].attrs.__setitem__("words", ["one", "too"]),
    "reference attribute": lambda f: f["big"].attrs.__setitem__("to", f["g"].ref),
    "lost attribute": lambda f: f["big"].attrs.__delitem__("units"),
    "new attribute": lambda f: f["g"].attrs.__setitem__("new", 1),
    "type of an attribute": lambda f: f["big"].attrs.create("units", np.bytes_("K")),
    "type": lambda f: remade(f, "small", dtype="f4", maxshape=(None,), fillvalue=3.0),
    "byte order": lambda f: remade(f, "small", dtype=">f8", maxshape=(None,), fillvalue=3.0),
    "shape": lambda f: f["small"].resize((4,)),
    "longer": lambda f: f["small"].resize((6,)),
    "maximum shape": lambda f: remade(f, "small", maxshape=(9,), fillvalue=3.0),
    "fill value": lambda f: remade(f, "small", maxshape=(None,), fillvalue=4.0),
    "fill time": lambda f: remade(f, "small", maxshape=(None,), fillvalue=3.0, fill_time="never"),
    "lost object": lambda f: f.__delitem__("small"),
    "new object": lambda f: f.create_group("new"),
    "soft link": lambda f: (f.__delitem__("soft"), f.__setitem__("soft", h5py.SoftLink("/g/y"))),
    "external link": lambda f: (
        f.__delitem__("outside"),
        f.__setitem__("outside", h5py.ExternalLink("other.h5", "/y")),
    ),
    "hard link": lambda f: (f.__delitem__("again"), f.copy("big", "again")),
    "kind": lambda f: (f.__delitem__("soft"), f.__setitem__("soft", f["g/x"])),
    "order of links": moved,
    "reference": swapped,
    "null reference": lambda f: f["refs"].__setitem__(1, h5py.Reference()),
    "new reference": lambda f: f["refs"].__setitem__(3, f["g"].ref),
    "region": lambda f: f["regions"].__setitem__(0, f["big"].regionref[3:5, 8]),
    "committed type": lambda f: remade(f, "of named"),
    "reference in a compound": lambda f: f["records"].__setitem__(
        1, np.array((0, f["small"].ref), f["records"].dtype)
    ),
    "dimension scale": lambda f: f["big"].dims[0].detach_scale(f["scale"]),
    "label": lambda f: f["big"].dims[0].__setattr__("label", "tame"),
    "comment": lambda f: h5o.set_comment(f["g"].id, b"hello"),
    "chunk that the source has not": beyond,
    "lost chunks": dropped,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof") / "source.h5"
    write(path)
    return path


@pytest.mark.parametrize("what", MUTATIONS)
@pytest.mark.parametrize("encoded", [False, True], ids=["as stored", "encoded anew"])
def test_each_difference_is_noticed(
    source: Path, tmp_path: Path, what: str, encoded: bool
) -> None:
    made = copied(source, tmp_path / "made.h5", encoded)
    proved(source, made)
    with h5py.File(made, "r+") as f:
        MUTATIONS[what](f)
    with pytest.raises(WrongValueError, match=r"made\.h5"):
        proved(source, made)


def copied(source: Path, made: Path, encoded: bool) -> Path:
    shutil.copy(source, made)
    if not encoded:
        return made
    # As a repack changes it: other chunks under the same object cannot be had with h5py.
    from chunkwise import repack

    made.unlink()
    repack(source, made, chunk={"big": (100, 100), "wide": (7, 300)}, verify="none")
    return made


def test_equal_values_under_another_mask_are_equal(source: Path, tmp_path: Path) -> None:
    made = copied(source, tmp_path / "made.h5", encoded=False)
    with h5py.File(made, "r+") as f:
        masked(f)
    assert proved(source, made).objects == 15


def test_what_was_compared_is_counted(source: Path, tmp_path: Path) -> None:
    done = proved(source, copied(source, tmp_path / "made.h5", encoded=True))
    assert done.nbytes >= 300 * 400 * 4
    assert done.by_libhdf5_nbytes > 0
    assert done.attributes >= 8
    plain = proved(source, copied(source, tmp_path / "plain.h5", encoded=False))
    assert plain.stored_nbytes > 0
    assert (plain.objects, plain.attributes) == (done.objects, done.attributes)


@pytest.mark.parametrize(
    "libver", [("earliest", "v108"), ("earliest", "latest"), ("latest", "latest")]
)
def test_everything_is_the_same_as_itself(tmp_path: Path, libver: tuple[str, str]) -> None:
    path = tmp_path / "all.h5"
    write_everything(path, libver=libver, user_block=512)
    shutil.copy(path, tmp_path / "copy.h5")
    assert proved(path, tmp_path / "copy.h5").objects > 20


def test_a_user_block_counts(tmp_path: Path) -> None:
    path, made = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(path, "w", userblock_size=512) as f:
        f["x"] = 1
    shutil.copy(path, made)
    with made.open("r+b") as stream:
        stream.write(b"something")
    with pytest.raises(WrongValueError, match="user block"):
        proved(path, made)


def test_an_object_that_only_references_reach_is_compared(tmp_path: Path) -> None:
    path, made = tmp_path / "a.h5", tmp_path / "b.h5"
    for target, value in ((path, 1), (made, 2)):
        with h5py.File(target, "w") as f:
            dcpl = h5p.create(h5p.DATASET_CREATE)
            hidden = h5py.Dataset(
                h5d.create(f.id, None, h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3,)), dcpl)
            )
            hidden[...] = value
            f.create_dataset("to", data=np.array([hidden.ref], h5py.ref_dtype))
            h5py.h5o.link(hidden.id, f.id, b"kept")
    with pytest.raises(WrongValueError, match="kept"):
        proved(path, made)


class Within:
    """A bound for tests."""

    def violations(self, source: Any, result: Any) -> int | None:
        far = np.abs(source.reshape(-1) - result.reshape(-1)) > 0.5
        return int(np.argmax(far)) if far.any() else None


def test_a_bound_holds_only_for_its_dataset(tmp_path: Path) -> None:
    path, made = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.random.default_rng(1).normal(size=(200, 300))
    for target, digits in ((path, 9), (made, 0)):
        with h5py.File(target, "w") as f:
            for name in "xy":
                f.create_dataset(name, data=values.round(digits), chunks=(50, 300 - digits))
    both = Allowed(bounds={"/x": Within(), "/y": Within()})
    proved(path, made, allowed=both)
    with pytest.raises(WrongValueError, match="'/y' differs"):
        proved(path, made, allowed=Allowed(bounds={"/x": Within()}))
    with h5py.File(made, "r+") as f:
        f["x"][150, 10] += 2
    with pytest.raises(WrongValueError, match=r"'/x' .*more than its filter.*\[150, 10\]"):
        proved(path, made, allowed=both)


def test_a_source_that_cannot_be_read_is_said_to_be_that(tmp_path: Path) -> None:
    path, made = tmp_path / "a.h5", tmp_path / "b.h5"
    for target, chunks in ((path, (10, 300)), (made, (200, 15))):
        with h5py.File(target, "w") as f:
            data = np.arange(60000).reshape(200, 300)
            f.create_dataset("x", data=data, chunks=chunks, compression=4)
    damage_chunk(path, "x", 3, b"\xff" * 8)
    with pytest.raises(CorruptDataError, match=r"a\.h5.*--salvage") as wrong:
        proved(path, made)
    assert not isinstance(wrong.value, WrongValueError)
    proved(path, made, allowed=Allowed(salvaged=True))
    with h5py.File(made, "r+") as f:
        f["x"][0, 0] = 7
    with pytest.raises(WrongValueError, match=r"\[0, 0\]"):
        proved(path, made, allowed=Allowed(salvaged=True))


def test_huge_and_nearly_unwritten_takes_no_time(tmp_path: Path) -> None:
    path, made = tmp_path / "a.h5", tmp_path / "b.h5"
    for target, chunk in ((path, (1 << 12, 1)), (made, (1, 1 << 12))):
        with h5py.File(target, "w") as f:
            x = f.create_dataset("x", (1 << 40, 1 << 20), "i2", chunks=chunk)
            x[1 << 39, 5] = 3
            f.create_dataset("never", (1 << 40,), "f8", chunks=(1000,))
            f.create_dataset("texts", (1 << 34,), h5py.string_dtype(), chunks=(1000,))
    assert proved(path, made).objects == 4
    with h5py.File(made, "r+") as f:
        f["x"][7, 7] = 1
    with pytest.raises(WrongValueError, match=r"\[7, 7\]"):
        proved(path, made)
