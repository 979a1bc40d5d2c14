"""Which settings does a program have, according to options, or to a file that it writes?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar.codecs import CODECS_BY_ID
from chunkwise.grammar.shapes import parse_shape
from chunkwise.grammar.sizes import parse_size
from chunkwise.names import printable, shown
from chunkwise.parallel.checks import Settings, Version
from chunkwise.words import offered

# In a file with very many datasets, this many are examined.
MOST_DATASETS: Final = 10_000


def _version(text: str) -> Version:
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise ValueError("write it as 1.14.3")
    return tuple(map(int, text.split(".")))


def _yes(text: str) -> bool:
    if text.lower() not in ("yes", "no"):
        raise ValueError("say yes or no")
    return text.lower() == "yes"


def _count(least: int, text: str) -> int:
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"write a whole number, at least {least}")
    return int(text)


def _one_of(words: tuple[str, ...], text: str) -> str:
    if text.lower() not in words:
        raise ValueError(f"it is one of {', '.join(words)}")
    return text.lower()


def _shape(text: str) -> tuple[int, ...]:
    shape = parse_shape(text)
    if shape == "contiguous":
        return ()
    if isinstance(shape, str):
        raise ValueError("write lengths joined by x, as in 4x100x200")
    return shape


def _filters(text: str) -> tuple[str, ...]:
    return () if text.lower() == "none" else tuple(text.lower().split("+"))


# How each setting is written; the names are those of `Settings`.
WORDS: Final[dict[str, Callable[[str], Any]]] = {
    "hdf5": _version,
    "h5py": _version,
    "mpi": str,
    "mpi_version": _version,
    "mpi_io": partial(_one_of, ("ompio", "romio")),
    "n_ranks": partial(_count, 1),
    "n_hosts": partial(_count, 1),
    "n_cores": partial(_count, 1),
    "filters": _filters,
    "collective": _yes,
    "collective_metadata": _yes,
    "idle_ranks": partial(_count, 0),
    "converts": _yes,
    "fill": partial(_one_of, ("ifset", "alloc", "never")),
    "allocation": partial(_one_of, ("default", "early", "incremental", "late")),
    "shape": _shape,
    "chunks": _shape,
    "tile": _shape,
    "itemsize": partial(_count, 1),
    "cache_nbytes": parse_size,
}


def settings_of_words(words: Iterable[str], known: Settings) -> Settings:
    """Complete the facts about this machine by those about a program."""
    said: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if name not in WORDS:
            raise UsageError(f"setting {shown(name)} is not known{offered(name, WORDS)}")
        try:
            if not equals or not text.strip():
                raise ValueError("write it as NAME=VALUE")
            said[name] = WORDS[name](text.strip())
        except ValueError as wrong:
            raise UsageError(f"setting {shown(word)} is not understood: {wrong}") from None
    made = replace(known, **said)
    ranks = {
        name: len(shape) for name in ("shape", "chunks", "tile") if (shape := getattr(made, name))
    }
    if len(set(ranks.values())) > 1:
        told = ", ".join(f"{name} has {rank}" for name, rank in ranks.items())
        raise UsageError(f"shape, chunks and tile must have as many dimensions: {told}")
    return made


def settings_of_file(path: str, known: Settings) -> Iterator[Settings]:
    """Give the settings of each chunked dataset of a file, as ranks would write it.

    Each rank is taken to write one part of the slowest dimension.
    """
    from itertools import islice

    from chunkwise.files.opening import open_h5, walk_datasets

    with open_h5(path) as file:
        for name, dataset in islice(walk_datasets(file), MOST_DATASETS):
            if dataset.chunks is None or not dataset.size:
                continue
            yield _of_dataset(printable(name), dataset, known)


def _of_dataset(name: str, dataset: Any, known: Settings) -> Settings:
    from h5py import h5d

    dcpl = dataset.id.get_create_plist()
    fills = {
        h5d.FILL_TIME_IFSET: "ifset",
        h5d.FILL_TIME_ALLOC: "alloc",
        h5d.FILL_TIME_NEVER: "never",
    }
    filters = [dcpl.get_filter(number)[0] for number in range(dcpl.get_nfilters())]
    tile = list(dataset.shape)
    if known.n_ranks > 1:
        # The slowest dimension that has something for each rank.
        along = next((n for n, extent in enumerate(tile) if extent >= known.n_ranks), None)
        if along is not None:
            tile[along] = -(-tile[along] // known.n_ranks)
    return replace(
        known,
        path=name,
        shape=tuple(dataset.shape),
        chunks=tuple(dataset.chunks),
        tile=tuple(tile) if known.n_ranks > 1 else None,
        itemsize=dataset.id.get_type().get_size(),
        cache_nbytes=dataset.id.get_access_plist().get_chunk_cache()[1],
        fill=fills.get(dcpl.get_fill_time()),
        filters=tuple(
            CODECS_BY_ID[number].name if number in CODECS_BY_ID else str(number)
            for number in filters
        ),
    )
