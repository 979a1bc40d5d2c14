"""How is a shape written: ``4x30x9x717``, ``scalar``, ``stored``?"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
