"""What is a URL, what does it name, and how is it shown?"""

from __future__ import annotations

import os
import re
from typing import Final

from chunkwise.names import printable

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(://|::)")
# Between the parts of a chain, and not within an address such as ``[::1]``.
_BETWEEN: Final = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.\-]*(?:://|::))")
# What keeps copies of what it passes on, as it is.
CACHES: Final = ("blockcache", "cached", "filecache", "simplecache")
_ASKS: Final = re.compile(r"[?#]")
# A colon in a host, before what is no port: of a password that has a slash.
_NO_PORT: Final = re.compile(r"^[^\[\]]*:(?!\d*$)")
_OWNER: Final = re.compile(r"(://)[^/\s]*@")
_ASKED: Final = re.compile(r"(://[^\s?'\"<>]*)\?[^\s'\"<>]*")


def is_url(name: object) -> bool:
    """Whether a name is a URL for fsspec, and no file here."""
    return (
        isinstance(name, str)
        and ":" in name
        and _URL.match(name) is not None
        and not os.path.lexists(name)
    )


def local_path(url: str) -> str | None:
    """The path that a URL of a local file stands for; None for other URLs."""
    for prefix in ("file://", "local://"):
        if url.startswith(prefix) and "::" not in url:
            return url[len(prefix) :]
    return None


def parts(url: str) -> list[str]:
    """The parts of a chained URL; of another one, itself."""
    return _BETWEEN.split(url)


def protocol(part: str) -> str:
    """The protocol of a part of a chain."""
    return part.partition("://")[0]


def without_caches(url: str) -> str:
    """The URL of the bytes, where those before it only keep copies of them."""
    chain = parts(url)
    while len(chain) > 1 and protocol(chain[0]) in CACHES:
        del chain[0]
    return "::".join(chain)


def file_name(url: str) -> str:
    """What the file is called to which a URL leads; may be empty."""
    part = parts(without_caches(url))[0]
    path = _ASKS.split(part, maxsplit=1)[0].rpartition("://")[2]
    return path.rstrip("/").rpartition("/")[2]


def shown(url: str) -> str:
    """A URL without what must not get into messages: passwords, signatures.

    >>> shown("simplecache::https://me:secret@host/a.nc?signature=secret")
    'simplecache::https://host/a.nc?...'
    """
    if "://" not in url:
        return printable(url)
    end = _ASKS.search(url)
    known, asked = (url[: end.start()], url[end.start() :]) if end else (url, "")
    *others, last = parts(known)
    found = [_without_owner(part) for part in others]
    # What looks like a question may be a part of a password.
    is_owner = "@" in asked and "/" not in last.partition("://")[2]
    found.append(f"{protocol(last)}://..." if is_owner else _without_owner(last))
    return printable("::".join(found) + (f"{asked[0]}..." if asked else ""))


def _without_owner(part: str) -> str:
    head, mark, rest = part.partition("://")
    if not mark:
        return part
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2]
    if _NO_PORT.search(host):
        return f"{head}{mark}..."
    return f"{head}{mark}{host}{slash}{path}"


def without_secrets(text: str) -> str:
    """A message of others about URLs, without their passwords and without what follows ``?``."""
    return _ASKED.sub(r"\1?...", _OWNER.sub(r"\1", text))
