"""How are attributes read of a file that libhdf5 may have to open again?

Of a file that is open for writing it never has to, and h5py's own serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chunkwise.handles import ObjectHandle


class Attributes(Mapping[str, Any]):
    """Attributes of a group or dataset, read-only; each is read when it is asked for.

    Values and order are those of h5py.
    """

    def __init__(self, handle: ObjectHandle) -> None:
        self._handle = handle

    @staticmethod
    def of(handle: ObjectHandle) -> Any:
        """The attributes of an object: where its file is not ours to park, h5py's own."""
        ours = handle.file is not None and not handle.file.writable
        return Attributes(handle) if ours else handle.get().attrs

    def __getitem__(self, name: str | bytes) -> Any:
        h5 = self._handle.get()
        return h5.attrs[name]

    def __iter__(self) -> Iterator[str]:
        h5 = self._handle.get()
        return iter(list(h5.attrs))

    def __len__(self) -> int:
        h5 = self._handle.get()
        return len(h5.attrs)

    def __contains__(self, name: object) -> bool:
        h5 = self._handle.get()
        return name in h5.attrs
