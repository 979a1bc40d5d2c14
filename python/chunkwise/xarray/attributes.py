"""How is the text of an attribute decoded for xarray?"""

from __future__ import annotations

import warnings
from typing import Any


def decoded(value: Any, name: str, where: str) -> Any:
    """The value of an attribute for xarray: bytes are text, but for those that stand for data."""
    if not isinstance(value, bytes) or name in ("_FillValue", "missing_value"):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        warnings.warn(
            f"'utf-8' codec can't decode bytes for attribute {name!r} of h5netcdf "
            f"object {where!r}, returning bytes undecoded.",
            UnicodeWarning,
            stacklevel=2,
        )
        return value
