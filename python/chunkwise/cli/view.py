"""Show a file in the browser, from the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunkwise import system
from chunkwise.cli.echo import echo
from chunkwise.cli.terminal import for_messages
from chunkwise.cli.values import followed, trace_option
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.durable import write_whole
from chunkwise.names import printable

if TYPE_CHECKING:
    from chunkwise.viewing.session import Session

EXAMPLES = """\b
Examples:
  chunkwise view model.nc                     opens the browser
  chunkwise view model.nc temperature --access line:0
  chunkwise view model.nc --no-browser        prints the address
  chunkwise view model.nc temperature --save page.html
  chunkwise view model.nc --trace t.json      what a program read

\b
On another machine, forward the port that is printed:
  ssh -L 8000:localhost:PORT host     then open http://localhost:8000/TOKEN/
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@click.option(
    "--access",
    multiple=True,
    metavar="PATTERN",
    help="What is read of DATASET, as for bench, such as line:0; may be repeated.  [default: a "
    "line along each dimension, and a plane]",
)
@trace_option
@click.option(
    "--save",
    "page",
    type=click.Path(dir_okay=False),
    metavar="PAGE.html",
    help="Write the page into one file that can be mailed, and end. It shows DATASET, or the "
    "five worst ones.",
)
@click.option(
    "--no-browser", is_flag=True, help="Print the address, and do not open it in a browser."
)
def command(
    file: str,
    dataset: str | None,
    access: tuple[str, ...],
    trace: str | None,
    page: str | None,
    no_browser: bool,
) -> None:
    """Show in the browser how a file is stored, what reads touch and cost, and what would help.

    Chunks are drawn, and light up where a read touches them; sliders try
    other chunks, filters and caches. The file is only read.

    The page comes from this machine and needs no network. Only who has its
    address can open it. The command ends when the page is closed, or by
    Ctrl-C.
    """
    # Imported here, so that `--help` need not wait for h5py.
    from chunkwise.viewing.server import Server
    from chunkwise.viewing.session import Session

    dataset, access = followed(trace, file, dataset, access)
    session = Session.of(file, dataset, access)
    if page is not None:
        _save(session, page)
        return
    server = Server(session)
    if no_browser or not _has_screen():
        echo(server.address)
    else:
        import webbrowser

        echo(f"Opening {server.address}", err=True)
        webbrowser.open(server.address)
    server.until_left()


def _has_screen() -> bool:
    """Whether a browser has a window; a text browser would take the terminal."""
    shown = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not system.LINUX or any(map(os.environ.get, shown))


def _save(session: Session, page: str) -> None:
    from chunkwise.viewing.saving import saved_page

    if Path(page).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{printable(page)}: the page is HTML: name it PAGE.html")
    with for_messages().status("measuring this machine and samples of the data"):
        text = saved_page(session)
    try:
        write_whole(Path(page), text.encode())
    except OSError as error:
        raise CannotWriteError(f"{printable(page)}: cannot be written: {error.strerror}") from None
