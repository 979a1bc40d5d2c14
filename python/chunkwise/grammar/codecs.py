"""Which filters have a name, and how do their options map to HDF5's cd_values?

HDF5 knows a filter by its number and a list of unsigned integers, the client data values
("cd_values").  What a program gives to ``H5Pset_filter`` is not what the file stores: many filters
add the element size, the chunk's bytes or their own version when the dataset is made.
`Codec.to_cd` writes the first form, `Codec.from_cd` reads the second.

The engine's table has the numbers.  Where a text leaves an option out, the default is that of h5py
(deflate 4, szip nn:8) or of hdf5plugin (zstd 3, bzip2 9, blosc lz4:5, blosc2 blosclz:5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from chunkwise import _native

Options: TypeAlias = tuple[str | int, ...]
CdValues: TypeAlias = tuple[int, ...]
# A filter that only libhdf5 applies is added here.
_NUMBERS: Final = {name: number for number, name in _native.filters().items()}


@dataclass(frozen=True)
class Codec:
    """A filter that has a name in chunkwise."""

    name: str  # The name as printed
    usage: str  # How it is written, for error messages
    # Options as written -> options in full, or None if they make no sense.
    canonical: Callable[[Options], Options | None]
    # cd_values as stored in a file -> options in full, or None if they do not say what the options
    # can express.
    from_cd: Callable[[CdValues], Options | None]
    to_cd: Callable[[Options], CdValues]  # Options in full -> cd_values for ``H5Pset_filter``
    # Options in full -> what ``h5repack -f`` calls it (None: it cannot).  By default its number.
    h5repack: Callable[[Options], str | None] | None = None
    # Whether a chunk is stored unfiltered where the filter fails (``H5Z_FLAG_OPTIONAL``), as HDF5
    # and h5py have it for all but fletcher32.  Blosc and its like must be: they fail on purpose on
    # a chunk that does not get smaller.
    optional: bool = True
    # Options in full -> whether it looks for what can be said in fewer bytes.
    compresses: Callable[[Options], bool] = lambda _: True

    @property
    def filter_id(self) -> int:
        """HDF5's number for the filter (``H5Z_filter_t``)."""
        return _NUMBERS[self.name]


def _whole(value: str | int, low: int, high: int) -> bool:
    """Whether an option is a whole number within limits (both included)."""
    return isinstance(value, int) and low <= value <= high


def _bare(
    name: str, word: str | None, *, optional: bool = True, compresses: bool = False
) -> Codec:
    """A filter without options; it chooses the stored ones itself."""
    return Codec(
        name=name,
        usage=f"{name}, without options",
        canonical=lambda options: None if options else (),
        from_cd=lambda _: (),
        to_cd=lambda _: (),
        h5repack=lambda _: word,
        optional=optional,
        compresses=lambda _: compresses,
    )


def _levelled(name: str, *, low: int, high: int, default: int, word: str | None = None) -> Codec:
    """A filter whose one option is a level, stored as a 32-bit cd value."""
    # `default` stands for a level left out, in a text and in a file (bzip2 and zstd read missing
    # cd_values so; H5Pset_deflate always stores one).

    def canonical(options: Options) -> Options | None:
        full = options or (default,)
        return full if len(full) == 1 and _whole(full[0], low, high) else None

    def from_cd(cd: CdValues) -> Options | None:
        # Negative levels of zstd are stored as unsigned.
        return canonical(tuple(v - 2**32 if low < 0 and v >= 2**31 else v for v in cd[:1]))

    def to_cd(options: Options) -> CdValues:
        return (int(options[0]) % 2**32,)

    h5repack = (lambda options: f"{word}={options[0]}") if word else None
    usage = f"{name}:LEVEL, LEVEL from {low} to {high} (without it, {default})"
    if name == "deflate":
        usage += ", or deflate:fast"  # See `Filter.effort`.
    return Codec(name, usage, canonical, from_cd, to_cd, h5repack)


