"""Have patterns units, and is it said what one was taken for?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import patterns
from tests.support.commands import run

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


SAID = (
    "'random:64' was taken for 64 single elements (4 B each) at random places; "
    "for samples along the first dimension write samples:64."
)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.random.default_rng(0).normal(size=(200, 64, 64)).round(1).astype("f4")
        file.create_dataset("images", data=data, chunks=(200, 64, 64), compression=1)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "a.h5"),
        ("inspect", "a.h5", "images"),
        ("fix", "a.h5", "--dry-run"),
        ("repack", "a.h5", "c.h5", "--chunk", "auto", "--dry-run"),
        ("repack", "a.h5", "b.h5", "--chunk", "auto"),
    ],
)
def test_each_answer_says_it_once_for_each_pattern(
    images: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(images.parent)
    reads = ("--access", "random:64", "--access", "plane:0")
    said = " ".join(run(*command, *reads).out.split())
    assert said.count(SAID) == 1
    assert said.count("was taken for") == 2
    assert "'plane:0' was taken for 200 blocks of 1x64x64 (16.0 KiB each) at random" in said
    again = (*command, "--force") if "b.h5" in command else command
    assert SAID in run(*again, *reads, "--json").out
    assert "was taken for" not in run(*again).out


def test_of_several_datasets_the_largest_is_the_example() -> None:
    both = [("/a", 10, ["x."]), ("/b", 20, ["x."]), ("/c", 5, [])]
    assert patterns.interpretations(both) == ("x.",)
    assert patterns.interpretations([*both, ("/d", 30, ["y."])]) == ("In /d, y.",)
    assert patterns.interpretations([("/c", 5, [])]) == ()
