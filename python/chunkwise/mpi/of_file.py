"""Which settings does a program have that writes a file like this one?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from chunkwise.grammar.codecs import CODECS_BY_ID
from chunkwise.mpi.checks import Settings
from chunkwise.names import printable

# In a file with very many datasets, this many are examined.
MOST_DATASETS: Final = 10_000


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
