"""Are large, high-dimensional and empty files shown, with inspect's numbers?"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.model.seconds import Machine
from chunkwise.viewing.server import Server
from chunkwise.viewing.session import Session
from tests.support.browser import browser
from tests.viewing.test_page import until_text

__all__ = ["browser"]
pytestmark = pytest.mark.slow
# Of each side: millions of chunks.
SIDE = 1600
# HDF5's most.
RANK = 32


@contextmanager
def shown(browser: Any, path: Path) -> Iterator[Any]:
    """The page of a file, without complaints of the browser."""
    server = Server(Session.of(str(path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(server.address)
    page.wait_for_selector("html[data-ready=all]", state="attached")
    yield page
    page.close()
    server.shutdown()
    server.server_close()
    assert complaints == []


def test_a_thousand_datasets(browser: Any, tmp_path: Path, known_machine: Machine) -> None:
    assert known_machine.threads
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for number in range(1000):
            length = 1500 if number == 700 else 100
            data = np.arange(length, dtype="i4")
            file.create_dataset(f"g{number // 100}/x{number}", data=data, chunks=(50,))
    with shown(browser, path) as page:
        assert "1,000 datasets" in page.locator("#about").text_content()
        assert page.locator("#tree li").count() == 400
        assert "600 more" in page.locator("#more").text_content()
        page.locator("#order").select_option("largest")
        first = page.locator("#tree button").first
        assert first.locator("b").text_content() == "/g7/x700"
        page.locator("#order").select_option("file")
        # Groups are in that order, too.
        assert page.locator("#tree b").all_text_contents()[:3] == ["/", "/g0", "/g0/x0"]
        page.locator("#find").fill("x99")
        found = sorted(page.locator("#tree b").all_text_contents())
        assert found == sorted(["/g0/x99", *(f"/g9/x{n}" for n in range(990, 1000))])
        page.locator("#tree button").last.click()
        until_text(page, "name", "/g9/x999")
        until_text(page, "stored", "2 chunks of 50")


def test_millions_of_chunks(browser: Any, tmp_path: Path, known_machine: Machine) -> None:
    assert known_machine.threads
    path = tmp_path / "chunks.h5"
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((1, 1))
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w", libver="latest") as file:
        space = h5py.h5s.create_simple((SIDE, SIDE))
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_U8LE, space, dcpl)
    facts = chunkwise.inspect(path, sample=False, metadata=False).objects[-1].dataset
    with shown(browser, path) as page:
        page.wait_for_selector("#canvas[data-drawn=all]")
        stored = page.locator("#stored").text_content()
        assert facts is not None
        assert facts.chunks is not None
        assert facts.stored_nbytes is not None
        assert f"{facts.chunks.grid:,} chunks of 1x1" in stored
        assert f"stored in {facts.stored_nbytes / 2**20:.2f} MiB" in stored
        for colour in ("place", "mask", "values", "stored"):
            page.locator("#colour").select_option(colour)
            page.wait_for_selector("#canvas[data-drawn=all]")
        # Closer, until a chunk can be pointed at, which lies where HDF5 says.
        for _ in range(20):
            page.locator("#in").click()
        page.wait_for_selector("#canvas[data-drawn=all]")
        box = page.locator("#canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        until_text(page, "hover", "at byte")
        said = page.locator("#hover").text_content()
        index = [int(n) for n in said[said.index("[") + 1 : said.index("]")].split(",")]
        with h5py.File(path) as file:
            place = file["x"].id.get_chunk_info_by_coord(tuple(index)).byte_offset
        assert f"at byte {place:,} of the file" in said
        page.locator("#pattern").fill("plane:0")
        page.locator("#pattern").press("Enter")
        page.wait_for_selector("#reads button:text-is('plane:0')")
        page.locator("#reads button:text-is('plane:0')").click()
        until_text(page, "said", f"touches {SIDE:,} chunks")


def test_as_many_dimensions_as_hdf5_has(
    browser: Any, tmp_path: Path, known_machine: Machine
) -> None:
    assert known_machine.threads
    path = tmp_path / "rank.h5"
    shape = (1,) * (RANK - 12) + (2,) * 12
    with h5py.File(path, "w") as file:
        data = np.arange(math.prod(shape), dtype="i2").reshape(shape)
        file.create_dataset("x", data=data, chunks=(1,) * (RANK - 2) + (2, 1))
    with shown(browser, path) as page:
        page.wait_for_selector("#canvas[data-drawn=all]")
        options = page.locator("#axes select").first.locator("option")
        assert options.count() == RANK + 1
        # A slider for each of the others that has several elements.
        assert page.locator("#axes input").count() == 12 - 2
        until_text(page, "reads", "line:20")
        page.locator("#axes select").first.select_option("20")
        page.locator("#axes select").last.select_option("31")
        until_text(page, "commands", "--draw 20,31")
        page.locator("#colour").select_option("values")
        until_text(page, "legend", "2x2 of the elements")


def test_an_empty_file(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.h5"
    with h5py.File(path, "w"):
        pass
    with shown(browser, path) as page:
        assert "no dataset" in page.locator("#name").text_content()
        assert "0 datasets" in page.locator("#about").text_content()
        assert page.locator("#drawn").is_hidden()
