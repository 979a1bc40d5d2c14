"""Are numbers of things counted right, and are near words offered?"""

import importlib.metadata
from types import SimpleNamespace

import pytest

from chunkwise.words import counted, installing, nearest


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 chunks"), (1, "1 chunk"), (2, "2 chunks"), (1024, "1,024 chunks")]
)
def test_one_is_no_plural(count: int, words: str) -> None:
    assert counted(count, "chunk") == words


def test_a_near_word_is_offered() -> None:
    assert nearest("edge-wast", ["edge-waste", "lost-space"]) == " (did you mean 'edge-waste'?)"
    assert nearest("zzz", ["edge-waste"]) == ""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "pip install 'chunkwise[index]'"),
        ('{"url": "file:///src"}', "pip install 'pandas>=2' 'fastparquet'"),
    ],
)
def test_a_hint_names_what_can_be_installed(
    url: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requires = [
        "numpy>=1.23", "pandas>=2 ; extra == 'index'", 'fastparquet; extra == "index"',
        "plotly ; extra == 'report'",
    ]  # fmt: skip
    found = SimpleNamespace(requires=requires, read_text=lambda _: url)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: found)
    assert installing("index") == said
