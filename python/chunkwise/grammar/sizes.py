"""How are shapes, numbers of bytes, lengths of time and counts written: ``4x30``, ``3MiB``?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from chunkwise.errors import UsageError

Shape: TypeAlias = tuple[int, ...]
ShapeWord: TypeAlias = Literal["stored", "auto", "contiguous"]

_WORDS: Final[tuple[ShapeWord, ...]] = get_args(ShapeWord)
_SCALAR: Final = "scalar"
_LARGEST: Final = 2**64 - 1  # hsize_t; its maximum stands for H5S_UNLIMITED
_HELP: Final = "write lengths joined by x, as in 4x30x9x717"


def parse_shape(text: str) -> Shape | ShapeWord:
    """Parse a shape, or one of the words that stand for one."""
    lowered = text.strip().lower()
    if lowered == _SCALAR:
        return ()
    for word in _WORDS:
        if lowered == word:
            return word
    if not lowered:
        raise UsageError(f"empty shape: {_HELP}")
    return tuple(_parse_length(part.strip(), text) for part in lowered.split("x"))


def _parse_length(part: str, text: str) -> int:
    """One length of `text`, or a UsageError that quotes both."""
    if re.fullmatch(r"-[0-9]+|0+", part):
        raise UsageError(f"shape {text!r}: a length must be at least 1, not {part}")
    if not re.fullmatch(r"[0-9]+", part):
        if re.fullmatch(r"[(\[]?\s*[0-9]+\s*(,\s*[0-9]*\s*)+[)\]]?", text.strip()):
            lengths = "x".join(re.findall(r"[0-9]+", text))
            raise UsageError(f"shape {text!r}: write it as {lengths}")
        wrong = repr(part) if part else "an empty length"
        raise UsageError(f"shape {text!r}: {wrong} is not a whole number; {_HELP}")
    # The digits are counted first: int() refuses thousands of them in its own words.
    if len(part.lstrip("0")) > 20 or int(part) >= _LARGEST:
        raise UsageError(f"shape {text!r}: a length is larger than HDF5 can hold (2**64 - 2)")
    return int(part)


def format_shape(shape: Sequence[int] | ShapeWord) -> str:
    """Print a shape, so that `parse_shape` gives it back."""
    if isinstance(shape, str):
        return shape
    return "x".join(str(int(length)) for length in shape) or _SCALAR


# The digits are bounded, so that no text makes a number too large to compute with.
_NUMBER: Final = r"(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:e[+-]?[0-9]{1,3})?"

_PART: Final = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[a-z]*)\s*", re.ASCII)
_COUNT: Final = re.compile(
    rf"(?P<number>[0-9]{{1,3}}(?:,[0-9]{{3}}){{1,12}}|{_NUMBER})\s*(?P<unit>[a-z]*)", re.ASCII
)

_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL: Final = ("kB", "MB", "GB", "TB", "PB", "EB")
# In the order in which `format_size` prefers them if two texts are equally short.
_UNITS: Final[dict[str, int]] = {
    **{unit: 1024 ** (power + 1) for power, unit in enumerate(_BINARY)},
    **{unit: 1000 ** (power + 1) for power, unit in enumerate(_DECIMAL)},
    "B": 1,
}
_BY_LOWER_CASE: Final = {unit.lower(): nbytes for unit, nbytes in _UNITS.items()}
_MOST_NBYTES: Final = 2**64 - 1  # hsize_t
_SIZES: Final = "write it as 512, 1e6, 10kB, 3MiB or 1.5GiB"

_DAY: Final = 24 * 60 * 60
# Each unit with all the ways in which people write it.
_SECONDS: Final[dict[str, Fraction]] = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), Fraction(1, 1000)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("min", "mins", "m", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(60 * 60)),
    **dict.fromkeys(("d", "day", "days"), Fraction(_DAY)),
}
_MOST_S: Final = 1000 * 365 * _DAY
_TIMES: Final = "write it as 60, 60s, 5min, 2h or 1h30min"

_LARGER: Final[dict[str, int]] = {
    "": 1,
    **dict.fromkeys(("k", "thousand", "thousands"), 10**3),
    **dict.fromkeys(("m", "mio", "million", "millions"), 10**6),
    **dict.fromkeys(("bn", "billion", "billions"), 10**9),
}
_MOST_COUNTED: Final = 2**63 - 1
_COUNTS: Final = "write it as 1000, 10k, 1e6, 1,000,000 or 1 million"


def _lowered(text: str, what: str, how: str) -> str:
    """Give a text in lower case, if there is something in it and that is not negative."""
    lowered = text.strip().lower()
    if not lowered:
        raise UsageError(f"empty {what}: {how}")
    if re.fullmatch(r"-[0-9.].*", lowered):
        raise UsageError(f"{what} {text!r}: it cannot be negative")
    return lowered


def parse_size(text: str) -> int:
    """Parse a number of bytes."""
    found = _PART.fullmatch(_lowered(text, "size", _SIZES))
    if found is None:
        raise UsageError(f"size {text!r} is not understood: {_SIZES}")
    number, unit = Fraction(found["number"]), found["unit"]
    if unit in tuple("kmgtpe"):
        raise UsageError(
            f"size {text!r}: {unit.upper()} alone could mean two units; "
            f"write {found['number']}{unit.upper()}iB (powers of 1024) "
            f"or {found['number']}{'k' if unit == 'k' else unit.upper()}B (powers of 1000)"
        )
    if unit and unit not in _BY_LOWER_CASE:
        raise UsageError(f"size {text!r}: no unit is called {unit!r}; {_SIZES}")
    nbytes = number * _BY_LOWER_CASE.get(unit, 1)
    if nbytes > _MOST_NBYTES:
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


def parse_duration(text: str) -> float:
    """Parse a length of time."""
    lowered = _lowered(text, "length of time", _TIMES)
    total, at, before = Fraction(0), 0, None
    while at < len(lowered):
        found = _PART.match(lowered, at)
        if found is None:
            raise UsageError(f"length of time {text!r} is not understood: {_TIMES}")
        unit = found["unit"]
        if unit and unit not in _SECONDS:
            raise UsageError(f"length of time {text!r}: no unit is called {unit!r}; {_TIMES}")
        seconds = _SECONDS.get(unit)
        if seconds is None:
            if found.span() != (0, len(lowered)):
                raise UsageError(f"length of time {text!r}: a unit is missing; {_TIMES}")
            seconds = Fraction(1)
        if before is not None and seconds >= before:
            raise UsageError(
                f"length of time {text!r} is not understood: the larger unit comes first, as in "
                "1h30min"
            )
        total += Fraction(found["number"]) * seconds
        at, before = found.end(), seconds
    if total > _MOST_S:
        raise UsageError(f"length of time {text!r} is longer than a thousand years")
    return float(total)


def parse_count(text: str) -> int:
    """Parse a number of things."""
    found = _COUNT.fullmatch(_lowered(text, "number", _COUNTS))
    if found is None:
        raise UsageError(f"number {text!r} is not understood: {_COUNTS}")
    if found["unit"] not in _LARGER:
        raise UsageError(f"number {text!r}: {found['unit']!r} is no number; {_COUNTS}")
    count = Fraction(found["number"].replace(",", "")) * _LARGER[found["unit"]]
    if count.denominator != 1:
        raise UsageError(f"number {text!r} is not a whole number")
    if count > _MOST_COUNTED:
        raise UsageError(f"number {text!r} is too large")
    return int(count)
