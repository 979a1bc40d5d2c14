"""Which name does a trial have, next to others of its run?"""

from __future__ import annotations

from chunkwise.measure.axes import AXES
from chunkwise.measure.results import Cell, Results, standard_of
from chunkwise.names import printable
from chunkwise.trials.readers import WITH_LIBRARY_CACHE

# Axes that a table tells by its heading, or by its first columns.
_ELSEWHERE = frozenset({"operation", "access", "format", "chunk", "filter", "reader"})


def reader_label(results: Results, reader: str) -> str:
    """Name a reader: the one from Python is simply chunkwise if it is the only one."""
    alone = all(cell.reader != "chunkwise" for cell in results.cells)
    return "chunkwise" if reader == "chunkwise-py" and alone else reader


def cell_label(results: Results, cell: Cell) -> str:
    """Name a trial by its reader, and by everything else that varies within a table.

    With one axis at a time, only by what differs from the standard trial.
    """
    parts = [reader_label(results, cell.reader)]
    standard = standard_of(results, cell)
    for name in results.varied:
        if name in _ELSEWHERE or (
            results.design == "each" and cell.point[name] == standard.point[name]
        ):
            continue
        text = setting(results, cell, name)
        if text:
            # The table's head says of what.
            parts.append(_version_label(results, cell) if name == "libhdf5" else text)
    return ", ".join(parts)


def setting(results: Results, cell: Cell, axis: str) -> str:
    """Write a trial's value of an axis; nothing if it makes no difference to it."""
    text = cell.point[axis]
    if not AXES[axis].concerns(cell.point):
        return ""
    if axis == "libhdf5":
        return library_label(results, cell)
    if axis == "zlib":
        return zlib_label(cell)
    if axis == "page-cache":
        return "cold" if text == "cold" else ""
    if axis == "cache" and text == AXES[axis].default:
        return "default" if cell.reader in WITH_LIBRARY_CACHE else ""
    return AXES[axis].label(text)


def library_label(results: Results, cell: Cell) -> str:
    """Name a libhdf5 by its version, and also by its path if the version is not unique."""
    return f"HDF5 {_version_label(results, cell)}"


def _version_label(results: Results, cell: Cell) -> str:
    text = cell.point["libhdf5"]
    found = version(cell)
    if found is None:
        return text
    same = {c.point["libhdf5"] for c in results.cells if version(c) == found}
    return found if len(same) == 1 else f"{found} ({text})"


def zlib_label(cell: Cell) -> str:
    """Name a zlib by its own version, also libhdf5's."""
    found = (m.environment.get("zlib") for m in cell.succeeded)
    told = next((str(text) for text in found if text), None)
    return AXES["zlib"].label(cell.point["zlib"]) if told is None else f"zlib {told}"


def version(cell: Cell) -> str | None:
    """Return the version of the libhdf5 that a trial used."""
    found = (m.environment.get("hdf5") for m in cell.succeeded)
    return next((str(text) for text in found if text), None)


def full_label(results: Results, cell: Cell) -> str:
    """Name a trial in a sentence: the reader, and everything that varies."""
    parts = [reader_label(results, cell.reader)]
    varied = results.varied
    if {"format", "chunk", "filter"} & set(varied):
        parts.append(str(cell.variant))
    for name in varied:
        if name not in _ELSEWHERE:
            text = setting(results, cell, name)
            if name == "cache" and text:
                text = f"cache {text}"
            parts.append(text)
    return ", ".join(part for part in parts if part)


def fallback_notes(results: Results) -> list[str]:
    """Say which figures of chunkwise are libhdf5's, and why."""
    found: dict[str, list[Cell]] = {}
    for cell in results.cells:
        if cell.fallback is not None:
            found.setdefault(cell.fallback, []).append(cell)
    notes = []
    for why, (first, *others) in found.items():
        what = f"'{first.access.name}' by {reader_label(results, first.reader)}"
        what += f" (and {len(others)} more)" if others else ""
        notes.append(f"done by libhdf5 in chunkwise's place: {what}: {printable(why)}")
    return notes
