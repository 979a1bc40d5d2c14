"""At which elements may two libraries convert differently?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ONE = np.uint64(1)
# Exponents of 2 at the ends of ranges: of floats, of integers, and of what floats count exactly.
LIMITS = (-1074, -149, -126, -24, -14, 0, 7, 8, 10, 15, 16, 23, 31, 32, 52, 63, 64, 127, 128)


def numbers(name: str) -> Array:
    """Numbers at the ends of ranges, between two others, and NaNs.

    Parameters
    ----------
    name : str
        A type as NumPy names it: of integers or floats of up to 8 bytes.

    Returns
    -------
    ndarray
        Some thousands, of one dimension and this type.
    """
    dtype = np.dtype(name)
    made = _floats(dtype.itemsize) if dtype.kind == "f" else _integers()
    bits = made.astype(f"u{dtype.itemsize}")
    return bits.astype(bits.dtype.newbyteorder(dtype.byteorder)).view(dtype)


def _integers() -> npt.NDArray[np.uint64]:
    """Powers of 2 and their neighbours, also with the first bits that a float has no room for."""
    powers = np.left_shift(ONE, np.arange(64, dtype="u8"))
    tails = [powers >> np.uint64(digits) for digits in (10, 11, 12, 23, 24, 25, 52, 53, 54)]
    sums = [powers, *(powers + tail for tail in tails), *(powers + 3 * tail for tail in tails)]
    # And where the smallest float ends.
    around = np.concatenate([*sums, np.arange(65500, 65560, dtype="u8")])
    around = np.concatenate([around - ONE, around, around + ONE])
    return np.concatenate([around, 0 - around])


def _floats(size: int) -> npt.NDArray[np.uint64]:
    """Bits of floats: exponents near limits, with digits near where shorter floats are cut."""
    digits, bias = {2: (10, 15), 4: (23, 127), 8: (52, 1023)}[size]
    most = 2 * bias + 1
    near = {bias + limit + step for limit in LIMITS for step in (-2, -1, 0, 1)}
    exponents = np.array(sorted((near | {0, 1, most - 1, most}) & set(range(most + 1))), "u8")
    cuts = {digits - kept + step for kept in (0, 10, 23) for step in (-3, -2, -1, 0, 1, 2)}
    chosen = sorted((cuts | {0, 1, 2, digits}) & set(range(digits + 1)))
    low = np.left_shift(ONE, np.array(chosen, "u8")) - ONE
    every = low[-1]
    tails = np.unique(np.concatenate([low, low + ONE, every - low, every - low - ONE]) & every)
    bits = (np.left_shift(exponents[:, None], np.uint64(digits)) | tails).reshape(-1)
    return np.concatenate([bits, bits | np.left_shift(ONE, np.uint64(8 * size - 1))])


def texts(length: int) -> Array:
    """Texts that fill their room and do not, with zeros and spaces within and at their end.

    Parameters
    ----------
    length : int
        Bytes of a text, at least 1.

    Returns
    -------
    ndarray
        Of one dimension and the type ``S{length}``.
    """
    made = [b"", b" ", b"a", b"a ", b" a", b"a\0b", b"\0a", b"a \0", "é".encode(), b"x" * length]
    made += [b"x" * (length - 1) + b" ", b"x" * (length - 1) + b"\0", b" " * length]
    padded = b"".join(text[:length].ljust(length, b"\0") for text in made)
    return np.frombuffer(padded, f"S{length}")
