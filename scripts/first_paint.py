"""How long does `chunkwise view` take until something is seen, and does dragging keep up?

    python scripts/first_paint.py [FOLDER]

Makes a file of 1,000 datasets and one of ten million chunks in the folder (170 MB), unless they
are there, and opens both in Chromium, five times each.  Needs playwright and chromium.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

_TIMES: Final = 5
# Drags to and fro, and counts the milliseconds between frames.
_DRAGGING: Final = """async ([moves, seconds]) => {
  const canvas = document.getElementById("canvas");
  const box = canvas.getBoundingClientRect();
  const at = (kind, k) => canvas.dispatchEvent(new PointerEvent(kind, {
    pointerId: 1, shiftKey: moves,
    clientX: box.left + box.width / 2 + 150 * Math.sin(k / 9),
    clientY: box.top + box.height / 2 + 90 * Math.cos(k / 7),
  }));
  canvas.setPointerCapture = () => {};
  const frames = [];
  at("pointerdown", 0);
  let before = await new Promise(requestAnimationFrame);
  for (let k = 1; frames.reduce((a, b) => a + b, 0) < 1000 * seconds; k += 1) {
    at("pointermove", k);
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  at("pointerup", 0);
  return frames;
}"""


def many_datasets(path: Path) -> None:
    """Write a thousand small datasets."""
    with h5py.File(path, "w") as file:
        for number in range(1000):
            file.create_dataset(
                f"group{number // 50}/x{number}",
                data=np.arange(5000),
                chunks=(500,),
                compression=1,
            )


def many_chunks(path: Path) -> None:
    """Write a dataset of ten million chunks, all of them allocated."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((4, 4))
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w", libver="latest") as file:
        space = h5py.h5s.create_simple((3163 * 4, 3163 * 4))
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_U8LE, space, dcpl)


def seen(browser: Any, path: Path) -> dict[str, float]:
    """Open a file by the command, and time what is seen."""
    program = str(Path(sys.executable).with_name("chunkwise"))
    command = [program, "view", str(path), "--no-browser"]
    # The browser is running, as that of most people is.
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        found = {"from the command to its address": time.perf_counter() - begun}
        page.goto(address, wait_until="commit")
        page.wait_for_selector("#tree li")
        found["from the command to the list of datasets"] = time.perf_counter() - begun
        page.wait_for_selector("#canvas[data-drawn=all]")
        found["from the command to the drawing"] = time.perf_counter() - begun
        page.wait_for_selector("#reads tbody tr")
        page.locator("#in").click(click_count=3)
        for name, moves in (("moving", True), ("drawing a box", False)):
            frames = page.evaluate(_DRAGGING, [moves, 2])
            found[f"frames a second, {name}"] = 1000 / statistics.median(frames)
        page.close()
        process.terminate()
    return found


def main(folder: str | None = None) -> None:
    """Make the files, open them, and print medians with their ends."""
    from playwright.sync_api import sync_playwright

    files = {"1,000 datasets": many_datasets, "ten million chunks": many_chunks}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for title, make in files.items():
            path = Path(folder or scratch) / f"{make.__name__}.h5"
            if not path.exists():
                make(path)
            rows = [seen(browser, path) for _ in range(_TIMES)]
            for name in rows[0]:
                values = sorted(row[name] for row in rows)
                middle = statistics.median(values)
                print(f"{title}, {name}: {middle:.2f} ({values[0]:.2f} to {values[-1]:.2f})")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
