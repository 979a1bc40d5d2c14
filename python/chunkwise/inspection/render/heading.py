"""What is shown about the file as a whole?"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from chunkwise.files.objects import printable
from chunkwise.grammar import format_size
from chunkwise.inspection.facts import FileFacts, FormatFacts, MetadataFacts
from chunkwise.inspection.render.words import print_wrapped, wrapped
from chunkwise.words import counted

_STRATEGIES = {
    "fsm_aggr": "kept in lists and aggregated",
    "page": "paged",
    "aggr": "aggregated",
    "none": "never used again",
}


def print_heading(facts: FileFacts, console: Console) -> None:
    """Print the file's name and size, and what read it."""
    path = printable(facts.path)
    library = f"read by HDF5 {facts.hdf5_version} (h5py {facts.h5py_version})"
    lines = wrapped(f"{path}: {format_size(facts.nbytes)}, {library}", console.width, "  ")
    text = Text("\n".join(lines))
    text.stylize("bold", 0, len(path))
    console.print(text, highlight=False)


def print_format(facts: FileFacts, console: Console) -> None:
    """Print the file's format, and the cost of opening it, if known."""
    print_wrapped(format_words(facts.file_format), console, "dim")
    if facts.metadata is not None:
        print_wrapped(metadata_words(facts.metadata), console, "dim")


def format_words(found: FormatFacts) -> str:
    """Say what the superblock and the file's creation properties tell."""
    words = [
        f"format: superblock {found.superblock_version}, "
        f"read by HDF5 {found.oldest_reader} and later"
    ]
    if found.userblock_nbytes:
        words.append(f"user block of {format_size(found.userblock_nbytes)}")
    if found.space_strategy == "page":
        words.append(f"pages of {format_size(found.page_nbytes)}")
    space = f"{format_size(found.free_nbytes)} free" if found.free_nbytes else "no free space"
    if found.space_strategy != "page" and found.space_strategy != "fsm_aggr":
        space += f", {_STRATEGIES.get(found.space_strategy, printable(found.space_strategy))}"
    words.append(f"{space}{', remembered' if found.space_persistent else ''}")
    if found.flags:
        marks = " and ".join(printable(flag) for flag in found.flags)
        words.append(f"its writer left it marked as open ({marks})")
    return "; ".join(words)


def metadata_words(found: MetadataFacts) -> str:
    """Say how much metadata there is, and what it takes to read it."""
    words = (
        f"metadata: {format_size(found.nbytes)} in {counted(found.extents, 'place')}, "
        f"{counted(found.blocks, 'block')} of 1 MiB; "
        f"{counted(found.open_requests, 'request')} to open the file, "
        f"{found.list_requests:,} to list it ({format_size(found.list_nbytes)})"
    )
    if found.index_requests:
        words += f", {found.index_requests:,} more for chunk indexes"
    if found.unaccounted_nbytes:
        words += f"; {format_size(found.unaccounted_nbytes)} unaccounted for"
    return words