def _szip() -> Codec:
    """szip: coding method (H5_SZIP_NN or _EC_OPTION_MASK) and pixels per block."""
    masks: Mapping[str | int, int] = {"nn": 32, "ec": 4}

    def canonical(options: Options) -> Options | None:
        full = options + ("nn", 8)[len(options) :]
        fits = len(full) == 2 and full[0] in masks and _whole(full[1], 2, 32)
        return full if fits and int(full[1]) % 2 == 0 else None

    def from_cd(cd: CdValues) -> Options | None:
        # Stored: the mask with bits that HDF5 adds, pixels per block, bits per
        # pixel, pixels per scan line.
        methods = [method for method, bit in masks.items() if cd and cd[0] & bit]
        return canonical((methods[0], cd[1])) if len(methods) == 1 and len(cd) > 1 else None

    return Codec(
        name="szip",
        usage="szip:nn:PIXELS or szip:ec:PIXELS, PIXELS even from 2 to 32 (without, nn:8)",
        canonical=canonical,
        from_cd=from_cd,
        to_cd=lambda options: (masks[options[0]], int(options[1])),
        h5repack=lambda options: f"SZIP={options[1]},{str(options[0]).upper()}",
    )


def _scaleoffset() -> Codec:
    """scaleoffset: scale type (H5Z_SO_INT or H5Z_SO_FLOAT_DSCALE) and its factor."""
    types: Mapping[str | int, int] = {"in": 2, "ds": 0}

    def canonical(options: Options) -> Options | None:
        full = options or ("in", 0)
        fits = len(full) == 2 and full[0] in types
        # For integers the factor is a number of bits (0: as many as needed), for
        # floats the decimal digits to keep, which may be negative.
        low, high = (0, 64) if full[0] == "in" else (-1000, 1000)
        return full if fits and _whole(full[1], low, high) else None

    def from_cd(cd: CdValues) -> Options | None:
        names = {number: name for name, number in types.items()}
        if len(cd) < 2 or cd[0] not in names:
            return None
        return canonical((names[cd[0]], cd[1] - 2**32 if cd[1] >= 2**31 else cd[1]))

    return Codec(
        name="scaleoffset",
        usage="scaleoffset:in:BITS (integers; 0: as needed) or scaleoffset:ds:DIGITS (floats)",
        canonical=canonical,
        from_cd=from_cd,
        to_cd=lambda options: (types[options[0]], int(options[1]) % 2**32),
        h5repack=lambda options: f"SOFF={options[1]},{str(options[0]).upper()}",
        compresses=lambda _: False,
    )


def _blosc(name: str, compressors: Mapping[str | int, int], before: tuple[str, ...]) -> Codec:
    """Blosc and Blosc2: compressor, level, and what comes before compressing."""
    # cd_values 0 to 3 are the filter's own; 4 is the level, 5 an index into `before` (1, shuffle,
    # is not printed), 6 the compressor.
    shuffle = before[1]
    default = "lz4" if name == "blosc" else "blosclz"

    def canonical(options: Options) -> Options | None:
        full = options + (default, 5, shuffle)[len(options) :]
        fits = len(full) == 3 and full[0] in compressors and full[2] in before
        if not fits or not _whole(full[1], 0, 9):
            return None
        return full[:2] if full[2] == shuffle else full

    def from_cd(cd: CdValues) -> Options | None:
        level, step, compressor = cd[4:7] + (5, 1, 0)[len(cd[4:7]) :]
        names = {number: name for name, number in compressors.items()}
        if compressor not in names or step >= len(before):
            return None
        return canonical((names[compressor], level, before[step]))

    def to_cd(options: Options) -> CdValues:
        compressor, level, step = (*options, shuffle)[:3]
        return (0, 0, 0, 0, int(level), before.index(str(step)), compressors[compressor])

    return Codec(
        name=name,
        usage=(
            f"{name}:COMPRESSOR:LEVEL[:{'|'.join(before)}], COMPRESSOR "
            f"{'|'.join(map(str, compressors))}, LEVEL from 0 to 9 (without, {default}:5:shuffle)"
        ),
        canonical=canonical,
        from_cd=from_cd,
        to_cd=to_cd,
    )


