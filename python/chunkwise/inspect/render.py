"""How are the facts about a file shown to a person?

A whole file is a tree, two or three lines a dataset; one dataset is a table with
one fact a line.  Nothing here is wider than the console, and nothing is lost
when the output is piped: lines are wrapped, not cut.
"""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspect.facts import DatasetFacts, FileFacts, ObjectFacts
from chunkwise.objects import printable

# Types such as a compound of fifty members are shown whole for one dataset only.
_DTYPE_WIDTH = 48
# Below this depth the tree stops moving to the right, to leave room for the text.
_DEPTH_SHOWN = 8
# However narrow the console, some words must fit on a line.
_LEAST_WIDTH = 24
_FACT_WIDTH = 12


def print_facts(facts: FileFacts, console: Console, *, single: bool = False) -> None:
    """Print the facts on a console.

    Parameters
    ----------
    facts
        From `chunkwise.inspect.inspect`.
    console
        Where to; its width is kept.
    single
        Whether the facts are about one dataset, to be shown in full.
    """
    console.print(_heading(facts, console.width), highlight=False)
    console.print()
    body = _details(facts.objects[0]) if single else None
    if body is None:
        console.print(_tree(facts.objects, console.width), highlight=False)
        return
    for name, value in body.items():
        lines = _wrapped(f"{name:<{_FACT_WIDTH}}{value}", console.width, " " * _FACT_WIDTH)
        text = Text("\n".join(lines))
        text.stylize("dim", 0, len(name))
        console.print(text, highlight=False)


def _heading(facts: FileFacts, width: int) -> Text:
    path, block = printable(facts.path), ""
    if facts.userblock_nbytes:
        block = f", user block of {format_size(facts.userblock_nbytes)}"
    library = f"read by HDF5 {facts.hdf5_version} (h5py {facts.h5py_version})"
    line = f"{path}: {format_size(facts.nbytes)}{block}, {library}"
    text = Text("\n".join(_wrapped(line, width, "  ")))
    text.stylize("bold", 0, len(path))
    return text


def _tree(objects: tuple[ObjectFacts, ...], width: int) -> Tree:
    root = Tree(_label(objects[0], width), guide_style="dim")
    branches = [root]
    for entry in objects[1:]:
        depth = min(entry.depth, _DEPTH_SHOWN)
        del branches[depth:]
        # Every level is drawn four columns wide.
        branches.append(branches[-1].add(_label(entry, width - 4 * depth)))
    return root


def _label(entry: ObjectFacts, width: int) -> Text:
    # Where the tree no longer shows the depth, the whole path does.
    deep = entry.depth > _DEPTH_SHOWN
    name = printable(entry.path if deep else entry.path.rpartition("/")[2] or "/")
    first, *below = _words(entry)
    lines = _wrapped(name + first, width, "    ")
    for line in below:
        lines += _wrapped(f"  {line}", width, "    ")
    text = Text("\n".join(lines))
    text.stylize("bold", 0, len(name))
    if entry.kind == "unreadable" or (entry.dataset and entry.dataset.unavailable_filters):
        text.stylize("yellow", len(name))
    return text


def _words(entry: ObjectFacts) -> list[str]:
    """Say what follows an object's name, and what stands below it."""
    dataset = entry.dataset
    attributes = f"  {_counted(entry.attributes, 'attribute')}" if entry.attributes else ""
    if dataset is None:
        return [_other(entry) + attributes]
    growth = f" ({_growth(dataset)})" if _growth(dataset) else ""
    words = [f"  {_shape(dataset)}{growth}  {_dtype(dataset, _DTYPE_WIDTH)}{attributes}"]
    if dataset.chunks is None:
        words.append(f"{_layout(dataset)}, {_sizes(dataset)}")
    else:
        words += [f"{_chunks(dataset)}, {_filters(dataset)}", _sizes(dataset)]
    if dataset.unavailable_filters:
        words.append(_unavailable(dataset))
    return words


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(line, max(width, _LEAST_WIDTH), subsequent_indent=indent)


def _other(entry: ObjectFacts) -> str:
    target = printable(entry.target or "")
    return {
        "group": "",
        "named_type": "  named datatype",
        "hard_link": f"  same object as {target}",
        "soft_link": f"  soft link to {target}",
        "external_link": f"  external link to {target}",
        "user_link": "  user-defined link",
        "unreadable": f"  cannot be opened: {entry.reason}",
    }[entry.kind]


