"""Which time-outs has fsspec for the requests that it makes itself?

Those that are made one by one (`stores.py`) have their time-out each, and are watched besides.
What a chain of URLs asks for, and what S3's client does within a request, only fsspec knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chunkwise.names import parts_of_url
from chunkwise.remote.faults import Patience
from chunkwise.remote.urls import protocol

# Requests of one client that S3's connections have to be enough for.
_CONNECTIONS: Final = 64


def with_time_outs(url: str, options: Mapping[str, Any], patience: Patience) -> dict[str, Any]:
    """The options for fsspec, with time-outs where none are given."""
    chain, made = parts_of_url(url), dict(options)
    for number, kind in enumerate(map(protocol, chain)):
        own = dict(made.get(kind) or {})
        given = {**own, **made} if number == 0 else own
        if kind in ("s3", "s3a"):
            name, value = "config_kwargs", _of_s3(given.get("config_kwargs") or {}, patience)
        elif kind in ("http", "https") and len(chain) > 1:
            client = given.get("client_kwargs") or {}
            if "timeout" in given or "timeout" in client:
                continue
            name, value = "client_kwargs", {**client, "timeout": _of_web(patience)}
        else:
            continue
        if number == 0:
            made[name] = value
        else:
            made[kind] = {**own, name: value}
    return made


def _of_s3(given: Mapping[str, Any], patience: Patience) -> dict[str, Any]:
    """Options of botocore, which does not repeat requests: `requests.py` does."""
    return {
        "connect_timeout": patience.wait_s,
        "read_timeout": patience.wait_s,
        "max_pool_connections": _CONNECTIONS,
        "retries": {"total_max_attempts": 1},
        **given,
    }


def _of_web(patience: Patience) -> Any:
    import aiohttp

    wait_s = patience.wait_s
    return aiohttp.ClientTimeout(total=None, sock_connect=wait_s, sock_read=wait_s)
