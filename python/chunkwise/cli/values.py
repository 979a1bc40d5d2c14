"""How are values parsed that several options share?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_count, parse_duration, parse_size


def listed(text: str | None) -> tuple[str, ...]:
    """Read values with commas between them; nothing of an option that is not given."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


external_option = click.option(
    "--external",
    type=click.Choice(("none", "folder", "anywhere")),
    default="folder",
    help="How far a file may lead for values that lie in other files: to none, to those in its "
    "folder and below, or anywhere.  [default: folder]",
)


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number of bytes, as `grammar.parse_size` reads it."""

    name = "size"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> int:
        """Read it."""
        return value if isinstance(value, int) else parse_size(value)


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A length of time above 0 in seconds, as `grammar.parse_duration` reads it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, _: click.Context | None) -> float:
        """Read it."""
        with _of(param):
            seconds = value if isinstance(value, float) else parse_duration(str(value))
            if not seconds > 0:
                raise UsageError(f"no time ({value}): give more than 0, as in 60s or 5min")
        return seconds


class Count(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number of things, as `grammar.parse_count` reads it."""

    name = "count"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, _: click.Context | None) -> int:
        """Read it."""
        with _of(param):
            count = value if isinstance(value, int) else parse_count(value)
            if count < self._least:
                raise UsageError(f"number {value!r}: give {self._least:,} or more")
        return count


@contextmanager
def _of(param: click.Parameter | None) -> Iterator[None]:
    """Name the option that has a wrong value."""
    try:
        yield
    except UsageError as wrong:
        if param is None:
            raise
        raise UsageError(f"{' / '.join(param.opts)}: {wrong}") from None
