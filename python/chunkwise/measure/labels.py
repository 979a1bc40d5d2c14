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
    return ", ".join([reader_label(results, cell.reader), *_settings(results, cell).values()])


def full_label(results: Results, cell: Cell) -> str:
    """Name a trial in a sentence, without a table that says of what a value is."""
    parts = [reader_label(results, cell.reader)]
    if {"format", "chunk", "filter"} & set(results.varied):
        parts.append(str(cell.variant))
    said = {"cache": "cache ", "libhdf5": "HDF5 "}
    found = _settings(results, cell)
    return ", ".join([*parts, *(said.get(axis, "") + text for axis, text in found.items())])


def _settings(results: Results, cell: Cell) -> dict[str, str]:
    """Write a trial's value of each axis that varies and makes a difference to it."""
    standard = standard_of(results, cell) if results.design == "each" else None
    found = {
        name: _setting(results, cell, name)
        for name in results.varied
        if name not in _ELSEWHERE
        and AXES[name].concerns(cell.point)
        and (standard is None or cell.point[name] != standard.point[name])
    }
    return {name: text for name, text in found.items() if text}


def _setting(results: Results, cell: Cell, axis: str) -> str:
    text = cell.point[axis]
    if axis == "libhdf5":
        # By its version, and also by its path if several have it.
        found = _in_force(cell, "hdf5")
        same = {c.point[axis] for c in results.cells if _in_force(c, "hdf5") == found}
        return text if found is None else found if len(same) == 1 else f"{found} ({text})"
    if axis == "zlib":
        found = _in_force(cell, "zlib")
        return AXES[axis].label(text) if found is None else f"zlib {found}"
    if axis == "page-cache":
        return "cold" if text == "cold" else ""
    if axis == "cache" and text == AXES[axis].default:
        return "default" if cell.reader in WITH_LIBRARY_CACHE else ""
    return AXES[axis].label(text)


def _in_force(cell: Cell, library: str) -> str | None:
    """Return the version of a library that a trial used."""
    found = (m.environment.get(library) for m in cell.succeeded)
    return next((str(text) for text in found if text), None)


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
