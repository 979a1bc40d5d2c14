"""How do pages and links outside of `docs/` come into the site?

`CONTRIBUTING.md` and `CHANGELOG.md` are copied.  A link to a file that the site does not have (a
folder, a script, a page of results) becomes its path in the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from book.text import put

PAGES = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def write(root: Path, folder: Path) -> list[str]:
    """Write copies of the pages; return their names without ending."""

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if target in PAGES:
            target = f"{PAGES[target]}.md"
        elif (root / target).exists():
            target = os.path.relpath(root / target, folder)
        return f"[{match['text']}]({target}{match['anchor'] or ''})"

    for source, name in PAGES.items():
        put(folder / f"{name}.md", LINK.sub(link, (root / source).read_text("utf-8")))
    return list(PAGES.values())


def without_foreign_links(text: str, folder: Path, root: Path) -> str:
    """Return the text of a page in which what the site does not have is named and not linked."""

    def named(match: re.Match[str]) -> str:
        path = (folder / match["target"]).resolve()
        inside = path.is_relative_to(root / "docs")
        if not path.exists() or (inside and path.is_file()):
            return match[0]
        where = path.relative_to(root) if path.is_relative_to(root) else path.name
        label = match["text"]
        return f"`{where}`" if label in (path.name, str(where)) else f"{label} (`{where}`)"

    return LINK.sub(named, text)
