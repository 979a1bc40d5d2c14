"""Is one thing ever called several, by any command, in any format?"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.inspect_fakes import CHUNKS, DATASET, METADATA, dataset, file_facts, shown

# After 1 there is no word that ends in s, but for these; 0.1 and 2,001 are other numbers.
SEVERAL = re.compile(r"(?<![\d.,x/:-])1 (?!(?:is|was|has|bus|its|less|as|class)\b)[a-z]{3,}s\b")
OPTIONS = ("--repeat", "1", "--budget", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with one file of one dataset in one chunk, and one trial of it."""
    folder = tmp_path_factory.mktemp("one")
    with h5py.File(folder / "one.h5", "w") as file:
        data = file.create_dataset("x", data=np.zeros((1, 9)), chunks=(1, 9), compression=1)
        data.attrs["units"] = "K"
    saved = [*OPTIONS, "--reader", "h5py", "--access", "all", "--save", "run.jsonl"]
    told(folder, "bench", "one.h5", *saved)
    return folder


def told(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "chunkwise", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def check(text: str) -> None:
    assert text.strip()
    found = SEVERAL.search(" ".join(text.split()))
    assert found is None, f"{found}: {text}"


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "one.h5"),
        ("inspect", "one.h5", "--all"),
        ("inspect", "one.h5", "/x"),
        ("inspect", "."),
        ("verify", "one.h5"),
        ("verify", ".", "--write-manifest", "one.json"),
        ("bench", "one.h5", *OPTIONS, "--access", "all"),
        ("bench", "one.h5", *OPTIONS, "--access", "all", "--operation", "write"),
        ("bench", "one.h5", "--access", "3"),
        ("compare", "run.jsonl", "run.jsonl"),
        ("repack", "one.h5", "out.h5", "--dry-run"),
        ("repack", "one.h5", "made.h5"),
        ("repack", "one.h5", "in.h5", "--chunk", "/x:3"),
        ("hstest", "one.h5", "--count", "1", "-k", "2", "--reader", "h5py"),
        ("study", "--list"),
    ],
    ids=" ".join,
)
def test_commands(folder: Path, words: tuple[str, ...]) -> None:
    check(told(folder, *words))


def test_reports(folder: Path) -> None:
    told(folder, "report", "run.jsonl", "-o", "page.md")
    check((folder / "page.md").read_text(encoding="utf-8"))


def ones(facts: object) -> dict[str, int]:
    """Give each count of a record the value 1."""
    return {
        field.name: 1
        for field in fields(facts)  # type: ignore[arg-type]
        if type(getattr(facts, field.name)) is int
    }


def test_made_up_facts() -> None:
    chunks = replace(CHUNKS, **ones(CHUNKS))  # type: ignore[arg-type]
    one = dataset(facts=replace(DATASET, **ones(DATASET), chunks=chunks))  # type: ignore[arg-type]
    metadata = replace(METADATA, **ones(METADATA))
    facts = file_facts(replace(one, **ones(one)), metadata=metadata)  # type: ignore[arg-type]
    for text in (shown(facts), shown(replace(facts, objects=(one,)), single=True)):
        check(text)
