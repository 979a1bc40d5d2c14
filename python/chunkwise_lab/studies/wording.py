"""How are a figure, a setting and a ratio put into words for a reader without the paper?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from chunkwise.grammar import format_size
from chunkwise.measure.axes import AXES, DEFAULT
from chunkwise.names import printable
from chunkwise.words import format_seconds, joined, three_digits
from chunkwise_lab.studies.comparing import Sample
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.libraries import build_of
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.study import OTHERS, Claim, Where

# How a figure is more, by its unit.
_MORE: Final = {
    "s": "{} as long",
    "MB/s": "{} as fast",
    "bytes": "{} as large",
    "MB": "{} as much",
    "times": "{} as high",
    "%": "{} as much",
    "": "{} as many",
}
# In which units papers print figures, if not in ours; tables in the first.
_PRINTED: Final = {"s": ((1.0, "s"),), "bytes": ((1e6, "MB"), (1e9, "GB"))}
# Of what it is so much, if the unit does not say it.
_OF: Final = {
    "chunk_loads": " chunks loaded",
    "read_calls": " reads",
    "read_nbytes": " read",
    "peak_rss_nbytes": " of peak memory",
    "file_nbytes": " in the file",
    "stored_nbytes": " stored",
    "written_nbytes": " written",
}
# Names of axes in a sentence, if their own names do not fit.
_TITLES: Final = {
    "chunk": "chunk shape",
    "access": "access pattern",
    "filter": "filter",
    "cache": "chunk cache",
    "nslots": "number of slots",
    "threads": "number of threads",
    "sieve": "sieve buffer",
    "conversion": "conversion buffer",
    "small-data": "small data block",
    "alloc-time": "allocation time",
}
# Axes of sizes.
_SIZES: Final = ("cache", "sieve", "conversion", "metadata-block", "small-data", "page-buffer")
# Values that are said otherwise than by name and value.
_SAID: Final = {
    "access": "'{}'",
    "chunk": "chunks {}",
    "reader": "{}",
    "operation": "{}s",
    "page-cache": "a {} page cache",
    "nslots": "{} slots",
    "threads": "{} threads",
}
_SAID_CHUNK: Final = {"contiguous": "contiguous data", "whole": "one chunk"}
_SAID_DEFAULT: Final = {
    "chunk": "chunks as stored",
    "filter": "filters as stored",
    "libhdf5": "h5py's libhdf5",
}


def quantity(value: float, unit: str) -> str:
    """Write a figure in its unit, with three digits or so.

    >>> quantity(345.2, "s"), quantity(0.0023, "MB/s"), quantity(3 << 20, "bytes")
    ('5.75 min', '0.0023 MB/s', '3.0 MiB')
    """
    if unit == "s":
        return format_seconds(value)
    if unit == "bytes":
        return format_size(round(value))
    return f"{plain(value)} {unit}" if unit in ("MB", "MB/s", "%") else plain(value)


def in_print(value: float, unit: str) -> str:
    """Write a published figure as papers print it: seconds are no minutes, and MB are 10^6 bytes.

    >>> in_print(345, "s"), in_print(13.88, "s"), in_print(62_420_000, "bytes")
    ('345 s', '13.88 s', '62.42 MB')
    """
    scale, name = _printed_unit(unit)
    return f"{value / scale:,.10g} {name}".rstrip()


def beside(value: float, unit: str) -> str:
    """Write today's figure in the unit of a published one.

    >>> beside(203.4, "s"), beside(0.000312, "s"), beside(62_419_000, "bytes")
    ('203 s', '0.000312 s', '62.42 MB')
    """
    return _in_unit(value, *_printed_unit(unit))


def _printed_unit(unit: str) -> tuple[float, str]:
    return _PRINTED[unit][0] if unit in _PRINTED else (1.0, unit)


def _in_unit(value: float, scale: float, name: str) -> str:
    value /= scale
    if 0 < abs(value) < 1:
        text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"
    elif scale > 1:
        # Sizes repeat exactly, and papers print them so.
        text = f"{value:,.2f}"
    else:
        text = three_digits(value) if name == "s" else plain(value)
    return f"{text} {name}".rstrip()


def plain(value: float) -> str:
    """Write a number with three digits; a whole one as it is."""
    if math.isinf(value):
        return "infinite"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.2g}" if 0 < abs(value) < 0.1 else three_digits(value)


def shown(sample: Sample, claim: Claim) -> str:
    """Write a sample's middle in the unit of the claim's published figures; mark an estimate."""
    unit = FIGURES[claim.figure].unit
    text = quantity(sample.middle, unit)
    for scale, name in _PRINTED.get(unit, ()):
        if re.search(rf"\d {name}\b(?!/)", claim.published):
            text = _in_unit(sample.middle, scale, name)
    return f"{'~' if sample.estimated else ''}{text}"


def named(sample: Sample, claim: Claim) -> str:
    """Write a sample's middle, and its quantity."""
    return f"{shown(sample, claim)}{_OF.get(claim.figure, '')}"


