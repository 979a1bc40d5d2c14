"""Which commands store a dataset as it was measured, and how long does the first one take?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import h5py

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError
from chunkwise.files.filters import missing_filter
from chunkwise.files.objects import HDF5_ERRORS
from chunkwise.files.opening import find_dataset, open_h5
from chunkwise.grammar import Pipeline
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant, create
from chunkwise.model.fix import Fix
from chunkwise.model.layout import Layout
from chunkwise.model.remedies import (
    can_repack,
    copy_name,
    keeps_all_data,
    rechunk,
    refilter,
    shell_file,
)
from chunkwise.names import shell_word
from chunkwise.trials.environment import available_memory_nbytes

# The default of `chunkwise repack`.
_SHARE: Final = 4
_LEAST_NBYTES: Final = 64 << 20


def fixes(target: Target, variant: Variant) -> tuple[Fix, ...]:
    """Give the lines that store a dataset as a variant."""
    if variant.chunks is None:
        found = _contiguous(target)
    elif variant.filters == target.filters:
        found = rechunk(
            target.file, target.dataset, variant.chunks, variant.filters, shape=target.shape
        )
    else:
        # Chunks are stated also if they stay: nccopy chooses others for small variables.
        found = refilter(
            target.file,
            target.dataset,
            variant.filters,
            stored=target.filters,
            chunks=variant.chunks,
            chunked=False,
        )
    longer = any(c > n for c, n in zip(variant.chunks or (), target.shape, strict=False))
    return tuple(
        fix
        for fix in found
        if fix.writing
        # nccopy refuses chunks that are longer than the data.
        or (keeps_all_data(fix, pipelines(target)) and not (longer and fix.tool == "nccopy"))
    )


def commands(target: Target, variant: Variant) -> tuple[Fix, ...]:
    """Give those of `fixes` that copy the file."""
    return tuple(fix for fix in fixes(target, variant) if not fix.writing)


def pipelines(target: Target) -> list[str]:
    """Name the pipelines that a copy of the file has to deal with."""
    return sorted({target.filters, *target.file_filters} - {"none"})


def _contiguous(target: Target) -> tuple[Fix, ...]:
    path = "/" + target.dataset.strip("/")
    files = f"{shell_file(target.file)} {shell_file(copy_name(target.file))}"
    words = " ".join(Layout(None, "none").rules(path))
    found = [Fix("chunkwise", f"chunkwise repack {words} {files}", rechunks=True)]
    if can_repack(target.filters) and not set(path) & set(":,"):
        options = f"-l {shell_word(f'{path}:CONTI')}"
        if target.filters != "none":
            options += f" -f {shell_word(f'{path}:NONE')}"
        found.append(Fix("h5repack", f"h5repack {options} {files}", rechunks=True))
    return tuple(found)


def repack_s(source: Target, variant: Variant, folder: str) -> float | None:
    """Measure what it takes to copy a dataset's data into another layout.

    As ``chunkwise repack`` does, on all threads, from creating the file until it is closed;
    the rest of the file, and verification, are not in it.
    """
    path = Path(folder) / "repacked.h5"
    memory = max(_LEAST_NBYTES, available_memory_nbytes() // _SHARE)
    try:
        with open_h5(source.file) as file:
            dataset = find_dataset(file, source.dataset)
            missing_filter(dataset.id.get_create_plist())
            begun = time.perf_counter()
            with h5py.File(path, "w") as made:
                copy = create(made, source.dataset, dataset, None, variant)
                _native.copy_data(
                    library(),
                    dataset.id.id,
                    copy.id.id,
                    label=source.where,
                    memory_nbytes=memory,
                    effort=Pipeline.parse(variant.filters).effort,
                )
            return time.perf_counter() - begun
    except (ChunkwiseError, *HDF5_ERRORS):
        # A dataset that cannot be repacked was still measured; it has no such time.
        return None
    finally:
        path.unlink(missing_ok=True)
