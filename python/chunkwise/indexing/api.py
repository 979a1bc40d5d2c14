"""What does a program call to write an index of a file?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import h5py

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.handles import SUFFIX
from chunkwise.files.opening import open_h5
from chunkwise.files.sidecar import is_sidecar
from chunkwise.grammar import parse_size
from chunkwise.indexing.contents import contents_of
from chunkwise.indexing.kerchunk import parquet_engine, write_json, write_parquet
from chunkwise.indexing.placing import placed
from chunkwise.indexing.records import Format, Indexed
from chunkwise.indexing.sidecar import write_sidecar
from chunkwise.names import printable

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
    inline: int | str = INLINE_NBYTES,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Indexed:
    """Write down where the chunks of a file lie, for zarr and xarray or for `chunkwise.open`.

    Parameters
    ----------
    source : path or URL
        An HDF5 or netCDF-4 file; it is only read.
    target : path, optional
        The index: ``OUT.json`` or ``OUT.parquet`` (Kerchunk's references, one file or a
        folder), or ``OUT.cwi``, a sidecar for `chunkwise.open`.  None is a sidecar beside the
        file, ``SOURCE.cwi``, which `chunkwise.open` finds itself.  It appears when it is
        complete, or not at all.
    format : {"json", "parquet", "sidecar"}, optional
        None: by the target's name.
    url : str, optional
        Where readers of the references will find the file; None: where it is now.
    inline : int or str, default 64 KiB
        The references hold the values of datasets up to this many bytes, if zarr cannot read
        their filters or type in the file.
    force : bool, default False
        Replace a target that exists.  A sidecar is replaced anyway.
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
        The file was changed during the work.
    chunkwise.errors.UsageError
        Arguments contradict each other, or a package for Parquet is missing.
    """
    begun = time.monotonic()
    name = os.fspath(source)
    is_url = "://" in name
    made = _target(name, target, is_url=is_url)
    kind = format or _format(made)
    inline_nbytes = parse_size(inline) if isinstance(inline, str) else inline
    if kind == "sidecar" and (is_url or url is not None):
        raise UsageError(f"{printable(name)}: a sidecar is for a local file; write OUT.json")
    if kind == "parquet":
        parquet_engine()
    replaces = force or (kind == "sidecar" and is_sidecar(made))
    _refuse_source(name, made)

    def told(chunks: int) -> None:
        if progress is not None:
            progress(chunks)

    def check() -> None:
        told(0)

    with _opened(name, is_url=is_url) as (file, end), placed(made, force=replaces) as partial:
        if kind == "sidecar":
            datasets, chunks, left_out = write_sidecar(partial, file, told)
            inlined = 0
        else:
            contents = contents_of(file, end, inline_nbytes, check)
            write = write_json if kind == "json" else write_parquet
            write(partial, contents, url or _found_at(name, is_url=is_url), told)
            datasets, left_out = len(contents.variables), contents.left_out
            chunks = sum(one.chunks for one in contents.variables)
            inlined = sum(bool(one.inlined) for one in contents.variables)
        nbytes = _nbytes(partial)
    elapsed_s = time.monotonic() - begun
    shown = os.fspath(made)
    return Indexed(
        name, shown, kind, datasets, chunks, inlined, nbytes, elapsed_s, tuple(left_out)
    )


def _target(name: str, target: str | os.PathLike[str] | None, *, is_url: bool) -> Path:
    if target is not None:
        return Path(target)
    if is_url:
        raise UsageError(f"{printable(name)}: say where to write the index: -o OUT.json")
    return Path(name + SUFFIX)


def _format(target: Path) -> Format:
    found = _BY_SUFFIX.get(target.suffix.lower())
    if found is None:
        raise UsageError(
            f"{printable(str(target))}: name it OUT.json, OUT.parquet or OUT{SUFFIX}, or give "
            "--format"
        )
    return found


def _refuse_source(name: str, made: Path) -> None:
    try:
        same = made.samefile(name)
    except OSError:
        return
    if same:
        raise CannotWriteError(f"{printable(name)}: is the file itself; name another target")


@contextmanager
def _opened(name: str, *, is_url: bool) -> Iterator[tuple[h5py.File, int]]:
    """Open the file, and tell its bytes."""
    if is_url:
        from chunkwise.file import open as open_any

        with open_any(name) as opened:
            file = opened.h5py
            yield file, file.id.get_filesize()
        return
    with open_h5(name) as file:
        yield file, os.stat(name).st_size  # noqa: PTH116 (a string)


def _found_at(name: str, *, is_url: bool) -> str:
    return name if is_url else str(Path(name).absolute())


def _nbytes(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size
