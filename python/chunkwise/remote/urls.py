"""What does a URL name?  Whether it is one, and how it is shown, is in `chunkwise.names`."""

from __future__ import annotations

import re
from typing import Final

from chunkwise.names import parts_of_url

# What keeps copies of what it passes on, as it is.
CACHES: Final = ("blockcache", "cached", "filecache", "simplecache")
_ASKS: Final = re.compile(r"[?#]")
_OWNER: Final = re.compile(r"^([^/]*://)[^/]*@")


def local_path(url: str) -> str | None:
    """The path that a URL of a local file stands for; None for other URLs."""
    for prefix in ("file://", "local://"):
        if url.startswith(prefix) and "::" not in url:
            return url[len(prefix) :]
    return None


def protocol(part: str) -> str:
    """The protocol of a part of a chain."""
    return part.partition("://")[0]


def without_caches(url: str) -> str:
    """Remove the prefixes of local caches from a URL."""
    chain = parts_of_url(url)
    while len(chain) > 1 and protocol(chain[0]) in CACHES:
        del chain[0]
    return "::".join(chain)


def bare_url(url: str) -> str:
    """A URL without its user and password, and without what follows ``?`` or ``#``."""
    chain = parts_of_url(_ASKS.split(url, maxsplit=1)[0])
    return "::".join(_OWNER.sub(r"\1", part) for part in chain)


def file_name(url: str) -> str:
    """What the file is called to which a URL leads; may be empty."""
    part = parts_of_url(without_caches(url))[0]
    path = _ASKS.split(part, maxsplit=1)[0].rpartition("://")[2]
    return path.rstrip("/").rpartition("/")[2]
