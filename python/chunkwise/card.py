"""What does a notebook show of a file or dataset?  How it is stored, and what reads cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, Final

import h5py

from chunkwise.errors import UsageError
from chunkwise.files.objects import walk
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection import DatasetFacts, dataset_facts
from chunkwise.inspection.patterns import pattern_facts
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.patterns import of_stored
from chunkwise.words import counted, three_digits

# Datasets of a file that are shown.
_MOST: Final = 20


@dataclass(frozen=True)
class Card:
    """What a notebook shows: a table of HTML, in which names are text."""

    title: str
    facts: tuple[tuple[str, str], ...]  # What, and how much
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""

    def _repr_html_(self) -> str:
        facts = "".join(f"<li>{_text(name)}: {_text(value)}</li>" for name, value in self.facts)
        head = "".join(f"<th>{_text(one)}</th>" for one in self.head)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_text(one)}</td>' for one in row)}</tr>" for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return (
            f"<div><b>{_text(self.title)}</b><ul>{facts}</ul>{table if rows else ''}"
            f"<p>{_text(self.note)}</p></div>"
        )


def view(source: Any, access: Sequence[str] = ()) -> Card:
    """Show in a notebook how a file or dataset is stored, and what reading it costs.

    Files and datasets of chunkwise show the same by themselves.  ``chunkwise view`` opens a page
    in the browser, which shows more.

    Parameters
    ----------
    source : File, Dataset, h5py.File or h5py.Dataset
        An open file or dataset.
    access : sequence of str, optional
        What you read of the dataset, such as ``"line:0"``, as in `inspect`.  By default a line
        along each dimension and a plane across each.

    Returns
    -------
    Card
        Shown by a notebook (``_repr_html_``).

    Raises
    ------
    UsageError
        `source` is something else, or a pattern cannot be understood.
    SelectionError
        A pattern does not fit the dataset.

    Examples
    --------
    >>> chunkwise.view(f["t2m"], ["line:0"])              # doctest: +SKIP
    """
    if isinstance(source, h5py.Dataset):
        return _of_dataset(source, access)
    if isinstance(source, h5py.Group) and not access:
        return _of_group(source)
    raise UsageError("view() shows an open file or dataset: chunkwise.view(f['t2m'])")


def _of_dataset(dataset: h5py.Dataset, access: Sequence[str]) -> Card:
    facts = dataset_facts(dataset.id)
    patterns = tuple(
        of_stored(access, facts.shape or (), facts.itemsize, facts.maxshape, "the dataset")
        if access
        else ()
    )
    rows = tuple(
        (
            one.name,
            counted(one.chunks, "chunk" if facts.chunks else "piece"),
            f"{format_size(one.decoded_nbytes)} for {format_size(one.selected_nbytes)}",
            three_digits(one.amplification)
            if one.amplification < 100
            else f"{one.amplification:,.0f}",
        )
        for one in pattern_facts(facts, (), patterns)
    )
    return Card(
        printable(str(dataset.name)),
        tuple(_facts(facts)),
        ("read", "touches", "decodes", "amplification"),
        rows,
        "HDF5 decodes whole chunks: the amplification is bytes decoded for each byte asked for."
        if rows
        else "",
    )


def _facts(facts: DatasetFacts) -> Iterator[tuple[str, str]]:
    shape = "null" if facts.shape is None else format_shape(facts.shape)
    yield "elements", f"{shape} of {printable(facts.dtype)}"
    if facts.logical_nbytes and facts.stored_nbytes is not None:
        ratio = f" (ratio {three_digits(facts.ratio)})" if facts.ratio else ""
        yield (
            "size",
            f"{format_size(facts.logical_nbytes)}, stored in "
            + (f"{format_size(facts.stored_nbytes)}{ratio}"),
        )
    if facts.chunks is not None:
        each = f"{format_shape(facts.chunks.shape)}, {format_size(facts.chunks.nbytes)} each"
        yield "chunks", f"{facts.chunks.allocated:,} of {facts.chunks.grid:,} written, {each}"
    else:
        yield "layout", facts.layout
    yield "filters", facts.filters


def _of_group(group: h5py.Group) -> Card:
    file = group if isinstance(group, h5py.File) else group.file
    inside = "/" + str(group.name or "").strip("/")
    rows: list[tuple[str, ...]] = []
    more = 0
    datasets = (one for one in walk(file) if one.kind == "dataset" and one.linked)
    within = (one for one in datasets if inside == "/" or one.path.startswith(f"{inside}/"))
    for one in within:
        if len(rows) == _MOST:
            more = 1 + sum(1 for _ in islice(within, 100_000))
            break
        with contextlib.suppress(*HDF5_ERRORS):
            facts = dataset_facts(one.identifier)
            rows.append((printable(one.path), "; ".join(f"{n} {v}" for n, v in _facts(facts))))
    name = printable(str(file.filename))
    return Card(
        name if inside == "/" else f"{name}: {printable(inside)}",
        (),
        ("dataset", "how it is stored"),
        tuple(rows),
        f"{counted(more, 'more dataset')}." if more else "",
    )


def _text(text: str) -> str:
    return escape(printable(text))
