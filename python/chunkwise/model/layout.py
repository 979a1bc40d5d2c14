"""How should a dataset or a file be stored, and which one command stores it so?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from chunkwise.grammar import format_shape
from chunkwise.names import shell_word

# What a pattern of `chunkwise repack` reads as more than itself; within brackets it does not.
_PATTERN_SPECIAL: Final = "*?["
_SMALLEST_BLOCK_NBYTES: Final = 1 << 20
_LARGEST_BLOCK_NBYTES: Final = 16 << 20


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
        filters = "no filter" if self.filters == "none" else self.filters
        return f"{self.chunks_in_words}, {filters}"

    @property
    def chunks_in_words(self) -> str:
        """The chunk shape in a sentence."""
        return "contiguous" if self.chunks is None else f"chunks {format_shape(self.chunks)}"

    @property
    def chunk_word(self) -> str:
        """The chunk shape as `bench` and `repack` take it."""
        return _chunk_word(self.chunks)

    def rules(self, dataset: str) -> tuple[str, ...]:
        """Return the words that ask ``chunkwise repack`` for it, for one dataset.

        Quoted for a shell: ``--chunk /t:30x20x30 --filter /t:shuffle+deflate:4``.
        """
        filters = None if self.chunks is None else self.filters
        one = DatasetLayout("/" + dataset.strip("/"), self.chunks or (), filters)
        return tuple(word for rule in one.rules() for word in rule)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "chunks": None if self.chunks is None else list(self.chunks),
            "filters": self.filters,
        }


@dataclass(frozen=True, slots=True)
class DatasetLayout:
    """How one dataset should be stored."""

    path: str  # The dataset's path in the file
    # Its chunk shape; None keeps what it has, and an empty one is for contiguous data.
    chunk: tuple[int, ...] | None = None
    # Its pipeline, such as ``shuffle+deflate:4``; None keeps what it has.
    filters: str | None = None

    def rules(self) -> Iterator[tuple[str, str]]:
        """Write it as options of ``chunkwise repack`` and their values, quoted for a shell."""
        pattern = as_pattern(self.path)
        if self.chunk is not None:
            yield "--chunk", shell_word(f"{pattern}:{_chunk_word(self.chunk)}")
        if self.filters is not None:
            yield "--filter", shell_word(f"{pattern}:{self.filters}")


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How a file should be stored, where that differs from now."""

    datasets: tuple[DatasetLayout, ...] = ()  # Those that are to have something else, each once
    # Bytes of the pages of paged file space; None keeps what the file has.
    page_nbytes: int | None = None
    # Bytes of the blocks in which metadata is gathered; None keeps them where they are.
    metadata_block_nbytes: int | None = None
    merge: bool = False  # Whether virtual and external datasets become the file's own data
    low: Literal["v110"] | None = (
        None  # The oldest format that its objects may have, such as ``v110``
    )

    def options(self) -> str:
        """Write it as the options of ``chunkwise repack``, quoted for a shell."""
        words = [" ".join(rule) for one in self.datasets for rule in one.rules()]
        if self.merge:
            words.append("--merge")
        if self.low is not None:
            words.append(f"--low {self.low}")
        if self.page_nbytes is not None:
            words.append(f"--paged {self.page_nbytes}")
        if self.metadata_block_nbytes is not None:
            words.append(f"--metadata-block {self.metadata_block_nbytes}")
        return " ".join(words)


# A plain copy.
AS_IT_IS: Final = FileLayout()


def _chunk_word(chunks: tuple[int, ...] | None) -> str:
    return format_shape(chunks) if chunks else "contiguous"


def as_pattern(path: str) -> str:
    """Write a path as a rule of ``chunkwise repack`` that means it, and nothing else."""
    return "".join(f"[{c}]" if c in _PATTERN_SPECIAL else c for c in path)


def metadata_block(metadata_nbytes: int) -> int:
    """Return the bytes of the blocks that gather so much metadata."""
    # One block holds all of it where that is not too much; it is within what may be left unused.
    fitting = 1 << (max(1, metadata_nbytes) - 1).bit_length()
    return min(max(fitting, _SMALLEST_BLOCK_NBYTES), _LARGEST_BLOCK_NBYTES)


def together(layouts: Iterable[FileLayout]) -> FileLayout | None:
    """Make one layout of several; if something is given twice, the first wins."""
    # Paged file space replaces blocks of metadata, which have no effect in it.
    found = list(layouts)
    if not found:
        return None
    datasets: dict[str, DatasetLayout] = {}
    for one in (each for layout in found for each in layout.datasets):
        before = datasets.get(one.path, one)
        datasets[one.path] = replace(
            before,
            chunk=one.chunk if before.chunk is None else before.chunk,
            filters=one.filters if before.filters is None else before.filters,
        )
    pages = [one.page_nbytes for one in found if one.page_nbytes is not None]
    blocks = [n for one in found if (n := one.metadata_block_nbytes) is not None]
    return FileLayout(
        tuple(datasets.values()),
        page_nbytes=pages[0] if pages else None,
        metadata_block_nbytes=blocks[0] if blocks and not pages else None,
        merge=any(one.merge for one in found),
        low=next((one.low for one in found if one.low is not None), None),
    )
