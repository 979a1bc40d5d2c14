"""What is read from afar: a file of all layouts, and requests that are repeated soon."""

import io
from pathlib import Path

import h5py
import pytest

from chunkwise.remote import opening
from chunkwise.remote.faults import Patience
from tests.support.web import VALUES


@pytest.fixture(scope="module")
def content() -> bytes:
    """The bytes of an HDF5 file with `VALUES` in two layouts, and a word."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_dataset("plain", data=VALUES)
        file.create_dataset("x", data=VALUES, chunks=(1, 100, 100), compression=4, shuffle=True)
        file["word"] = "word"
    return stream.getvalue()


@pytest.fixture
def path(content: bytes, tmp_path: Path) -> Path:
    (tmp_path / "a.h5").write_bytes(content)
    return tmp_path / "a.h5"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine may take seconds for an answer: who asks again then is counted twice.
    monkeypatch.setattr(opening, "PATIENCE", Patience(timeout_s=60.0, pause_s=0.005))
