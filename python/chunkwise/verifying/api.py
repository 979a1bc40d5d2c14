"""What does a program call to have a file verified?"""

from __future__ import annotations

import os
from pathlib import Path

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.verifying import manifest as manifests
from chunkwise.verifying.file import Wish, look
from chunkwise.verifying.records import Verified
from chunkwise.writing.pending import flush_beside

PathLike = str | os.PathLike[str]


def verify(
    path: PathLike,
    *,
    manifest: PathLike | None = None,
    write_manifest: PathLike | None = None,
    force: bool = False,
) -> Verified:
    """Read all of a file, and say whether it is as it was written.

    Sizes, checksums and decodability of every chunk, all metadata, attributes, and what lies on
    the file's heaps.  What ``chunkwise verify`` prints of one file.  The command works in a
    process of its own, as libhdf5 crashes on some damaged files; this function does not.

    Parameters
    ----------
    path : path
        An HDF5 or netCDF-4 file; it is only read.
    manifest : path, optional
        A manifest that ``write_manifest`` has written: the values must be those that it has.  It
        is of one file, of whatever name, or has this file's name.
    write_manifest : path, optional
        Where the checksums of all values go, of a file that is sound.
    force : bool, default False
        Replace a manifest that exists.

    Returns
    -------
    Verified
        ``verdict`` is ``"sound"``, ``"damaged"`` or, where some could not be looked at,
        ``"unchecked"``; ``damages`` says what was found and where; ``as_dict()`` is what
        ``--json`` prints.

    Raises
    ------
    FileFormatError
        There is no such file, it may not be read, or is of another format.
    FileChangedError
        It was written to meanwhile.
    UsageError
        The manifest cannot be read, or does not know this file.
    CannotWriteError
        The manifest cannot be written, or exists.

    Examples
    --------
    >>> found = chunkwise.verify("model.nc")                  # doctest: +SKIP
    >>> found.verdict, [(d.path, d.origin, d.kind) for d in found.damages]  # doctest: +SKIP
    """
    expected = None
    if manifest is not None:
        expected = expected_of(manifests.read(manifest), path, os.fspath(manifest))
    flush_beside(path)
    looked = look(path, Wish(sums=write_manifest is not None), expected)
    if write_manifest is not None and looked.sums is not None:
        manifests.write(write_manifest, {Path(path).name: looked.sums}, force=force)
    return looked.verified


def expected_of(
    known: dict[str, manifests.FileManifest], path: PathLike, said: str
) -> manifests.FileManifest:
    """Give what a manifest has of a file: the only one of its files, or that of its name.

    Raises
    ------
    UsageError
        It does not know the file.
    """
    if len(known) == 1:
        (only,) = known.values()
        return only
    found = known.get(Path(path).name)
    if found is None:
        name = printable(Path(path).name)
        raise UsageError(f"{printable(said)}: does not know a file of the name {name}")
    return found
