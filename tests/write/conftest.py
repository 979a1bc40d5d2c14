"""Of which datasets do these tests write a few elements, as if they were large?  Of all."""

import pytest

from chunkwise.writing import alike, direct


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What libhdf5 would write at once, as it is small, is written like what is large."""
    monkeypatch.setattr(direct, "SMALL_NBYTES", 0)
    monkeypatch.setattr(direct, "ONE_CHUNK_NBYTES", 0)
    monkeypatch.setattr(alike, "MOST_NBYTES", 0)
