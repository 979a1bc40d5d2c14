"""What does a program call to verify a file?"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from chunkwise.errors import UsageError
from chunkwise.files.leading import External, checked
from chunkwise.handles.pending import flush_beside
from chunkwise.manifest import manifest as manifests
from chunkwise.names import is_url, printable, shown_url
from chunkwise.notebook import in_notebook
from chunkwise.remote.copying import copied
from chunkwise.verifying.data import Beat
from chunkwise.verifying.file import ManifestOptions, verify_file
from chunkwise.verifying.records import Verified

PathLike = str | os.PathLike[str]


def verify(
    path: PathLike,
    *,
    manifest: PathLike | None = None,
    write_manifest: PathLike | None = None,
    external: External = "folder",
    force: bool = False,
    latency_s: float | None = None,
) -> Verified:
    """Read a whole file, and say whether it is as it was written.

    Checks size, checksum and decoding of every chunk, all metadata, attributes, and the file's
    heaps, as ``chunkwise verify`` does.  libhdf5 crashes on some damaged files: the command
    works in a child process, but this function works in yours.

    Parameters
    ----------
    path : path
        An HDF5 or netCDF-4 file; with a manifest also netCDF-3.  It is only read.  A URL is copied
        to the folder for temporary files first, by large requests, as all of it is read.
    manifest : path, optional
        A manifest from ``write_manifest``, whose values the file must have.  It is for one file,
        of any name, or has this file's name.
    write_manifest : path, optional
        Write the checksums of all values here, if the file is sound.
    external : {"none", "folder", "anywhere"}, default "folder"
        How far the file may lead for values that are summed for a manifest: to no other file, to
        files in its folder and below (symbolic links resolved), or anywhere.
    force : bool, default False
        Replace a manifest that exists.
    latency_s : float, optional
        Of a URL: for which time until the first byte of an answer `Verified.far` says how long
        fetching takes.  None for that of the first request.

    Returns
    -------
    Verified
        ``verdict`` is ``"sound"``, ``"sound, with loose ends"``, ``"damaged"``, ``"cannot be
        judged here"`` or ``"busy"``; ``damages`` and ``notes`` say what was found and where;
        ``as_dict()`` is what ``--json`` prints.

    Raises
    ------
    FileFormatError
        The file does not exist, may not be read, or has another format.
    BusyError, FileChangedError
        Another program has it open for writing, or wrote to it at the same time.
    CannotJudgeError
        HDF5 refuses it, which proves no damage.
    UsageError
        The manifest cannot be read, or does not know this file.
    CannotWriteError
        The manifest cannot be written, or exists; there is no room for a copy.
    RemoteError
        A request for a URL has failed for good.

    Examples
    --------
    >>> found = chunkwise.verify("model.nc")                  # doctest: +SKIP
    >>> found.verdict, [(d.path, d.origin, d.kind) for d in found.damages]  # doctest: +SKIP
    """
    checked(external, "verify()")
    refuse_options(path, external, latency_s)
    values = manifest is not None or write_manifest is not None
    folder = Path(gettempdir()) if values else None
    options = ManifestOptions(write_manifest is not None, folder, external)
    known = None if manifest is None else manifests.read(manifest)
    with in_notebook() as show, ExitStack() as opened:

        def following(words: str, total: int) -> Beat:
            done = 0

            def beat(nbytes: int) -> None:
                nonlocal done
                done += nbytes
                show(words, done, total)

            return beat

        name, copy = Path(path).name, None
        here: PathLike = path
        if is_url(path):
            copy = opened.enter_context(copied(os.fspath(path), partial(following, "fetching")))
            here, name = copy.path, copy.name
        expected = None
        if known is not None:
            expected = expected_of(known, name, os.fspath(manifest or ""))
        flush_beside(here)
        total = Path(here).stat().st_size if Path(here).is_file() else 0
        result = verify_file(here, options, expected, following("verifying", total))
    if write_manifest is not None and result.sums is not None:
        manifests.write(write_manifest, {name: result.sums}, force=force)
    if copy is None:
        return result.verified
    return replace(result.verified, path=copy.shown, far=copy.fetched(latency_s))


def refuse_options(
    path: PathLike, external: External, latency_s: float | None, **others: object
) -> None:
    """Refuse what is for URLs only, or for local files only; others are given if not None."""
    if not is_url(path):
        if latency_s is not None:
            raise UsageError(f"{printable(os.fspath(path))}: a latency is for a URL")
        return
    where = shown_url(os.fspath(path))
    for name, given in others.items():
        if given is not None:
            raise UsageError(f"{where}: --{name} is for local files; download it first")
    if external == "anywhere":
        raise UsageError(f"{where}: a file far away leads to no other file; leave 'anywhere' out")


def expected_of(
    known: dict[str, manifests.FileManifest], path: PathLike, said: str
) -> manifests.FileManifest:
    """Return a manifest's entry for a file: its only entry, or the one of that name."""
    if len(known) == 1:
        (only,) = known.values()
        return only
    found = known.get(Path(path).name)
    if found is None:
        name = printable(Path(path).name)
        raise UsageError(f"{printable(said)}: does not know a file of the name {name}")
    return found
