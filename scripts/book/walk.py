"""Take pictures of how `chunkwise view` leads from a slow file to what mends it.

They are of the page itself, in Chromium, for docs/start/slow.md:

    python scripts/walk.py demo-files/cube.h5
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "_static"
_WIDTH, _GAP = 1180, 12
_MOST_NBYTES = 150_000
_COLOURS = 256


def main() -> None:
    """Take the pictures of a file."""
    from playwright.sync_api import sync_playwright

    from chunkwise.viewing.server import Server
    from chunkwise.viewing.session import Session

    if len(sys.argv) != 2:
        sys.exit("name one file: python scripts/walk.py demo-files/cube.h5")
    path = sys.argv[1]
    server = Server(Session.of(path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser_path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": _WIDTH, "height": 900}, color_scheme="light", device_scale_factor=1
        )
        page.goto(server.address)
        page.wait_for_selector("html[data-ready=all]", state="attached")
        _until(page, lambda: "predicted" in _text(page, "#measuring"))
        for name, (step, parts) in _STEPS.items():
            step(page)
            page.wait_for_selector("#canvas[data-drawn=all]")
            _take(page, name, parts)
        browser.close()
    server.shutdown()
    server.server_close()


def _opened(page: Any) -> None:
    """Show the page as it opens."""
    page.evaluate("scrollTo(0, 0)")


def _why(page: Any) -> None:
    """Show that a time series touches every chunk."""
    page.locator("#reads button", has_text="line:0").click()


def _film(page: Any) -> None:
    """Show that the cache drops chunks before the next series needs them."""
    page.locator("text=a loop over everything").click()
    page.wait_for_selector("text=line:0@walk")
    for touched in (120, 240, 360):
        page.locator("#step").click()
        _until(page, lambda: f"{touched} chunks" in _text(page, "#told"))  # noqa: B023


def _cure(page: Any) -> None:
    """Try other chunks, for which there is a command."""
    page.locator("text=single reads, anywhere").click()
    page.wait_for_selector("#reads button:text-is('line:0')")
    for read in ("line:1", "line:2"):
        page.locator(f"[aria-label='Remove {read}']").click()
        page.wait_for_selector(f"[aria-label='Remove {read}']", state="detached")
    for slider, text in (("#s0", "30 of 120"), ("#s3", "75 of 300"), ("#s6", "75 of 300")):
        page.locator(slider).evaluate(_SLIDE, text)
        page.wait_for_timeout(300)
    page.wait_for_selector("#writes :text('30x75x75')")


_SLIDE = """(slider, text) => {
    const output = slider.nextSibling;
    for (slider.value = 0; output.textContent !== text; slider.value = +slider.value + 1)
        slider.dispatchEvent(new Event("input"));
}"""
# By name what is done, and the parts of the page that are shown; none for the whole window.
_STEPS: dict[str, tuple[Callable[[Any], None], tuple[str, ...]]] = {
    "view-1-opened": (_opened, ()),
    "view-2-why": (_why, ("#canvas", "#legend", "#said")),
    "view-3-film": (_film, ("#canvas", "#legend", "#slots", "#told")),
    "view-4-cure": (_cure, ("#reads", "#sliders", "#result", "#writes")),
}


def _text(page: Any, where: str) -> str:
    return page.locator(where).text_content() or ""


def _until(page: Any, holds: Callable[[], bool]) -> None:
    for _ in range(1200):
        if holds():
            return
        page.wait_for_timeout(50)
    raise SystemExit("the page does not show what the picture is to show")


def _take(page: Any, name: str, parts: tuple[str, ...]) -> None:
    """Keep what the window shows, or parts of the page one below the other, as a small file."""
    from PIL import Image

    page.wait_for_timeout(400)
    shots = [page.locator(part).screenshot() for part in parts] or [page.screenshot()]
    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    width = max(image.width for image in images)
    height = sum(image.height + _GAP for image in images)
    whole = Image.new("RGB", (width, height), "white")
    for i, image in enumerate(images):
        whole.paste(image, (0, sum(one.height + _GAP for one in images[:i])))
    target = FOLDER / f"{name}.png"
    whole.quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        target, optimize=True
    )
    if target.stat().st_size > _MOST_NBYTES:
        raise SystemExit(f"{target}: {target.stat().st_size:,} bytes are too many")
    print(f"{target.name}: {target.stat().st_size:,} bytes")
