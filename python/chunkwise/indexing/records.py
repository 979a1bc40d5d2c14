"""What is the result of writing an index?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from chunkwise.words import counted, format_seconds

# What is said of an index that gives access.
SECRET = (
    "holds a secret: what follows ? in its URL, or a password; give it to nobody who may not read "
    "the file, or leave that out (--no-secrets)"
)
Format = Literal["json", "parquet", "sidecar"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that the index leaves out, or that is read from it in another way.

    Attributes
    ----------
    name
        The dataset's path, or ``PATH@ATTRIBUTE``.
    reason
        Why, in words.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of `chunkwise.index`.

    Attributes
    ----------
    source
        The file that was indexed, as it was named.
    target
        The index.
    format
        ``json`` or ``parquet`` (Kerchunk's), or ``sidecar``.
    datasets
        Datasets in it.
    chunks
        Places of chunks, and of pieces of contiguous data.
    inlined
        Datasets whose values are in the index itself.
    index_nbytes
        Bytes that the index takes.
    elapsed_s
        Seconds from the first to the last.
    left_out
        What it leaves out, and why.
    wider
        Packed variables that xarray unpacks to a wider type than of the file, because JSON has one
        type of floats, and to which.
    secret
        Whether it holds what gives access to the file, such as a signature in its URL.
    """

    source: str
    target: str
    format: Format
    datasets: int
    chunks: int
    inlined: int
    index_nbytes: int
    elapsed_s: float
    left_out: tuple[LeftOut, ...]
    wider: tuple[LeftOut, ...] = ()
    secret: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {"version": 1, **asdict(self)}

    def lines(self) -> list[str]:
        """In words, a line each."""
        size = f"{self.index_nbytes:,} bytes in {format_seconds(self.elapsed_s)}"
        chunks = counted(self.chunks, "chunk")
        inlined = f" ({self.inlined:,} with their values)" if self.inlined else ""
        datasets = counted(self.datasets, "dataset")
        lines = [f"{self.target}: {chunks} of {datasets}{inlined}, {size}"]
        lines.extend(f"  left out: {one.name}: {one.reason}" for one in self.left_out)
        if self.secret:
            lines.append(f"  {SECRET}")
        lines.extend(f"  wider: {one.name}: {one.reason}" for one in self.wider)
        return lines
