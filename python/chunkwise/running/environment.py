"""Which variables put the engine under a program?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.settings import VARIABLES

LIBRARY: Final = Path(__file__).resolve().parent.parent / "libchunkwise_preload.so"


def variables(
    *,
    threads: int | None = None,  # Most threads of a read; None for as many as there are
    cache_nbytes: int | None = None,  # Bytes of decoded chunks that are kept; None for the default
    report: str | None = None,
    before: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return the variables to set, by name."""
    if not LIBRARY.is_file():
        raise UsageError(
            f"{LIBRARY} is missing, and programs need it: build it with `make "
            "install` in a checkout of chunkwise, or install the wheel"
        )
    library = str(LIBRARY)
    if set(library) & set(" :"):
        raise UsageError(
            f"{library}: the loader takes no library whose path has spaces or colons: install "
            "chunkwise elsewhere"
        )
    others = [one for one in before.get("LD_PRELOAD", "").replace(" ", ":").split(":") if one]
    found = {"LD_PRELOAD": ":".join([library, *(one for one in others if one != library)])}
    if threads is not None:
        found[VARIABLES["threads"]] = str(threads)
    if cache_nbytes is not None:
        found[VARIABLES["cache_nbytes"]] = str(cache_nbytes)
    if report is not None:
        found["CHUNKWISE_REPORT"] = report
    return found
