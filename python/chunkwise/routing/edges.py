"""At which elements may two libraries convert differently?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chunkwise import _native

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"


def numbers(name: str) -> Array:
    """Numbers at the ends of ranges, between two others, and NaNs."""
    return np.frombuffer(_native.edge_numbers(name) or b"", name)


def texts(length: int) -> Array:
    """Texts that fill their room and do not, with zeros and spaces within and at their end."""
    made = [b"", b" ", b"a", b"a ", b" a", b"a\0b", b"\0a", b"a \0", "é".encode(), b"x" * length]
    made += [b"x" * (length - 1) + b" ", b"x" * (length - 1) + b"\0", b" " * length]
    padded = b"".join(text[:length].ljust(length, b"\0") for text in made)
    return np.frombuffer(padded, f"S{length}")
