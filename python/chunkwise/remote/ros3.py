"""Where does the engine get the bytes of a file that h5py opened by HDF5's own driver ros3?

The file gives its URL and the credentials, but not a session token: then libhdf5 reads.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import h5py
from h5py import h5fd, h5i

from chunkwise import _native
from chunkwise.errors import ChunkwiseError, FileChangedError, RemoteError
from chunkwise.files.objects import Address, address_of
from chunkwise.names import HDF5_ERRORS, shown_url
from chunkwise.remote import opening
from chunkwise.remote.faults import with_time_outs
from chunkwise.remote.source import RemoteBytes
from chunkwise.remote.stores import S3Store, Store, WebStore
from chunkwise.words import installing

# Files whose sources, or the reasons why there are none, are kept.
_MOST_KEPT: Final = 64
# The bucket is in the name of the host.
_BUCKET_FIRST: Final = re.compile(r"(.+)\.(s3[.-](?:[a-z0-9-]+\.)?amazonaws\.com(?:\.cn)?)")
# By these, HDF5 2.0 asks another server than the URL names.
_OTHER_SERVERS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# Of temporary credentials, which need a session token.
_TEMPORARY: Final = "ASIA"

_of_files: OrderedDict[Address, RemoteBytes | str] = OrderedDict()


def storage_of(dataset: h5py.Dataset) -> _native.Storage | str | None:
    """The bytes of the dataset's file; or why libhdf5 reads it; None for another driver."""
    # Called under h5py's lock.
    try:
        opened = _opened(dataset)
    except HDF5_ERRORS as error:
        return f"driver ros3: {error}"
    if opened is None:
        return None
    number = address_of(dataset.id)[:2]
    found = _of_files.get(number)
    if found is None:
        found = _of_files[number] = _source(*opened)
        if len(_of_files) > _MOST_KEPT:
            _of_files.popitem(last=False)
    return found if isinstance(found, str) else found.storage


def given_up(dataset: h5py.Dataset, error: Exception) -> str | None:
    """Leave a file to libhdf5 from now on if its requests have failed; give the reason."""
    # None for a file of another driver, and for an error that comes from elsewhere.
    opened = _opened(dataset)
    if opened is None:
        return None
    number = address_of(dataset.id)[:2]
    found = _of_files.get(number)
    if isinstance(found, str):
        return found
    failure = None if found is None else found.failed_lately()
    if failure is None and isinstance(error, RemoteError | FileChangedError):
        failure = error
    if failure is None:
        return None
    why = _of_files[number] = _left(shown_url(opened[0]), failure)
    return why


def forget(number: Address) -> None:
    """Let go of a file that is closed."""
    _of_files.pop(number, None)


def _opened(dataset: h5py.Dataset) -> tuple[str, int, Mapping[str, Any]] | None:
    """What libhdf5 says of a file of this driver: URL, length and configuration."""
    driver = getattr(h5fd, "ROS3D", None)
    if driver is None:
        return None
    file = h5i.get_file_id(dataset.id)
    plist = file.get_access_plist()
    if plist.get_driver() != driver:
        return None
    return os.fsdecode(file.name), file.get_filesize(), plist.get_fapl_ros3()


def _source(url: str, nbytes: int, config: Mapping[str, Any]) -> RemoteBytes | str:
    """The source of these bytes; or why there is none."""
    name = shown_url(url)
    try:
        source = RemoteBytes(partial(_store, url, config), name, opening.PATIENCE)
    except ImportError as error:
        return f"driver ros3: a package is missing ({error}): {installing('remote')}"
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        return _left(name, error)
    if source.size != nbytes:
        return _left(name, RemoteError(f"it has {source.size:,} bytes now, not {nbytes:,}"))
    return source


def _left(name: str, error: Exception) -> str:
    # What follows says which options of `chunkwise.open` to set.
    return f"driver ros3: {name}: {str(error).partition(';')[0]}"


def _store(url: str, config: Mapping[str, Any]) -> Store:
    there = urlsplit(url)
    if there.scheme not in ("http", "https"):
        raise RemoteError(f"libhdf5 alone knows the server of a URL with {there.scheme}://")
    for variable in _OTHER_SERVERS:
        if os.environ.get(variable):
            raise RemoteError(f"{variable} is set, by which libhdf5 may ask another server")
    if config["authenticate"]:
        return _signing(url, config)
    from urllib.request import getproxies, proxy_bypass

    if {there.scheme, "all"} & set(getproxies()) and not proxy_bypass(there.hostname or ""):
        raise RemoteError("libhdf5 reads it through a proxy")
    from fsspec.implementations.http import HTTPFileSystem

    return WebStore(HTTPFileSystem(), url, opening.PATIENCE)


def _signing(url: str, config: Mapping[str, Any]) -> Store:
    """The store that signs its requests."""
    names = "aws_region", "secret_id", "secret_key"
    region, identity, secret = (bytes(config[name]).partition(b"\0")[0].decode() for name in names)
    if identity.startswith(_TEMPORARY):
        raise RemoteError("libhdf5 does not report the session token of its credentials")
    endpoint, bucket, key = place(url)
    from s3fs import S3FileSystem

    options = {
        "key": identity,
        "secret": secret,
        "client_kwargs": {"endpoint_url": endpoint, "region_name": region},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }
    fs = S3FileSystem(**with_time_outs("s3://", options, opening.PATIENCE))
    return S3Store(fs, f"{bucket}/{key}")


def place(url: str) -> tuple[str, str, str]:
    """Endpoint, bucket and key of an object of S3.

    >>> place("https://my.data.s3.eu-west-1.amazonaws.com/a%20b.h5")
    ('https://s3.eu-west-1.amazonaws.com', 'my.data', 'a b.h5')
    """
    there = urlsplit(url)
    host, path = there.netloc, unquote(there.path)
    bucket_first = _BUCKET_FIRST.fullmatch(host)
    if bucket_first is not None:
        host, path = bucket_first[2], f"/{bucket_first[1]}{path}"
    bucket, _, key = path[1:].partition("/")
    if not (bucket and key) or there.query:
        raise RemoteError("the URL does not say what the bucket and the key are")
    return f"{there.scheme}://{host}", bucket, key
