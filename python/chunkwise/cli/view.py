"""Show a file in the browser, from the command line."""

from __future__ import annotations

import os

import click

from chunkwise import system
from chunkwise.cli.echo import echo
from chunkwise.cli.terminal import for_messages
from chunkwise.cli.values import SIZE, Renamed, followed, for_option, trace_option
from chunkwise.errors import UsageError
from chunkwise.model.readers import CHUNKWISE
from chunkwise.names import is_url

EXAMPLES = """\b
Examples:
  chunkwise view model.nc                     opens the browser
  chunkwise view model.nc temperature --access line:0
  chunkwise view model.nc --no-browser        prints the address
  chunkwise view model.nc temperature -o page.html
  chunkwise view https://example.org/model.nc t2m    far away
  chunkwise view t.json                       what a program read
  chunkwise view model.nc t2m --chunk 24x90x90 --for libhdf5-1.10
  chunkwise view model.nc t2m --draw lat,lon --at 240,0,0 --colour ratio

\b
On another machine, forward the port that is printed:
  ssh -L 8000:localhost:PORT host     then open http://localhost:8000/TOKEN/
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", metavar="FILE|URL|TRACE.json")
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
    "--chunk",
    metavar="SHAPE",
    default="",
    help="Try this chunk shape of DATASET, as in 365x20x20, or by names: time=365,lat=20.",
)
@click.option(
    "--filter", "filters", metavar="FILTERS", default="", help="Try these filters of DATASET."
)
@click.option("--cache", type=SIZE, help="Try a chunk cache of this size.")
@for_option(
    "Whose libhdf5 and chunk cache the costs are for, beside those with chunkwise",
    multiple=False,
    but=CHUNKWISE,
)
@click.option(
    "--draw",
    "dimensions",
    metavar="DOWN,ACROSS",
    default="",
    help="Draw these dimensions of DATASET: names, or numbers from 0.  [default: the two with the "
    "most chunks]",
)
@click.option(
    "--at",
    metavar="I,J,...",
    default="",
    help="Draw the plane of this element.  [default: of the first read]",
)
@click.option(
    "--colour",
    type=click.Choice(("stored", "ratio", "place", "mask", "values")),
    help="Colour chunks by stored size, ratio, place in the file or skipped filters, or show "
    "values.  [default: stored]",
)
@click.option(
    "--zoom",
    metavar="A:B,C:D",
    default="",
    help="Draw these elements down and across.  [default: all]",
)
@click.option(
    "-o",
    "--output",
    "page",
    cls=Renamed,
    former="--save",
    type=click.Path(dir_okay=False),
    metavar="PAGE.html",
    help="Write the page into one file that can be mailed, and end. It shows DATASET, or the "
    "five worst ones.",
)
@click.option("--force", is_flag=True, help="Replace a PAGE.html that exists.")
@click.option(
    "--no-browser", is_flag=True, help="Print the address, and do not open it in a browser."
)
def command(
    file: str,
    dataset: str | None,
    access: tuple[str, ...],
    trace: str | None,
    chunk: str,
    filters: str,
    cache: int | None,
    reader: str | None,
    dimensions: str,
    at: str,
    colour: str | None,
    zoom: str,
    page: str | None,
    force: bool,
    no_browser: bool,
) -> None:
    """Show in the browser how a file is stored, what reads touch and cost, and what would help.

    Chunks are drawn, and light up where a read touches them; sliders try
    other chunks, filters and caches. The file is only read; a button can
    write a new one, and says so.

    FILE may be a URL, as for chunkwise.open. TRACE.json, as chunkwise trace
    wrote it, names its file itself, and shows what the program read.

    The page comes from this machine and needs no network. Only who has its
    address can open it. The command ends when the page is closed, or by
    Ctrl-C.
    """
    # Imported here, so that `--help` need not wait for h5py.
    from chunkwise.files.opening import refuse_url
    from chunkwise.viewing.costs import Tried
    from chunkwise.viewing.drawn import Drawn
    from chunkwise.viewing.server import Server
    from chunkwise.viewing.session import Session
    from chunkwise.viewing.traced import Traced

    if reader == CHUNKWISE:
        raise UsageError(
            "--for chunkwise: the page shows chunkwise beside each libhdf5: leave it out"
        )
    # FILE alone may be a URL, and URLs may hold secrets.
    for word in (dataset, *access, trace, page, chunk, filters, dimensions, at, zoom):
        refuse_url(word or "")
    if page is not None:
        from chunkwise.viewing.saving import check_name, save

        check_name(page, force=force)
    traced = None
    if trace is None and not is_url(file) and file.endswith(".json"):
        traced = Traced.of(file)
        trace, file = file, traced.file
    elif trace is not None:
        traced = Traced.of(trace, file)
    # The page shows the reads of a trace, unless others are named: so does the page's own command.
    dataset, found = followed(trace, file, dataset, ())
    access = access or found
    tried = Tried(chunk, filters, "" if cache is None else str(cache), reader or "")
    with for_messages().status("looking at the file"):
        drawn = Drawn(dimensions, at, colour or "", zoom)
        session = Session.of(file, dataset, access, tried, drawn, traced)
    if page is not None:
        with for_messages().status("measuring this machine and samples of the data"):
            save(session, page)
        return
    server = Server(session)
    if no_browser or not _has_screen():
        echo(server.address)
        server.until_left()
        return
    import webbrowser

    echo(f"If no page opens, open {server.address}", err=True)
    with server.door() as door:
        webbrowser.open(door)
        server.until_left()


def _has_screen() -> bool:
    """Whether a browser has a window; a text browser would take the terminal."""
    shown = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not system.LINUX or any(map(os.environ.get, shown))
