"""How is a duration written: ``60s``, ``5min``, ``2h``, ``1h30min``?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from chunkwise.errors import UsageError

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
# Each unit with all the ways in which people write it.
_WORDS: Final[tuple[tuple[Fraction, tuple[str, ...]], ...]] = (
    (Fraction(1, 1000), ("ms", "msec", "millisecond", "milliseconds")),
    (Fraction(1), ("s", "sec", "secs", "second", "seconds")),
    (Fraction(_MINUTE), ("min", "mins", "m", "minute", "minutes")),
    (Fraction(_HOUR), ("h", "hr", "hrs", "hour", "hours")),
    (Fraction(_DAY), ("d", "day", "days")),
)
_SECONDS: Final = {word: seconds for seconds, words in _WORDS for word in words}
# The digits are bounded, so that no text makes a number too large to compute with.
_NUMBER: Final = r"(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:e[+-]?[0-9]{1,3})?"
_PART: Final = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[a-z]*)\s*", re.ASCII)
_LARGEST_S: Final = 1000 * 365 * _DAY
_HELP: Final = "write it as 60, 60s, 5min, 2h or 1h30min"


def parse_duration(text: str) -> float:
    """Parse a length of time."""
    lowered = text.strip().lower()
    if not lowered:
        raise UsageError(f"empty length of time: {_HELP}")
    if re.fullmatch(r"-[0-9.].*", lowered):
        raise UsageError(f"length of time {text!r}: it cannot be negative")
    total, at, before = Fraction(0), 0, None
    while at < len(lowered):
        found = _PART.match(lowered, at)
        if found is None:
            raise UsageError(f"length of time {text!r} is not understood: {_HELP}")
        unit = found["unit"]
        if unit and unit not in _SECONDS:
            raise UsageError(f"length of time {text!r}: no unit is called {unit!r}; {_HELP}")
        alone = found.span() == (0, len(lowered))
        seconds = _SECONDS.get(unit)
        if seconds is None:
            if not alone:
                raise UsageError(f"length of time {text!r}: a unit is missing; {_HELP}")
            seconds = Fraction(1)
        if before is not None and seconds >= before:
            raise UsageError(
                f"length of time {text!r} is not understood: the larger unit comes first, as in "
                "1h30min"
            )
        total += Fraction(found["number"]) * seconds
        at, before = found.end(), seconds
    if total > _LARGEST_S:
        raise UsageError(f"length of time {text!r} is longer than a thousand years")
    return float(total)
