"""Does the proof notice a copy that is wrong by its own code?

Each mutation changes what the copy does: layout, mapping of elements, filter parameters,
attributes, references.  Whatever it is, there is no result, and the source stays.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, WrongValueError
from chunkwise.repacking import plan, trial, work

RULES: dict[str, Any] = {"chunk": {"cube": (12, 5, 20), "twin": (12, 5, 20)}, "verify": "proof"}
Patch = pytest.MonkeyPatch


def write(path: Path) -> None:
    random = np.random.default_rng(3)
    with h5py.File(path, "w", userblock_size=512) as f:
        for name in ("cube", "twin"):
            data = random.integers(0, 1000, (12, 20, 20), "i4")
            f.create_dataset(name, data=data, chunks=(1, 20, 20), compression=4, shuffle=True)
        f["cube"].attrs["units"] = "K"
        whole = np.arange(2400, dtype="i4").reshape(24, 100) % 6000
        f.create_dataset("scaled", data=whole, chunks=(1, 100), scaleoffset=7)
        f.create_dataset("text", data=["one", "two", "three"])
        f["refs"] = np.array([f["cube"].ref, f["twin"].ref], h5py.ref_dtype)
        f["g/kept"] = random.random(9000)
    with path.open("r+b") as stream:
        stream.write(b"in front")


def after_copying(patch: Patch, change: Callable[[h5py.File], None]) -> None:
    """Change the target when its data are there, as a wrong copy would have left it."""
    original = work.Copying.fill

    def wrong(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        change(self.target)

    patch.setattr(work.Copying, "fill", wrong)


def other_source(patch: Patch) -> None:
    """Map a dataset to the data of another one of the same shape and type."""
    original = work.Copying._copy

    def wrong(self: Any, step: Any, made: Any) -> Any:
        if step.source.path == "/cube":
            twin = next(one for one in self.plan.steps if one.source.path == "/twin")
            return original(self, twin, made)
        return original(self, step, made)

    patch.setattr(work.Copying, "_copy", wrong)


def no_data(patch: Patch) -> None:
    """Leave out the data of one dataset."""
    original = work.Copying.goes_beside

    def beside(self: Any, step: Any) -> bool:
        return step.source.path != "/cube" and original(self, step)

    alone = work.Copying.alone
    patch.setattr(work.Copying, "goes_beside", beside)
    patch.setattr(
        work.Copying,
        "alone",
        lambda self, step, *rest: (
            None if step.source.path == "/cube" else alone(self, step, *rest)
        ),
    )


def too_few_bits(patch: Patch) -> None:
    """Carry fixed bits of scale-offset to larger chunks."""
    original = trial.creation_list

    def wrong(source: Any, chunk: Any, pipeline: Any) -> Any:
        made = original(source, chunk, pipeline)
        if source.path == "/twin":
            made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            made.set_chunk((12, 5, 20))
            made.set_scaleoffset(h5py.h5z.SO_INT, 5)
        return made

    patch.setattr(plan, "creation_list", wrong)


def other_fill(patch: Patch) -> None:
    """Make a dataset with another fill value."""
    original = trial.creation_list

    def wrong(*given: Any) -> Any:
        made = original(*given)
        made.set_fill_value(np.array(7, "i4"))
        return made

    patch.setattr(plan, "creation_list", wrong)


def swapped_chunks(f: h5py.File) -> None:
    """Put two chunks at each other's places."""
    a, b = (f["cube"].id.read_direct_chunk((0, at, 0)) for at in (0, 5))
    f["cube"].id.write_direct_chunk((0, 0, 0), b[1], b[0])
    f["cube"].id.write_direct_chunk((0, 5, 0), a[1], a[0])


def exchanged(f: h5py.File) -> None:
    """Give two objects each other's names."""
    f.move("cube", "tmp")
    f.move("twin", "cube")
    f.move("tmp", "twin")


AFTER: dict[str, Callable[[h5py.File], Any]] = {
    "chunks swapped": swapped_chunks,
    # One further along the fastest dimension.
    "elements shifted": lambda f: f["cube"].write_direct(np.roll(f["cube"][...], 1, axis=2)),
    # Two of the same length.
    "dimensions mixed up": lambda f: f["cube"].__setitem__(..., f["cube"][...].transpose(0, 2, 1)),
    "a row forgotten": lambda f: f["cube"].__setitem__((11, 4), 0),
    "bytes swapped": lambda f: f["twin"].__setitem__(..., f["twin"][...].byteswap()),
    "names exchanged": exchanged,
    "attribute lost": lambda f: f["cube"].attrs.__delitem__("units"),
    "attribute's text cut": lambda f: f["cube"].attrs.__setitem__("units", ""),
    "text lost": lambda f: f["text"].__setitem__(2, ""),
    "references null": lambda f: f["refs"].__setitem__(0, h5py.Reference()),
    "references exchanged": lambda f: f["refs"].__setitem__(0, f["twin"].ref),
    "contiguous data cut": lambda f: f["g/kept"].__setitem__(8999, 0),
    "object lost": lambda f: f["g"].__delitem__("kept"),
}
BEFORE: dict[str, Callable[[Patch], None]] = {
    "another dataset's data": other_source,
    "no data": no_data,
    "too few bits": too_few_bits,
    "another fill value": other_fill,
    "no user block": lambda patch: patch.setattr(work, "copy_user_block", lambda *_: None),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("mutated") / "in.h5"
    write(path)
    return path.read_bytes()


@pytest.mark.parametrize("what", [*AFTER, *BEFORE])
@pytest.mark.parametrize("in_place", [False, True])
def test_no_result(
    kept: bytes, tmp_path: Path, monkeypatch: Patch, what: str, in_place: bool
) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    source.write_bytes(kept)
    if what in AFTER:
        after_copying(monkeypatch, AFTER[what])
    else:
        BEFORE[what](monkeypatch)
    where: dict[str, Any] = {"in_place": True} if in_place else {}
    with pytest.raises(WrongValueError, match=r"'/.*'"):
        chunkwise.repack(source, None if in_place else target, **RULES, **where)
    assert source.read_bytes() == kept
    assert list(tmp_path.iterdir()) == [source]


def test_without_a_mutation_there_is_a_result(kept: bytes, tmp_path: Path) -> None:
    source = tmp_path / "in.h5"
    source.write_bytes(kept)
    done = chunkwise.repack(source, in_place=True, **RULES)
    assert done.verified == "proof"
    assert done.proof is not None
    assert done.proof.objects == 8


def test_what_is_not_proved_is_not_said_to_be(kept: bytes, tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    source.write_bytes(kept)
    done = chunkwise.repack(source, target, **{**RULES, "verify": "none"})
    assert (done.verified, done.proof) == ("none", None)


@pytest.mark.parametrize("word", ["checksum", "full"])
def test_the_words_of_before_mean_the_proof(kept: bytes, tmp_path: Path, word: Any) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    source.write_bytes(kept)
    with pytest.warns(FutureWarning, match="'proof' now"):
        done = chunkwise.repack(source, target, **{**RULES, "verify": word})
    assert done.verified == "proof"


def test_other_words_are_refused(kept: bytes, tmp_path: Path) -> None:
    source = tmp_path / "in.h5"
    source.write_bytes(kept)
    with pytest.raises(ChunkwiseError, match="proof or none"):
        chunkwise.repack(source, tmp_path / "out.h5", verify="some")  # type: ignore[arg-type]
