"""How is the site built?  `make docs` calls Sphinx with this; warnings are errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BUILT = DOCS / "_built"
sys.path.insert(0, str(ROOT / "scripts"))

from book import commands, names, pages, plots  # noqa: E402

import chunkwise  # noqa: E402

project = "chunkwise"
author = "the chunkwise developers"
copyright = "the chunkwise developers; MIT or Apache-2.0"
version = release = chunkwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
# Words such as "file" in descriptions of attributes are no references.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist"]
# Links such as bench.md#how-it-measures, as code hosts make them.
myst_heading_anchors = 4

# What a terminal shows is the most frequent block; Python says so.
highlight_language = "text"

# Docstrings say `name` of what is code.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
viewcode_line_numbers = True

html_theme = "pydata_sphinx_theme"
html_title = "chunkwise"
html_static_path = ["_static"]
html_css_files = ["chunkwise.css"]
html_copy_source = False
html_show_sphinx = False
html_extra_path: list[str] = []
html_theme_options: dict[str, Any] = {
    "logo": {"text": "chunkwise"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# What the code writes, and which pages that gives.
LISTS = {
    "commands": commands.write(BUILT / "commands"),
    "names": names.write(BUILT / "names"),
    "studies": plots.write(DOCS / "studies", BUILT / "studies"),
    "project": pages.write(ROOT, BUILT / "project"),
}
html_extra_path += [str(BUILT / "studies" / "report.html")]


def _listed(_: object, docname: str, source: list[str]) -> None:
    """Put lists of pages where a toctree asks for them: `@built commands`, `@others`.

    Links to what the site does not have become names.
    """
    folder = (DOCS / docname).parent
    text = pages.without_foreign_links(source[0], folder, ROOT)
    for kind, found in LISTS.items():
        lines = "\n".join(f"/_built/{kind}/{name}" for name in found)
        text = text.replace(f"@built {kind}\n", f"{lines}\n")
    if "@others\n" in text:
        text = text.replace("@others\n", "".join(f"/{name}\n" for name in _others(text)))
    source[0] = text


def _others(text: str) -> list[str]:
    """Name the pages beside this one that no line of any toctree names: new ones are found."""
    written = [text, *(page.read_text("utf-8") for page in DOCS.glob("*.md"))]
    lines = {line.strip().removeprefix("/") for one in written for line in one.splitlines()}
    found = sorted(page.stem for page in DOCS.glob("*.md"))
    return [name for name in found if name not in lines and name != "index"]


def _with_lists(_: object, env: Any, *_known: set[str]) -> list[str]:
    """Name the pages with such lists: there may be new pages, though these have not changed."""
    written = {name: DOCS / f"{name}.md" for name in env.found_docs}
    return [
        name
        for name, page in written.items()
        if page.exists() and re.search(r"^@(built|others)", page.read_text("utf-8"), re.MULTILINE)
    ]


def setup(app: Any) -> None:
    """Let Sphinx call `_listed` as it reads pages."""
    app.connect("env-get-outdated", _with_lists)
    app.connect("source-read", _listed)
    app.connect("viewcode-find-source", _no_source_of_others)


def _no_source_of_others(_: object, module: str) -> tuple[str, dict[str, Any]] | None:
    """Show no source of h5py's and of Python's own modules."""
    return None if module.split(".")[0] == "chunkwise" else ("", {})
