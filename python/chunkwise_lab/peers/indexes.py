"""How long does it take to write down where a file's chunks lie?"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from chunkwise_lab.peers.task import Sample, Task, imported, timed


def _chunkwise(file: str, target: Path) -> None:
    import chunkwise

    chunkwise.index(file, target)


def _kerchunk(file: str, target: Path) -> None:
    from kerchunk.hdf import SingleHdf5ToZarr

    # As the others do, without chunks' bytes.
    references = SingleHdf5ToZarr(file, inline_threshold=0).translate()
    if target.suffix == ".json":
        target.write_text(json.dumps(references))
    else:
        from kerchunk.df import refs_to_dataframe

        refs_to_dataframe(references, str(target))


def _virtualizarr(file: str, target: Path) -> None:
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    store = ObjectStoreRegistry({"file://": LocalStore()})
    dataset = open_virtual_dataset(
        Path(file).as_uri(), registry=store, parser=HDFParser(), loadable_variables=[]
    )
    form = "json" if target.suffix == ".json" else "parquet"
    dataset.vz.to_kerchunk(str(target), format=form)


_WRITERS = {"chunkwise": _chunkwise, "kerchunk": _kerchunk, "virtualizarr": _virtualizarr}


def references(writer: str, file: str, dataset: str, form: str) -> Task:
    """Write Kerchunk's references of a file, as one JSON file or as a folder of Parquet."""
    warnings.simplefilter("ignore")
    imported(writer, *(["fastparquet"] if form == "parquet" else []))
    with tempfile.TemporaryDirectory() as folder:

        def measure() -> Sample:
            target = Path(folder) / f"{time.monotonic_ns()}.{form}"
            took = timed(lambda: _WRITERS[writer](file, target)).value
            return Sample(took, _sum(target, dataset.strip("/")))

        yield measure


def _sum(target: Path, dataset: str) -> int:
    """Sum up where the chunks of the dataset are said to be, and how long they are."""
    found: Any
    if target.is_dir():
        import pandas as pd

        parts = [pd.read_parquet(part) for part in (target / dataset).glob("refs.*.parq")]
        return int(sum((7 * part["offset"] + part["size"]).sum() for part in parts))
    found = json.loads(target.read_bytes())
    found = found.get("refs", found)
    places = [
        place for key, place in found.items() if key.startswith(f"{dataset}/") and len(place) == 3
    ]
    return sum(7 * address + nbytes for _, address, nbytes in places)
