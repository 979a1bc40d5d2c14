"""What is the reference of the Python interface?  Pages of autodoc's directives, by group.

The groups and the records are those of `docs/api.md` (`scripts/api.py`), so that no list is kept
twice.  Here each name has its whole docstring: parameters, units, errors, examples and its source.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api
import h5py

import chunkwise
from book.text import put
from chunkwise import errors


def write(folder: Path) -> list[str]:
    """Write a page for each group of names; return their names without ending, in order."""
    pages = []
    placed = {name for names in api.GROUPS.values() for name in names}
    other = [
        name
        for name in chunkwise.__all__
        if name not in placed and name != "__version__" and not _is_error(name)
    ]
    for title, names in api.GROUPS.items():
        members = [(chunkwise, name) for name in names or other]
        pages.append(_page(folder, title, members))
    for title, (package, names) in api.RECORDS.items():
        pages.append(_page(folder, title, [(package, name) for name in names]))
    kinds = [
        (errors, name)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, chunkwise.ChunkwiseError)
    ]
    pages.append(_page(folder, "Errors", kinds))
    return pages


def _page(folder: Path, title: str, members: list[tuple[Any, str]]) -> str:
    name = "-".join(re.findall(r"[a-z]+", title.lower()))
    lines = [f"# {title.replace('`', '')}", ""]
    for package, member in members:
        lines += _entry(f"{package.__name__}.{member}", getattr(package, member))
    put(folder / f"{name}.md", "\n".join(lines).rstrip() + "\n")
    return name


def _entry(name: str, value: Any) -> Iterator[str]:
    """Write the directive for a function or a class, with what chunkwise gives it."""
    yield f"## {name.rpartition('.')[2]}"
    yield ""
    yield "```{eval-rst}"
    if not isinstance(value, type):
        yield f".. autofunction:: {name}"
    elif issubclass(value, Exception):
        yield f".. autoexception:: {name}"
        yield "   :show-inheritance:"
    else:
        yield f".. autoclass:: {name}"
        if any(base in value.__mro__ for base in (h5py.File, h5py.Group, h5py.Dataset)):
            yield "   :show-inheritance:"
        yield from _members(value)
    yield "```"
    yield ""


def _members(kind: type) -> Iterator[str]:
    """Name the methods and properties; what `Attributes` describes is not told again."""
    told = dict(api._attributes(kind))
    found = [
        name
        for name in api.members(kind)
        if name not in told
        and (
            callable(getattr(kind, name, None))
            or isinstance(inspect.getattr_static(kind, name, None), property)
        )
    ]
    if found:
        yield f"   :members: {', '.join(found)}"
        yield "   :inherited-members:"


def _is_error(name: str) -> bool:
    value = getattr(chunkwise, name)
    return isinstance(value, type) and issubclass(value, Exception)
