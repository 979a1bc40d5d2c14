"""What can go wrong with a request, does it help to try again, and how long is it waited for?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chunkwise.errors import ChunkwiseError, FileChangedError, RemoteError
from chunkwise.names import parts_of_url, without_secrets
from chunkwise.remote.urls import protocol
from chunkwise.settings import request_timeout_s

# Answers that another attempt may turn into bytes.
PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

# Exceptions of other packages, by name.
_KEY = re.compile(r"[^\s/\"'@]+:[^\s/\"'@]*@")
_TIMEOUTS = frozenset({"FSTimeoutError", "ConnectTimeoutError", "ReadTimeoutError"})
_PASSING = frozenset(
    {"ClientError", "ConnectionError", "HTTPClientError", "HTTPError", "IncompleteReadError"}
)

CHANGED = "the object has changed since it was opened; open it again"


class RefusedError(Exception):
    """An answer that will be the same the next time: its text, and what to do."""


class PassingError(Exception):
    """An answer that may be another one the next time."""


@dataclass(frozen=True)
class Patience:
    """How long is a request waited for, and how often is it made?"""

    attempts: int = 5  # Times that a request is made before the read fails
    # Seconds without a byte after which a request has failed; None for what the settings say.
    timeout_s: float | None = None
    pause_s: float = 0.1  # Seconds before the second attempt; twice as many before each next one
    # Where all requests together are slower than this, they have failed.
    least_nbytes_per_s: int = 50_000

    @property
    def wait_s(self) -> float:
        """Seconds without a byte after which a request has failed, as of now."""
        return request_timeout_s() if self.timeout_s is None else self.timeout_s

    def of(self, nbytes: int) -> float:
        """Seconds that a request may take while `nbytes` bytes come, its own among them."""
        return self.wait_s + nbytes / self.least_nbytes_per_s


def refused_status(status: int, reason: str, variables: str) -> Exception:
    """What an HTTP status that brings no bytes means."""
    said = f"the server answers {status} {reason}".rstrip()
    if status in PASSING_STATUS:
        return PassingError(said)
    if status in (401, 403, 407):
        return RefusedError(f"{said}: no right to read it; {variables}")
    if status in (404, 410):
        return RefusedError(f"{said}: there is no such object; check the URL")
    if status == 412:
        return FileChangedError(CHANGED)
    if 300 <= status < 400:
        return RefusedError(f"{said}, which leads nowhere; give the URL that it should lead to")
    return RefusedError(f"{said}; check the URL")


def judged(error: BaseException, patience: Patience) -> Exception:
    """Whether an exception of fsspec, of what it stands on or of ours passes, or stays."""
    if isinstance(error, PassingError | RefusedError | ChunkwiseError):
        return error
    # A bucket with its key stands in it without its protocol.
    said = _KEY.sub("", without_secrets(str(error))).strip() or type(error).__name__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, TimeoutError | asyncio.TimeoutError) or kinds & _TIMEOUTS:
        return PassingError(f"no answer within {patience.wait_s:g} s")
    if isinstance(error, FileNotFoundError):
        # fsspec takes whatever goes wrong as it looks for a file for this.
        if isinstance(error.__cause__, Exception):
            return judged(error.__cause__, patience)
        return RefusedError("there is no such object; check the URL")
    if isinstance(error, IsADirectoryError | NotADirectoryError):
        return RefusedError("is a directory; give the URL of a file")
    if "NoCredentialsError" in kinds or "PartialCredentialsError" in kinds:
        return RefusedError(
            "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            'give storage_options={"anon": True} for public data'
        )
    if isinstance(error, PermissionError):
        return RefusedError(f"no right to read it ({said}); check the credentials")
    if "TooManyRedirects" in kinds or "InvalidURL" in kinds:
        return RefusedError(f"the URL leads nowhere ({type(error).__name__}); check it")
    status = getattr(error, "status", None)
    if isinstance(status, int) and status >= 300:
        return refused_status(
            status, without_secrets(str(getattr(error, "message", ""))), "check the credentials"
        )
    if "gaierror" in kinds or "DNSError" in str(type(getattr(error, "os_error", None))):
        return RefusedError(f"the host is not known ({said}); check the URL")
    if isinstance(error, OSError | EOFError) or kinds & _PASSING:
        return PassingError(said)
    return RefusedError(f"{type(error).__name__}: {said}")


def final(error: Exception, attempts: int) -> ChunkwiseError:
    """The error that a reader gets; after the last attempt."""
    if isinstance(error, ChunkwiseError):
        return error
    if isinstance(error, PassingError):
        times = "once" if attempts == 1 else f"{attempts} times"
        return RemoteError(f"{error}, {times}; check the network and the server, and read again")
    return RemoteError(str(error))


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
            name, value = "client_kwargs", {**client, "timeout": web_time_out(patience)}
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


def web_time_out(patience: Patience) -> Any:
    """Options of aiohttp: a large answer may take as long as bytes come."""
    import aiohttp

    wait_s = patience.wait_s
    return aiohttp.ClientTimeout(total=None, sock_connect=wait_s, sock_read=wait_s)