def _take_block(options: Options) -> tuple[Options, int | None]:
    """Split a last option ``block=N`` off; the block is 0 if absent, None if not a number."""
    if not options or not str(options[-1]).startswith("block="):
        return options, 0
    digits = str(options[-1])[len("block=") :]
    fits = digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) < 2**32
    return options[:-1], int(digits) if fits else None


def _with_block(options: Options, block: int) -> Options:
    """Put a block size back; 0, the filter's own choice, is not printed."""
    return (*options, f"block={block}") if block else options


def _bitshuffle() -> Codec:
    """bitshuffle: compressor (none, lz4, zstd with a level), elements per block."""
    compressors: Mapping[str | int, int] = {"none": 0, "lz4": 2, "zstd": 3}

    def canonical(options: Options) -> Options | None:
        rest, block = _take_block(options)
        compressor, *level = rest or ("none",)
        if compressor not in compressors or block is None or block % 8:
            return None
        if compressor == "zstd":
            level = level or [3]
            if len(level) != 1 or not _whole(level[0], 0, 22):
                return None
        elif level:
            return None
        if compressor == "none" and not block:
            return ()
        return _with_block((compressor, *level), block)

    def from_cd(cd: CdValues) -> Options | None:
        # Stored: version (2 values), element size, block, compressor, level.
        block, compressor = cd[3:5] + (0, 0)[len(cd[3:5]) :]
        names = {number: name for name, number in compressors.items()}
        if compressor not in names:
            return None
        level = cd[5:6] if names[compressor] == "zstd" else ()
        return canonical(_with_block((names[compressor], *level), block))

    def to_cd(options: Options) -> CdValues:
        rest, block = _take_block(options)
        compressor, *level = rest or ("none",)
        return (block or 0, compressors[compressor], *map(int, level))

    return Codec(
        name="bitshuffle",
        usage=(
            "bitshuffle, bitshuffle:lz4 or bitshuffle:zstd:LEVEL, LEVEL from 0 to 22 "
            "(without, 3), and :block=N (a multiple of 8 elements) after any"
        ),
        canonical=canonical,
        from_cd=from_cd,
        to_cd=to_cd,
        # Without one of those it only rearranges.
        compresses=lambda options: bool({"lz4", "zstd"}.intersection(options)),
    )


def _lz4() -> Codec:
    """lz4 as HDF5 plugin: its one option is the block size in bytes."""

    def canonical(options: Options) -> Options | None:
        rest, block = _take_block(options)
        return None if rest or block is None else _with_block((), block)

    def to_cd(options: Options) -> CdValues:
        return (_take_block(options)[1] or 0,)

    return Codec(
        name="lz4",
        usage="lz4 or lz4:block=BYTES",
        canonical=canonical,
        from_cd=lambda cd: _with_block((), cd[0] if cd else 0),
        to_cd=to_cd,
    )


_BLOSC_COMPRESSORS: Final[Mapping[str | int, int]] = {
    "blosclz": 0,
    "lz4": 1,
    "lz4hc": 2,
    "snappy": 3,
    "zlib": 4,
    "zstd": 5,
}

CODECS: Final[dict[str, Codec]] = {
    codec.name: codec
    for codec in (
        _levelled("deflate", low=0, high=9, default=4, word="GZIP"),
        _bare("shuffle", "SHUF"),
        _bare("fletcher32", "FLET", optional=False),
        _szip(),
        _bare("nbit", "NBIT"),
        _scaleoffset(),
        _levelled("bzip2", low=1, high=9, default=9),
        # h5repack cannot load LZF: it is compiled into h5py, and is no plugin.
        _bare("lzf", None, compresses=True),
        _blosc("blosc", _BLOSC_COMPRESSORS, ("noshuffle", "shuffle", "bitshuffle")),
        _lz4(),
        _bitshuffle(),
        _levelled("zstd", low=-131072, high=22, default=3),
        _blosc(
            "blosc2",
            {name: number for name, number in _BLOSC_COMPRESSORS.items() if name != "snappy"},
            ("noshuffle", "shuffle", "bitshuffle", "delta", "truncprec"),
        ),
    )
}
CODECS_BY_ID: Final[dict[int, Codec]] = {codec.filter_id: codec for codec in CODECS.values()}
ALIASES: Final = {"gzip": "deflate"}
