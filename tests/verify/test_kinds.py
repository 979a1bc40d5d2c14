"""Is a sound file of whatever kind found sound, and its manifest kept by a repack?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise.manifest.manifest import differences
from chunkwise.manifest.summing import sum_values
from tests.support import inspect_files
from tests.support.everything import write_everything

BOUNDS: list[Any] = [("earliest", "latest"), ("latest", "latest"), ("earliest", "v108")]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_one_of_everything(bounds: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_everything(path, libver=bounds, user_block=512)
    found = chunkwise.verify(path)
    # That is in it on purpose.
    assert found.damages == ()
    loose = {one.path for one in found.notes if one.verdict == "sound, with loose ends"}
    assert loose >= {"/links/dangling", "/references@dangling", "/references/objects"}
    out = tmp_path / "out.h5"
    chunkwise.repack(path, out, chunk="auto", filters="shuffle+deflate:1")
    with h5py.File(path) as mine, h5py.File(out) as theirs:
        sums = sum_values(mine)
        assert list(differences(sums, sum_values(theirs))) == []
        lacking = [name for name, one in sums.items() if one.get("sha256", "") is None]
        assert set(lacking) <= {"/references/holders"}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("make", ["make_indexes", "make_filters"])
def test_every_index_and_filter(make: str, libver: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    getattr(inspect_files, make)(path, libver)
    found = chunkwise.verify(path)
    assert (found.verdict, found.damages) == ("sound", ())
    assert found.chunks > 0


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    inspect_files.make_file(path)
    found = chunkwise.verify(path, write_manifest=tmp_path / "m.json")
    assert found.verdict == "cannot be judged here"
    said = {note.path: note.reason for note in found.notes}
    assert "no such file" in said["/virtual"]
    assert "not in the manifest" in said["/external"]
    assert "filter 32123" in said["/unknown_filter"]
    # What cannot be read is not compared either.
    again = chunkwise.verify(path, manifest=tmp_path / "m.json")
    assert (again.verdict, again.damages) == ("cannot be judged here", ())


def test_fill_values(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    inspect_files.make_fills(path)
    assert chunkwise.verify(path).verdict == "sound"
