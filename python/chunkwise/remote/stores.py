"""Who gives the bytes of an object: a web server, S3, another store of fsspec, a file object?

`first` notes what distinguishes it from a later object (`Version`); `get` gives only its bytes.
"""

from __future__ import annotations

import io
import re
import threading
from dataclasses import dataclass
from typing import Any, Final, Protocol

from chunkwise.errors import FileChangedError
from chunkwise.remote.faults import (
    CHANGED,
    PASSING_STATUS,
    PassingError,
    Patience,
    RefusedError,
    refused_status,
    web_time_out,
)

# What changes with an object, as stores name it.
_VERSION_FIELDS: Final = (
    "ETag", "etag", "generation", "VersionId", "version_id", "md5Hash", "content_md5",
    "Content-MD5", "LastModified", "last_modified", "Last-Modified", "updated", "mtime",
    "modified", "created",
)  # fmt: skip
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_WEB_CREDENTIALS: Final = (
    'give storage_options={"headers": {"Authorization": ...}} or what the server asks for'
)
_S3_CREDENTIALS: Final = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_PROFILE, or give "
    'storage_options={"anon": True} for public data'
)


@dataclass(frozen=True)
class Version:
    """An object as it was when it was opened: its bytes, and what changes with them."""

    # If any of the three is another one, so is the object: servers keep tags that they should not.

    size: int
    tag: str = ""
    changed: str = ""


