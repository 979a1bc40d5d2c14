"""Which options does `chunkwise index` take, and what does it print?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click
from rich.markup import escape

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import bar
from chunkwise.cli.signals import ending
from chunkwise.cli.values import SIZE, external_option
from chunkwise.errors import UsageError
from chunkwise.names import is_url, printable, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chunkwise.files.leading import External

EXAMPLES = """\b
Examples:
  chunkwise index model.nc                      model.nc.cwi, for chunkwise.open
  chunkwise index model.nc -o model.json        references for zarr and xarray
  chunkwise index model.nc -o model.parquet     the same, for millions of chunks
  chunkwise index model.nc -o m.json --url s3://bucket/model.nc
  chunkwise index run1.nc run2.nc -o refs/ --format json
  chunkwise index https://host/model.nc -o model.json

\b
To read references:
  xarray.open_dataset("model.json", engine="kerchunk")

\b
Exit code:
  0    the index is written; what it leaves out is printed
  2    wrong usage, or it cannot be written
  130  interrupted; nothing is left
"""
FORMATS = ("json", "parquet", "sidecar")
_SUFFIX = {"json": ".json", "parquet": ".parquet", "sidecar": ".cwi"}


@click.command(epilog=EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE|URL...")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="OUT.json, OUT.parquet or OUT.cwi; of several files a folder.  [default: FILE.cwi]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format, if the name of OUT does not say it: json or parquet, both as Kerchunk's, or "
    "sidecar (for chunkwise.open).",
)
@click.option("--url", metavar="URL", help="Where readers of the references will find FILE.")
@click.option(
    "--no-secrets",
    "bare",
    is_flag=True,
    help="Leave passwords and what follows ? (such as a signature) out of the URL in references.",
)
@click.option(
    "--inline",
    type=SIZE,
    metavar="SIZE",
    help="Put datasets of up to SIZE bytes into the references, with their values, where zarr "
    "cannot read them in the file.  [default: 64KiB]",
)
@external_option
@click.option("--force", is_flag=True, help="Replace an OUT that exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; for many files, one line each.")
def command(
    files: tuple[str, ...],
    output: str | None,
    form: Literal["json", "parquet", "sidecar"] | None,
    url: str | None,
    bare: bool,
    inline: int | None,
    external: External,
    force: bool,
    as_json: bool,
) -> None:
    """Write down where the chunks of a file lie.

    As references, by which zarr and xarray read FILE where it is, or as a sidecar,
    by which chunkwise.open need not look for chunks in FILE.  FILE is only read; it
    may be a URL.

    Datasets whose filters or types zarr does not have are left out, and named.
    """
    from chunkwise.indexing.api import INLINE_NBYTES, index
    from chunkwise.indexing.records import SECRET

    if url is not None and len(files) > 1:
        raise UsageError("--url is for one file; name it alone")
    targets = _targets(files, output, form)
    inline_nbytes = INLINE_NBYTES if inline is None else inline
    with ending() as ends, _following(ends.check) as follow:
        for file, target in zip(files, targets, strict=True):
            found = index(
                file,
                target,
                format=form,
                url=url,
                secrets=not bare,
                inline=inline_nbytes,
                external=external,
                force=force,
                progress=follow(file),
            )
            if as_json:
                echo_json(found.as_dict(), indent=None if len(files) > 1 else 2)
                if found.secret:
                    echo(f"chunkwise: {printable(found.target)}: {SECRET}", err=True)
            else:
                for line in found.lines():
                    echo(line)


def _targets(
    files: tuple[str, ...], output: str | None, form: str | None
) -> list[str | Path | None]:
    """Say where the index of each file goes; None: beside it."""
    from pathlib import Path

    if output is None:
        if form not in (None, "sidecar"):
            raise UsageError(f"--format {form}: say where it shall be: -o OUT{_SUFFIX[form]}")
        return [None] * len(files)
    is_folder = output.endswith("/") or (Path(output).is_dir() and form != "parquet")
    if len(files) == 1 and not is_folder:
        return [output]
    if form is None:
        raise UsageError(f"for files in the folder {output}: give --format, such as json")
    folder = Path(output)
    names = [_name(file) + _SUFFIX[form] for file in files]
    if len({*names}) < len(names):
        raise UsageError("two of the files have one name; index them one at a time")
    folder.mkdir(parents=True, exist_ok=True)
    return [folder / name for name in names]


def _name(file: str) -> str:
    """What the index of a file is called, without its suffix."""
    from pathlib import Path

    from chunkwise.remote.urls import file_name

    found = file_name(file) if is_url(file) else Path(file.rstrip("/")).name
    if not found:
        raise UsageError(f"{shown_url(file)}: has no name; index it alone, with -o OUT.json")
    return found


@contextmanager
def _following(check: Callable[[], None]) -> Iterator[Callable[[str], Callable[[int], None]]]:
    """Show on a terminal how many chunks are written, of one file after another."""
    with bar("{task.fields[file]}", "{task.completed:,.0f} chunks") as shown:
        task = shown.add_task("", total=None, file="")

        def of(file: str) -> Callable[[int], None]:
            def follow(chunks: int) -> None:
                check()
                shown.update(task, completed=chunks)

            name = shown_url(file) if is_url(file) else printable(file)
            shown.update(task, file=escape(name), completed=0)
            return follow

        yield of
