"""Which one command makes a whole layout: by chunkwise, and by other tools if they can?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chunkwise.grammar import Pipeline
from chunkwise.model.fix import Fix
from chunkwise.model.layout import FileLayout
from chunkwise.model.remedies import (
    NCCOPY_FILTERS,
    by_chunkwise,
    can_repack,
    in_netcdf_root,
    repacked_name,
    shell_file,
)
from chunkwise.names import shell_word


@dataclass(frozen=True, slots=True)
class Stored:
    """What of a dataset decides which tools can copy it, in the same layout or another."""

    filters: str  # The pipeline that it has
    shape: tuple[int, ...] | None  # Its shape; None for a null dataspace


def commands(
    file: str, layout: FileLayout, stored: Mapping[str, Stored], *, closed: bool = True
) -> tuple[Fix, ...]:
    """Give the commands that each make all of a layout."""
    copy = repacked_name(file)
    found = [by_chunkwise(file, copy, layout)]
    if closed:
        names = f"{shell_file(file)} {shell_file(copy)}"
        for tool, options in (
            ("nccopy", _nccopy(file, layout, stored)),
            ("h5repack", _h5repack(layout, stored)),
        ):
            if options is not None:
                text = " ".join(filter(None, (tool, options, names)))
                found.append(Fix(tool, text))  # type: ignore[arg-type]
    return tuple(found)


def _nccopy(file: str, layout: FileLayout, stored: Mapping[str, Stored]) -> str | None:
    """Write a layout as the options of nccopy; None if it cannot make all of it."""
    others = (layout.page_nbytes, layout.metadata_block_nbytes)
    if layout.merge or any(value is not None for value in others) or not layout.datasets:
        return None
    if any(_filters(one.filters) - NCCOPY_FILTERS for one in stored.values()):
        return None
    words = []
    for one in layout.datasets:
        shape = stored[one.path].shape if one.path in stored else None
        if one.filters is not None or one.chunk is None or shape is None:
            return None
        # nccopy refuses chunks that are longer than the data.
        if not in_netcdf_root(file, one.path) or any(map(int.__gt__, one.chunk, shape)):
            return None
        spelled = f"{one.path[1:]}:{','.join(map(str, one.chunk))}"
        words.append(f"-c {shell_word(spelled)}")
    # Without -M 0 nccopy ignores chunks of less than 8 KiB.
    return " ".join(["-M 0", *words])


def _h5repack(layout: FileLayout, stored: Mapping[str, Stored]) -> str | None:
    """Write a layout as the options of h5repack; None if it cannot make all of it."""
    if layout.merge:
        return None
    words = []
    if layout.metadata_block_nbytes is not None:
        words.append(f"-M {layout.metadata_block_nbytes}")
    if layout.page_nbytes is not None:
        words.append(f"-S PAGE -G {layout.page_nbytes}")
    if layout.datasets and not all(can_repack(one.filters) for one in stored.values()):
        return None
    for one in layout.datasets:
        for options in _of_dataset(one.path, one.chunk, one.filters):
            if options is None:
                return None
            words.append(options)
    return " ".join(words)


def _of_dataset(
    path: str, chunk: tuple[int, ...] | None, filters: str | None
) -> Iterator[str | None]:
    """Give h5repack's options for one dataset, and None for what it has no words for."""
    if set(path) & set(":,") or (filters is not None and not can_repack(filters)):
        yield None
        return
    if chunk is not None:
        spelled = "x".join(map(str, chunk))
        yield f"-l {shell_word(f'{path}:CHUNK={spelled}')}"
    if filters is not None:
        words = Pipeline.parse(filters).h5repack(path)
        # Quoted by the grammar, but not for names that a terminal would not show.
        yield None if words is None else " ".join(map(shell_word, shlex.split(words)))


def _filters(pipeline: str) -> set[str]:
    return {one.name for one in Pipeline.parse(pipeline).filters}
