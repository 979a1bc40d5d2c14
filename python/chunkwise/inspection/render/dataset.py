"""How is one dataset shown: one fact a line, with nothing left out?"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from chunkwise.files.objects import printable
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.facts import (
    ChunkFacts,
    DatasetFacts,
    FileFacts,
    FormatFacts,
    MetadataFacts,
    ObjectFacts,
    SampleFacts,
)
from chunkwise.inspection.render.words import (
    attribute_words,
    dimension_words,
    exact_size,
    filter_words,
    growth_words,
    layout_words,
    missing_filter_words,
    print_wrapped,
    purpose_words,
    ratio_words,
    shape_words,
    type_words,
    unlisted_words,
    wrapped,
)
from chunkwise.words import LAYOUTS, counted, format_seconds

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
    if facts.far is not None:
        print_wrapped(facts.far.words, console, "dim")


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


_NAME_WIDTH = 12


def print_dataset(entry: ObjectFacts, console: Console) -> None:
    """Print what is known about a dataset, as a name and a value a line."""
    for name, value in _facts(entry):
        line = f"{name:<{_NAME_WIDTH}}{value}"
        text = Text("\n".join(wrapped(line, console.width, " " * _NAME_WIDTH)))
        text.stylize("dim", 0, len(name))
        console.print(text, highlight=False)


def _facts(entry: ObjectFacts) -> Iterator[tuple[str, str]]:
    yield "dataset", printable(entry.path)
    dataset = entry.dataset
    if dataset is None:
        yield "unreadable", printable(entry.reason or entry.kind)
        return
    yield "shape", shape_words(dataset)
    yield "dimensions", dimension_words(dataset) or "no names"
    yield "can grow", growth_words(dataset) or "no"
    if dataset.is_scale:
        yield "scale", "it is itself a dimension scale"
    yield "type", type_words(dataset)
    yield "element", _element(dataset)
    yield "attributes", f"{entry.attributes or 0:,}"
    if entry.unreadable_attributes:
        yield "", attribute_words(entry.unreadable_attributes)
    if dataset.sources is None and dataset.mappings is None:
        yield "layout", LAYOUTS.get(dataset.layout, dataset.layout)
    else:
        yield "layout", layout_words(dataset)
    if dataset.chunks is not None:
        yield from _chunk_facts(dataset.chunks)
    if dataset.unlisted is not None:
        yield "chunks", unlisted_words(dataset)
    yield "filters", filter_words(dataset)
    if dataset.unavailable_filters:
        yield "warning", missing_filter_words(dataset)
    yield "fill value", f"{printable(dataset.fill_value)}, written: {dataset.fill_time}"
    yield "allocation", dataset.allocation_time
    yield "data", _bytes(dataset.logical_nbytes, "of variable length, its bytes not counted")
    elsewhere = "in its sources" if dataset.layout == "virtual" else "unknown"
    yield "stored", _bytes(dataset.stored_nbytes, elsewhere)
    if dataset.ratio is not None:
        yield "ratio", ratio_words(dataset.ratio)
    if judged := purpose_words(dataset):
        yield "judged for", judged
    for number, said in enumerate(dataset.taken_for):
        yield "" if number else "judged for", said
    if dataset.sample is not None:
        yield from _sample_facts(dataset.sample)


def _element(dataset: DatasetFacts) -> str:
    if dataset.variable_length:
        return f"{dataset.itemsize:,} B, a reference to a value of variable length elsewhere"
    return f"{dataset.itemsize:,} B"


def _bytes(nbytes: int | None, otherwise: str) -> str:
    return otherwise if nbytes is None else exact_size(nbytes)


def _chunk_facts(chunks: ChunkFacts) -> Iterator[tuple[str, str]]:
    yield "chunk", f"{format_shape(chunks.shape)}, {exact_size(chunks.nbytes)}"
    absent = chunks.grid - chunks.allocated
    written = f"{chunks.allocated:,} stored"
    if absent > 0:
        written += f", {absent:,} never written"
    yield "chunks", f"{chunks.grid:,} cover the shape, {written}"
    yield "index", chunks.index or "none, or not told by this HDF5"
    if chunks.median_nbytes is not None:
        smallest, largest = chunks.smallest_nbytes or 0, chunks.largest_nbytes or 0
        yield (
            "stored as",
            f"smallest {format_size(smallest)}, median {format_size(chunks.median_nbytes)}, "
            f"largest {format_size(largest)}",
        )
    masked = f", {chunks.masked:,} of them by their filter masks" if chunks.masked else ""
    yield "unfiltered", f"{counted(chunks.unfiltered, 'chunk')}{masked}"
    yield "beyond edge", f"{exact_size(chunks.edge_nbytes)} of the chunks lie outside the shape"
    if not chunks.order_known:
        yield "order", "unknown: this HDF5 lists chunks under wrong coordinates"
    elif chunks.pairs:
        yield (
            "order",
            f"of {counted(chunks.pairs, 'pair')} of neighbours {chunks.adjacent:,} lie side by "
            f"side in the file, {chunks.backward:,} in reverse",
        )
    else:
        yield "order", "no neighbours to compare"
    yield "span", f"{exact_size(chunks.span_nbytes)} of the file, from first to last chunk"


def _sample_facts(sample: SampleFacts) -> Iterator[tuple[str, str]]:
    speed = f", {format_size(round(sample.raw_nbytes / sample.read_s))}/s" if sample.read_s else ""
    yield (
        "sample",
        f"{counted(sample.chunks, 'chunk')}: {format_size(sample.raw_nbytes)} in "
        f"{format_size(sample.stored_nbytes)}, read in {format_seconds(sample.read_s)}{speed}",
    )
    for tried in sample.encodings:
        share = tried.nbytes / tried.raw_nbytes if tried.raw_nbytes else 0.0
        yield (
            "",
            f"{printable(tried.filters)} makes {format_size(tried.nbytes)} of "
            f"{format_size(tried.raw_nbytes)} ({share:.0%})",
        )