def _shape(dataset: DatasetFacts) -> str:
    if dataset.shape is None:
        return "null dataspace"
    return format_shape(dataset.shape)


def _growth(dataset: DatasetFacts) -> str:
    """Say along which axes a dataset can grow; empty if it cannot."""
    if not dataset.shape or dataset.maxshape is None:
        return ""
    unlimited = [str(axis) for axis, limit in enumerate(dataset.maxshape) if limit is None]
    words = []
    if unlimited:
        words.append(
            f"{'axis' if len(unlimited) == 1 else 'axes'} {', '.join(unlimited)} unlimited"
        )
    for axis, (extent, limit) in enumerate(zip(dataset.shape, dataset.maxshape, strict=True)):
        if limit is not None and limit != extent:
            words.append(f"axis {axis} up to {limit}")
    return ", ".join(words)


def _dtype(dataset: DatasetFacts, width: int | None = None) -> str:
    name = printable(dataset.dtype)
    if width is not None and len(name) > width:
        name = name[: width - 3] + "..."
    if dataset.byte_order is None:
        return name
    order = "mixed byte order" if dataset.byte_order == "mixed" else f"{dataset.byte_order}-endian"
    return f"{name} {order}"


def _layout(dataset: DatasetFacts) -> str:
    if dataset.layout == "virtual":
        return f"virtual, {_counted(dataset.sources, 'mapping')}"
    if dataset.layout == "external":
        return f"external, in {_counted(dataset.sources, 'raw file')}"
    return dataset.layout


def _chunks(dataset: DatasetFacts) -> str:
    """Count the chunks and say what one is like, for a chunked dataset."""
    grid, allocated = dataset.grid_chunks, dataset.allocated_chunks
    count = _counted(grid, "chunk")
    if allocated != grid:
        count = f"{allocated:,} of {count}"
    shape, nbytes = dataset.chunks or (), dataset.chunk_nbytes or 0
    each = "" if grid == 1 else " each"
    return f"{count} of {format_shape(shape)}, {format_size(nbytes)}{each}"


def _counted(count: int | None, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _filters(dataset: DatasetFacts) -> str:
    return "no filter" if dataset.filters == "none" else dataset.filters


def _sizes(dataset: DatasetFacts) -> str:
    """Say how many bytes the data has, and how many it takes in the file."""
    stored = dataset.stored_nbytes
    if dataset.shape is None or 0 in dataset.shape:
        return "no elements"
    if dataset.logical_nbytes is None:
        taken = f" ({format_size(stored)} of references to it)" if stored else ""
        return f"data of variable length, its bytes not counted{taken}"
    data = f"{format_size(dataset.logical_nbytes)} of data"
    if stored is None:
        return f"{data} if all of it is there"
    if not stored:
        return f"{data}, none of it written"
    if dataset.ratio is None or stored == dataset.logical_nbytes:
        return data
    absent = " (absent chunks included)" if dataset.allocated_chunks != dataset.grid_chunks else ""
    return f"{data} in {format_size(stored)}, ratio {dataset.ratio:.3g}{absent}"


def _unavailable(dataset: DatasetFacts) -> str:
    lacking = "filter " if len(dataset.unavailable_filters) == 1 else "filters "
    lacking += ", ".join(map(str, dataset.unavailable_filters))
    return f"HDF5 lacks {lacking} here and cannot read it (hdf5plugin may bring what it needs)"


def _details(entry: ObjectFacts) -> dict[str, str] | None:
    """Name a dataset's facts one by one; None for an object that is no dataset."""
    dataset = entry.dataset
    if dataset is None:
        return None
    facts = {
        "dataset": printable(entry.path),
        "shape": _shape(dataset),
        "can grow": _growth(dataset) or "no",
        "type": _dtype(dataset),
        "attributes": f"{entry.attributes:,}",
        "layout": _layout(dataset),
    }
    if dataset.chunks is not None:
        facts["chunks"] = _chunks(dataset)
        facts["filters"] = _filters(dataset)
    facts["size"] = _sizes(dataset)
    if dataset.unavailable_filters:
        facts["warning"] = _unavailable(dataset)
    return facts
