"""Which options does a repack have, besides rules for datasets?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from chunkwise.errors import UsageError
from chunkwise.model.readability import program

Verify: TypeAlias = Literal["proof", "none"]
Avoid: TypeAlias = tuple[frozenset[int], frozenset[int], frozenset[int]]
Bound: TypeAlias = Literal["earliest", "v108", "v110", "v112", "v114", "v200", "latest"]

VERIFICATIONS: Final[tuple[Verify, ...]] = get_args(Verify)
BOUNDS: Final[tuple[Bound, ...]] = get_args(Bound)
# HDF5's limit (H5Pset_file_space_page_size).
_PAGE_LIMITS: Final = (512, 1 << 30)


def verification(text: str) -> Verify:
    """Return how a result is verified, also by the words of version 0.2."""
    if text in ("checksum", "full"):
        warnings.warn(
            f"verify {text!r} is called 'proof' now, which compares more than both did",
            FutureWarning,
            stacklevel=4,
        )
        return "proof"
    if text not in VERIFICATIONS:
        raise UsageError(f"verify {text!r}: write {' or '.join(VERIFICATIONS)}")
    return "none" if text == "none" else "proof"


@dataclass(frozen=True)
class Options:
    """How a file is written."""

    # Most bytes used for data; None for a quarter of what is free.
    memory_nbytes: int | None = None
    # ``proof`` compares the finished output with the source as a reader sees them.
    verify: Verify = "proof"
    merge: bool = False  # Virtual and external datasets become the file's own data
    # What cannot be read is left out and listed; elements become fill values.
    salvage: bool = False
    # With ``salvage``: objects without a link are kept, too, if some links are lost.
    adopt: bool = True
    # With ``salvage``: addresses that crash libhdf5: objects, attributes, datasets' data.
    avoid: Avoid = (frozenset(), frozenset(), frozenset())
    low: Bound | None = None  # Format bounds; None for the source's
    high: Bound | None = None
    alignment_nbytes: int | None = None  # Objects of at least this size begin at multiples of it
    page_nbytes: int | None = None  # Size of the pages of paged file space; None: as in the source
    metadata_block_nbytes: int | None = None  # Metadata are gathered in blocks of this size
    # Programs that must read the result as they read the source (`model.readability`)
    readers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "verify", verification(self.verify))
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None and bound not in BOUNDS:
                raise UsageError(f"{name} {bound!r}: write one of {', '.join(BOUNDS)}")
        if self.low and self.high and BOUNDS.index(self.low) > BOUNDS.index(self.high):
            raise UsageError(f"format bounds: low {self.low} is newer than high {self.high}")
        if self.high == "earliest":
            raise UsageError("format bounds: high is v108 or newer")
        if self.memory_nbytes is not None and self.memory_nbytes < 1:
            raise UsageError("memory: give a number of bytes, as in 2GiB")
        for name in self.readers:
            program(name)
        if self.page_nbytes is not None:
            least, most = _PAGE_LIMITS
            if not least <= self.page_nbytes <= most:
                raise UsageError("paged: HDF5 allows pages from 512 bytes to 1 GiB, as in 4MiB")
        if self.alignment_nbytes == 0 or self.metadata_block_nbytes == 0:
            raise UsageError("alignment and metadata block: give at least one byte")

    @property
    def reshapes_file(self) -> bool:
        """Whether the file as a whole changes, apart from its datasets."""
        stated = (self.low, self.high, self.alignment_nbytes, self.page_nbytes)
        return (
            self.merge
            or any(value is not None for value in stated)
            or (self.metadata_block_nbytes is not None)
        )
