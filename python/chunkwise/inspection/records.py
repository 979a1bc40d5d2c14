"""How do records become JSON?  Faster than by `dataclasses.asdict`, which copies every leaf."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

# Most of what records hold.
_AS_IS: Final = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Turn records within records into dictionaries, tuples kept."""
    if type(value) in _AS_IS:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    # What dataclasses.fields reads; that reading is most of its cost.
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return value
    return {name: plain(getattr(value, name)) for name in getattr(value, "KEYS", fields)}


def json_lines(record: dict[str, Any]) -> Iterator[str]:
    """Write a dictionary as one JSON object, each member of its lists on a line."""
    last = len(record) - 1
    yield "{"
    for i, (key, value) in enumerate(record.items()):
        comma = "," if i < last else ""
        if isinstance(value, tuple) and value:
            yield f"{json.dumps(key)}: ["
            for j, item in enumerate(value, 1):
                yield json.dumps(item) + ("," if j < len(value) else "")
            yield "]" + comma
        else:
            yield f"{json.dumps(key)}: {json.dumps(value)}{comma}"
    yield "}"