class Store(Protocol):
    """Where the bytes of one object come from."""

    # Those with a `loop` are used by coroutines on it; the others' methods wait themselves.

    loop: Any

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, at most `nbytes`, and the version that they are of."""

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """The bytes from `start` to `stop` of that version."""

    async def settle(self, version: Version) -> None:
        """Check that all bytes are of that version, if `get` cannot."""
        del version


class WebStore(Store):
    """An object behind HTTP; each answer says which object it is a part of."""

    def __init__(self, fs: Any, url: str, patience: Patience) -> None:
        self._fs, self._url, self._patience = fs, url, patience
        self.loop = fs.loop

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, and what they are of."""
        return await self._ask(0, nbytes, None)

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """Bytes of that version."""
        found, _ = await self._ask(start, stop, version)
        if len(found) != stop - start:
            raise PassingError(f"the server sent {len(found)} of {stop - start} bytes")
        return found

    async def _ask(self, start: int, stop: int, known: Version | None) -> tuple[bytes, Version]:
        options = dict(self._fs.kwargs)
        headers = dict(options.pop("headers", None) or {})
        # A part of a compressed answer is of no use.
        headers |= {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        if known is not None and known.tag.startswith('"'):
            headers["If-Match"] = known.tag
        if "timeout" not in options and "timeout" not in self._fs.client_kwargs:
            options["timeout"] = web_time_out(self._patience)
        session = await self._fs.set_session()
        url = self._fs.encode_url(self._url)
        async with session.get(url, headers=headers, **options) as answer:
            version = _version_of(answer, start, stop, known)
            if answer.status != 206 and version.size > stop:
                raise RefusedError(
                    f"the server sends the whole file ({version.size:,} bytes) where a part is "
                    "asked for; download it first"
                )
            found = bytes(await answer.read())
        if known is not None and version != known:
            raise FileChangedError(CHANGED)
        expected = min(stop, version.size) - start
        if len(found) != expected:
            raise PassingError(f"the server sent {len(found)} of {expected} bytes")
        return found, version


def _version_of(answer: Any, start: int, stop: int, known: Version | None) -> Version:
    """What an answer says that it is a part of; an error for one that is no part of an object."""
    tag, changed = (answer.headers.get(name, "") for name in ("ETag", "Last-Modified"))
    encoding = answer.headers.get("Content-Encoding", "identity")
    if answer.status in (200, 206) and encoding != "identity":
        raise RefusedError("the server compresses what it sends; download the file first")
    if answer.status == 206:
        said = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if said is None or not said[3].isdigit():
            raise RefusedError(
                "the server does not say which part it sends; download the file first"
            )
        size = int(said[3])
        if int(said[1]) != start or int(said[2]) != min(stop, size) - 1:
            if known is not None and size != known.size:
                raise FileChangedError(CHANGED)
            raise RefusedError(f"the server sends {said[0]} for bytes {start}-{stop - 1}")
        return Version(size, tag, changed)
    if answer.status == 416 and known is None:
        raise RefusedError("it is empty; nothing was written to it yet")
    if answer.status == 416:
        raise FileChangedError(CHANGED)
    if answer.status != 200:
        raise refused_status(answer.status, answer.reason or "", _WEB_CREDENTIALS)
    kind = answer.headers.get("Content-Type", "")
    if kind.startswith("text/html"):
        raise RefusedError("is a page (text/html), such as a directory's; give the URL of a file")
    length = answer.headers.get("Content-Length", "")
    if start or not length.isdigit():
        raise RefusedError("the server sends no parts of files; download the file first")
    return Version(int(length), tag, changed)


class S3Store(Store):
    """An object of S3; each answer has its version."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs = fs
        self._bucket, self._key, self._version = fs.split_path(path)
        self.loop = fs.loop

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, and what they are of."""
        if not self._key or self._key.endswith("/"):
            raise RefusedError("names a bucket or a folder; give the URL of an object")
        return await self._ask(0, nbytes, None)

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """Bytes of that version."""
        found, now = await self._ask(start, stop, version)
        if now != version:
            raise FileChangedError(CHANGED)
        if len(found) != stop - start:
            raise PassingError(f"the store sent {len(found)} of {stop - start} bytes")
        return found

    async def _ask(self, start: int, stop: int, known: Version | None) -> tuple[bytes, Version]:
        options = {} if self._version is None else {"VersionId": self._version}
        if known is not None:
            options["IfMatch"] = known.tag
        try:
            answer = await self._get_object(Range=f"bytes={start}-{stop - 1}", **options)
        except Exception as error:
            raise _of_s3(error, known) from None
        try:
            size = _size_of_s3(answer, start, stop)
            found = bytes(await answer["Body"].read())
        finally:
            # Without its end, what was not read of it is not waited for.
            answer["Body"].close()
        changed = answer.get("LastModified")
        return found, Version(
            size, answer.get("ETag", ""), "" if changed is None else str(changed)
        )

    async def _get_object(self, **options: Any) -> Any:
        """One request: it is made again, where that helps, by who asks for it."""
        fs = self._fs
        await fs.set_session()
        client = await fs.get_s3(self._bucket)
        options = {"Bucket": self._bucket, "Key": self._key, **options}
        return await client.get_object(**fs._get_s3_method_kwargs(client.get_object, **options))


def _size_of_s3(answer: Any, start: int, stop: int) -> int:
    """Bytes of the whole object, by an answer that brings a part; an error if it brings more."""
    said = _RANGE.fullmatch(answer.get("ContentRange") or "")
    if said is not None and said[3].isdigit():
        size = int(said[3])
        if int(said[1]) != start or int(said[2]) != min(stop, size) - 1:
            raise RefusedError(f"the store sends {said[0]} for bytes {start}-{stop - 1}")
        return size
    length = answer.get("ContentLength")
    if start or length is None or length > stop:
        raise RefusedError("the store sends no parts of objects; download it first")
    return int(length)


def _of_s3(error: Exception, known: Version | None) -> Exception:
    """What an error of S3 means."""
    said = str(error)
    response = getattr(error, "response", None)
    status = ((response or {}).get("ResponseMetadata") or {}).get("HTTPStatusCode")
    code = str(((response or {}).get("Error") or {}).get("Code", ""))
    if status == 412 or code == "PreconditionFailed":
        return FileChangedError(CHANGED)
    if status == 416 or code == "InvalidRange":
        return RefusedError("it is empty") if known is None else FileChangedError(CHANGED)
    if isinstance(error, PermissionError) or status in (401, 403):
        return RefusedError(f"no right to read it ({said}); {_S3_CREDENTIALS}")
    if isinstance(error, FileNotFoundError) or status == 404:
        return RefusedError("there is no such object; check the URL")
    if isinstance(status, int) and 300 <= status < 500 and status not in PASSING_STATUS:
        return RefusedError(f"the store refuses it ({said}); check the URL and the credentials")
    return error


class AnyStore(Store):
    """An object of another store of fsspec, looked at again after each batch."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self._path = fs, path
        self.loop = fs.loop if fs.async_impl else None
        own = type(fs).cat_file
        from fsspec import AbstractFileSystem

        # If each part would open the file again, one stays open.
        self._by_file = not fs.async_impl and own is AbstractFileSystem.cat_file
        self._file: FileStore | None = None

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, and what they are of."""
        version = await self._now()
        found = await self.get(0, min(nbytes, version.size), version)
        if version.size <= nbytes and await self._now() != version:
            # Nothing else of it is read that would show a change.
            raise PassingError("the object changes")
        return found, version

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """Bytes of that version."""
        if start == stop:
            return b""
        if self.loop is not None:
            found = await self._fs._cat_file(self._path, start=start, end=stop)
        elif self._by_file:
            if self._file is None:
                self._file = FileStore(self._fs.open(self._path, "rb"))
            return await self._file.get(start, stop, version)
        else:
            found = self._fs.cat_file(self._path, start=start, end=stop)
        if len(found) > stop - start:
            raise RefusedError("the store sends more than is asked for; download it first")
        if len(found) != stop - start:
            raise PassingError(f"the store sent {len(found)} of {stop - start} bytes")
        return bytes(found)

    async def settle(self, version: Version) -> None:
        """Ask whether it is the same still."""
        if await self._now() != version:
            raise FileChangedError(CHANGED)

    async def _now(self) -> Version:
        self._fs.invalidate_cache(self._path)
        if self.loop is not None:
            found = await self._fs._info(self._path)
        else:
            found = self._fs.info(self._path)
        if found.get("type") == "directory":
            raise RefusedError("is a directory; give the URL of a file")
        size = found.get("size")
        if size is None:
            raise RefusedError("the store does not say how long it is; download it first")
        fields = ((name, found.get(name)) for name in _VERSION_FIELDS)
        text = " ".join(f"{name}={value}" for name, value in fields if value is not None)
        return Version(int(size), text)


class FileStore(Store):
    """A file object, read part by part: nothing else may use it at the same time."""

    loop = None

    def __init__(self, file: Any) -> None:
        self._file = file
        self.lock = threading.Lock()

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, and what they are of."""
        with self.lock:
            size = self._file.seek(0, io.SEEK_END)
            size = self._file.tell() if size is None else size
        version = Version(int(size))
        return await self.get(0, min(nbytes, version.size), version), version

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """Bytes of that version."""
        parts = []
        if stop > version.size:
            raise RefusedError(f"the file object ends at byte {version.size}")
        with self.lock:
            self._file.seek(start)
            while start < stop:
                part = self._file.read(stop - start)
                if not part:
                    raise RefusedError(f"the file object ends at byte {start}; open it again")
                parts.append(bytes(part))
                start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class BytesStore(Store):
    """An `io.BytesIO`, whose bytes need no file position."""

    loop = None

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    async def first(self, nbytes: int) -> tuple[bytes, Version]:
        """The first bytes, and what they are of."""
        found = self._file.getvalue()
        return found[:nbytes], Version(len(found))

    async def get(self, start: int, stop: int, version: Version) -> bytes:
        """Bytes of that version."""
        found = self._file.getvalue()
        if len(found) != version.size:
            raise FileChangedError(CHANGED)
        return found[start:stop]
