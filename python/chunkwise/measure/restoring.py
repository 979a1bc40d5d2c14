"""Which commands store a dataset as it was measured, and how long does the first one take?"""

from __future__ import annotations

import time
from dataclasses import replace
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
from chunkwise.remedy.commands import commands as by_commands
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import CONTIGUOUS, Anew, Copy, Present, in_chunks, under_filters
from chunkwise.remedy.spelling import spelled
from chunkwise.trials.environment import available_memory_nbytes

# The default of `chunkwise repack`.
_SHARE: Final = 4
_LEAST_NBYTES: Final = 64 << 20


def restored(target: Target, variant: Variant) -> tuple[Copy, ...]:
    """Store a dataset as a variant, in a copy that loses nothing else of the file."""
    now = Present(target.filters, shape=target.shape)
    found: tuple[Copy, ...]
    if variant.chunks is None:
        found = (Copy(target.file, (Anew(target.dataset, CONTIGUOUS, None, now),)),)
    elif variant.filters == target.filters:
        found = in_chunks(target.file, target.dataset, variant.chunks, now)
    else:
        # Chunks are stated also if they stay: nccopy chooses others for small variables.
        found = under_filters(target.file, target.dataset, variant.filters, now, variant.chunks)
    return tuple(replace(one, pipelines=frozenset(pipelines(target))) for one in found)


def copied(target: Target, variant: Variant) -> tuple[Copy, ...]:
    """Give the copies of `restored` for which there is a command that loses nothing."""
    return tuple(one for one in restored(target, variant) if any(by_commands(one)))


def commands(target: Target, variant: Variant) -> tuple[Fix, ...]:
    """Give the commands that copy the file so."""
    return tuple(fix for fix in spelled(restored(target, variant)) if not fix.writing)


def pipelines(target: Target) -> list[str]:
    """Name the pipelines that a copy of the file has to deal with."""
    return sorted({target.filters, *target.file_filters} - {"none"})


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
