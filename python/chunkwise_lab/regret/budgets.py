"""Do commands end within their budgets, and what does a plan cost beside a look at the file?"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import h5py
import numpy as np

from chunkwise_lab.regret.reading import succeeded

# What a command may take over its budget; and a plan, of the processor time of `inspect`.
OVER: Final = 1.15
PLAN: Final = 2.0
_FIX_S: Final = 30.0
_ADVISE_S: Final = 20.0
_REPEATS: Final = 3
_DATASETS: Final = 16
_SHAPE: Final = (60, 50, 48)


def lines() -> Iterator[str]:
    """Run the commands, and say which budgets are kept."""
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as name:
        folder = Path(name)
        many, one = folder / "many.h5", folder / "one.h5"
        _write(many, _DATASETS, (2, 25, 24))
        _write(one, 1, (1, 50, 48), 20)
        advise = ("advise", str(one), "x0", "--access", "line:0")
        _taken(folder, *advise, "--budget", "1")
        yield "| command | limit | took | of the limit | |"
        yield "| --- | ---: | ---: | ---: | --- |"
        for file in (many, one):
            looks, plans = (
                min(_taken(folder / f"{turn}{words[0]}", *words)[0] for turn in range(_REPEATS))
                for words in (("inspect", str(file)), ("fix", "--dry-run", str(file)))
            )
            yield _line(f"fix --dry-run {file.name} (processor)", PLAN * looks, plans)
        for file, words in (
            (many, ("fix", str(many), "-o", str(folder / "many-fixed.h5"))),
            (one, ("fix", str(one), "-o", str(folder / "one-fixed.h5"), "--access", "line:0")),
        ):
            yield _line(f"fix {file.name}", OVER * _FIX_S, _taken(folder, *words)[1])
        took_s = _taken(folder, *advise, "--budget", f"{_ADVISE_S:g}")[1]
        yield _line(f"advise --budget {_ADVISE_S:g}", OVER * _ADVISE_S, took_s)


def _write(path: Path, datasets: int, chunks: tuple[int, ...], times: int = 1) -> None:
    shape = (times * _SHAPE[0], *_SHAPE[1:])
    walk = np.cumsum(np.random.default_rng(0).integers(-9, 10, shape), axis=0).astype("f4")
    with h5py.File(path, "w") as file:
        for number in range(datasets):
            file.create_dataset(f"x{number}", data=walk + number, chunks=chunks, compression=4)


def _taken(kept: Path, *words: str) -> tuple[float, float]:
    """Return seconds of processors, and of the clock, that a command takes."""
    before = sum(os.times()[2:4])
    done = succeeded(
        [sys.executable, "-m", "chunkwise", *words], environment={"XDG_CACHE_HOME": str(kept)}
    )
    return sum(os.times()[2:4]) - before, done.elapsed_s


def _line(what: str, limit_s: float, took_s: float) -> str:
    kept = "kept" if took_s <= limit_s else "NOT KEPT"
    return f"| {what} | {limit_s:.2f} s | {took_s:.2f} s | {took_s / limit_s:.0%} | {kept} |"
