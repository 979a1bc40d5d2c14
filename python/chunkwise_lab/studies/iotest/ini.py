"""What does an INI file of hdf5-iotest ask for?

Only the order of sections matters.  What hdf5-iotest reads and walks anyway (``dataset-rank``,
``layout`` ...) has no effect here either; a name that it would ignore is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.names import printable
from chunkwise.words import nearest
from chunkwise_lab.studies.iotest.settings import Settings

_DELAY: Final = re.compile(r"([0-9]+) *([a-zA-Z]*)", re.ASCII)
_SECONDS: Final = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0}
_SZIP: Final = {"H5_SZIP_NN_OPTION_MASK": "nn", "H5_SZIP_EC_OPTION_MASK": "ec"}
# Read by hdf5-iotest, and then overwritten by its walk.
WALKED: Final = (
    "dataset-rank", "slowest-dimension", "layout", "fill-values", "libver-bound-low", "mpi-io",
)  # fmt: skip
LARGEST: Final = 2**63 - 1


def parse(text: str, name: str = "INI") -> tuple[dict[str, Any], list[str]]:
    """Read the text of an INI file."""
    values: dict[str, Any] = {}
    ignored: list[str] = []
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = re.split(r"(?:^|\s);", line, maxsplit=1)[0].strip()
        if not line or line[0] in "#;" or (line[0] == "[" and line[-1] == "]"):
            continue
        place = f"{printable(name)}, line {number}"
        parts = re.split("[=:]", line, maxsplit=1)
        if len(parts) < 2:
            raise UsageError(f"{place}: '{printable(line)}' is no 'name = value'")
        try:
            _take(parts[0].strip(), parts[1].strip(), values, ignored)
        except UsageError as wrong:
            raise UsageError(f"{place}: {wrong}") from None
    return values, ignored


def read(path: str) -> tuple[dict[str, Any], list[str]]:
    """Read an INI file; as `parse`, and it may not be there."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is no text"
        raise UsageError(f"{printable(path)}: cannot be read: {reason}") from None
    return parse(text, path)


def _take(key: str, value: str, values: dict[str, Any], ignored: list[str]) -> None:
    if key in WALKED:
        ignored.append(key)
    elif key in _READ:
        attribute, of = _READ[key]
        values[attribute] = of(value)
    elif key == "version":
        if value != "0":
            raise UsageError(f"version = {printable(value)}: only version 0 is known")
    elif key in ("split", "async"):
        if _whole(value):
            raise UsageError(f"{key} = {value}: not supported here; leave it out, or give 0")
    elif key == "libver-bound-high":
        if value != "latest":
            raise UsageError(f"libver-bound-high = {printable(value)}: only latest is supported")
    else:
        raise UsageError(f"'{printable(key)}' is not known{nearest(key, _READ)}")


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text, re.ASCII) or int(text) > LARGEST:
        raise UsageError(f"'{printable(text)}' is no whole number")
    return int(text)


def _delay(text: str) -> float:
    found = _DELAY.fullmatch(text)
    if found is None or found[2].lower() not in _SECONDS:
        raise UsageError(f"'{printable(text)}' is no time: write 2 s or 500 ms")
    return int(found[1]) * _SECONDS[found[2].lower()]


def _szip(text: str) -> Pipeline:
    parts = re.split(r"[ ,]+", text)
    if len(parts) != 2 or parts[0] not in _SZIP:
        raise UsageError(
            f"szip = {printable(text)}: write H5_SZIP_NN_OPTION_MASK, 8 (or ..._EC_..., 8)"
        )
    return Pipeline.parse(f"szip:{_SZIP[parts[0]]}:{_whole(parts[1])}")


# Each by its name in the file: the attribute of `Settings`, and how it is read.
_READ: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    **{
        one.name.replace("_", "-"): (one.name, str if one.type == "str" else _whole)
        for one in fields(Settings)
        if one.type in ("str", "int", "int | None")
    },
    "restart": ("restart", lambda text: bool(_whole(text))),
    "delay": ("delay_s", _delay),
    "gzip": ("filters", lambda text: Pipeline.parse(f"deflate:{_whole(text)}")),
    "szip": ("filters", _szip),
    # Ours: any chain.
    "filters": ("filters", Pipeline.parse),
}
