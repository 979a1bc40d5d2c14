"""How far may a file lead: which other files may hold its data, or be linked to?

libhdf5 opens them wherever they are.  A stranger's file could so show a local secret.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from h5py import h5f, h5g, h5l, h5o, h5p

from chunkwise import system
from chunkwise.errors import LeadsOutsideError, UsageError
from chunkwise.names import HDF5_ERRORS, decode_name, printable

External: TypeAlias = Literal["none", "folder", "anywhere"]
EXTERNAL: Final[tuple[str, ...]] = get_args(External)

# Soft and external links that libhdf5 follows for one name (H5L_NUM_LINKS).
_MOST_LINKS: Final = 16
# A percent sign in the name of a source, and what comes after it.
_PERCENT: Final = re.compile("%(.?)", re.DOTALL)
# Devices of memory that answer at once: null, zero, full, random, urandom.
_MEMORY: Final = 1
_ANSWERING: Final = frozenset({3, 5, 7, 8, 9})


def checked(external: str, where: str) -> External:
    """Check what an argument says."""
    if external not in EXTERNAL:
        raise UsageError(f"{where}: external={external!r}: is one of {', '.join(EXTERNAL)}")
    return external  # type: ignore[return-value]


@dataclass(frozen=True)
class Bounds:
    """How far one file may lead."""

    name: str  # The file's, for messages
    own: str | None  # Its path; None of one that is not local, which leads to no other file
    # To no other file, to those in its folder and below, or anywhere, as libhdf5 follows it.
    external: External = "anywhere"

    @property
    def is_open(self) -> bool:
        """Whether a file may lead as far as libhdf5 follows it."""
        return self.own is not None and self.external == "anywhere"

    def check(self, path: str, what: str, *, is_data: bool = False) -> None:
        """Check a file to which this one leads, before it is opened."""
        said = f"{printable(self.name)}: {what} leads to {printable(path)}"
        if self.own is None:
            raise LeadsOutsideError(
                f"{said}; a file that is not local leads to no other file: download it, with the "
                "files that it needs"
            )
        if self.external == "none" and not system.same_file(path, self.own):
            raise LeadsOutsideError(
                f"{said}, another file; if you trust it: external='folder' or 'anywhere' "
                "(--external)"
            )
        if self.external == "folder" and not self._is_within(path):
            raise LeadsOutsideError(
                f"{said}, out of the file's folder; if you trust it: external='anywhere' "
                "(--external anywhere)"
            )
        if _never_ends(path, answers=is_data and self.is_open):
            raise LeadsOutsideError(
                f"{said}, which is no regular file: reading it might never end; put a regular "
                "file there"
            )

    def refuse(self, what: str, reason: str) -> LeadsOutsideError:
        """The error for data at an unknown place."""
        return LeadsOutsideError(
            f"{printable(self.name)}: {what} may lead to other files: {reason}; if you trust it: "
            "external='anywhere' (--external anywhere)"
        )

    def _is_within(self, path: str) -> bool:
        assert self.own is not None, "checked before"
        found = Path(os.path.realpath(path))
        # A link to the file may lie in another folder than the file.
        folders = {
            os.path.realpath(os.path.dirname(own) or ".")  # noqa: PTH120
            for own in (self.own, os.path.realpath(self.own))
        }
        return any(found.is_relative_to(folder) for folder in folders)

    def check_path(self, group: Any, path: bytes, own: str | None = None) -> None:
        """Check each external link by which libhdf5 would go from a group to a path."""
        # Nothing is opened before it is checked.  What cannot be followed is left to libhdf5.
        try:
            _follow(self, group, path, own or self.own)
        except HDF5_ERRORS as error:
            if isinstance(error, LeadsOutsideError):
                raise


def _follow(bounds: Bounds, group: Any, path: bytes, own: str | None) -> None:
    root = h5g.open(group, b"/")
    here = root if path.startswith(b"/") else group
    left, links = deque(path.split(b"/")), 0
    while left:
        part = left.popleft()
        if part in (b"", b"."):
            continue
        kind = here.links.get_info(part).type
        if kind == h5l.TYPE_HARD:
            if not any(left):
                return
            here = h5o.open(here, part)
            if not isinstance(here, h5g.GroupID):
                return
            continue
        links += 1
        if links > _MOST_LINKS or kind not in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
            return
        value = here.links.get_val(part)
        if kind == h5l.TYPE_SOFT:
            here = root if value.startswith(b"/") else here
            left.extendleft(reversed(value.split(b"/")))
            continue
        file, target = value
        what = f"the external link {printable(decode_name(part))}"
        if bounds.own is None:
            bounds.check(decode_name(file), what)
        found = _opened(bounds, own, decode_name(file), what)
        if found is None:
            return
        own, opened = found
        here = root = h5g.open(opened, b"/")
        left.extendleft(reversed(target.split(b"/")))


def _opened(
    bounds: Bounds, own: str | None, file: str, what: str
) -> tuple[str, h5f.FileID] | None:
    """Open the file of an external link, as libhdf5 would; None if it finds none."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    # As h5py opens files, which may have it open.
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    for place in places(file, Path(own or ".").absolute(), "HDF5_EXT_PREFIX"):
        path = str(place)
        if not os.path.lexists(path):
            continue
        bounds.check(path, what)
        try:
            return path, h5f.open(os.fsencode(path), h5f.ACC_RDONLY, fapl)
        except HDF5_ERRORS:
            continue
    return None


def places(name: str, own: Path, variable: str, prefix: str = "") -> Iterator[Path]:
    """Give the paths at which H5F_prefix_open_file looks for a file, in its order."""
    wanted = Path(name)
    if wanted.is_absolute():
        yield wanted
        wanted = Path(wanted.name)
    for folder in os.environ.get(variable, "").split(os.pathsep):
        if folder:
            yield folder / wanted
    if prefix:
        yield prefix / wanted
    yield own.parent / wanted
    yield wanted
    # If `own` is a symbolic link, beside its target.
    yield own.resolve().parent / wanted


def name_of_source(name: str, number: int | None = None) -> str | None:
    """Spell out the name of a virtual dataset's source; None if HDF5 takes it for no name."""
    # ``%b`` stands for a number, and ``%%`` for a percent sign (H5D_virtual_parse_source_name).
    known = {"%": "%"} if number is None else {"%": "%", "b": str(number)}
    made, *rest = _PERCENT.split(name)
    if not all(one in known for one in rest[::2]):
        return None
    return made + "".join(
        known[one] + plain for one, plain in zip(rest[::2], rest[1::2], strict=True)
    )


def is_series(name: str) -> bool:
    """Whether the name of a source stands for sources with a number each."""
    return "b" in _PERCENT.split(name)[1::2]


def _never_ends(path: str, *, answers: bool) -> bool:
    """Whether opening or reading what is at a path may wait for ever."""
    try:
        found = os.stat(path)  # noqa: PTH116 (before each external file is opened)
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(found.st_mode):
        return False
    if not answers or not stat.S_ISCHR(found.st_mode) or not hasattr(os, "major"):
        return True
    return os.major(found.st_rdev) != _MEMORY or os.minor(found.st_rdev) not in _ANSWERING
