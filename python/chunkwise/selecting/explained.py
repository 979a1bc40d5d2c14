"""What does `Dataset.explain` say of a read?"""

from __future__ import annotations

from typing import Literal, TypedDict


class Explained(TypedDict):
    """What reading a selection does.  Figures that only libhdf5 knows are None."""

    path: Literal["chunked", "contiguous", "virtual", "libhdf5"]
    reason: str | None  # Why libhdf5 reads it; None if it does not
    chunks: int | None  # Touched
    missing_chunks: int | None  # Those of them that were never written
    stored_nbytes: int | None  # Bytes read from storage
    decoded_nbytes: int | None  # Bytes out of the filters, if nothing is cached
    selected_nbytes: int | None  # Bytes of the selection
    # Blocks of such filters that are decoded, and all; None without, or above 1,024 chunks.
    decoded_blocks: int | None
    blocks: int | None
    amplification: float | None  # Decoded divided by selected; None when nothing is selected
    threads: int  # At most this many work at it
    sidecar: str | None  # The file that says where the chunks lie; None: the file itself
    # Why HDF5 of this process refuses the file, though the format allows it; None: it does not.
    refused: str | None
    storage: str | None  # The URL or file object that is read; None for a path
