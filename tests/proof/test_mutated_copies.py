"""Is there no result, and does the source stay, where the proof finds a copy to be wrong?

What the proof notices is in `test_differences`; here the copy's own code is changed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, WrongValueError
from chunkwise.repacking import work

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


def swapped_chunks(f: h5py.File) -> None:
    """Put two chunks at each other's places."""
    a, b = (f["cube"].id.read_direct_chunk((0, at, 0)) for at in (0, 5))
    f["cube"].id.write_direct_chunk((0, 0, 0), b[1], b[0])
    f["cube"].id.write_direct_chunk((0, 5, 0), a[1], a[0])


MUTATIONS: dict[str, Callable[[Patch], None]] = {
    "chunks swapped": lambda patch: after_copying(patch, swapped_chunks),
    "object lost": lambda patch: after_copying(patch, lambda f: f["g"].__delitem__("kept")),
    "no user block": lambda patch: patch.setattr(work, "copy_user_block", lambda *_: None),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("mutated") / "in.h5"
    write(path)
    return path.read_bytes()


@pytest.mark.parametrize("what", MUTATIONS)
@pytest.mark.parametrize("in_place", [False, True])
def test_no_result(
    kept: bytes, tmp_path: Path, monkeypatch: Patch, what: str, in_place: bool
) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    source.write_bytes(kept)
    MUTATIONS[what](monkeypatch)
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
