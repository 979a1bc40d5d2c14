"""What is the reference of the commands?  A page for each, from click's own objects."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from book.text import escaped, put
from chunkwise.cli.main import COMMANDS, cli

WIDTH = 80


def write(folder: Path) -> list[str]:
    """Write a page for each command; return their names, in the order of the help."""
    context = click.Context(cli, info_name="chunkwise")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        put(folder / f"{name}.md", page(name, command))
    return list(COMMANDS)


def page(name: str, command: click.Command) -> str:
    """Return the page of a command, as Markdown."""
    context = click.Context(
        command,
        info_name=f"chunkwise {name}",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    lines = [
        f"# chunkwise {name}",
        "",
        "```text",
        *command.get_usage(context).splitlines(),
        "```",
        "",
    ]
    lines += _prose(command.help or "")
    lines += ["## Options", ""]
    for parameter in command.get_params(context):
        lines += _option(parameter, context)
    lines += _prose(command.epilog or "")
    return "\n".join(lines).rstrip() + "\n"


def _option(parameter: click.Parameter, context: click.Context) -> Iterator[str]:
    """Write an option as an entry of a list of definitions."""
    record = parameter.get_help_record(context)
    if record is None:
        return
    spelled, text = record
    if not text:
        return
    yield f"`{spelled}`"
    yield f": {escaped(text)}"
    yield ""


def _prose(text: str) -> Iterator[str]:
    r"""Write paragraphs as they are; those behind click's ``\b`` keep their lines."""
    title = None
    for paragraph in textwrap.dedent(text).split("\n\n"):
        kept = paragraph.lstrip("\n").startswith("\b")
        body = paragraph.replace("\b", "").strip("\n")
        if not body.strip():
            continue
        if not kept:
            yield from (escaped(body), "")
            continue
        first, *rest = body.splitlines()
        if rest and first.rstrip().endswith(":") and not first.startswith(" "):
            if first != title:
                yield from (f"**{escaped(first)}**", "")
            body = textwrap.dedent("\n".join(rest))
        yield from ("```text", *body.splitlines(), "```", "")
