"""What does a program call to write an index of a file?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
from h5py import h5fd

from chunkwise import _native, system
from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError
from chunkwise.files.durable import placed, require_free
from chunkwise.files.leading import External, checked
from chunkwise.files.mended import open_mended, wide_lengths
from chunkwise.files.opening import open_h5, refuse_url
from chunkwise.grammar import parse_size
from chunkwise.handles.handle import SUFFIX
from chunkwise.handles.sidecar import Content, LocalContent, RemoteContent, is_sidecar
from chunkwise.indexing.contents import contents_of
from chunkwise.indexing.kerchunk import parquet_engine, write_json, write_parquet
from chunkwise.indexing.records import Format, Indexed
from chunkwise.indexing.sidecar import write_sidecar
from chunkwise.indexing.variables import Limits
from chunkwise.names import HDF5_ERRORS, is_url, parts_of_url, printable, shown_url
from chunkwise.remote.urls import bare_url, local_path, without_caches

if TYPE_CHECKING:
    from chunkwise.remote.source import RemoteBytes

# Values up to this many bytes go into the index if zarr cannot read them in the file.
INLINE_NBYTES: Final = 64 << 10
_BY_SUFFIX: Final[dict[str, Format]] = {
    ".json": "json",
    ".parq": "parquet",
    ".parquet": "parquet",
    SUFFIX: "sidecar",
}


def index(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    format: Format | None = None,
    url: str | None = None,
    secrets: bool = True,
    inline: int | str = INLINE_NBYTES,
    external: External = "folder",
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Indexed:
    """Write down where the chunks of a file lie, for zarr and xarray or for `chunkwise.open`.

    Parameters
    ----------
    source : path or URL
        An HDF5 or netCDF-4 file; it is only read.  URLs are those of `chunkwise.open`.
    target : path, optional
        The index: ``OUT.json`` or ``OUT.parquet`` (Kerchunk's references, one file or a
        folder), or ``OUT.cwi``, a sidecar for `chunkwise.open`.  None is a sidecar beside the
        file, ``SOURCE.cwi``, which `chunkwise.open` finds by itself; of a URL, a target has to be
        given.  It appears when it is complete, or not at all.
    format : {"json", "parquet", "sidecar"}, optional
        None: by the target's name.
    url : str, optional
        Where readers of the references will find the file; None is where it is now, as
        `source` says it (without the caches of a chain of URLs).
    secrets : bool, default True
        References name the URL with all that it has, such as a signature behind ``?``; the result
        says so (`secret`).  False leaves out passwords, and what follows ``?`` or ``#``: readers
        then need another right to read the file.
    inline : int or str, default 64 KiB
        The references hold the values of datasets up to this many bytes, if zarr cannot read
        their filters or type in the file.
    external : {"none", "folder", "anywhere"}, default "folder"
        How far the file may lead for values that the references hold: to no other file, to files
        in its folder and below (symbolic links resolved), or anywhere.  A file behind a URL leads
        to no other file, whatever is given.
    force : bool, default False
        Replace a target that exists.  A sidecar is replaced anyway.
    storage_options : mapping, optional
        For fsspec, where `source` is a URL; not written down.
    progress : callable, optional
        Called now and then with the chunks written so far; what it raises ends the work.

    Returns
    -------
    chunkwise.indexing.records.Indexed
        What was written, and what was left out, with reasons.

    Raises
    ------
    chunkwise.errors.FileFormatError
        The file cannot be opened.
    chunkwise.errors.AlreadyExistsError
        The target exists.
    chunkwise.errors.CannotWriteError
        The target cannot be written.
    chunkwise.errors.FileChangedError
        The file was changed meanwhile.
    chunkwise.errors.RemoteError
        A URL leads to nothing that can be read, or some of it could not be had.
    chunkwise.errors.UsageError
        Arguments contradict each other, or a package for Parquet is missing.
    """
    begun = time.monotonic()
    name = os.fspath(source)
    if is_url(name):
        name = local_path(name) or name
    far = is_url(name)
    where = shown_url(name) if far else printable(name)
    if storage_options is not None and not far:
        raise UsageError("storage_options: are for URLs only; leave them out for other files")
    checked(external, "index()")
    made = _target(name, target, where if far else None)
    kind = format or _format(made)
    inline_nbytes = parse_size(inline) if isinstance(inline, str) else inline
    if kind == "sidecar" and url is not None:
        raise UsageError(f"{where}: --url is for references, not for a sidecar: write OUT.json")
    found_at = url or (
        _far_away(name, where, secrets)
        if far and kind != "sidecar"
        else str(Path(name).absolute())
    )
    if not secrets and is_url(found_at):
        found_at = bare_url(found_at)
    if kind == "parquet":
        parquet_engine()
    replaces = force or (kind == "sidecar" and is_sidecar(made))
    if not far and system.same_file(made, name):
        raise CannotWriteError(f"{printable(name)}: is the file itself; name another target")

    report = progress or (lambda _: None)
    opened = _opened_far(name, where, storage_options) if far else _opened_here(name)
    with opened as found, _placed(made, force=replaces) as partial:
        if kind == "sidecar":
            content = found.content
            if content is None:
                raise UsageError(
                    f"{where}: a sidecar is for a local file, or for a URL that is read part by "
                    "part; write OUT.json"
                )
            datasets, chunks, left_out = write_sidecar(
                partial, found.file, content, found.storage, report
            )
            inlined, wider = 0, []
        else:
            limits = Limits(found.nbytes, inline_nbytes, found.storage, external)
            contents = contents_of(found.file, limits, lambda: report(0), where)
            write = write_json if kind == "json" else write_parquet
            write(partial, contents, found_at, report)
            datasets, left_out = len(contents.variables), contents.left_out
            wider = contents.wider
            chunks = sum(one.chunks for one in contents.variables)
            inlined = sum(bool(one.inlined) for one in contents.variables)
        found.check_requests(where)
        nbytes = _nbytes(partial)
    return Indexed(
        source=shown_url(name) if far else name,
        target=os.fspath(made),
        format=kind,
        datasets=datasets,
        chunks=chunks,
        inlined=inlined,
        index_nbytes=nbytes,
        elapsed_s=time.monotonic() - begun,
        left_out=tuple(left_out),
        wider=tuple(wider),
        secret=kind != "sidecar" and is_url(found_at) and bare_url(found_at) != found_at,
    )


@contextmanager
def _placed(target: Path, *, force: bool) -> Iterator[Path]:
    """Give a new path, which becomes `target` when the block ends well."""
    where = printable(str(target))
    require_free(target, force=force)
    try:
        with placed(target) as partial:
            yield partial
    except OSError as error:
        # What was wrong with the source has its own words, ours or h5py's.
        if isinstance(error, ChunkwiseError) or error.strerror is None:
            raise
        raise CannotWriteError(f"{where}: cannot be written: {error.strerror}") from None


def _target(name: str, target: str | os.PathLike[str] | None, url: str | None) -> Path:
    if target is not None:
        refuse_url(os.fspath(target))
        return Path(target)
    if url is not None:
        raise UsageError(f"{url}: say where the index shall be: -o OUT.json")
    return Path(name + SUFFIX)


def _format(target: Path) -> Format:
    found = _BY_SUFFIX.get(target.suffix.lower())
    if found is None:
        raise UsageError(
            f"{printable(str(target))}: name it OUT.json, OUT.parquet or OUT{SUFFIX}, or give "
            "--format"
        )
    return found


@dataclass(frozen=True)
class _Opened:
    """A file that is being indexed."""

    # `content` and `storage` hold its bytes without libhdf5; behind a URL they come from `source`.

    file: h5py.File
    nbytes: int
    content: Content | None = None
    storage: _native.Storage | None = None
    source: RemoteBytes | None = None

    def check_requests(self, where: str) -> None:
        """Fail where something could not be had, and so is missing, or was taken for damage."""
        failure = None if self.source is None else self.source.failure
        if failure is not None:
            raise type(failure[1])(f"{where}: {failure[1]}") from failure[1]


@contextmanager
def _opened_here(name: str) -> Iterator[_Opened]:
    with open_h5(name) as file:
        plain = file.id.get_access_plist().get_driver() == h5fd.SEC2
        descriptor = file.id.get_vfd_handle() if plain else None
        content = None if descriptor is None else LocalContent(descriptor)
        found = _Opened(file, os.stat(name).st_size, content)  # noqa: PTH116 (a string)
        mended = None if descriptor is None else wide_lengths(name)
        if descriptor is None or mended is None:
            yield found
            return
        storage = _native.Storage.of_descriptor(descriptor)
        with open_mended(name, mended) as shown:
            yield replace(found, file=shown, storage=storage)


@contextmanager
def _opened_far(
    url: str, where: str, storage_options: Mapping[str, Any] | None
) -> Iterator[_Opened]:
    from chunkwise.remote.opening import open_url

    opened = open_url(url, storage_options)
    with opened.file as file:
        source = opened.source
        content = None if source is None else RemoteContent(source)
        found = _Opened(file, file.id.get_filesize(), content, opened.storage, source)
        try:
            yield found
        except (ChunkwiseError, *HDF5_ERRORS):
            # Whatever it looks like.
            found.check_requests(where)
            raise


def _far_away(url: str, where: str, secrets: bool) -> str:
    """The URL of the bytes, for the references."""
    found = without_caches(url)
    if len(parts_of_url(found)) > 1:
        raise UsageError(
            f"{where}: references cannot lead through a chain of URLs; give --url, or index the "
            "file itself"
        )
    if secrets and "@" in found.partition("://")[2].partition("/")[0]:
        raise UsageError(
            f"{where}: the references would hold its password; leave it out (--no-secrets), or "
            "say by --url where readers find it"
        )
    return found


def _nbytes(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size
