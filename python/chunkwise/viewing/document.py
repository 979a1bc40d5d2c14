"""How is the page written?  As one document that needs no other file, served or saved.

Its content policy names its scripts by their hashes: nothing else runs, whatever names a file has.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

# In this order they are one module.
_SCRIPTS: Final = (
    "words.js",
    "drawing.js",
    "picture.js",
    "work.js",
    "costs.js",
    "film.js",
    "page.js",
)


@cache
def _script() -> str:
    return "\n".join(map(_resource, _SCRIPTS))


@cache
def _style() -> str:
    return _resource("page.css")


def _resource(name: str) -> str:
    return files("chunkwise.viewing").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def policy(*, served: bool) -> str:
    """Say what the page may load: nothing; and where it may ask: its own server."""
    asks = "connect-src 'self'; frame-ancestors 'none'; " if served else ""
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}'; "
        f"{asks}img-src data:; base-uri 'none'; form-action 'none'"
    )


def document(facts: dict[str, Any], saved: dict[str, Any] | None = None) -> str:
    """Write the page; `saved` holds all answers, if there is no server to give them."""
    meta = ""
    if saved is not None:
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(served=False)}">'
    text = _resource("page.html")
    for name, value in {
        "policy": meta,
        "style": f"<style>{_style()}</style>",
        "facts": _data("facts", facts) + _data("saved", saved),
        "script": f'<script type="module">{_script()}</script>',
    }.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def _data(name: str, value: Any) -> str:
    """Write data that no name in it can end."""
    text = json.dumps(value).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'
