"""What does a notebook show of files and datasets, whatever their names are?"""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest

import chunkwise
from chunkwise.errors import SelectionError, UsageError
from tests.viewing.conftest import HOSTILE


def test_a_dataset_shows_inspect_s_numbers(path: Path) -> None:
    (one,) = chunkwise.inspect(path, "/cube", sample=False).objects
    assert one.dataset is not None
    with chunkwise.open(path) as file, h5py.File(path) as plain:
        text = file["cube"]._repr_html_()
        assert text == chunkwise.view(plain["cube"])._repr_html_()
        own = chunkwise.view(file["cube"], ["line:0"])
    for pattern in one.dataset.patterns or ():
        assert f"<td>{pattern.name}</td><td>{pattern.chunks:,} chunk" in text
    assert "24x60x50 of int32" in text
    assert "48 of 48 written, 1x30x50" in text
    assert len(own.rows) == 1


def test_each_object_has_a_card_and_names_are_text(path: Path) -> None:
    with chunkwise.open(path) as file:
        whole = str(file._repr_html_())
        assert "<img" not in whole
        assert "<script" not in whole
        assert "&lt;script&gt;" in whole
        assert str(file["group"]._repr_html_()).count("/group/sparse") == 1
        for name in ("contiguous", "row", "scalar", "empty", HOSTILE.replace("/", "")):
            text = str(file[name]._repr_html_())
            assert "<script" not in text
            assert text.startswith("<div><b>/")
        dataset = file["cube"]
    assert file._repr_html_() is None
    assert dataset._repr_html_() is None


def test_what_cannot_be_shown_is_refused(path: Path) -> None:
    with chunkwise.open(path) as file:
        with pytest.raises(UsageError):
            chunkwise.view("cube.h5")
        with pytest.raises(UsageError):
            chunkwise.view(file["cube"], ["nonsense"])
        with pytest.raises(SelectionError):
            chunkwise.view(file["cube"], ["line:9"])
