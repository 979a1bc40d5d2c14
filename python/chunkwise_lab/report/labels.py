"""How are axes, their values and figures written for a reader?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from chunkwise.measure.axes import AXES, DEFAULT
from chunkwise.words import format_ratio, joined
from chunkwise_lab.report.scales import number
from chunkwise_lab.studies.figures import FIGURES, Figure
from chunkwise_lab.studies.libraries import WHEEL
from chunkwise_lab.studies.study import Where
from chunkwise_lab.studies.wording import quantity

Libraries = Mapping[str, str]

# Values that would say nothing without the name of their axis.
_BARE: Final = frozenset({"default", "yes", "no", "on", "off", "none", "stored"})
# Values that are said with a word, as they could be of another axis.
_NAMED: Final = {"chunk": "chunks", "format": "format"}
_WHOLE: Final = {
    ("chunk", "stored"): "chunks as stored",
    ("chunk", "contiguous"): "contiguous",
    ("filter", "stored"): "filters as stored",
    ("filter", "none"): "no filter",
    ("page-cache", "warm"): "warm page cache",
    ("page-cache", "cold"): "cold page cache",
}


# Of labels whose values are bare numbers.
_UNITS: Final = {"bandwidth": " (MB/s)"}


def axis_title(name: str) -> str:
    """Name an axis or a label."""
    if name in FIGURES:
        return f"{FIGURES[name].title[:1].upper()}{FIGURES[name].title[1:]}"
    about = AXES[name].about if name in AXES else name.replace("-", " ").replace("_", " ")
    about += _UNITS.get(name, "")
    return about[:1].upper() + about[1:]


def column_title(name: str) -> str:
    """Name it at the head of a column."""
    if name in FIGURES:
        return FIGURES[name].title
    return "library" if name == "libhdf5" else name.replace("-", " ").replace("_", " ")


def with_library(point: Mapping[str, str], libraries: Libraries) -> Mapping[str, str]:
    """Name the library that did the work: netCDF4 calls its own, whatever h5py's is."""
    if point.get("reader") != "netcdf4" or point.get("libhdf5") != DEFAULT:
        return point
    own = (path for path, text in libraries.items() if text.endswith(f"({WHEEL})"))
    return {**point, "libhdf5": next(own, DEFAULT)}


def value_text(axis: str, text: str, libraries: Libraries) -> str:
    """Write a value where its axis is named beside it."""
    if axis == "libhdf5":
        return libraries.get(text, text if text == "default" else PurePath(text).name)
    if axis == "access":
        return text.partition("=")[0]
    if axis in FIGURES:
        return figure_text(FIGURES[axis], float(text))
    return text


def value_phrase(axis: str, text: str, libraries: Libraries) -> str:
    """Write a value where nothing names its axis."""
    if (axis, text) in _WHOLE:
        return _WHOLE[axis, text]
    short = value_text(axis, text, libraries)
    if axis in _NAMED:
        return f"{_NAMED[axis]} {short}"
    if axis != "libhdf5" and (number(short) is not None or short in _BARE):
        return f"{column_title(axis)} {short}"
    return short


def phrase(point: Mapping[str, str], names: Iterable[str], libraries: Libraries) -> str:
    """Name what has these values, by some of its axes."""
    point = with_library(point, libraries)
    return ", ".join(value_phrase(n, point[n], libraries) for n in names if n in point)


def where_phrase(where: Where, libraries: Libraries) -> str:
    """Name the rows that a condition chooses."""
    parts = []
    for name, value in where.items():
        texts = value if isinstance(value, tuple) else (value,)
        parts.append(" or ".join(value_phrase(name, text, libraries) for text in texts))
    return ", ".join(parts)


def figure_text(figure: Figure, value: float) -> str:
    """Write a value of a figure with its unit."""
    if value < 0 and figure.unit in ("s", "bytes"):
        return f"{value:.3g} {figure.unit}"
    return format_ratio(value) if figure.unit == "times" else quantity(value, figure.unit)


def error_text(value: float, low: float, high: float) -> str:
    """Write an error bar as a share of the value; nothing if there is none."""
    if high <= low or not value:
        return ""
    share = 100 * (high - low) / 2 / abs(value)
    return f"± {share:.1f}%" if share < 10 else f"± {share:.0f}%"


def sources_text(sources: Sequence[str]) -> str:
    """Write where a value is printed: ``Tables 5, 7 and 8``."""
    numbers = [text.removeprefix("Table ") for text in sources]
    if len(sources) > 1 and all(map(str.isdigit, numbers)):
        return f"Tables {joined(numbers)}"
    return "; ".join(sources)
