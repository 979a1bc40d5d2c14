"""Is what docs/fix.md shows what `chunkwise fix` prints?  Fills its example from a run.

The file that it mends is made here: maps of a model, each in a chunk of its own, as a program
writes them that appends a map a day.  The block between `<!-- run: ... -->` and `<!-- end -->` is
the command and what it prints on this machine; tests/fix/test_fix_page.py holds what does not
depend on the machine.

    python scripts/fix_page.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import h5py
import numpy as np
import readme

PAGE = readme.ROOT / "docs" / "fix.md"
FILE = "model.nc"
SHAPE = (240, 150, 150)
# What a machine, its libhdf5 or its codecs decide.
_TIMES = re.compile(r"~?[\d.,]+ ?(?:µs|ms|s|min|h)\b")
_RATIOS = re.compile(r"(?<![\w.])(?:1/)?[\d.,]+x(?!\d)|1/[\d,]+")
_AFTER = re.compile(r"(-> )[\d.]+( [KMG]iB)")
_SHARE = re.compile(r"\d+% of the time")
_REQUESTS = re.compile(r"\d+(?= requests| blocks)|(?<=-> )\d+\b")


def make(path: Path) -> None:
    """Write the file, the same on each machine."""
    generator = np.random.default_rng(0)
    time, y, x = (np.arange(n, dtype="f8") for n in SHAPE)
    values = 10 * np.sin(time / 20)[:, None, None] + np.sin(y / 15)[:, None] + np.cos(x / 15)
    values += generator.normal(scale=0.3, size=SHAPE)
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "t2m", data=(280 + values).round(1).astype("<f4"), chunks=(1, *SHAPE[1:]),
            maxshape=(None, *SHAPE[1:]), compression=1,
        )  # fmt: skip
        for axis, (name, values_of) in enumerate((("time", time), ("y", y), ("x", x))):
            file[name] = values_of
            file[name].make_scale(name)
            made.dims[axis].attach_scale(file[name])


def skeleton(text: str) -> list[str]:
    """Return the lines of an output without what a machine decides."""
    for pattern, put in (
        (_TIMES, "T"),
        (_RATIOS, "R"),
        (_AFTER, r"\1N\2"),
        (_REQUESTS, "N"),
        (_SHARE, "S"),
    ):
        text = pattern.sub(put, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def shown(page: str) -> str:
    """Return what the page says that the command prints."""
    found = readme.BLOCK.search(page)
    assert found is not None, f"{PAGE}: has no block to fill"
    lines = found["body"].strip().splitlines()
    return "\n".join(lines[2:-1])


def main() -> None:
    """Fill the page."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name) / FILE)
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(readme.fill(text, readme.runner(Path(name)), {}), encoding="utf-8")


if __name__ == "__main__":
    main()
