"""Does the page show in a real browser what the server says, and does no name command it?"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise.model.seconds import Machine
from chunkwise.viewing.costs import Tried
from chunkwise.viewing.saving import saved_page
from chunkwise.viewing.server import Server
from chunkwise.viewing.session import Session
from chunkwise.viewing.traced import Traced
from tests.support.browser import browser
from tests.support.patience import PAGE_MS
from tests.support.web import serving
from tests.viewing.conftest import HOSTILE
from tests.viewing.test_command import opened_by, traced

__all__ = ["browser"]
pytestmark = pytest.mark.slow


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
    for _ in range(PAGE_MS // 50):
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
        wanted, touched, decoded, times, *_ = cells(page, row)
        assert wanted.startswith(f"{now['selected_nbytes'] // 4:,} elements")
        assert f"{now['selected_nbytes']} bytes" in wanted or now["selected_nbytes"] > 1023
        assert touched == f"{now['chunks']} chunk" + "s" * (now["chunks"] != 1)
        assert decoded == f"{now['decoded_nbytes'] / 1024:.3g} KiB"
        over = now["decoded_nbytes"] / now["selected_nbytes"]
        assert times == (f"{over:.2f}" if over < 10 else f"{over:,.0f}")
    assert "touches 24 chunks" in page.locator("#said").text_content()
    assert "600 bytes" not in page.locator("#said").text_content()
    assert "96 bytes" in page.locator("#said").text_content()


def test_a_box_that_is_dragged_is_a_read(page: Any) -> None:
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.wait_for_selector("#hover:has-text('Chunk [')")
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 160)
    page.mouse.up()
    page.wait_for_selector("#reads tr.chosen th button:has-text('box=[')")
    until(
        page,
        """() => document.getElementById("said").textContent.startsWith(
            `${document.querySelector("#reads tr.chosen th button").textContent}: `)""",
    )
    text = page.locator("#reads tr.chosen th button").text_content()
    number = page.evaluate("JSON.parse(document.getElementById('facts').textContent).chosen")
    query = page.evaluate("text => new URLSearchParams({read: text}).toString()", text)
    (read,) = ask(page, f"costs?dataset={number}&{query}")["reads"]
    assert f"touches {read['now']['chunks']} chunks" in page.locator("#said").text_content()
    assert f"'{text}'" in page.locator("#commands").text_content()


def test_a_click_reads_a_point_of_the_chunk_that_is_named(page: Any, path: Path) -> None:
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 90)
    until_text(page, "hover", "at byte")
    said = page.locator("#hover").text_content()
    index = tuple(int(n) for n in said[said.index("[") + 1 : said.index("]")].split(","))
    with h5py.File(path) as file:
        dataset = file["cube"]
        origin = tuple(i * c for i, c in zip(index, dataset.chunks, strict=True))
        found = dataset.id.get_chunk_info_by_coord(origin)
    assert f"{found.size / 1024:.3g} KiB at byte {found.byte_offset:,} of the file" in said
    assert f"ratio {6000 / found.size:.3g}" in said
    page.mouse.click(box["x"] + 300, box["y"] + 90)
    page.wait_for_selector("#reads tr.chosen th button:has-text('box=[')")
    row = page.locator("#reads tr.chosen td").all_text_contents()
    assert row[0] == "1 element4 bytes"
    assert row[1] == "1 chunk"


def test_each_control_has_a_name(page: Any) -> None:
    page.wait_for_selector("#film:not([hidden])")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, canvas")]
            .filter(one => !(one.textContent.trim() && one.tagName === "BUTTON")
                && !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby")
                && !one.labels?.length && !one.closest(".legend"))
            .map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_another_layout_is_tried_and_written_as_a_command(page: Any) -> None:
    page.locator("#s0").evaluate(
        "one => { one.value = one.max; one.dispatchEvent(new Event('input')); }"
    )
    page.wait_for_selector("#reads .tried")
    assert "24 of 24" in page.locator("#sliders").text_content()
    assert page.locator("#play").is_disabled()
    assert "plays the chunks that the file has" in page.locator("#film-status").text_content()
    assert "repack --chunk /cube:24x30x50" in page.locator("#commands").text_content()
    assert "with libhdf5" in page.locator("#result").text_content()
    page.locator("#filter").select_option("none")
    page.wait_for_selector("#commands :text('--filter /cube:none')")
    page.locator("#reset").click()
    page.wait_for_selector("#reads .tried", state="detached")
    assert page.locator("#play").is_enabled()


def test_a_loop_is_played_through_the_cache(page: Any) -> None:
    page.locator("text=a loop over everything").click()
    page.wait_for_selector("text=line:0@walk")
    page.locator("#step").click()
    page.wait_for_selector("#film-status:has-text('24 chunks touched so far, 24 loaded')")
    page.locator("#step").click()
    page.wait_for_selector("#film-status:has-text('48 chunks touched so far, 24 loaded')")
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


def test_the_walks_that_have_names_are_reads(page: Any) -> None:
    for name in ("series", "map", "row", "samples"):
        page.locator("#presets button", has_text=f"{name}: ").click()
        page.wait_for_selector(f"#reads tr.chosen button:text-matches('^{name}')")
    lines = page.locator("#commands pre").first.text_content()
    number = page.evaluate("JSON.parse(document.getElementById('facts').textContent).chosen")
    texts = ["series=line:0", "map=frames", "row", "samples:24"]
    assert all(f"--access {text}" in lines for text in texts)
    query = "&".join(f"read={one}" for one in [*texts, "line:0", "plane:0", "line:2", "plane:0"])
    costs = [one["now"]["loads"] for one in ask(page, f"costs?dataset={number}&{query}")["reads"]]
    assert costs[:3] == costs[4:7]
    # In a loop they are read one after another.
    page.locator("text=a loop over everything").click()
    page.wait_for_selector("#reads button:text-is('map=frames@walk')")
    page.wait_for_selector("#reads button:text-is('samples:24')")


def test_some_read_stays(page: Any) -> None:
    for left in (3, 2, 1):
        page.locator("#reads button[aria-label^=Remove]:visible").first.click()
        until(page, "left => document.querySelectorAll('#reads tbody tr').length === left", left)
    assert page.locator("#reads button[aria-label^=Remove]:visible").count() == 0
    (read,) = opened_by(page.locator("#commands pre").first.text_content()).access
    assert read == chosen(page).split("one read")[0]


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


def until_text(page: Any, where: str, text: str) -> None:
    until(
        page,
        "([id, text]) => document.getElementById(id).textContent.includes(text)",
        [where, text],
    )


def test_values_are_drawn_and_skipped_filters_too(page: Any) -> None:
    for colour, text in (("values", "of the elements"), ("mask", "all filters applied")):
        page.locator("#colour").select_option(colour)
        until_text(page, "legend", text)
        page.wait_for_selector("#canvas[data-drawn=all]")
    page.locator("#tree button", has_text="sparse").click()
    page.locator("#colour").select_option("values")
    until_text(page, "legend", "fill value")


def test_the_reader_s_cache_is_the_commands_own(page: Any) -> None:
    assert page.locator("#reader option").count() == 4
    page.locator("#reader").select_option("libhdf5-1.10")
    until_text(page, "measuring", "libhdf5 is libhdf5 before 2.0, with a chunk cache of 1.00 MiB")
    assert "--for libhdf5-1.10" in page.locator("#commands").text_content()


def test_reads_are_measured_beside_what_was_predicted(page: Any) -> None:
    for i in range(3):
        page.locator("#reads tbody tr").nth(3 - i).locator("button[aria-label^=Remove]").click()
    until(page, "document.querySelectorAll('#reads tbody tr').length === 1")
    page.locator("#bench").click()
    page.wait_for_selector("#cancel:not([hidden])")
    page.wait_for_selector("#advice tbody tr", timeout=120_000)
    measured = page.locator("#advice td").first.text_content()
    assert "s" in measured.split("predicted")[0]
    assert "predicted: " in measured
    assert "Measured on the whole dataset" in page.locator("#progress").text_content()


def test_a_file_is_written_when_the_button_is_pressed(
    page: Any, path: Path, tmp_path: Path
) -> None:
    before = path.read_bytes()
    page.locator("#s0").evaluate(
        "one => { one.value = one.max; one.dispatchEvent(new Event('input')); }"
    )
    until_text(page, "writes", "repack --chunk /cube:24x30x50")
    out = tmp_path / "it's new.h5"
    page.locator("#target").fill(str(out))
    line = page.locator("#writes pre").text_content()
    assert shlex.split(line)[-1] == str(out)
    assert not out.exists()
    page.locator("#written").click()
    until_text(page, "progress", "It is written, and proved.")
    with h5py.File(out) as file, h5py.File(path) as source:
        assert file["cube"].chunks == (24, 30, 50)
        assert (file["cube"][()] == source["cube"][()]).all()
    assert path.read_bytes() == before
    # The line that looks at it does, as pasted.
    line = page.locator("#advice .commands pre").text_content()
    assert opened_by(line).path == str(out)
    # What is there is not replaced.
    page.locator("#written").click()
    until_text(page, "progress", "exists: give the new file another name")


def test_work_is_ended_by_its_button(page: Any) -> None:
    page.locator("#best").click()
    page.locator("#cancel").click()
    until_text(page, "progress", "ended")
    until(
        page,
        "document.getElementById('cancel').hidden && !document.getElementById('best').disabled",
    )


def test_the_page_opens_in_the_state_of_its_command(
    browser: Any, path: Path, known_machine: Machine
) -> None:
    assert known_machine.threads
    tried = Tried("24x30x50", "none", "2097152", "libhdf5-1.10")
    made = Server(Session.of(str(path), "/cube", ("line:0", "[0:3, 5]"), tried))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    page = browser.new_page()
    with made.door() as door:
        page.goto(door)
        page.wait_for_selector("#reads .tried")
    assert page.url == made.address
    assert page.locator("#reads tbody tr").count() == 2
    assert page.locator("#reader").input_value() == "libhdf5-1.10"
    assert page.locator("#filter").input_value() == "none"
    assert "24 of 24" in page.locator("#sliders").text_content()
    assert "2.00 MiB" in page.locator("#sliders").text_content()
    lines = page.locator("#commands").text_content()
    assert "--for libhdf5-1.10 --chunk 24x30x50 --filter none --cache 2MiB" in lines
    page.close()
    made.shutdown()
    made.server_close()


def test_a_read_lights_the_chunks_that_it_touches_in_this_plane(page: Any) -> None:
    def touched(number: int) -> None:
        until(page, f"document.getElementById('canvas').dataset.touched === '{number}'")

    touched(24)
    page.locator("#pattern").fill("[::2, 5]")
    page.locator("#pattern").press("Enter")
    page.wait_for_selector("#reads tr.chosen th button:text-is('[::2, 5]')")
    touched(12)
    page.locator("#step").click()
    until_text(page, "film-status", "with gaps cannot be played")
    # Along the dimension that is not drawn, the read has one element, in the first chunk.
    page.locator("#axes select").nth(0).select_option("2")
    page.locator("#axes select").nth(1).select_option("0")
    assert page.locator("#axes input").input_value() == "5"
    touched(12)
    for place, number in (("29", 12), ("30", 0), ("59", 0), ("0", 12)):
        page.locator("#axes input").fill(place)
        touched(number)
    page.locator("#tree button:has(b:text-is('/contiguous'))").click()
    until_text(page, "cells", "has no chunks")
    until(page, "!document.getElementById('cure').hidden")
    touched(0)
    assert page.locator("#sliders input").count() == 0


def test_what_is_drawn_is_part_of_the_command(page: Any, browser: Any) -> None:
    def line(of: Any) -> str:
        return str(of.locator("#commands pre").first.text_content())

    usual = line(page)
    assert "--draw" not in usual
    assert "--at" not in usual
    assert "--colour" not in usual
    assert "--zoom" not in usual
    # The read that is chosen comes first.
    page.locator("#reads tbody button[aria-pressed]").nth(1).click()
    until(page, "document.querySelectorAll('#reads [aria-pressed=true]').length === 1")
    second = page.locator("#reads [aria-pressed=true]").text_content()
    assert line(page).split(" --access ")[1] == shlex.quote(second)
    down, across = (page.locator("#axes select").nth(i) for i in (0, 1))
    down.select_option("2")
    across.select_option("0")
    page.locator("#colour").select_option("ratio")
    page.locator("#axes input").fill("31")
    changed = line(page)
    assert " --draw 2,0" in changed
    assert "--colour ratio" in changed
    assert " --at 0,31,0" in changed
    # It stays where it was put as something is tried.
    page.locator("#sliders input").last.fill("3")
    page.wait_for_selector("#reads .tried")
    assert page.locator("#axes input").input_value() == "31"
    changed = line(page)
    page.locator("#in").click()
    page.locator("#in").click()
    until(page, "document.querySelector('#commands pre').textContent.includes('--zoom')")
    changed = line(page)
    assert "--cache" in changed
    assert " --at 0,31,0" in changed
    assert " --zoom 0:50,6:18" in changed
    made = Server(opened_by(changed))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    again = browser.new_page(viewport={"width": 1200, "height": 900})
    again.goto(made.address)
    again.wait_for_selector("html[data-ready=all]", state="attached")
    again.wait_for_selector("#reads .tried")
    assert again.locator("#axes select").nth(0).input_value() == "2"
    assert again.locator("#axes select").nth(1).input_value() == "0"
    assert again.locator("#axes input").input_value() == "31"
    assert again.locator("#colour").input_value() == "ratio"
    assert line(again) == changed
    again.close()
    made.shutdown()
    made.server_close()


def test_a_file_far_away_is_drawn_with_its_requests(browser: Any, path: Path) -> None:
    pytest.importorskip("aiohttp")
    with serving({"/x.h5": path.read_bytes()}, latency_s=0.05) as web:
        made = Server(Session.of(f"{web.url}/x.h5", "/cube", ("line:0",)))
        threading.Thread(target=made.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(made.address)
        page.wait_for_selector("html[data-ready=all]", state="attached")
        page.wait_for_selector("#canvas[data-drawn=all]")
        assert "far away" in page.locator("#about").text_content()
        assert "at most 24 requests" in page.locator("#reads").text_content()
        assert page.locator("#bench").is_hidden()
        assert page.locator("#write").is_hidden()
        page.locator("#colour").select_option("values")
        until_text(page, "legend", "of the elements")
        page.close()
        made.shutdown()
        made.server_close()


def test_what_a_program_read_is_played(
    browser: Any, path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    trace = tmp_path / "reads.json"
    record = {"version": 1, "processes": [], "datasets": [traced(path)]}
    trace.write_text(json.dumps(record))
    found = Traced.of(str(trace))
    made = Server(Session.of(found.file, "/cube", ("1x60x50@walk",), trace=found))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto(made.address)
    page.wait_for_selector("#film:not([hidden])")
    assert page.locator("#of-trace").is_checked()
    line = page.locator("#commands pre").first.text_content()
    again = opened_by(line)
    assert (again.access, again.dataset) == (("1x60x50@walk",), "/cube")
    assert again.trace == found
    page.locator("#step").click()
    until_text(page, "film-status", "2 chunks touched so far, 2 loaded")
    page.locator("#at").evaluate(
        "one => { one.value = one.max; one.dispatchEvent(new Event('input')); }"
    )
    until_text(
        page, "film-status", "96 chunks touched so far, 96 loaded and decoded, 48 of them again"
    )
    page.close()
    made.shutdown()
    made.server_close()


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
