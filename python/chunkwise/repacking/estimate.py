"""How large will a dataset be in the target, by a sample, and roughly how long does it take?"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from operator import mul
from typing import Final

import h5py
from h5py import h5d, h5p, h5s, h5t

from chunkwise._native import thread_count
from chunkwise.files.stored import read_box
from chunkwise.grammar import Pipeline, Shape
from chunkwise.grammar.boxes import Box, bounded, chunk_at, chunk_counts
from chunkwise.names import HDF5_ERRORS
from chunkwise.repacking.facts import SourceDataset

# Enough of a dataset to know how it compresses, and read in a few hundredths of a second.
_PIECES: Final = 3
_PIECE_NBYTES: Final = 1 << 19
# This many samples of similar datasets also speak for the others.
_ENOUGH_ALIKE: Final = 5
# For a whole file: a plan should be ready at once.
SAMPLING_S: Final = 0.5
# Bytes that one thread decodes a second; the engine's encoders take half of libhdf5's time.
_DECODED_NBYTES_PER_S: Final = 350e6
_ENCODER_GAIN: Final = 2.0
_PLAIN_NBYTES_PER_S: Final = 1.0e9
_LIBRARY_NBYTES_PER_S: Final = 60e6


@dataclass(frozen=True)
class Sample:
    """What new filters make of a part of a dataset."""

    ratio: float  # Bytes before filters by bytes after
    nbytes_per_s: float  # Of libhdf5, which encodes in one thread


@dataclass
class Samples:
    """The samples of a file's datasets; a few stand for many that are alike."""

    _deadline: float = field(default_factory=lambda: time.monotonic() + SAMPLING_S)
    _taken: dict[tuple[object, ...], list[Sample]] = field(default_factory=dict)

    def of(
        self, scratch: h5py.File, source: SourceDataset, chunk: Shape, pipeline: Pipeline
    ) -> Sample | None:
        """Give a dataset's sample, or the middle one of datasets like it; None as below."""
        datatype = source.identifier.get_type()
        like = (datatype.get_class(), source.itemsize, chunk, str(pipeline))
        taken = self._taken.setdefault(like, [])
        if len(taken) < _ENOUGH_ALIKE:
            sample = take_sample(scratch, source, pipeline, self._deadline)
            if sample is not None:
                taken.append(sample)
                return sample
        return sorted(taken, key=lambda sample: sample.ratio)[len(taken) // 2] if taken else None


def take_sample(
    scratch: h5py.File, source: SourceDataset, pipeline: Pipeline, deadline: float
) -> Sample | None:
    """Pass a few pieces of a dataset through filters."""
    shape = source.shape or ()
    if not source.plain or not source.nbytes or time.monotonic() >= deadline:
        return None
    piece = bounded(source.chunk or shape, _PIECE_NBYTES // max(1, source.itemsize))
    raw = stored = 0
    elapsed = 0.0
    try:
        datatype = h5t.TypeID.copy(source.identifier.get_type())
        for box in _diagonal(shape, piece):
            values = read_box(source.identifier, datatype, box)
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_chunk(box.shape)
            pipeline.apply(dcpl)
            made = h5d.create(scratch.id, None, datatype, h5s.create_simple(box.shape), dcpl)
            begin = time.perf_counter()
            made.write(h5s.ALL, h5s.ALL, values, datatype)
            made.flush()
            elapsed += time.perf_counter() - begin
            raw += len(values)
            stored += made.get_storage_size()
            if time.monotonic() >= deadline:
                break
    except (*HDF5_ERRORS, MemoryError):
        return None
    if not stored or elapsed <= 0:
        return None
    return Sample(raw / stored, raw / elapsed)


def out_nbytes(
    source: SourceDataset, chunk: Shape | None, pipeline: Pipeline, sample: Sample | None
) -> int:
    """Estimate the bytes that a dataset will take, from a sample if there is one."""
    if chunk is None or source.shape is None:
        return source.nbytes
    whole = math.prod((*chunk_counts(source.shape, chunk), *chunk)) * source.itemsize
    if not pipeline.filters:
        return whole
    if sample is not None:
        return round(source.nbytes / sample.ratio)
    return min(whole, source.stored_nbytes or whole)


def copy_s(nbytes: int) -> float:
    """Estimate how long bytes take that are copied as they are, synced and verified."""
    return 2 * nbytes / _PLAIN_NBYTES_PER_S


def rechunk_s(
    source: SourceDataset, out: int, passes: float, pipeline: Pipeline, sample: Sample | None
) -> float:
    """Estimate how long the engine takes to decode and encode a dataset."""
    threads = thread_count()
    decoding = passes * source.nbytes / _DECODED_NBYTES_PER_S if source.pipeline.filters else 0.0
    rate = _ENCODER_GAIN * sample.nbytes_per_s if sample else _DECODED_NBYTES_PER_S / 3
    encoding = source.nbytes / rate if pipeline.filters else 0.0
    return (decoding + encoding) / threads + source.nbytes / _PLAIN_NBYTES_PER_S + copy_s(out)


def library_s(nbytes: int) -> float:
    """Estimate how long libhdf5 takes for a dataset that it copies."""
    return nbytes / _LIBRARY_NBYTES_PER_S


def _diagonal(shape: Shape, piece: Shape) -> list[Box]:
    """Choose pieces spread over the array: along its diagonal."""
    counts = chunk_counts(shape, piece)
    shares = [(i + 0.5) / _PIECES for i in range(_PIECES)]
    places = sorted({tuple(int(share * n) for n in counts) for share in shares})
    return [chunk_at(shape, piece, tuple(map(mul, place, piece))) for place in places]
