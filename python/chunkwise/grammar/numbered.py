"""What do the stored values of filters mean that have a number and no name here?"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chunkwise.grammar.codecs import CdValues

Given = Callable[[CdValues], CdValues | None]


@dataclass(frozen=True)
class Loss:
    """How far a filter that rounds may change a value; without any limit if nothing is set."""

    absolute: float | None = None  # At most this much
    relative: float | None = None  # At most this part of the value
    of_range: float | None = None  # At most this part of the range of a chunk's values
    # Whether values become whole steps from a chunk's smallest value, as scaleoffset has them:
    # float arithmetic with that value adds its own error, and values less than a step from the
    # fill value become the fill value.
    by_steps: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether the filter promises a limit."""
        return (self.absolute, self.relative, self.of_range) != (None, None, None)


# --- ZFP -------------------------------------------------------------------------------

_ZFP_MAGIC: Final = int.from_bytes(b"zfp\x05", "little")
_RATE, _PRECISION, _ACCURACY, _EXPERT, _REVERSIBLE = range(1, 6)
# Modes in twelve bits: rates, then precisions, one for reversible, then accuracies.
_FIRST_PRECISION: Final = 2048
_IS_REVERSIBLE: Final = _FIRST_PRECISION + 128
_IN_64_BITS: Final = 4095
_SMALLEST_EXPONENT: Final = -1074


def _zfp_given(cd: CdValues) -> CdValues | None:
    """Read the mode in ZFP's header, which holds the chunk's shape besides; codec 5, as stored."""
    if len(cd) in (0, 6) and cd[1:2] in ((), (0,)):
        return cd
    if len(cd) < 4 or cd[1] != _ZFP_MAGIC:
        return None
    mode = cd[3] >> 20
    if mode < _FIRST_PRECISION:
        exponent = _SMALLEST_EXPONENT % 2**32
        return (_EXPERT, 0, mode + 1, mode + 1, 64, exponent)
    if mode < _IS_REVERSIBLE:
        return (_PRECISION, 0, mode + 1 - _FIRST_PRECISION, 0, 0, 0)
    if mode == _IS_REVERSIBLE:
        return (_REVERSIBLE, 0, 0, 0, 0, 0)
    if mode < _IN_64_BITS:
        accuracy = math.ldexp(1, mode + _SMALLEST_EXPONENT - _IS_REVERSIBLE - 1)
        return (_ACCURACY, 0, *struct.unpack("=II", struct.pack("=d", accuracy)), 0, 0)
    if len(cd) < 6:
        return None
    long = cd[4] | cd[5] << 32
    bits = (long & 0x7FFF) + 1, (long >> 15 & 0x7FFF) + 1
    return (_EXPERT, 0, *bits, (long >> 30 & 0x7F) + 1, ((long >> 37 & 0x7FFF) - 16495) % 2**32)


def _zfp_loss(cd: CdValues, _: int) -> Loss | None:
    mode = cd[0] if cd else _EXPERT
    if mode == _REVERSIBLE:
        return None
    if mode == _ACCURACY and len(cd) >= 4:
        return Loss(absolute=float(struct.unpack("=d", struct.pack("=II", *cd[2:4]))[0]))
    return Loss()


# --- SZ, SZ3, SPERR --------------------------------------------------------------------


def _sz_given(cd: CdValues) -> CdValues | None:
    """Leave out what SZ and SZ3 put before the mode and its four numbers: the chunk's shape."""
    return cd[-9:] if len(cd) == 9 or len(cd) >= 13 else None


def _sz_number(cd: CdValues, place: int) -> float:
    high, low = cd[1 + 2 * place : 3 + 2 * place]
    return float(struct.unpack(">d", struct.pack(">II", high, low))[0])


def _sz_loss(cd: CdValues, _: int) -> Loss:
    if len(cd) != 9 or cd[0] not in (0, 1, 10):
        return Loss()
    if cd[0] == 0:
        return Loss(absolute=_sz_number(cd, 0))
    if cd[0] == 1:
        return Loss(of_range=_sz_number(cd, 1))
    return Loss(relative=_sz_number(cd, 2))


def _sperr_given(cd: CdValues) -> CdValues | None:
    """Leave out the shape, and take how missing values are marked from the first value."""
    if cd and cd[0] >= 1 << 28:
        return cd
    return (cd[1], cd[0] >> 6 & 0xF) if len(cd) >= 2 and cd[1] >= 1 << 28 else None


def _sperr_loss(cd: CdValues, _: int) -> Loss:
    if not cd or cd[0] >> 28 & 3 != 3:
        return Loss()
    exponent = (cd[0] & (1 << 27) - 1) / 65536
    return Loss(absolute=2 ** (-exponent if cd[0] >> 27 & 1 else exponent))


# --- BitGroom and Granular BitRound ------------------------------------------------------


def _digits_given(cd: CdValues) -> CdValues | None:
    return cd[:1] or None


def _digits_loss(cd: CdValues, itemsize: int) -> Loss | None:
    digits = cd[0] if cd else 3
    # More decimal digits than the type has bits for: there is nothing to round.
    return None if digits > (7 if itemsize == 4 else 15) else Loss(relative=5 * 10.0**-digits)


# --- the table -------------------------------------------------------------------------


# Of filters without a name: the user's part of what is stored (None: not known), and the loss.
NUMBERED: Final[dict[int, tuple[Given, Callable[[CdValues, int], Loss | None]]]] = {
    32013: (_zfp_given, _zfp_loss),
    32017: (_sz_given, _sz_loss),
    32018: (lambda _: (), lambda *_: None),  # FCIDECOMP
    32022: (_digits_given, _digits_loss),  # BitGroom
    32023: (_digits_given, _digits_loss),  # Granular BitRound
    # SZ3 has no relative bound.
    32024: (_sz_given, lambda cd, size: Loss() if cd[:1] == (10,) else _sz_loss(cd, size)),
    32028: (_sperr_given, _sperr_loss),
    32033: (lambda _: (), lambda *_: None),  # HTJ2K
}


def given(filter_id: int, cd_values: CdValues) -> CdValues:
    """Return the user's part of what a file stores for a filter without a name, or all of it."""
    part = NUMBERED[filter_id][0](cd_values) if filter_id in NUMBERED else None
    return cd_values if part is None else part
