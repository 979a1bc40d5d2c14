"""What is a fix: lines that can be pasted as they are?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from chunkwise.model.layout import FileLayout, together

Tool = Literal[
    "h5py",
    "netCDF4",
    "xarray",
    "C",
    "Fortran",
    "h5repack",
    "nccopy",
    "h5clear",
    "shell",
    "chunkwise",
]


@dataclass(frozen=True, slots=True)
class Fix:
    """Lines to paste.

    Attributes
    ----------
    tool
        What understands them: Python with ``h5py``, ``netCDF4`` or ``xarray``, ``C``,
        ``Fortran``, or a shell with ``h5repack``, ``nccopy``, ``h5clear`` or anything else.
    text
        The lines, complete with the names of file and dataset.
    writing
        Whether they belong where the file is written: they make a new one right, and do
        not mend this one.
    rechunks
        Whether they give a dataset other chunks: of several such, only one can be followed.
    options
        Of a command that copies a file, the words in `text` that say what one dataset is to
        have; those for other datasets can stand beside them (`joined`).
    layout
        Of a command of ``chunkwise repack``, what the copy has in place of what the file has.
    """

    tool: Tool
    text: str
    writing: bool = False
    rechunks: bool = False
    options: str = ""
    layout: FileLayout | None = None

    @property
    def repacks(self) -> bool:
        """Whether it is a command of ``chunkwise repack``."""
        return self.text.startswith("chunkwise repack ")


def joined(fixes: Iterable[Fix]) -> Fix:
    """Make one command of commands of one tool that copy the same file to the same name."""
    first, *others = fixes
    options = list(dict.fromkeys([first.options, *(fix.options for fix in others)]))
    text = first.text.replace(first.options, " ".join(options), 1)
    layout = together(fix.layout for fix in (first, *others) if fix.layout is not None)
    return replace(first, text=text, options=" ".join(options), layout=layout)
