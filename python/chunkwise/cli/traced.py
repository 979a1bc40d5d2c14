"""How do commands take the reads of a program, instead of patterns that somebody wrote?"""

from __future__ import annotations

import click

from chunkwise.errors import UsageError

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
