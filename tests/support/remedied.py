"""The lines of one remedy for a dataset, as tests look at them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import (
    Copy,
    Present,
    ReadOnce,
    SetCache,
    in_chunks,
    natively,
    under_filters,
)
from chunkwise.remedy.spelling import spelled


def larger_cache(file: str, path: str, nbytes: int, nslots: int) -> tuple[Fix, ...]:
    return spelled([SetCache(file, path, nbytes, nslots)])


def rechunk(
    file: str,
    path: str,
    chunks: tuple[int, ...],
    filters: str,
    *,
    shape: tuple[int, ...] | None = None,
    itemsize: int | None = None,
    others: Iterable[str] = (),
) -> tuple[Fix, ...]:
    now = Present(filters, shape=shape, itemsize=itemsize)
    return among(in_chunks(file, path, chunks, now), others)


def refilter(
    file: str,
    path: str,
    filters: str,
    *,
    stored: str = "none",
    present: tuple[int, ...] | None = None,
    chunks: tuple[int, ...] | None = None,
    others: Iterable[str] = (),
) -> tuple[Fix, ...]:
    return among(under_filters(file, path, filters, Present(stored, present), chunks), others)


def among(copies: Sequence[Copy], others: Iterable[str]) -> tuple[Fix, ...]:
    """Give the lines for a file that has other pipelines too."""
    return spelled(replace(one, pipelines=frozenset(others)) for one in copies)


def read_once(file: str, path: str) -> tuple[Fix, ...]:
    return spelled([ReadOnce(file, path)])


def read_natively(file: str, path: str, filters: str) -> tuple[Fix, ...]:
    return spelled(natively(file, path, filters))


def repack(file: str) -> tuple[Fix, ...]:
    return spelled([Copy(file)])
