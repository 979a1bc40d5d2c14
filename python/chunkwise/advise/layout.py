"""What is a layout, and which words give it to chunkwise repack?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chunkwise.grammar import format_shape
from chunkwise.names import shell_word


@dataclass(frozen=True, slots=True)
class Layout:
    """How a dataset is, or would be, stored.

    Attributes
    ----------
    chunks
        Chunk shape in elements; None for a dataset without chunks.
    filters
        The pipeline in the grammar of filters; ``none`` if there is none.
    """

    chunks: tuple[int, ...] | None
    filters: str

    def __str__(self) -> str:
        chunks = "contiguous" if self.chunks is None else f"chunks {format_shape(self.chunks)}"
        return f"{chunks}, {'no filter' if self.filters == 'none' else self.filters}"

    @property
    def chunk_word(self) -> str:
        """The chunk shape as `bench` and `repack` take it."""
        return "contiguous" if self.chunks is None else format_shape(self.chunks)

    def rules(self, dataset: str) -> tuple[str, ...]:
        """Return the words that ask ``chunkwise repack`` for it, for one dataset.

        Quoted for a shell: ``--chunk /t:30x20x30 --filter /t:shuffle+deflate:4``.
        """
        path = "/" + dataset.strip("/")
        words = ("--chunk", shell_word(f"{path}:{self.chunk_word}"))
        if self.chunks is None:
            return words
        return (*words, "--filter", shell_word(f"{path}:{self.filters}"))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "chunks": None if self.chunks is None else list(self.chunks),
            "filters": self.filters,
        }
