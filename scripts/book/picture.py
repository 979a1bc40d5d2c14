"""Which plot should people remember?  Rows of a compressed file against libhdf5's chunk cache.

It is drawn for light and dark grounds from a saved run of the study `cris`.  README.md and the
site quote its figures (`figures`):

    python scripts/picture.py
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "studies" / "cris-paper.json.gz"
FOLDER = ROOT / "docs" / "_static"
MIB = 2**20
SHAPE = [60, 30, 9, 717]
# 4 x 30 x 9 x 717 elements of 4 bytes.
CHUNK_NBYTES = 3_097_440
PUBLISHED = {1 * MIB: 345.0, 3 * MIB: 0.37}
GROUNDS = {
    "light": {"ink": "#24292f", "faint": "#d0d7de", "ground": "#ffffff"},
    "dark": {"ink": "#e6edf3", "faint": "#3d444d", "ground": "#14181e"},
}
SLOW, FAST = "#d55e00", "#2a8fd0"


def times(results: Path = RESULTS) -> tuple[dict[int, float], float]:
    """Return the median seconds for all rows: of libhdf5 by bytes of its cache; of chunkwise."""
    with gzip.open(results) as stream:
        outcomes = json.load(stream)["outcomes"]
    caches: dict[int, list[float]] = defaultdict(list)
    ours: list[float] = []
    for outcome in outcomes.values():
        for record in outcome["records"]:
            if not _is_asked(record):
                continue
            if record["reader"] == "chunkwise":
                ours.append(record["total_s"])
            elif record["reader"] == "libhdf5":
                caches[record["actual_cache_nbytes"]].append(record["total_s"])
    return {size: median(found) for size, found in sorted(caches.items())}, median(ours)


def _is_asked(record: dict[str, Any]) -> bool:
    point = record.get("point", {})
    return (
        record.get("status") == "ok"
        and record.get("access") == "row"
        # Other experiments read a part of it.
        and record.get("shape") == SHAPE
        and point.get("libhdf5") == "default"
        and all(point.get(name) == "stored" for name in ("chunk", "filter"))
    )


def figures(results: Path = RESULTS) -> dict[str, str]:
    """Return what texts say of the picture: seconds, as they are written there."""
    theirs, ours = times(results)
    slow = median(value for size, value in theirs.items() if size < CHUNK_NBYTES)
    fast = median(value for size, value in theirs.items() if size >= CHUNK_NBYTES)
    rounded = float(f"{slow:.1g}")
    return {"slow": f"{rounded:.0f} s", "fast": f"{fast:.2g} s", "ours": f"{ours:.1g} s"}


def draw(name: str, folder: Path = FOLDER) -> Path:
    """Write the picture for one ground as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    ground = GROUNDS[name]
    theirs, ours = times()
    settings: Any = {"svg.hashsalt": "chunkwise", "font.size": 13, "text.color": ground["ink"]}
    with mpl.rc_context(settings):
        figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        figure.set_facecolor(ground["ground"])
        axes.set_facecolor(ground["ground"])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = [size / MIB for size in theirs]
        axes.plot(sizes, list(theirs.values()), "o-", color=SLOW, lw=2.2, ms=6)
        axes.plot([0.8, 10], [ours, ours], "-", color=FAST, lw=2.6)
        axes.plot(
            [size / MIB for size in PUBLISHED],
            list(PUBLISHED.values()),
            "x",
            color=ground["ink"],
            ms=8,
            mew=1.8,
        )
        axes.axvline(CHUNK_NBYTES / MIB, color=ground["ink"], lw=0.9, ls=":")
        axes.set_xlim(0.8, 10)
        axes.set_ylim(0.014, 2000)
        words: dict[str, Any] = {"color": ground["ink"], "va": "center"}
        axes.text(
            1.06, theirs[MIB] / 2.3, "libhdf5", **{**words, "color": SLOW, "fontweight": "bold"}
        )
        axes.text(0.86, ours / 1.8, "chunkwise", **{**words, "color": FAST, "fontweight": "bold"})
        axes.text(1.06, 750, "published: 345 s", **words)
        axes.text(3.2, 0.9, "published: 0.37 s", **words)
        axes.text(3.2, 40, "from here on, the cache\nholds one chunk (2.95 MiB)", **words)
        axes.text(
            8, ours / 2.3, "default since\nHDF5 2.0",
            ha="center", fontsize=10.5, **words,
        )  # fmt: skip
        axes.set_xticks([1, 2, 3, 4, 8], ["1 MiB", "2", "3", "4", "8"])
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.set_yticks([0.1, 1, 10, 60, 300], ["0.1 s", "1 s", "10 s", "1 min", "5 min"])
        axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.set_xlabel("size of libhdf5's chunk cache", color=ground["ink"])
        axes.set_title("Reading a compressed dataset row by row", color=ground["ink"])
        axes.tick_params(colors=ground["ink"])
        axes.grid(axis="y", color=ground["faint"], lw=0.7)
        for side in axes.spines.values():
            side.set_visible(False)
        path = folder / f"rows-{name}.svg"
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return path


def main() -> None:
    """Draw both."""
    for name in GROUNDS:
        print(draw(name).relative_to(ROOT))
