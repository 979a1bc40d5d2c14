"""How are values parsed that several options share?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import click
from click.core import ParameterSource

from chunkwise.cli.echo import echo
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_count, parse_duration, parse_size
from chunkwise.model.readability import PROGRAM_NAMES, program
from chunkwise.remedy.fix import TOOLS

Command: TypeAlias = Callable[..., Any]


def listed(text: str | None) -> tuple[str, ...]:
    """Read values with commas between them; nothing of an option that is not given."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def shapes_listed(text: str | None) -> tuple[str, ...]:
    """Read chunk shapes with commas between them, and within those that name dimensions."""
    found: list[str] = []
    names: list[str] = []
    for part in listed(text):
        name = part.partition("=")[0].strip() if "=" in part else ""
        if name and names and name not in names:
            found[-1] += f",{part}"
            names.append(name)
        else:
            found.append(part)
            names = [name] if name else []
    return tuple(found)


external_option = click.option(
    "--external",
    type=click.Choice(("none", "folder", "anywhere")),
    default="folder",
    help="How far a file may lead for values that lie in other files: to none, to those in its "
    "folder and below, or anywhere.  [default: folder]",
)


class Renamed(click.Option):
    """An option that also takes former spellings, for one version, and says the new one."""

    def __init__(self, *declarations: Any, former: str, **options: Any) -> None:
        self.former = former.split()
        super().__init__(*declarations, **options)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know all of them."""
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        for former in self.former:
            parser.add_option(
                obj=self, opts=[former], dest=former, action=action, nargs=self.nargs
            )

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Take the value of any."""
        for former in self.former:
            if former in opts:
                echo(f"chunkwise: {former} is now {self.opts[-1]}: write that", err=True)
                opts = {str(self.name): opts[former], **opts}
        return super().consume_value(ctx, opts)


class _Read(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A value that a function reads."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, _: click.Context | None) -> Any:
        """Read it; the option that has a wrong value is named."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except UsageError as wrong:
            if param is None:
                raise
            raise UsageError(f"{' / '.join(param.opts)}: {wrong}") from None


def _seconds(text: str) -> float:
    seconds = parse_duration(text)
    if not seconds > 0:
        raise UsageError(f"no time ({text}): give more than 0, as in 60s or 5min")
    return seconds


def _count(text: str) -> int:
    count = parse_count(text)
    if count < 1:
        raise UsageError(f"number {text!r}: give 1 or more")
    return count


SIZE: Final = _Read("size", parse_size)
# A length of time above 0, in seconds.
DURATION: Final = _Read("time", _seconds)
COUNT: Final = _Read("count", _count)


def for_option(
    about: str, *, multiple: bool = True, but: str = ""
) -> Callable[[Command], Command]:
    """The option that names the programs which a file is for, from one list but for one."""
    repeated = "; may be repeated" if multiple else ""
    return click.option(
        "--for",
        "readers" if multiple else "reader",
        type=_Read("program", lambda text: program(text).name),
        metavar="PROGRAM",
        multiple=multiple,
        help=f"{about}{repeated}: {', '.join(name for name in PROGRAM_NAMES if name != but)}.",
    )


def tool_option(
    about: str, *, multiple: bool = True, former: str = ""
) -> Callable[[Command], Command]:
    """The option that names the tools in whose words remedies are printed."""
    return click.option(
        "--tool",
        "tools" if multiple else "tool",
        cls=Renamed,
        former=former,
        multiple=multiple,
        type=click.Choice(TOOLS, case_sensitive=False),
        help=about,
    )


latency_option = click.option(
    "--latency",
    "latency_s",
    type=DURATION,
    help="For a URL: estimate the time if each answer begins after this time, as in 50ms.  "
    "[default: as measured]",
)


trace_option = click.option(
    "--trace",
    type=click.Path(dir_okay=False),
    help="Also what a program read of the dataset, as 'chunkwise trace -o FILE' wrote it.",
)


def followed(
    trace: str | None, file: str | None, dataset: str | None, access: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Give a dataset and access patterns, with those of a trace; without one, as they are."""
    if trace is None:
        return dataset, access
    if file is None:
        raise UsageError("--trace holds the reads of a file: name the file")
    from chunkwise.running.trace import recorded

    name, found = recorded(trace, file, dataset)
    return name, (*access, *found)
