"""What runs when h5py closes or flushes a file, or copies an object?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import h5py
from h5py._objects import phil

# Is given the file, whether it is closed, and what closes or flushes it, which it calls.
Around = Callable[[h5py.File, bool, Callable[[], Any]], Any]

_METHODS = ("close", "flush", "__exit__")

_arounds: list[Around] = []
_installed: dict[str, Any] = {}


def ask(around: Around) -> None:
    """Call `around` whenever h5py closes or flushes a file."""
    with phil:
        if around not in _arounds:
            _arounds.append(around)
        if not _installed:
            for name in _METHODS:
                _installed[name] = _asking(getattr(h5py.File, name), name != "flush")
                setattr(h5py.File, name, _installed[name])


def ask_no_more(around: Around) -> None:
    """Undo `ask`; h5py's methods are its own again once nothing is called."""
    with phil:
        if around in _arounds:
            _arounds.remove(around)
        ours = all(vars(h5py.File).get(name) is made for name, made in _installed.items())
        # Patches that others put on top of them stay, and call them.
        if not _arounds and ours:
            for name, made in _installed.items():
                setattr(h5py.File, name, made.__wrapped__)
            _installed.clear()


def is_wrapped() -> bool:
    """Whether anything is called."""
    return bool(_arounds)


def ask_before_copies(settle: Callable[[], None]) -> None:
    """Make h5py's groups ask before they copy an object, of any file."""
    original = h5py.Group.copy

    @wraps(original)
    def copy(group: h5py.Group, *args: Any, **options: Any) -> Any:
        settle()
        return original(group, *args, **options)

    with phil:
        h5py.Group.copy = copy


def _asking(original: Callable[..., Any], closes: bool) -> Callable[..., Any]:
    @wraps(original)
    def method(file: h5py.File, *args: Any) -> Any:
        call: Callable[[], Any] = partial(original, file, *args)
        for around in tuple(_arounds):
            call = partial(around, file, closes, call)
        return call()

    return method
