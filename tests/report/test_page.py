"""Does the page draw all it has, in a real browser, with no network, at any width and light?"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.report import studies
from chunkwise_lab.report.model import Report, Section
from chunkwise_lab.report.page import page as write
from tests.support.browser import browser
from tests.support.reports import made_up

__all__ = ["browser"]
pytestmark = pytest.mark.slow


@dataclass
class Opened:
    """A page, and what it has asked for and complained of."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def made() -> Report:
    return Report("Does it stand?", (studies.section(*made_up(), "r1"),))


@pytest.fixture(scope="module")
def path(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(write(made), encoding="utf-8")
    return path


def opened(browser: Any, path: Path, **settings: Any) -> Opened:
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
    found = Opened(context.new_page())
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("console", lambda message: found.complaints.append(message.text))
    found.page.goto(path.as_uri())
    # As before printing; else plots are drawn when they come near the window.
    found.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    found.page.wait_for_selector("html[data-drawn=all]", state="attached")
    return found


@pytest.fixture(scope="module")
def found(browser: Any, path: Path) -> Opened:
    """The page on a screen, in light."""
    return opened(browser, path)


def test_everything_is_drawn_and_nothing_is_loaded(
    found: Opened, path: Path, made: Report
) -> None:
    marks = found.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".plot")].map(plot => [
            plot.id,
            [...plot.querySelectorAll(".scatterlayer .trace")].map(trace =>
                [...trace.querySelectorAll("path.point")].filter(mark => {
                    const box = mark.getBoundingClientRect();
                    return box.width > 0 && box.height > 0;
                }).length)]))"""
    )
    expected = {chart.id: [len(s.points) for s in chart.series] for chart in made.charts}
    assert marks == expected
    assert found.complaints == []
    assert found.requests == [path.as_uri()]


def test_a_plot_is_drawn_when_it_comes_near_the_window(browser: Any, path: Path) -> None:
    page = browser.new_context(viewport={"width": 400, "height": 300}).new_page()
    page.goto(path.as_uri())
    last = page.locator(".plot").last
    assert page.evaluate("document.documentElement.dataset.drawn") is None
    assert last.locator(".trace").count() == 0
    before = last.bounding_box()["height"]
    last.scroll_into_view_if_needed()
    last.locator(".trace").first.wait_for()
    # Nothing moves for it.
    assert last.bounding_box()["height"] == before


def test_what_is_told_on_hover_and_hidden_by_the_legend(found: Opened) -> None:
    page = found.page
    page.locator("#r1-cache-size-1").scroll_into_view_if_needed()
    mark = page.locator("#r1-cache-size-1 .trace:nth-of-type(1) path.point").first.bounding_box()
    page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    page.wait_for_selector("#r1-cache-size-1 .hoverlayer .hovertext")
    told = page.locator("#r1-cache-size-1 .hoverlayer").text_content()
    assert "mean of 3 repeats" in told
    assert "HDF5 2.0.0" in told
    button = page.locator('[data-plot="r1-cache-size-1"]').first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#r1-cache-size-1 .scatterlayer .trace").count() == 2


def test_the_buttons_cover_no_point_and_tables_are_whole(browser: Any, path: Path) -> None:
    wide = opened(browser, path, viewport={"width": 1280, "height": 900}).page
    covered = wide.evaluate(
        """() => [...document.querySelectorAll(".plot")].filter(plot => {
            const bar = plot.querySelector(".modebar").getBoundingClientRect();
            return [...plot.querySelectorAll("path.point")].some(
                mark => mark.getBoundingClientRect().top < bar.bottom);
        }).map(plot => plot.id)"""
    )
    assert covered == []
    cut = wide.evaluate(
        """() => [...document.querySelectorAll(".table")].filter(
            table => table.scrollWidth > table.clientWidth + 1).map(table => table.textContent)"""
    )
    assert cut == []
    # Nor does the page itself scroll sideways, however narrow.
    for width in (1280, 800, 360):
        page = opened(browser, path, viewport={"width": width, "height": 900}).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_are_text(found: Opened) -> None:
    page = found.page
    assert page.locator("[onclick]").count() == 0
    assert "</script><b onclick" in page.locator("#r1-words table").first.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_one_way(browser: Any, path: Path, scheme: str) -> None:
    size = {"width": 360, "height": 740}
    found = opened(
        browser, path, viewport=size, color_scheme=scheme, is_mobile=True, has_touch=True
    )
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = found.page.evaluate(
        """() => [...document.querySelectorAll("p, h1, h2, h3, li, figure, .table, .main-svg")]
            .filter(e => e.getBoundingClientRect().right > 360.5)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    assert found.complaints == []


def test_texts_of_plots_follow_the_scheme_and_the_paper(found: Opened) -> None:
    page = found.page

    def colours(**settings: str) -> tuple[str, str]:
        page.emulate_media(**settings)
        tick = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
        ground = "getComputedStyle(document.body).backgroundColor"
        return page.evaluate(tick), page.evaluate(ground)

    light = "rgb(27, 31, 36)", "rgb(255, 255, 255)"
    assert colours(color_scheme="dark") == ("rgb(230, 233, 236)", "rgb(22, 25, 29)")
    assert colours(color_scheme="light") == light
    # Paper is white, whatever the screen is.
    assert colours(color_scheme="dark", media="print") == light
    assert page.locator("nav").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(color_scheme="light", media="screen")


def test_it_is_readable_by_those_who_cannot_see_it(found: Opened) -> None:
    page = found.page
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for plot in page.locator(".plot").all():
        assert len(plot.get_attribute("aria-label")) > 20
        assert plot.get_attribute("role") == "img"
    broken = page.evaluate(
        """() => [...document.querySelectorAll("a[href^='#']")]
            .filter(a => !document.getElementById(a.hash.slice(1))).length"""
    )
    assert broken == 0


def test_a_name_makes_no_line_of_its_own() -> None:
    title = "run.json: x\nerror: forged"
    report = Report("r", (Section("r1", title, "run.json", "one\ntwo", (), (), (), "quick"),))
    assert report.sections[0].title == r"run.json: x\nerror: forged"
    assert report.sections[0].about == "one\ntwo"
    assert "\nerror" not in write(report)
