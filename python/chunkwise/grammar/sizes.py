"""How is a number of bytes written: ``3MiB``, ``1e6``, ``10kB``?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from chunkwise.errors import UsageError

_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL: Final = ("kB", "MB", "GB", "TB", "PB", "EB")
# In the order in which `format_size` prefers them if two texts are equally short.
_UNITS: Final[dict[str, int]] = {
    **{unit: 1024 ** (power + 1) for power, unit in enumerate(_BINARY)},
    **{unit: 1000 ** (power + 1) for power, unit in enumerate(_DECIMAL)},
    "B": 1,
}
_BY_LOWER_CASE: Final = {unit.lower(): nbytes for unit, nbytes in _UNITS.items()}
# The digits are bounded, so that no text makes a number too large to compute with.
_SIZE: Final = re.compile(
    r"(?P<number>(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:e[+-]?[0-9]{1,3})?)"
    r"\s*(?P<unit>[a-z]*)",
    re.ASCII,
)
_LARGEST: Final = 2**64 - 1  # hsize_t
_HELP: Final = "write it as 512, 1e6, 10kB, 3MiB or 1.5GiB"


def parse_size(text: str) -> int:
    """Parse a number of bytes."""
    lowered = text.strip().lower()
    if not lowered:
        raise UsageError(f"empty size: {_HELP}")
    found = _SIZE.fullmatch(lowered)
    if found is None:
        if re.fullmatch(r"-[0-9.].*", lowered):
            raise UsageError(f"size {text!r}: a number of bytes cannot be negative")
        raise UsageError(f"size {text!r} is not understood: {_HELP}")
    number, unit = Fraction(found["number"]), found["unit"]
    if unit in tuple("kmgtpe"):
        raise UsageError(
            f"size {text!r}: {unit.upper()} alone could mean two units; "
            f"write {found['number']}{unit.upper()}iB (powers of 1024) "
            f"or {found['number']}{'k' if unit == 'k' else unit.upper()}B (powers of 1000)"
        )
    if unit and unit not in _BY_LOWER_CASE:
        raise UsageError(f"size {text!r}: no unit is called {unit!r}; {_HELP}")
    nbytes = number * _BY_LOWER_CASE.get(unit, 1)
    if nbytes > _LARGEST:
        raise UsageError(f"size {text!r} is larger than HDF5 can hold (2**64 - 1 bytes)")
    if nbytes.denominator != 1 and unit in ("", "b"):
        raise UsageError(f"size {text!r} is not a whole number of bytes")
    return round(nbytes)


def format_size(nbytes: int, *, exact: bool = False) -> str:
    """Print a number of bytes, for people or to be parsed again."""
    if exact:
        whole = (
            f"{nbytes // size}{unit}" if size > 1 else str(nbytes)
            for unit, size in _UNITS.items()
            if nbytes % size == 0
        )
        return min(whole, key=len)
    if nbytes < 1024:
        return f"{nbytes} B"
    for unit in _BINARY:
        size = _UNITS[unit]
        # 1023.95 would be printed as 1024.0: the next unit says it better.
        if nbytes < 1023.95 * size or unit == _BINARY[-1]:
            break
    return f"{nbytes / size:.1f} {unit}"
