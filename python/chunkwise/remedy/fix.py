"""What is a fix: lines that can be pasted as they are?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from chunkwise.model.layout import FileLayout

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
# Those by whose name lines are asked for.
TOOLS: Final = (*(name for name in get_args(Tool) if name not in ("h5clear", "shell")), "all")


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
        Of a command that copies a file, the words in `text` that say what its datasets are to
        have.
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
        return self.layout is not None


class OfCopy(Fix):
    """Lines that read what the command before them wrote, and not the file itself."""

    __slots__ = ()
