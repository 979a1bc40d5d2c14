"""How are attributes read of a file that libhdf5 may have to open again?

Of a file that is open for writing it never has to, and h5py's own serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chunkwise.errors import ReadOnlyError
from chunkwise.handles import ObjectHandle
from chunkwise.names import printable


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

    def __setitem__(self, *_: Any) -> None:
        raise self._read_only()

    def __delitem__(self, *_: Any) -> None:
        raise self._read_only()

    def create(self, *_: Any, **__: Any) -> None:
        """Refuse, where h5py makes an attribute: the file is open for reading only.

        Raises
        ------
        chunkwise.errors.ReadOnlyError
            Always.
        """
        raise self._read_only()

    modify = create

    def _read_only(self) -> ReadOnlyError:
        h5 = self._handle.get()
        return ReadOnlyError(
            f"{printable(h5.file.filename)}: attributes of {printable(h5.name)}: the file is open "
            "for reading only; open it with chunkwise.open(path, 'r+')"
        )

    def __contains__(self, name: object) -> bool:
        h5 = self._handle.get()
        return name in h5.attrs
