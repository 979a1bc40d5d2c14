"""Writing files anew, beside the programs that people use for it: h5repack and nccopy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import h5py
import numpy as np

from chunkwise.grammar import format_shape
from chunkwise_lab.peers.comparisons.writing import FAST, sizes
from chunkwise_lab.peers.files import Data, Store
from chunkwise_lab.peers.spec import Comparison, Reader, Target

H5REPACK: Final = "h5repack"
NCCOPY: Final = "nccopy -m 1G -h 1G"
# Minutes each: once is enough to tell thirty times from twenty.
LONG_S: Final = 1800.0
ONE_GB: Final = 1_000_000_000
BUDGET: Final = 256 << 20
# What the process may have beside its budget.
BESIDE: Final = 200 << 20


def repacking(store: Store) -> Iterator[Comparison]:
    """Other chunks, other filters, hardly anything, and little memory."""
    yield from _cube(store)
    yield _proof(store)
    yield from _cris(store)
    yield from _counts(store)
    yield from _one_of_many(store)
    yield from _many_small(store)
    yield from _memory(store)


def _cube(store: Store) -> Iterator[Comparison]:
    """Maps to time series."""
    data = store.sampled("cube", (365, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    chunk = _chunk(data, (365, 20, 20))
    comma = ",".join(map(str, chunk))
    buffers = ("-m", "1G", "-h", "1G", "-M", "0")
    nccopy = [*buffers, "-d", "4", "-s", "-c", f"{data.name.strip('/')}:{comma}"]
    makers = (
        _h5repack(store, data, chunk, "-f", "SHUF", "-f", "GZIP=4"),
        _chunkwise(store, data, "chunkwise", chunk, "shuffle+deflate:4"),
        _chunkwise(store, data, FAST, chunk, "shuffle+deflate:fast"),
        _reader(store, data, NCCOPY, ["nccopy", *nccopy, "{in}", "{out}"], most=2),
    )
    readers = tuple(replace(one, arguments={**one.arguments, "keep": True}) for one in makers)
    yield Comparison(
        "repack-cube",
        "repack",
        "cube 1x600x600 to 365x20x20, shuffle + deflate 4",
        readers,
        (Target(30, H5REPACK), Target(5, NCCOPY), Target(35, H5REPACK, by=FAST)),
        repeat=3,
        note="h5repack once, nccopy twice; :fast has to be 55 times as fast with ISA-L",
        patience_s=LONG_S,
    )
    yield sizes("repack-cube-size", "repack", "the same (bytes of file)", readers, 1.0)


def _proof(store: Store) -> Comparison:
    """What the proof adds to the copy of the cube."""
    data = store.sampled("cube", (365, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    chunk = ["--chunk", f"{data.name}:{format_shape(_chunk(data, (365, 20, 20)))}"]
    argv = ["chunkwise", "repack", "{in}", "{out}", *chunk]
    bare = _reader(store, data, "chunkwise --verify none", [*argv, "--verify", "none"], most=None)
    return Comparison(
        "repack-proof",
        "repack",
        "cube 1x600x600 to 365x20x20, with its proof",
        (bare, _reader(store, data, "chunkwise", argv)),
        (Target(1 / 1.4, bare.name),),
        repeat=7,
        note="the proof may take 0.4 of the copy's own time",
    )


def _cris(store: Store) -> Iterator[Comparison]:
    """Scan lines one by one."""
    data = store.sampled("cris", (60, 30, 9, 717), (4, 30, 9, 717), "deflate:6")
    chunk = _chunk(data, (1, 30, 9, 717))
    yield Comparison(
        "repack-cris",
        "repack",
        "cris 4x30x9x717 to 1x30x9x717, deflate 6",
        (
            _h5repack(store, data, chunk, "-f", "GZIP=6", most=None),
            _chunkwise(store, data, "chunkwise", chunk, "deflate:6"),
        ),
        (Target(6, H5REPACK),),
        repeat=5,
    )


def _counts(store: Store) -> Iterator[Comparison]:
    """Pieces of columns to whole ones, ten together: what a user waited days for."""
    data = store.sampled("counts", (12_500, 20_000), (2000, 1), "deflate:4")
    chunk = _chunk(data, (12_500, 10))
    yield Comparison(
        "repack-counts",
        "repack",
        "counts 2000x1 to 12500x10, deflate 4 to 1, 1 GB",
        (
            _h5repack(store, data, chunk, "-f", "GZIP=1"),
            _chunkwise(store, data, "chunkwise", chunk, "deflate:1"),
        ),
        (Target(30, H5REPACK),),
        repeat=3,
        note="h5repack once",
        patience_s=LONG_S,
    )


def _one_of_many(store: Store) -> Iterator[Comparison]:
    """A rule for one small dataset: the rest is copied as it is stored."""
    data = _with_a_small_one(store)
    copied = _reader(store, data, "cp and fsync", ["cp", "{in}", "{out}"], most=None)
    for verify, times in (("none", 1.5), ("proof", 3.0)):
        argv = ["repack", "{in}", "{out}", "--filter", "small:deflate:4", "--verify", verify]
        yield Comparison(
            f"repack-one-{verify}",
            "repack",
            f"one small dataset of a 1 GB file, --verify {verify}",
            (copied, _reader(store, data, "chunkwise", ["chunkwise", *argv], most=None)),
            (Target(1 / times, copied.name),),
            repeat=5,
        )


def _many_small(store: Store) -> Iterator[Comparison]:
    """Filters for a hundred small datasets and a larger one."""
    data = _with_many_small_ones(store)
    h5repack = ["h5repack", "-f", "SHUF", "-f", "GZIP=6", "{in}", "{out}"]
    argv = ["chunkwise", "repack", "{in}", "{out}", "--filter", "shuffle+deflate:6"]
    yield Comparison(
        "repack-many-small",
        "repack",
        "101 datasets of 0.5 to 46 MiB, shuffle + deflate 6",
        (
            _reader(store, data, H5REPACK, h5repack),
            _reader(store, data, "chunkwise", argv),
        ),
        (Target(2, H5REPACK),),
        repeat=7,
    )


def _memory(store: Store) -> Iterator[Comparison]:
    """Rechunking of more than the budget."""
    data = store.sampled("cube", (1400, 600, 600), (1, 600, 600), "shuffle+deflate:4")
    chunk = _chunk(data, (1400, 20, 20))
    rules = ["--chunk", f"{data.name}:{format_shape(chunk)}", "--memory", str(BUDGET)]
    argv = ["chunkwise", "repack", "{in}", "{out}", *rules]
    yield Comparison(
        "repack-memory",
        "repack",
        "cube of 2 GB to 1400x20x20 with --memory 256MiB (peak RssAnon + RssShmem)",
        (_reader(store, data, "chunkwise", argv, unit="bytes"),),
        (Target(float(BUDGET + BESIDE)),),
        unit="bytes",
        repeat=1,
        patience_s=LONG_S,
    )


def _with_a_small_one(store: Store) -> Data:
    """Give a file of 1 GB, in 64 datasets, and one small dataset."""
    nbytes = 64_000 if store.small else ONE_GB
    shape = (nbytes // 64 // 4,)

    def write(partial: Path) -> None:
        random = np.random.default_rng(0)
        with h5py.File(partial, "w") as file:
            for number in range(64):
                values = random.integers(0, 1 << 31, shape, "i4")
                chunk = (min(shape[0], 1 << 18),)
                file.create_dataset(f"large/{number}", data=values, chunks=chunk, shuffle=True)
            file["small"] = np.arange(1000.0)

    return Data(store.once(f"one-of-many-{nbytes}.h5", write), "large/63", shape)


def _with_many_small_ones(store: Store) -> Data:
    """Give a file of 100 datasets of 0.5 MiB in 10 groups, and one of 46 MiB."""
    shape, large = store.shape((8, 128, 128)), store.shape((184, 256, 256))

    def write(partial: Path) -> None:
        random = np.random.default_rng(0)
        with h5py.File(partial, "w") as file:
            for number in range(101):
                lengths = large if number == 100 else shape
                # Numbers that wander, to two decimals, as instruments give them.
                values = random.normal(size=lengths).cumsum(axis=0).round(2).astype("f4")
                chunk = (min(lengths[0], 4), *lengths[1:]) if number == 100 else (1, *lengths[1:])
                file.create_dataset(f"{number % 10}/{number}", data=values, chunks=chunk)

    return Data(store.once(f"many-small-{format_shape(large)}.h5", write), "9/99", shape)


def _chunk(data: Data, chunk: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunks no larger than the array, which may be a tiny one."""
    return tuple(min(pair) for pair in zip(chunk, data.shape, strict=True))


def _h5repack(
    store: Store, data: Data, chunk: tuple[int, ...], *filters: str, most: int | None = 1
) -> Reader:
    # Not by the dataset's name: of several filters for all, one that is named gets the first.
    layout = f"CHUNK={format_shape(chunk)}"
    argv = ["h5repack", "-l", layout, *filters, "{in}", "{out}"]
    return _reader(store, data, H5REPACK, argv, most=most)


def _chunkwise(
    store: Store, data: Data, label: str, chunk: tuple[int, ...], filters: str
) -> Reader:
    rules = ["--chunk", f"{data.name}:{format_shape(chunk)}", "--filter", f"*:{filters}"]
    return _reader(store, data, label, ["chunkwise", "repack", "{in}", "{out}", *rules])


def _reader(
    store: Store,
    data: Data,
    label: str,
    argv: Sequence[str],
    most: int | None = None,
    unit: str = "seconds",
) -> Reader:
    target = store.folder / f"repacked-{data.path.stem}-{label.replace(' ', '-')}.h5"
    arguments = {
        "argv": list(argv),
        "source": str(data.path),
        "target": str(target),
        "dataset": data.name,
        "unit": unit,
    }
    return Reader(label, "repacks:run", arguments, most=most)
