"""Have patterns units, and is it said what one was taken for?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import patterns

SHAPE = (512, 3, 64, 64)


@pytest.mark.parametrize(
    ("text", "block", "words"),
    [
        ("random:64", (1, 1, 1, 1), "64 single elements (1 B each) at random places"),
        ("samples:64", (1, 3, 64, 64), "64 blocks of 1x3x64x64 (12.0 KiB each) at random places"),
        (
            "frames",
            (1, 1, 64, 64),
            "1,536 blocks of 1x1x64x64 (4.0 KiB each), one after the other",
        ),
        ("all", SHAPE, "1 block of 512x3x64x64 (6.0 MiB)"),
    ],
)
def test_what_a_pattern_is_taken_for(text: str, block: tuple[int, ...], words: str) -> None:
    access = patterns.parse(text, SHAPE, 1, "'x'")
    assert (access.block, access.in_words(SHAPE, 1)) == (block, words)


@pytest.mark.slow
def test_advice_says_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.arange(64 * 3 * 16 * 16).reshape(64, 3, 16, 16).astype("u1")
        file.create_dataset("images", data=data, chunks=(64, 3, 16, 16), compression="gzip")
    notes = " ".join(chunkwise.advise(path, "images", ["random:64"], budget_s=0.2).notes)
    assert "'random:64' was taken for 64 single elements (1 B each) at random places" in notes
    assert "samples:64" in notes
