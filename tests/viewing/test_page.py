"""Does the page show in a real browser what the server says, and does no name command it?"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chunkwise
from chunkwise.model.seconds import Machine
from chunkwise.viewing.saving import saved_page
from chunkwise.viewing.server import Server
from chunkwise.viewing.session import Session
from tests.report.test_page import FLAGS
from tests.viewing.conftest import HOSTILE

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (make tools installs it)"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def server(path: Path, known_machine: Machine) -> Iterator[Server]:
    assert known_machine.threads
    facts = chunkwise.inspect(path, sample=False, metadata=False)
    made = Server(Session(str(path), facts, "/cube"))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def until(page: Any, expression: str, argument: Any = None) -> None:
    """Wait until something is so; the page's policy forbids playwright's own way."""
    for _ in range(400):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(server.address)
    page.wait_for_selector("html[data-ready=all]", state="attached")
    page.wait_for_selector("#canvas[data-drawn=all]")
    until(page, "!document.getElementById('measuring').textContent.includes('follow')")
    yield page
    context.close()
    # The browser's note on what the server refuses.
    assert [one for one in complaints if "400 (Bad Request)" not in one] == []
    assert all(url.startswith((server.address, "data:")) for url in requests)


def ask(page: Any, what: str) -> Any:
    """Ask the server what the page asks."""
    return page.evaluate("what => fetch(what).then(answer => answer.json())", what)


def chosen(page: Any) -> str:
    return str(page.locator("#reads tr.chosen th").text_content())


def cells(page: Any, row: int) -> list[str]:
    found: list[str] = page.locator("#reads tbody tr").nth(row).locator("td").all_text_contents()
    return found


def test_reads_show_the_model_s_numbers(page: Any) -> None:
    number = page.evaluate("JSON.parse(document.getElementById('facts').textContent).chosen")
    texts = ["line:0", "line:1", "line:2", "plane:0"]
    found = ask(page, f"costs?dataset={number}&" + "&".join(f"read={one}" for one in texts))
    assert page.locator("#reads tbody tr").count() == 4
    for row, one in enumerate(found["reads"]):
        now = one["now"]
        assert now["libhdf5_s"] > 0
        touched, decodes, *_ = cells(page, row)
        assert touched == f"{now['chunks']} chunk" + "s" * (now["chunks"] != 1)
        assert f"for {now['selected_nbytes']} bytes" in decodes or now["selected_nbytes"] > 1023
    assert "touches 24 chunks" in page.locator("#said").text_content()
    assert "600 bytes" not in page.locator("#said").text_content()
    assert "96 bytes" in page.locator("#said").text_content()


def test_a_box_that_is_dragged_is_a_read(page: Any) -> None:
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.wait_for_selector("#hover:has-text('Chunk [')")
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 160, steps=6)
    page.mouse.up()
    page.wait_for_selector("#reads tr.chosen th button:has-text('box=[')")
    # What the box was while it was dragged is said for a moment longer.
    page.wait_for_function(
        """() => document.getElementById("said").textContent.includes(
            `A read of ${document.querySelector("#reads tr.chosen th button").textContent} `)"""
    )
    text = page.locator("#reads tr.chosen th button").text_content()
    number = page.evaluate("JSON.parse(document.getElementById('facts').textContent).chosen")
    query = page.evaluate("text => new URLSearchParams({read: text}).toString()", text)
    (read,) = ask(page, f"costs?dataset={number}&{query}")["reads"]
    assert f"touches {read['now']['chunks']} chunks" in page.locator("#said").text_content()
    assert f"'{text}'" in page.locator("#commands").text_content()


def test_another_layout_is_tried_and_written_as_a_command(page: Any) -> None:
    page.locator("#s0").evaluate(
        "one => { one.value = one.max; one.dispatchEvent(new Event('input')); }"
    )
    page.wait_for_selector("td.tried")
    assert "24 of 24" in page.locator("#sliders").text_content()
    assert "repack --chunk /cube:24x30x50" in page.locator("#commands").text_content()
    assert "with libhdf5" in page.locator("#result").text_content()
    page.locator("#filter").select_option("none")
    page.wait_for_selector("#commands :text('--filter /cube:none')")
    page.locator("#reset").click()
    page.wait_for_selector("td.tried", state="detached")


def test_a_loop_is_played_through_the_cache(page: Any) -> None:
    page.locator("text=a loop over everything").click()
    page.wait_for_selector("text=line:0@walk")
    page.locator("#step").click()
    page.wait_for_selector("#told:has-text('24 chunks touched so far, 24 loaded')")
    page.locator("#step").click()
    page.wait_for_selector("#told:has-text('48 chunks touched so far, 24 loaded')")
    page.locator("#play").click()
    until(page, "Number(document.getElementById('at').value) > 60")
    page.locator("#play").click()
    assert page.locator("#play").text_content() == "Play"


def test_keys_go_from_chunk_to_chunk(page: Any) -> None:
    page.locator("#canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    page.wait_for_selector("#hover:has-text('Chunk [2, 0, 0]')")
    page.keyboard.press("Shift+ArrowDown")
    page.wait_for_selector("#reads tr.chosen th button:has-text('box=[2:4, 0:30')")
    page.keyboard.press("+")
    page.keyboard.press("0")


def test_a_wrong_pattern_is_a_message(page: Any) -> None:
    page.locator("#pattern").fill("lin:0")
    page.keyboard.press("Enter")
    page.wait_for_selector("#wrong:has-text('did you mean')")
    assert page.locator("#reads tbody tr").count() == 4


def test_each_dataset_can_be_chosen_and_names_are_text(page: Any) -> None:
    assert page.title() != "owned"
    rows = page.locator("#tree button:not([disabled])")
    for i in range(rows.count()):
        row = rows.nth(i)
        name = row.locator("b").text_content()
        row.click()
        until(page, "name => document.getElementById('name').textContent === name", name)
        page.wait_for_selector("#costs:not([hidden]), #why-not:not([hidden])")
    assert page.locator(f"text={HOSTILE.replace('/', '')}").count()
    assert page.locator("img").count() == 0
    page.locator("#find").fill("spars")
    assert rows.count() == 1
    rows.first.click()
    page.wait_for_selector("#legend:has-text('never written')")


BEYOND = """() => [...document.querySelectorAll("body *")].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && box.right > innerWidth + 1 && !one.closest(".table, .hidden, .skip");
}).map(one => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000, 3840])
def test_it_fits_at_any_width(page: Any, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate(BEYOND) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_page_of_another_origin_gets_nothing(server: Server, browser: Any) -> None:
    other = browser.new_page()
    other.goto("data:text/html,<p>other")
    for what in ("", "facts"):
        got = other.evaluate(
            "url => fetch(url).then(answer => answer.text()).catch(() => 'nothing')",
            server.address + what,
        )
        assert got == "nothing"
    other.close()


def test_a_saved_page_needs_no_server(
    browser: Any, path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    session = Session(str(path), chunkwise.inspect(path, sample=False, metadata=False))
    saved = tmp_path / "saved.html"
    saved.write_text(saved_page(session), encoding="utf-8")
    assert saved.stat().st_size < 1 << 20
    page = browser.new_context(viewport={"width": 400, "height": 800}).new_page()
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("console", lambda message: seen.append(message.text))
    page.on("request", lambda request: seen.append(request.url))
    page.goto(saved.as_uri())
    page.wait_for_selector("html[data-ready=all]", state="attached")
    page.wait_for_selector("#canvas[data-drawn=all]")
    page.locator("#objects summary").click()
    rows = page.locator("#tree button:not([disabled])")
    assert rows.count() == 5
    for i in range(rows.count()):
        rows.nth(i).click()
        page.wait_for_selector("#reads tbody tr, #why-not:not([hidden])")
        page.wait_for_selector("#canvas[data-drawn=all], #why-not:not([hidden])")
    page.locator("#colour").select_option("place")
    page.wait_for_selector("#canvas[data-drawn=all]")
    for name in ("#cure", "#film", "#axes", "#presets", "#other"):
        assert page.locator(name).is_hidden()
    assert page.title() != "owned"
    assert page.evaluate(BEYOND) == []
    assert seen == [saved.as_uri()]
    page.close()
