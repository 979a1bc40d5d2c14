"""How is a whole file shown: as a tree, with one to three lines for each object?"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from chunkwise.inspection.facts import DatasetFacts, ObjectFacts
from chunkwise.inspection.render.words import (
    CUT,
    attribute_words,
    chunk_words,
    dimension_words,
    filter_words,
    growth_words,
    layout_words,
    missing_filter_words,
    purpose_words,
    shape_words,
    size_words,
    type_words,
    unlisted_words,
    wrapped,
)
from chunkwise.names import printable
from chunkwise.words import counted

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
            rest = CUT.format(count=counted(len(objects) - i, "more object"))
            console.print(Text("\n".join(wrapped(rest, console.width)), style="bold"))
            return
        del guides[max(depth - 1, 0) :]
        before = "".join(guides)
        branch = (_FORK if followed else _END) if depth else ""
        if depth:
            guides.append(_GUIDE if followed else " " * len(_GUIDE))
        _print_lines(entry, lines, before + branch, "".join(guides), console)


def _followed(objects: tuple[ObjectFacts, ...]) -> list[bool]:
    """Tell of each object whether another one follows it in its group."""
    followed = []
    met = [False] * (_DEPTH_SHOWN + 1)
    for entry in reversed(objects):
        depth = _depth(entry)
        followed.append(met[depth])
        met[depth:] = [True] + [False] * (_DEPTH_SHOWN - depth)
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
    # If the tree no longer shows the depth, the whole path does; and what an object without a
    # link is called.
    deep = entry.depth > _DEPTH_SHOWN or (not entry.linked and entry.depth == 1)
    return printable(entry.path if deep else entry.path.rpartition("/")[2] or "/")


def _lines(entry: ObjectFacts, width: int) -> list[str]:
    first, *below = _words(entry)
    lines = wrapped(_name(entry) + first, width, "    ")
    for line in below:
        lines += wrapped(f"  {line}", width, "    ")
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
        words.append(attribute_words(entry.unreadable_attributes))
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
    brackets = "; ".join(filter(None, (dimension_words(dataset), growth_words(dataset))))
    words = [shape_words(dataset) + (f" ({brackets})" if brackets else "")]
    words.append(type_words(dataset, _DTYPE_WIDTH))
    if dataset.is_scale:
        words.append("dimension scale")
    lines = ["  " + "  ".join(words)]
    chunks = dataset.chunks
    if chunks is None:
        lines.append(f"{layout_words(dataset, _SOURCES_SHOWN)}, {size_words(dataset)}")
    else:
        # How one chunk is found is of no consequence.
        index = f", {chunks.index}" if chunks.index and chunks.grid > 1 else ""
        lines.append(f"{chunk_words(chunks)}, {filter_words(dataset)}{index}")
        lines.append(size_words(dataset))
    if (judged := purpose_words(dataset)) and (dataset.stored_nbytes or 0) >= _JUDGED_NBYTES:
        lines.append(f"judged for {judged}")
    if dataset.unlisted is not None:
        lines.append(f"chunks {unlisted_words(dataset)}")
    lacking = missing_filter_words(dataset)
    return [*lines, lacking] if lacking else lines
