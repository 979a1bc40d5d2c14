"""Which filters change values, so that what is read back cannot equal what was written?"""

from __future__ import annotations

from typing import Final

from chunkwise.grammar import Filter, Pipeline

# Numbers of registered filters that round: BitGroom, Granular BitRound, FPZIP, ZFP, SZ, SZ3,
# SPERR.  What is not known here is taken to be exact, and found out by verification.
_ROUNDING: Final = frozenset({32013, 32014, 32017, 32022, 32023, 32024, 32028})


def is_lossy(pipeline: Pipeline) -> bool:
    """Tell whether values pass these filters only approximately."""
    return any(_rounds(one) for one in pipeline.filters)


def _rounds(one: Filter) -> bool:
    if one.name == "scaleoffset":
        return one.options[0] == "ds" or one.options[1] != 0
    return "truncprec" in one.options or one.filter_id in _ROUNDING
