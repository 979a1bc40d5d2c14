"""How do ranks give an object attributes?  Rank 0 writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chunkwise.mpi.home import Home
from chunkwise.mpi.session import described


class ParallelAttributes:
    """Attributes of an object of a file that ranks write; all is collective.

    They are set, not read: what all ranks have set they know.
    """

    def __init__(self, home: Home, path: str) -> None:
        self._home, self._path = home, path

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an attribute, as h5py does; all ranks give the same value."""

        def work() -> None:
            self._home.h5[self._path].attrs[name] = value

        what = f"setting an attribute of {self._path}"
        self._home.changed(what, f"{described(name)}: {described(value)}", work)

    def update(self, values: Mapping[str, Any]) -> None:
        """Set several attributes; all ranks give the same ones."""

        def work() -> None:
            for name, value in values.items():
                self._home.h5[self._path].attrs[name] = value

        self._home.changed(f"setting attributes of {self._path}", described(values), work)

    def __delitem__(self, name: str) -> None:
        """Remove an attribute."""

        def work() -> None:
            del self._home.h5[self._path].attrs[name]

        self._home.changed(f"removing an attribute of {self._path}", described(name), work)
