"""How are names written in shells, in Python and in C, and what are copies of a file called?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chunkwise.names import octal, shell_word

# A question mark may begin a trigraph.
_C_SPECIAL: Final = '"\\?'


def absolute(dataset: str) -> str:
    """Return the path of a dataset from the root of its file."""
    return "/" + dataset.strip("/")


def shell_file(file: str) -> str:
    """Quote a file's name for a shell; one that begins with a dash is no option."""
    return shell_word(f"./{file}" if file.startswith("-") else file)


def python_path(path: str) -> str:
    """Quote an HDF5 path for h5py, which takes bytes if a name is not UTF-8."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return repr(path.encode("utf-8", "surrogateescape"))
    return repr(path)


def c_text(text: str) -> str:
    """Write a string of C's."""
    return f'"{octal(text, _C_SPECIAL)}"'


def beside(file: str, word: str) -> str:
    """Return the name of a copy: that of the file with a word behind it, in this folder."""
    source = Path(file)
    return source.with_name(f"{source.stem}_{word}{source.suffix}").name
