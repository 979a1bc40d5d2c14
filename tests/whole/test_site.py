"""Has the site every command and name, does each link lead somewhere, and does it open by itself?

`make docs` builds the site, and any warning of Sphinx's fails it.  These tests look at the built
site, on a screen and on a phone, in light and in dark.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest

import chunkwise
from chunkwise.cli.main import COMMANDS, cli
from tests.support.browser import browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
__all__ = ["browser"]
built = pytest.mark.skipif(
    not (SITE / "index.html").is_file(), reason="make docs has not built the site"
)
# What loads something, and from elsewhere.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["'](?:https?:)?//"""
    r"""|<link\b(?![^>]*rel=["'](?:canonical|next|prev))[^>]*href=["'](?:https?:)?//""",
    re.IGNORECASE,
)


def test_each_command_has_a_page_with_all_its_options() -> None:
    from book import commands

    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        page = commands.page(name, command)
        assert page.startswith(f"# chunkwise {name}\n")
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.opts[-1] in page, f"{name} {parameter.opts}"


def test_each_public_name_has_its_docstring_in_the_reference(tmp_path: Path) -> None:
    from book import names

    pages = names.write(tmp_path)
    text = "".join((tmp_path / f"{page}.md").read_text("utf-8") for page in pages)
    for name in chunkwise.__all__:
        if name != "__version__":
            assert re.search(rf":: chunkwise\.(errors\.)?{name}$", text, re.MULTILINE), name


def test_links_to_what_the_site_has_not_are_names(tmp_path: Path) -> None:
    from book.pages import without_foreign_links

    docs = tmp_path / "docs"
    docs.mkdir()
    for path in ("docs/a.md", "script.py"):
        (tmp_path / path).touch()
    text = "[a](a.md#b), [it](../script.py), [x](none.md), [y](http://z)"
    seen = without_foreign_links(text, docs, tmp_path)
    assert seen == "[a](a.md#b), it (`script.py`), [x](none.md), [y](http://z)"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_texts_quote_the_figures_of_the_picture(page: str) -> None:
    from book import picture

    text = (ROOT / page).read_text("utf-8")
    for figure in picture.figures().values():
        assert figure in text


@cache
def html(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"""\bid=["']([^"']+)["']""", html(path)))


@built
def test_each_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere() -> None:
    pages = [page for page in SITE.rglob("*.html") if "_modules" not in page.parts]
    wrong = []
    for page in pages:
        if page.name == "report.html":
            continue
        wrong += [f"{page.name}: {found}" for found in LOADED.findall(html(page))]
        for link in set(re.findall(r"""<a\b[^>]*?\bhref=["']([^"']+)["']""", html(page))):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            path = (page.parent / target).resolve() if target else page
            if not path.is_file() or (
                anchor and path.suffix == ".html" and anchor not in anchors(path)
            ):
                wrong.append(f"{page.relative_to(SITE)}: {link}")
    assert len(pages) > 60
    assert wrong == []


SEEN = (
    "index.html",
    "start/slow.html",
    "start/holds.html",
    "findings.html",
    "_built/commands/bench.html",
    "_built/names/files-groups-datasets.html",
)
# Elements that reach beyond the window, but for those in something that scrolls.
BEYOND = """() => [...document.querySelectorAll(".bd-article *")].filter(one => {
    const box = one.getBoundingClientRect();
    if (box.width === 0 || box.right <= window.innerWidth + 1) return false;
    for (let up = one; up.tagName !== "BODY"; up = up.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(up).overflowX)
            && up.getBoundingClientRect().right <= window.innerWidth + 1
            && !up.classList.contains("bd-main")) return false;
    return true;
}).slice(0, 3).map(one => one.outerHTML.slice(0, 120))"""


@built
@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 360])
def test_pages_open_by_themselves_and_fit(browser: Any, width: int) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        page = context.new_page()
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request, to=requests: to.append(request.url))
        page.on("pageerror", lambda error, to=errors: to.append(str(error)))
        for name in SEEN if scheme == "light" else SEEN[:2]:
            page.goto((SITE / name).as_uri())
            assert page.evaluate(BEYOND) == [], name
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert errors == []
        assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
        context.close()
    assert grounds["light"] != grounds["dark"]


@built
@pytest.mark.slow
def test_the_search_finds_without_a_network(browser: Any) -> None:
    page = browser.new_page()
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=repack")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() > 3
    page.close()
