"""Does long work show a bar in a notebook, and only there?"""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import DatasetNotFoundError
from chunkwise.notebook import in_notebook


class Notebook:
    """A notebook as IPython shows it: what is displayed, and what takes its place."""

    def __init__(self, shell: str = "ZMQInteractiveShell") -> None:
        self.shown: list[str] = []
        made = type(shell, (), {})()
        self.get_ipython = lambda: made
        self.display = SimpleNamespace(display=self._displayed)

    def _displayed(self, what: Any, *, display_id: bool) -> Any:
        assert display_id
        self.update(what)
        return self

    def update(self, what: Any) -> None:
        # As Jupyter asks for it.
        html = what._repr_mimebundle_([], [])["text/html"]
        assert "<b>" not in html
        self.shown.append(unescape(re.sub("<[^>]*>", "", html)))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    found = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", found)
    monkeypatch.setattr("chunkwise.notebook._INTERVAL_S", 0)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        values = np.arange(200_000, dtype="i4").reshape(400, 500)
        file.create_dataset("<b>x</b>", data=values, chunks=(1, 500), compression=1)
    return path


def test_each_long_work_has_its_bar(path: Path, tmp_path: Path, notebook: Notebook) -> None:
    chunkwise.repack(path, tmp_path / "one.h5", chunk="20x500")
    assert "copying /<b>x</b>" in str(notebook.shown)
    assert "ended" in notebook.shown[-1]
    notebook.shown.clear()
    chunkwise.verify(path)
    assert any("verifying" in one for one in notebook.shown)
    notebook.shown.clear()
    chunkwise.fix(path, tmp_path / "two.h5", seconds=0)
    assert len(notebook.shown) > 2
    notebook.shown.clear()
    with pytest.raises(DatasetNotFoundError):
        chunkwise.advise(path, "nothing")
    assert "ended" in notebook.shown[-1]


def test_who_follows_it_himself_gets_no_bar(
    path: Path, tmp_path: Path, notebook: Notebook
) -> None:
    moments: list[Any] = []
    chunkwise.repack(path, tmp_path / "one.h5", chunk="20x500", progress=moments.append)
    assert moments
    assert notebook.shown == []


def test_elsewhere_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Notebook("TerminalInteractiveShell")
    for module in (found, None):
        monkeypatch.setitem(sys.modules, "IPython", module)
        with in_notebook() as show:
            show("words", 1, 2)
    assert found.shown == []
