"""Do two values from two files mean the same, even if their bytes differ?"""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from chunkwise.files.references import Paths


def equal_values(first: Any, second: Any, mine: Paths, theirs: Paths) -> bool:
    """Compare values as h5py gives them: of variable length, references, or with such parts.

    Parameters
    ----------
    first, second
        From one file and the other.
    mine, theirs
        What references of each file lead to.
    """
    if isinstance(first, h5py.Reference | h5py.RegionReference):
        return type(first) is type(second) and mine.meaning(first) == theirs.meaning(second)
    if isinstance(first, np.ndarray | np.void):
        if type(first) is not type(second) or first.dtype != second.dtype:
            return False
        if first.shape != second.shape:
            return False
        if not first.dtype.hasobject:
            return first.tobytes() == second.tobytes()
        if first.dtype.names:
            return all(
                equal_values(first[name], second[name], mine, theirs) for name in first.dtype.names
            )
        pairs = zip(first.ravel(), second.ravel(), strict=True)
        return all(equal_values(a, b, mine, theirs) for a, b in pairs)
    if isinstance(first, np.generic):
        return type(first) is type(second) and first.tobytes() == second.tobytes()
    return type(first) is type(second) and bool(first == second)
