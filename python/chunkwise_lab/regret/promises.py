"""Does `fix` gain what it promised, on random files: is the model right about how much?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.support.fixable import ACCESSES, datasets, make

import chunkwise
from chunkwise.fixing.records import Gain
from chunkwise.inspection.promise import WITHIN

# For measuring each file.
_SECONDS: Final = 12.0
# Of shorter walks, the clock and the system say more than the layout.
_LEAST_S: Final = 2e-3


@dataclass(frozen=True)
class Kept:
    """One promise, and what was measured."""

    # How many times as fast: by the model; by medians; at the least; at the most.
    promised: float
    measured: float
    lowest: float
    highest: float
    pattern: str  # What was read, and the layouts
    before: str
    after: str

    @property
    def is_kept(self) -> bool:
        """Whether the spread of the promise and that of the measurements meet."""
        return self.promised / WITHIN <= self.highest and self.lowest <= self.promised * WITHIN


def run(files: int, say: Callable[[str], None]) -> list[Kept]:
    """Mend this many random files."""
    found: list[Kept] = []

    @seed(1)
    @settings(
        max_examples=files, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(datasets(), min_size=1, max_size=2), st.sampled_from(ACCESSES))
    def each(tree: list[dict[str, Any]], access: tuple[str, ...]) -> None:
        with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
            before, after = Path(folder, "before.h5"), Path(folder, "after.h5")
            make(before, tree)
            done = chunkwise.fix(before, after, access=access, seconds=_SECONDS)
        layouts = {
            one.path: (
                f"{one.chunk_before} {one.filters_before}",
                f"{one.chunk or one.chunk_before} {one.filters or one.filters_before}",
            )
            for one in done.changes
        }
        for gain in done.gains:
            kept = _kept(gain, *layouts[gain.path])
            if kept is not None:
                found.append(kept)
                say(f"{len(found)}: promised {kept.promised:.3g}x, measured {kept.measured:.3g}x")

    each()
    return found


def _kept(gain: Gain, before: str, after: str) -> Kept | None:
    if gain.before is None or gain.after is None or max(
        gain.before.median, gain.after.median
    ) < _LEAST_S:  # fmt: skip
        return None
    numbers = gain.promised_times, gain.times, gain.lowest_times, gain.highest_times
    if None in numbers:
        return None
    promised, times, lowest, highest = map(float, numbers)  # type: ignore[arg-type]
    return Kept(promised, times, lowest, highest, gain.pattern, before, after)


def lines(found: Sequence[Kept]) -> Iterator[str]:
    """Say how far promises are from what was measured, those far off first."""
    if not found:
        yield "nothing was measured"
        return
    yield f"{'promised':>9} {'measured':>9} {'spread':>20}  pattern, before, after"
    for one in sorted(found, key=lambda one: -abs(np.log(one.promised / one.measured))):
        spread = f"[{one.lowest:.3g}, {one.highest:.3g}]"
        yield (
            f"{one.promised:9.3g} {one.measured:9.3g} {spread:>20}  "
            f"{one.pattern}: {one.before} -> {one.after}{'' if one.is_kept else '  NOT KEPT'}"
        )
    off = np.exp(np.abs(np.log([one.promised / one.measured for one in found])))
    within = float(np.mean(off <= WITHIN))
    kept = float(np.mean([one.is_kept for one in found]))
    yield ""
    yield (
        f"{len(found)} promises: by a factor of {np.median(off):.2f} off in the median, 9 of "
        f"10 by less than {np.quantile(off, 0.9):.2f}; {within:.0%} within the stated {WITHIN:g}; "
        f"{kept:.0%} kept, by the spread of the measurements"
    )
