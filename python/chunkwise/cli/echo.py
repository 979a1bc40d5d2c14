"""How are plain lines and JSON printed without the imports that a console needs?"""

from __future__ import annotations

from typing import Any

import click

from chunkwise.names import hidden, json_text, printable_lines


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines, with what could command a terminal escaped."""
    click.echo(printable_lines(text), err=err, nl=nl)


def echo_json(record: Any, indent: int | None = None) -> None:
    """Print a record as JSON, in printing ASCII; on one line without `indent`."""
    click.echo(json_text(hidden(record), indent))
