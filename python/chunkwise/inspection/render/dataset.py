"""How are objects shown: all of a file as a tree, and all of one dataset, a fact a line?"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

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
from chunkwise.inspection.render import words as said
from chunkwise.names import printable
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
    lines = said.wrapped(f"{path}: {format_size(facts.nbytes)}, {library}", console.width, "  ")
    text = Text("\n".join(lines))
    text.stylize("bold", 0, len(path))
    console.print(text, highlight=False)


def print_format(facts: FileFacts, console: Console) -> None:
    """Print the file's format, and the cost of opening it, if known."""
    said.print_wrapped(format_words(facts.file_format), console, "dim")
    if facts.metadata is not None:
        said.print_wrapped(metadata_words(facts.metadata), console, "dim")
    if facts.far is not None:
        said.print_wrapped(facts.far.words, console, "dim")


def format_words(found: FormatFacts) -> str:
    """Say what the superblock and the file's creation properties state."""
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
        text = Text("\n".join(said.wrapped(line, console.width, " " * _NAME_WIDTH)))
        text.stylize("dim", 0, len(name))
        console.print(text, highlight=False)


def _facts(entry: ObjectFacts) -> Iterator[tuple[str, str]]:
    yield "dataset", printable(entry.path)
    dataset = entry.dataset
    if dataset is None:
        yield "unreadable", printable(entry.reason or entry.kind)
        return
    yield "shape", said.shape_words(dataset)
    yield "dimensions", said.dimension_words(dataset) or "no names"
    yield "can grow", said.growth_words(dataset) or "no"
    if dataset.is_scale:
        yield "scale", "it is itself a dimension scale"
    yield "type", said.type_words(dataset)
    elsewhere = ", a reference to a value of variable length elsewhere"
    yield "element", f"{dataset.itemsize:,} B{elsewhere if dataset.variable_length else ''}"
    yield "attributes", f"{entry.attributes or 0:,}"
    if entry.unreadable_attributes:
        yield "", said.attribute_words(entry.unreadable_attributes)
    if dataset.sources is None and dataset.mappings is None:
        yield "layout", LAYOUTS.get(dataset.layout, dataset.layout)
    else:
        yield "layout", said.layout_words(dataset)
    if dataset.chunks is not None:
        yield from _chunk_facts(dataset.chunks)
    if dataset.unlisted is not None:
        yield "chunks", said.unlisted_words(dataset)
    yield "filters", said.filter_words(dataset)
    if dataset.unavailable_filters:
        yield "warning", said.missing_filter_words(dataset)
    yield "fill value", f"{printable(dataset.fill_value)}, written: {dataset.fill_time}"
    yield "allocation", dataset.allocation_time
    yield "data", _bytes(dataset.logical_nbytes, "of variable length, its bytes not counted")
    elsewhere = "in its sources" if dataset.layout == "virtual" else "unknown"
    yield "stored", _bytes(dataset.stored_nbytes, elsewhere)
    if dataset.ratio is not None:
        yield "ratio", said.ratio_words(dataset.ratio)
    if judged := said.purpose_words(dataset):
        yield "judged for", judged
    for number, words in enumerate(dataset.taken_for):
        yield "" if number else "judged for", words
    if dataset.sample is not None:
        yield from _sample_facts(dataset.sample)


def _bytes(nbytes: int | None, otherwise: str) -> str:
    return otherwise if nbytes is None else said.exact_size(nbytes)


def _chunk_facts(chunks: ChunkFacts) -> Iterator[tuple[str, str]]:
    yield "chunk", f"{format_shape(chunks.shape)}, {said.exact_size(chunks.nbytes)}"
    absent = chunks.grid - chunks.allocated
    written = f"{chunks.allocated:,} stored"
    if absent > 0:
        written += f", {absent:,} never written"
    yield "chunks", f"{chunks.grid:,} cover the shape, {written}"
    yield "index", chunks.index or "none, or this HDF5 does not report it"
    if chunks.median_nbytes is not None:
        smallest, largest = chunks.smallest_nbytes or 0, chunks.largest_nbytes or 0
        yield (
            "stored as",
            f"smallest {format_size(smallest)}, median {format_size(chunks.median_nbytes)}, "
            f"largest {format_size(largest)}",
        )
    masked = f", {chunks.masked:,} of them by their filter masks" if chunks.masked else ""
    yield "unfiltered", f"{counted(chunks.unfiltered, 'chunk')}{masked}"
    yield (
        "beyond edge",
        f"{said.exact_size(chunks.edge_nbytes)} of the chunks lie outside the shape",
    )
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
    yield "span", f"{said.exact_size(chunks.span_nbytes)} of the file, from first to last chunk"


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


# --- a tree ------------------------------------------------------------------------------

# Types such as a compound of fifty members are shown whole for one dataset only.
_DTYPE_WIDTH = 48
_SOURCES_SHOWN = 3
# Smaller ones are quick however they are read.
_JUDGED_NBYTES = 1 << 20
# Below this depth the tree stops moving to the right, to leave room for the text.
_DEPTH_SHOWN = 8
_GUIDE, _FORK, _END = "│   ", "├── ", "└── "
# With what is wrong above it, a screen or two.
_LINES_SHOWN = 30


