"""How are values read that several options have?"""

from __future__ import annotations

from typing import Any

import click

from chunkwise.grammar import parse_size


def listed(text: str | None) -> tuple[str, ...]:
    """Read values with commas between them; nothing of an option that is not given."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number of bytes, as `grammar.parse_size` reads it."""

    name = "size"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> int:
        """Read it."""
        return value if isinstance(value, int) else parse_size(value)