def times(ratio: float, figure: str, estimated: bool = False) -> str:
    """Write a ratio of a figure: ``932 times as long``."""
    return _MORE[FIGURES[figure].unit].format(factor(ratio, estimated))


def factor(ratio: float, estimated: bool = False) -> str:
    """Write a ratio: ``932 times``."""
    if math.isinf(ratio):
        return "infinitely many times"
    text = three_digits(ratio) if ratio >= 0.1 else f"{ratio:.2g}"
    return f"{'~' if estimated else ''}{text} times"


def setting(name: str, text: str) -> str:
    """Say one value of an axis, or of a label.

    >>> setting("cache", "3MiB"), setting("filter", "none"), setting("storage", "chunked")
    ('a chunk cache of 3MiB', 'no filter', 'storage chunked')
    >>> setting("datasets", "16"), setting("datasets", "1"), setting("tile", "tile1")
    ('16 datasets', '1 dataset', 'tile1')
    """
    text = printable(text)
    if text in (DEFAULT, "stored") and name in AXES and text == AXES[name].default:
        return _SAID_DEFAULT.get(name, f"the default {axis_title(name)}")
    if name == "filter":
        return "no filter" if text == "none" else text
    if name == "chunk" and text in _SAID_CHUNK:
        return _SAID_CHUNK[text]
    if name == "libhdf5":
        return "another libhdf5" if text == OTHERS else text
    if name == "access" and "=" in text:
        text = text.partition("=")[0]
    if name in _SIZES:
        return f"a {axis_title(name)} of {text}"
    if name in _SAID:
        return _SAID[name].format(text)
    if text in ("yes", "no"):
        return _spaced(name) if text == "yes" else f"not {_spaced(name)}"
    # A count of something, such as 16 datasets.
    if text.isdecimal() and name.endswith("s"):
        return f"{text} {_spaced(name.removesuffix('s') if text == '1' else name)}"
    # A label whose values name it, such as tile1.
    return text if text.startswith(name) else f"{_spaced(name)} {text}"


def setting_of(sample: Sample, name: str) -> str:
    """Say a sample's value of an axis; a library by its version, not its path."""
    text = sample.point[name]
    if name == "libhdf5" and sample.versions:
        used = joined(sample.versions)
        # netCDF4 calls a library of its own, and its version says which.
        own = sample.point.get("reader") == "netcdf4"
        return used if own else f"{used} ({printable(build_of(text))})"
    return setting(name, text)


def axis_title(name: str) -> str:
    """Name an axis, or a label."""
    return _TITLES.get(name, _spaced(name))


def _spaced(name: str) -> str:
    return name.replace("-", " ").replace("_", " ")


def side(where: Where, against: Where, found: Sequence[Sample]) -> str:
    """Say what distinguishes one side of a comparison from the other."""
    parts = []
    for name, wanted in where.items():
        if against.get(name) == wanted:
            continue
        texts = wanted if isinstance(wanted, tuple) else (wanted,)
        if name == "libhdf5" and found:
            # A path says nothing; which version it is does.
            parts.append(joined(versions(found)) or setting(name, texts[0]))
        else:
            parts.append(" or ".join(setting(name, text) for text in texts))
    return joined(parts) or "the other"


def differing(points: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the axes on which points differ."""
    names = dict.fromkeys(name for point in points for name in point)
    return [name for name in names if len({point.get(name) for point in points}) > 1]


def versions(found: Iterable[Sample]) -> list[str]:
    """Return the libraries that took part, each once."""
    return list(dict.fromkeys(text for sample in found for text in sample.versions))


def oversubscribed(rows: Sequence[Row], cpu_count: object) -> str:
    """Say which rows show no scaling; nothing if there are none."""
    crowded = [row.point for row in rows if row.point.get("oversubscribed") == "yes"]
    numbers = sorted({point["ranks"] for point in crowded if "ranks" in point}, key=len)
    if not numbers:
        return ""
    return (
        f"{joined(numbers)} ranks on {cpu_count} processors: oversubscribed, they take turns. "
        "These times say nothing about scaling, and no claim about time is judged by them. Open "
        "MPI's ranks gave their processor away while they waited (mpi_yield_when_idle)."
    )
