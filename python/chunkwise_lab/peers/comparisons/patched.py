"""Writing by programs as they are, with h5py patched: a dataset of 526 MB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise_lab.peers.files import Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

OTHER: Final = "h5py"
SHAPE = (365, 600, 600)
# Of the program, the chunks, and what is written.
WORK: Final = (
    ("xarray", (1, 600, 600), "to_netcdf(engine='h5netcdf'), a map a chunk", 4),
    ("xarray", (73, 60, 60), "to_netcdf(engine='h5netcdf'), chunks of 73x60x60", 4),
    ("frames", (5, 120, 120), "five maps a call, chunks of 5x120x120", None),
)


def patched(store: Store) -> Iterator[Comparison]:
    """The same program, plain and patched."""
    data = store.sampled("cube", SHAPE, None, "none")
    for number, (program, lengths, what, wanted) in enumerate(WORK):
        chunk = tuple(map(min, lengths, data.shape))
        readers = tuple(
            Reader(
                name,
                "programs:written",
                {
                    "program": program,
                    "patched": name != OTHER,
                    **data.arguments,
                    "target": str(store.folder / f"patched-{number}-{name}.h5"),
                    "chunk": chunk,
                },
            )
            for name in (OTHER, "chunkwise")
        )
        yield Comparison(
            f"patched-{number + 1}",
            "patched",
            f"cube 365x600x600, {what}, shuffle + deflate 4",
            readers,
            () if wanted is None else (Target(wanted, OTHER),),
            repeat=5,
        )
