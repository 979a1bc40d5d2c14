"""Write the corpus: chunks that libhdf5's filters have encoded; `together`; `stored`; `format`.

    python -m fuzz.make_corpus

from the root of the repository.  A name ends in the CRC-32 of what the chunk decodes to;
`src/decode.rs` says what a file holds.  Files of other names are kept: they were found by
the long run.
"""

from __future__ import annotations

import itertools
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from tests.support import metadata_files
from tests.support.filtered import CASES, SZIPS, Case, create, of_plugin, values
from tests.support.wide import widen

from chunkwise.grammar.codecs import CODECS_BY_ID

CORPUS = Path(__file__).parent / "corpus"
DEFLATE, SHUFFLE, FLETCHER32 = Case(1, (4,)), Case(2), Case(3)
# Elements in a chunk: no multiple of a byte's bits.
LENGTH = 187


def pipelines() -> Iterator[tuple[str, Any, list[Case]]]:
    """A name, a type and filters each."""
    for name, case in {**CASES, **SZIPS}.items():
        yield name, "<i4", [case]
    for level in (1, 9):
        yield f"deflate {level}", "<i4", [Case(1, (level,))]
    for dtype in ("u1", "<i2", ">f4", "<f8", "V5"):
        yield f"shuffle {dtype}", dtype, [SHUFFLE]
    for dtype in ("u1", ">f4", "<f8"):
        yield f"szip {dtype}", dtype, [Case(4, (32, 8))]
        yield f"bitshuffle {dtype}", dtype, [of_plugin(hdf5plugin.Bitshuffle(cname="lz4"))]
        yield f"blosc {dtype}", dtype, [of_plugin(hdf5plugin.Blosc("blosclz", 9, 1))]
    yield "fletcher32", "<i4", [FLETCHER32]
    for dtype in ("i1", ">u2", "<i4", "<u8"):
        yield f"scaleoffset {dtype}", dtype, [Case(6, (2, 0))]
    for dtype, power in itertools.product((">f4", "<f8"), (0, 2)):
        yield f"scaleoffset {dtype} {power}", dtype, [Case(6, (0, power))]
    padded = np.dtype({"names": ["a", "b"], "formats": ["<i2", np.longdouble], "offsets": [0, 16]})
    array = np.dtype([("c", np.longdouble, (3,)), ("d", "S3")])
    for number, nbit in enumerate((np.longdouble, padded, array, np.dtype("<i4"))):
        yield f"nbit {number}", nbit, [Case(5)]
    for codec in ("blosclz", "lz4", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            options = hdf5plugin.Blosc2(cname=codec, clevel=5, filters=shuffle)
            yield f"blosc2 {codec} {shuffle}", "<i4", [of_plugin(options)]
    yield "shuffle deflate", "<i4", [SHUFFLE, DEFLATE]
    yield "fletcher32 shuffle deflate", "<i4", [FLETCHER32, SHUFFLE, DEFLATE]
    yield "shuffle deflate fletcher32", "<f8", [SHUFFLE, DEFLATE, FLETCHER32]
    yield "deflate deflate", "<i4", [DEFLATE, DEFLATE]
    yield "lz4 zstd fletcher32", "<i4", [CASES["lz4"], CASES["zstd 3"], FLETCHER32]
    yield "szip bzip2", "<i4", [SZIPS["szip nn 8"], CASES["bzip2 1"]]
    yield "nbit lzf", np.longdouble, [Case(5), CASES["lzf"]]


def encoded(folder: Path, dtype: Any, kind: str, filters: list[Case]) -> tuple[bytes, bytes]:
    """A file of the corpus, and the chunk's bytes when decoded."""
    path = folder / "one.h5"
    path.unlink(missing_ok=True)
    dtype = np.dtype(dtype)
    plain = dtype != np.longdouble and dtype.names is None
    data = values(dtype if plain else "<i4", (LENGTH,), kind)
    with h5py.File(path, "w") as f:
        create(f, "x", dtype, (LENGTH,), (LENGTH,), filters)[...] = data.astype(dtype)
    with h5py.File(path) as f:
        mask, stored = f["x"].id.read_direct_chunk((0,))
        raw = f["x"][...].tobytes()
        dcpl = f["x"].id.get_create_plist()
        found = [dcpl.get_filter(number) for number in range(dcpl.get_nfilters())]
    header = struct.pack("<IIB", len(raw), mask, len(found))
    for number, _, options, _ in found:
        header += struct.pack(f"<IB{len(options)}I", number, len(options), *options)
    return header + stored, raw


# Shape, chunk, largest shape, which of HDF5's formats, and whether there is a filter.
FILES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str, bool]] = {
    "btree1": ((9, 7), (2, 3), None, "earliest", False),
    "btree1-deep": ((200,), (2,), (None,), "earliest", True),
    "fixed-array": ((9, 7), (2, 3), (20, 7), "latest", True),
    "fixed-array-pages": ((3000,), (1,), None, "latest", False),
    "extensible-array": ((5, 7), (2, 3), (5, None), "latest", True),
    "extensible-array-long": ((9000,), (1,), (None,), "latest", False),
    "btree2": ((9, 7), (2, 3), (None, None), "latest", False),
    "btree2-deep": ((20, 10), (1, 1), (None, None), "latest", True),
    "single-chunk": ((9, 7), (9, 7), None, "latest", True),
}