def print_tree(
    objects: tuple[ObjectFacts, ...], console: Console, *, everything: bool = False
) -> None:
    """Print the objects of a file as a tree."""
    # Not rich.tree, which takes seconds for ten thousand objects.
    height = 0
    guides: list[str] = []
    for i, (entry, followed) in enumerate(zip(objects, _followed(objects), strict=True)):
        depth = _depth(entry)
        lines = _lines(entry, console.width - len(_GUIDE) * depth)
        height += len(lines)
        if height > _LINES_SHOWN and not everything:
            rest = said.CUT.format(count=counted(len(objects) - i, "more object"))
            console.print(Text("\n".join(said.wrapped(rest, console.width)), style="bold"))
            return
        del guides[max(depth - 1, 0) :]
        before = "".join(guides)
        branch = (_FORK if followed else _END) if depth else ""
        if depth:
            guides.append(_GUIDE if followed else " " * len(_GUIDE))
        _print_lines(entry, lines, before + branch, "".join(guides), console)


def _followed(objects: tuple[ObjectFacts, ...]) -> list[bool]:
    """Say of each object whether another one follows it in its group."""
    followed = []
    deeper = [False] * (_DEPTH_SHOWN + 1)
    for entry in reversed(objects):
        depth = _depth(entry)
        followed.append(deeper[depth])
        deeper[depth:] = [True] + [False] * (_DEPTH_SHOWN - depth)
    return followed[::-1]


def _depth(entry: ObjectFacts) -> int:
    return min(entry.depth, _DEPTH_SHOWN)


def _print_lines(
    entry: ObjectFacts, lines: list[str], first: str, below: str, console: Console
) -> None:
    dataset = entry.dataset
    lacking = dataset is not None and (dataset.unavailable_filters or dataset.unlisted)
    wrong = entry.kind == "unreadable" or entry.unreadable_attributes or entry.dangling or lacking
    bold = len(_name(entry))
    text = Text()
    for i, line in enumerate(lines):
        text.append("\n" + below if i else first, "dim")
        text.append(line[:bold], "bold")
        text.append(line[bold:], "yellow" if wrong else "")
        bold = max(bold - len(line), 0)
    console.print(text, highlight=False, soft_wrap=True)


def _name(entry: ObjectFacts) -> str:
    # The whole path shows what the tree no longer does, and objects without a link.
    deep = entry.depth > _DEPTH_SHOWN or (not entry.linked and entry.depth == 1)
    return printable(entry.path if deep else entry.path.rpartition("/")[2] or "/")


def _lines(entry: ObjectFacts, width: int) -> list[str]:
    first, *below = _words(entry)
    lines = said.wrapped(_name(entry) + first, width, "    ")
    for line in below:
        lines += said.wrapped(f"  {line}", width, "    ")
    return lines


def _words(entry: ObjectFacts) -> list[str]:
    """Say what follows an object's name, and what stands below it."""
    attributes = f"  {counted(entry.attributes, 'attribute')}" if entry.attributes else ""
    if entry.dataset is None:
        words = [_other(entry) + attributes]
    else:
        first, *below = _dataset_words(entry.dataset)
        words = [first + attributes, *below]
    if entry.unreadable_attributes:
        words.append(said.attribute_words(entry.unreadable_attributes))
    return words


def _other(entry: ObjectFacts) -> str:
    target = printable(entry.target or "")
    if entry.dangling:
        target += ", which is not there"
    return {
        "group": "",
        "dataset": "",
        "named_type": "  named datatype",
        "hard_link": f"  same object as {target}",
        "soft_link": f"  soft link to {target}",
        "external_link": f"  external link to {target}",
        "user_link": "  user-defined link",
        "unreadable": f"  cannot be opened: {printable(entry.reason or 'no reason given')}",
    }[entry.kind]


def _dataset_words(dataset: DatasetFacts) -> list[str]:
    brackets = "; ".join(filter(None, (said.dimension_words(dataset), said.growth_words(dataset))))
    words = [said.shape_words(dataset) + (f" ({brackets})" if brackets else "")]
    words.append(said.type_words(dataset, _DTYPE_WIDTH))
    if dataset.is_scale:
        words.append("dimension scale")
    lines = ["  " + "  ".join(words)]
    chunks = dataset.chunks
    if chunks is None:
        lines.append(f"{said.layout_words(dataset, _SOURCES_SHOWN)}, {said.size_words(dataset)}")
    else:
        # How one chunk is found is of no consequence.
        index = f", {chunks.index}" if chunks.index and chunks.grid > 1 else ""
        lines.append(f"{said.chunk_words(chunks)}, {said.filter_words(dataset)}{index}")
        lines.append(said.size_words(dataset))
    if (judged := said.purpose_words(dataset)) and (dataset.stored_nbytes or 0) >= _JUDGED_NBYTES:
        lines.append(f"judged for {judged}")
    if dataset.unlisted is not None:
        lines.append(f"chunks {said.unlisted_words(dataset)}")
    lacking = said.missing_filter_words(dataset)
    return [*lines, lacking] if lacking else lines
