"""Do hints name what can be installed?"""

from __future__ import annotations

import importlib.metadata
from types import SimpleNamespace

import pytest

from chunkwise.words import installing


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
