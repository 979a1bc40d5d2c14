"""Are numbers of things counted right, and are near words offered?"""

from __future__ import annotations

import pytest

from chunkwise.words import counted, nearest


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 chunks"), (1, "1 chunk"), (2, "2 chunks"), (1024, "1,024 chunks")]
)
def test_one_is_no_plural(count: int, words: str) -> None:
    assert counted(count, "chunk") == words


def test_a_near_word_is_offered() -> None:
    assert nearest("edge-wast", ["edge-waste", "lost-space"]) == " (did you mean 'edge-waste'?)"
    assert nearest("zzz", ["edge-waste"]) == ""
