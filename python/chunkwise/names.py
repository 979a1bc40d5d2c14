"""How are names and messages of HDF5 turned into text, and back?"""

from __future__ import annotations

import re
import reprlib
from typing import Any

# What h5py's low-level calls raise on a damaged or unsupported object.
HDF5_ERRORS = (KeyError, OSError, RuntimeError, TypeError, ValueError, NotImplementedError)

_H5PY_MESSAGE = re.compile(r"(?:\[Errno -?\d+\] )?[A-Z][^(]* \((?P<reason>.*)\)", re.DOTALL)


def decode_name(name: bytes) -> str:
    """Decode a link's name; bytes that are not UTF-8 survive a round trip."""
    return name.decode("utf-8", "surrogateescape")


def encode_name(name: str) -> bytes:
    """Undo `decode_name`."""
    return name.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Escape what would break a line or disturb a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def hdf5_reason(error: BaseException) -> str:
    """Reduce an error of h5py's to the one line that says what is wrong.

    h5py wraps the innermost message of HDF5's error stack: ``Unable to
    synchronously open file (file signature not found)``.
    """
    text = str(error.args[-1]) if error.args else type(error).__name__
    match = _H5PY_MESSAGE.fullmatch(text)
    return printable(" ".join((match["reason"] if match else text).split()))


# Also a list of a million numbers is told in a line.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: Any) -> str:
    """Tell a value that was given, however large it is, within a message."""
    return printable(" ".join(_SHORT.repr(value).split()))
