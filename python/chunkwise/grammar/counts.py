"""How is a number of things written: ``1000``, ``10k``, ``1 million``?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from chunkwise.errors import UsageError

_THOUSAND: Final = 10**3
_TIMES: Final[dict[str, int]] = {
    "": 1,
    **dict.fromkeys(("k", "thousand", "thousands"), _THOUSAND),
    **dict.fromkeys(("m", "mio", "million", "millions"), _THOUSAND**2),
    **dict.fromkeys(("bn", "billion", "billions"), _THOUSAND**3),
}
# The digits are bounded, so that no text makes a number too large to compute with.
_COUNT: Final = re.compile(
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3}){1,12}|(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
    r"(?:e[+-]?[0-9]{1,3})?)\s*(?P<unit>[a-z]*)",
    re.ASCII,
)
_LARGEST: Final = 2**63 - 1
_HELP: Final = "write it as 1000, 10k, 1e6, 1,000,000 or 1 million"


def parse_count(text: str) -> int:
    """Parse a number of things."""
    lowered = text.strip().lower()
    if not lowered:
        raise UsageError(f"empty number: {_HELP}")
    found = _COUNT.fullmatch(lowered)
    if found is None:
        if re.fullmatch(r"-[0-9.].*", lowered):
            raise UsageError(f"number {text!r}: it cannot be negative")
        raise UsageError(f"number {text!r} is not understood: {_HELP}")
    if found["unit"] not in _TIMES:
        raise UsageError(f"number {text!r}: {found['unit']!r} is no number; {_HELP}")
    count = Fraction(found["number"].replace(",", "")) * _TIMES[found["unit"]]
    if count.denominator != 1:
        raise UsageError(f"number {text!r} is not a whole number")
    if count > _LARGEST:
        raise UsageError(f"number {text!r} is too large")
    return int(count)
