"""What may differ between a source and its new file, what was compared, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy.typing as npt

from chunkwise.errors import CorruptDataError, WrongValueError
from chunkwise.names import hdf5_reason, printable

# What helps where a source is damaged.
GOES_ON: Final = "--salvage, or salvage=True, goes on without what cannot be read"


class Bound(Protocol):
    """How far a filter that loses by its nature may change values."""

    def violations(self, source: npt.NDArray[Any], result: npt.NDArray[Any]) -> int | None:
        """Return the flat index of the first value beyond the bound; None if there is none."""


@dataclass(frozen=True)
class Allowed:
    """What may differ, named before anything is compared."""

    # By the source's path: values that a filter requested by name may change, and how far.
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    # Paths of datasets whose data are stored elsewhere: merged.
    moved: frozenset[str] = frozenset()
    salvaged: bool = False  # Whether parts of the source that cannot be read are passed over
    # Of a salvaged file, paths of objects and ``PATH@NAME`` that are incomplete: not compared.
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Proved:
    """What was compared and found the same."""

    objects: int = 0  # Groups, datasets and committed types, each counted once
    attributes: int = 0  # Their attributes
    nbytes: int = 0  # Bytes of values that were read from both files, without filters
    # Bytes of chunks that were copied as they are and compared as they are stored.
    stored_nbytes: int = 0
    by_libhdf5_nbytes: int = 0  # Bytes of values that libhdf5 read from both files
    elapsed_s: float = 0.0  # Seconds that the comparison took


@dataclass(frozen=True)
class Names:
    """What both files are called in messages."""

    source: str
    result: str

    def label(self, path: str) -> str:
        """Return what a dataset of the source is called in messages."""
        return f"{printable(self.source)}: '{printable(path)}'"

    def unreadable(self, path: str, error: BaseException) -> CorruptDataError:
        """Return the error that says what of the source cannot be read."""
        return CorruptDataError(
            f"{self.label(path)} cannot be read in the source ({hdf5_reason(error)}); the file is "
            f"damaged: fetch it again or restore it; {GOES_ON}"
        )

    def difference(self, path: str, how: str) -> WrongValueError:
        """Return the error that names a difference."""
        return WrongValueError(
            f"{printable(self.result)}: '{printable(path)}' {how}; the result was dropped, the "
            "source is untouched: repeat, and report this if it happens again"
        )
