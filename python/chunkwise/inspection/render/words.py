"""How is one fact put into words, with text from a file escaped?"""

from __future__ import annotations

import re
import textwrap
from functools import cache

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.doctor import diagnose, means_of
from chunkwise.inspection.facts import ChunkFacts, DatasetFacts, Source
from chunkwise.inspection.finding import Severity
from chunkwise.names import printable
from chunkwise.remedy.tools import decodes_natively
from chunkwise.words import LAYOUTS, counted, three_digits

# However narrow the console, some words must fit on a line.
LEAST_WIDTH = 16
STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
CUT = "{count} not shown: add --all, or name a dataset"
IN_VAIN = "wasted: bytes stored, fetched or decoded for nothing, as multiples of the {what}'s size"
# The counted thing stands behind its number, on the same line.
_COUNTED = re.compile(r"(?<!\S)(\(?[\d.,]*\d) (?=[A-Za-z])")
_JOINED = "\N{NO-BREAK SPACE}"


def wrapped(line: str, width: int, indent: str = "") -> list[str]:
    """Break a line at spaces; a path is broken only if it does not fit a line."""
    if len(line) <= width:
        # Most lines of a long tree do, and textwrap takes its time.
        return [line.rstrip()]
    lines = textwrap.wrap(
        _COUNTED.sub(rf"\1{_JOINED}", line),
        max(width, LEAST_WIDTH),
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [each.replace(_JOINED, " ") for each in lines] or [""]


def print_wrapped(text: str, console: Console, style: str = "", indent: str = "  ") -> None:
    """Print a text, broken at spaces, with what follows its first line indented."""
    lines = "\n".join(wrapped(text, console.width, indent))
    console.print(Text(lines, style=style), highlight=False)


def enumerated(words: list[str], limit: int | None = None) -> str:
    """Write ``a, b and 9,812 more``; with no limit all of them."""
    if limit is None or len(words) <= limit:
        return ", ".join(words)
    return f"{', '.join(words[:limit])} and {len(words) - limit:,} more"


def ratio_words(ratio: float) -> str:
    """Write a ratio with three digits: ``54,800``, ``6.47``, ``0.218``, ``1/10.7``."""
    if 0 < ratio < 0.1:
        inverse = float(f"{1 / ratio:.3g}")
        return f"1/{inverse:,.{0 if inverse.is_integer() else 1}f}"
    if ratio < 1:
        return f"{ratio:.3g}"
    return three_digits(float(f"{ratio:.3g}"))


def vain_words(waste_nbytes: int, nbytes: int | None) -> str:
    """Write waste as a multiple of a size: ``11,400x``, ``0.35x``, ``-`` if there is none."""
    if not waste_nbytes or not nbytes:
        return "-"
    share = waste_nbytes / nbytes
    return f"{ratio_words(share) if share >= 0.1 else three_digits(share)}x"


def exact_size(nbytes: int) -> str:
    """Write ``10.4 MiB (10,867,588 B)``."""
    return f"{nbytes:,} B" if nbytes < 1024 else f"{format_size(nbytes)} ({nbytes:,} B)"


def shape_words(dataset: DatasetFacts) -> str:
    """Write the shape, or that there is none."""
    return "null dataspace" if dataset.shape is None else format_shape(dataset.shape)


def dimension(dataset: DatasetFacts, axis: int) -> str:
    """Name a dimension, by its scale if it has one."""
    name = dataset.dimensions[axis] if dataset.dimensions else None
    return f"axis {axis}" if name is None else printable(name)


def dimension_words(dataset: DatasetFacts) -> str:
    """Write the names of the dimensions, ``-`` for one without; empty if none has one."""
    if not dataset.dimensions:
        return ""
    return ", ".join("-" if name is None else printable(name) for name in dataset.dimensions)


def growth_words(dataset: DatasetFacts) -> str:
    """Say along which dimensions a dataset can grow; empty if it cannot."""
    if not dataset.shape or dataset.maxshape is None:
        return ""
    words = []
    free = [axis for axis, limit in enumerate(dataset.maxshape) if limit is None]
    if free:
        if dataset.dimensions or len(free) == 1:
            names = ", ".join(dimension(dataset, axis) for axis in free)
        else:
            names = f"axes {', '.join(map(str, free))}"
        words.append(f"{names} unlimited")
    for axis, (extent, limit) in enumerate(zip(dataset.shape, dataset.maxshape, strict=True)):
        if limit is not None and limit != extent:
            words.append(f"{dimension(dataset, axis)} up to {limit}")
    return ", ".join(words)


def type_words(dataset: DatasetFacts, width: int | None = None) -> str:
    """Write the stored type and its byte order, the type cut to `width` columns."""
    name = printable(dataset.dtype)
    if width is not None and len(name) > width:
        name = name[: width - 3] + "..."
    if dataset.byte_order is None:
        return name
    order = "mixed byte order" if dataset.byte_order == "mixed" else f"{dataset.byte_order}-endian"
    return f"{name} {order}"


def layout_words(dataset: DatasetFacts, limit: int | None = None) -> str:
    """Say where the data lies, for virtual and external datasets the first `limit` sources."""
    if dataset.layout == "virtual":
        words = f"virtual, {counted(dataset.mappings or 0, 'mapping')}"
    elif dataset.layout == "external":
        words = f"external, in {counted(dataset.mappings or 0, 'raw file')}"
    else:
        return LAYOUTS.get(dataset.layout, dataset.layout)
    if not dataset.sources:
        return words
    return f"{words}: {enumerated([source_words(s) for s in dataset.sources], limit)}"


def source_words(source: Source) -> str:
    """Name one source of a virtual or external dataset, and say if it is missing."""
    name = printable(source.file)
    if source.dataset is not None:
        name = printable(source.dataset) if name == "." else f"{name}:{printable(source.dataset)}"
    return name if source.missing is None else f"{name} (missing: {printable(source.missing)})"


def chunk_words(chunks: ChunkFacts) -> str:
    """Count the chunks and say what one is like."""
    count = counted(chunks.grid, "chunk")
    if chunks.allocated != chunks.grid:
        count = f"{chunks.allocated:,} of {count}"
    each = "" if chunks.grid == 1 else " each"
    return f"{count} of {format_shape(chunks.shape)}, {format_size(chunks.nbytes)}{each}"


def filter_words(dataset: DatasetFacts) -> str:
    """Write the pipeline."""
    return "no filter" if dataset.filters == "none" else printable(dataset.filters)


def purpose_words(dataset: DatasetFacts) -> str:
    """Say for which ways of reading it is judged; nothing if they were stated."""
    several = dataset.purpose is not None and sum(n > 1 for n in dataset.shape or ()) > 1
    return dataset.purpose.in_words if dataset.purpose is not None and several else ""


def size_words(dataset: DatasetFacts) -> str:
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
        if dataset.is_scale:
            return "no values stored (a dimension scale)"
        return f"{data}, none of it written"
    if dataset.ratio is None or stored == dataset.logical_nbytes:
        return data
    chunks = dataset.chunks
    absent = chunks is not None and chunks.allocated < chunks.grid
    note = " (absent chunks included)" if absent else ""
    return f"{data} in {format_size(stored)}, ratio {ratio_words(dataset.ratio)}{note}"


def missing_filter_words(dataset: DatasetFacts) -> str:
    """Say which filters are missing here; empty if none is."""
    if not dataset.unavailable_filters:
        return ""
    lacking = "filter " if len(dataset.unavailable_filters) == 1 else "filters "
    lacking += ", ".join(map(filter_title, dataset.unavailable_filters))
    natively = not dataset.variable_length and decodes_natively(dataset.filters)
    packages = {diagnose(number).hdf5plugin for number in dataset.unavailable_filters}
    means = means_of(packages, natively=natively)
    if means:
        return f"HDF5 by itself lacks {lacking} here; {' and '.join(means)} can read it"
    return f"HDF5 lacks {lacking} here and cannot read it"


def unlisted_words(dataset: DatasetFacts) -> str:
    """Say why the chunks cannot be listed."""
    return f"cannot be listed: {printable(dataset.unlisted or 'no reason given')}"


@cache
def filter_title(filter_id: int) -> str:
    """Name a filter that is lacking: ``bitshuffle (number 32008)``, ``number 40000``."""
    return diagnose(filter_id).title


def attribute_words(names: tuple[str, ...]) -> str:
    """Name the attributes that cannot be read; empty if there is none."""
    return f"attributes that HDF5 cannot read: {', '.join(map(printable, names))}" if names else ""
