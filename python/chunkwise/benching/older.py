"""Which words have changed since a file was written, and what are the new words?

A reader in a measurement used to be called a driver, which is HDF5's word for how bytes reach
storage.  Saved runs, TOML files and command lines with the old word still work.
"""

from __future__ import annotations

from typing import Any, Final

_NEW: Final = {"driver": "reader"}
# Whose values are names of axes.
_NAMING: Final = frozenset({"axis", "by", "varied", "x"})


def new_word(word: str) -> str:
    """Return what is said now for a word; it itself if it has not changed."""
    return _NEW.get(word, word)


def renewed(value: Any) -> Any:
    """Return JSON or TOML values with today's names of axes, at any depth.

    >>> renewed({"where": {"driver": "h5py"}, "by": ["driver"], "dataset": "driver"})
    {'where': {'reader': 'h5py'}, 'by': ['reader'], 'dataset': 'driver'}
    """
    if isinstance(value, list):
        return [renewed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        new_word(key): _names(item) if key in _NAMING else renewed(item)
        for key, item in value.items()
    }


def _names(value: Any) -> Any:
    if isinstance(value, list):
        return [_names(item) for item in value]
    return new_word(value) if isinstance(value, str) else renewed(value)