def indexed(path: Path, name: str, *, sums: bool) -> bytes:
    """A file whose index is of this kind, behind what `src/stored.rs` wants to know."""
    shape, chunk, largest, libver, filtered = FILES[name]
    with h5py.File(path, "w", libver=libver) as f:
        options = {"compression": 1} if filtered else {}
        d = f.create_dataset("d", shape, "u1", chunks=chunk, maxshape=largest, **options)
        if len(shape) == 1:
            d[:7], d[shape[0] // 2], d[-1] = 1, 2, 3
        else:
            d[...] = 5
        header = h5py.h5o.get_info(d.id).addr
        most = [2**64 - 1 if n is None else n for n in largest or shape]
        # Without a user block; HDF5's usual nodes; bytes.
        numbers = [header, 0, 32, 1, *shape, *chunk, *most]
    head = struct.pack(f"<BB{len(numbers)}Q", filtered + 2 * sums, len(shape), *numbers)
    return head + path.read_bytes()


def together() -> Iterator[tuple[str, bytes]]:
    """Streams of several kinds, by all ways in which zlib makes them: a name and a file each."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=220).astype(">f4").tobytes()
    planes = np.frombuffer(np.cumsum(rng.normal(size=110)).tobytes(), "u1").reshape(-1, 8).T
    kinds = {
        "noise": noise,
        "shuffled": planes.tobytes(),
        "counts": rng.poisson(2, 800).astype("<u2").tobytes(),
        "runs": bytes(3000) + b"abcabcabc" * 400,
        "random": rng.bytes(700),
    }
    strategies = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)

    def file(raws: list[bytes], level: int, strategy: int) -> bytes:
        makers = [zlib.compressobj(level, zlib.DEFLATED, 15, 8, strategy) for _ in raws]
        stored = [one.compress(raw) + one.flush() for one, raw in zip(makers, raws, strict=True)]
        sizes = zip(raws, stored, strict=True)
        head = b"".join(struct.pack("<IH", len(raw), len(one)) for raw, one in sizes)
        return bytes([len(raws)]) + head + b"".join(stored)

    for name, raw in kinds.items():
        parts = [raw[begin:] for begin in (0, 7, 100, 300)]
        for number, strategy in enumerate(strategies):
            yield f"{name}-{number}", file(parts, 1 + 2 * number, strategy)
    yield "mixed", file([*kinds.values(), b"", b"x"], 6, zlib.Z_DEFAULT_STRATEGY)


def small(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Names and files of up to four kilobytes; most take one."""
    for libver, name in itertools.product(("earliest", "latest"), ("group", "data", "chunks")):
        path = folder / "small.h5"
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        low = h5py.h5f.LIBVER_EARLIEST if libver == "earliest" else h5py.h5f.LIBVER_LATEST
        fapl.set_libver_bounds(low, h5py.h5f.LIBVER_LATEST)
        if name != "data":
            fapl.set_meta_block_size(0)
        made = h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fapl=fapl)
        with h5py.File(made) as f:
            if name == "group":
                group = f.create_group("g")
                group["top"], group["soft"] = f["/"], h5py.SoftLink("/nowhere")
            elif name == "data":
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                dcpl.set_layout(h5py.h5d.COMPACT)
                space = h5py.h5s.create(h5py.h5s.SCALAR)
                h5py.h5d.create(f.id, b"x", h5py.h5t.IEEE_F32LE, space, dcpl)
                f["x"].attrs["u"] = b"K"
            else:
                f.create_dataset("c", (4,), "u1", chunks=(2,), maxshape=(9,))[:] = 1
        content = path.read_bytes()
        if len(content) > 4096:
            continue
        yield f"small-{name}-{'old' if libver == 'earliest' else 'new'}", content


def main() -> None:
    """Write all files anew."""
    (CORPUS / "together").mkdir(parents=True, exist_ok=True)
    for name, content in together():
        (CORPUS / "together" / name).write_bytes(content)
    for old in CORPUS.glob("*/*.crc-*"):
        old.unlink()
    (CORPUS / "stored").mkdir(parents=True, exist_ok=True)
    (CORPUS / "format").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, sums in itertools.product(FILES, (False, True)):
            content = indexed(Path(folder) / "indexed.h5", name, sums=sums)
            (CORPUS / "stored" / f"{name}{'-sums' if sums else ''}").write_bytes(content)
        for name in (*metadata_files.KINDS, "chunks-wide"):
            path = metadata_files.write(Path(folder), name.replace("wide", "new"))
            # With checksums mended.
            head = struct.pack("<8Q", 1, *metadata_files.addresses(path))
            if name == "chunks-wide":
                # HDF5 2.0 does not open what is in there.
                widen(path)
            (CORPUS / "format" / name).write_bytes(head + path.read_bytes())
        (CORPUS / "listing").mkdir(parents=True, exist_ok=True)
        for name, content in small(Path(folder)):
            for target in ("format", "listing"):
                (CORPUS / target / name).write_bytes(struct.pack("<8Q", 1, *[0] * 7) + content)
        for name in ("groups-old", "groups-new", "values-old", "values-new", "chunks-old"):
            (CORPUS / "listing" / name).write_bytes((CORPUS / "format" / name).read_bytes())
        for name, dtype, filters in pipelines():
            target = CODECS_BY_ID[filters[0].number].name if len(filters) == 1 else "pipeline"
            (CORPUS / target).mkdir(parents=True, exist_ok=True)
            for kind in ("smooth", "few") if len(filters) == 1 else ("smooth",):
                content, raw = encoded(Path(folder), dtype, kind, filters)
                file = f"{name} {kind}".replace(" ", "-").replace("<", "le-").replace(">", "be-")
                path = CORPUS / target / f"{file}.crc-{zlib.crc32(raw):08x}"
                path.write_bytes(content)


if __name__ == "__main__":
    main()
