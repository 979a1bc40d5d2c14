"""Which values of a filter are the user's, which belong to the chunks, and what do values lose?

Of a named filter, the codec's options are the user's; other chunks get the rest anew: scaleoffset
its bits, szip at most as many pixels as a chunk has elements, and filters in `numbered.NUMBERED`
what its functions say.  Any other filter, and one that would round again, is not carried.
"""

from __future__ import annotations

from typing import Final

from chunkwise.grammar.codecs import CODECS
from chunkwise.grammar.filters import Filter, Pipeline
from chunkwise.grammar.numbered import NUMBERED, Loss

# Other registered filters that may lose: APAX, JPEG-XR, FPZIP, B3D, JPEG, FFMPEG.
_MAY_LOSE: Final = frozenset({32005, 32007, 32014, 32016, 32019, 32030})


def loss_of(one: Filter, itemsize: int = 8) -> Loss | None:
    """Return what values lose in a filter; None if it keeps each, or is not known to lose any."""
    if one.name == "scaleoffset" and one.options[0] == "ds":
        return Loss(absolute=0.5 * 10.0 ** -int(one.options[1]), by_steps=True)
    if one.name in CODECS:
        # The whole mantissa is cut off.
        return Loss(relative=0.5) if "truncprec" in one.options else None
    if one.filter_id in NUMBERED:
        return NUMBERED[one.filter_id][1](one.cd_values, itemsize)
    return Loss() if one.filter_id in _MAY_LOSE else None


def rounds(pipeline: Pipeline) -> bool:
    """Whether values pass these filters only approximately."""
    return any(loss_of(one) is not None for one in pipeline.filters)


def carried(pipeline: Pipeline, elements: int | None = None) -> Pipeline | str:
    """Return a dataset's filters for other chunks than its own."""
    made = []
    for one in pipeline.filters:
        known = one.name in CODECS or (
            one.filter_id in NUMBERED and NUMBERED[one.filter_id][0](one.cd_values) is not None
        )
        if not known:
            return f"has {one}, whose values may belong to its chunks: nobody here knows them"
        if loss_of(one) is not None:
            return f"has {one}, which would round its values a second time"
        made.append(_fitting(one, elements))
    return Pipeline(tuple(made))


def _fitting(one: Filter, elements: int | None) -> Filter:
    """Return a filter of a name with parameters for other chunks."""
    if one.name == "scaleoffset":
        return Filter(one.name, ("in", 0))
    if one.name == "szip" and elements is not None:
        pixels = min(int(one.options[1]), max(2, elements - elements % 2))
        return Filter(one.name, (one.options[0], pixels))
    return one
