"""How bad is a finding that costs time or space?  One rule for all of them.

If data cannot be read, or may be misread, the check that finds it gives the severity.
All other findings are judged by their cost, so that a wrong chunk shape on 200 elements is
never worse than one that turns seconds into minutes.  docs/findings.md has the rule in words.
"""

from __future__ import annotations

import math
from typing import Final

from chunkwise.inspection.finding import Severity
from chunkwise.model.nominal import DECODED_NBYTES_PER_S

# A reader waits, or pays for the disk.
WARNING_S: Final = 2.0
WARNING_NBYTES: Final = 100_000_000
# Share of what is read or stored without the fault; a smaller one is not noticed.
WARNING_SHARE: Final = 0.1
# This many times as much is a warning from fewer bytes on; below that, a file is a toy.
MANY_TIMES: Final = 10.0
NO_TOY_NBYTES: Final = 32 << 20
# A way of reading that some never use has to make minutes of seconds.
RARE_TIMES: Final = 100.0
RARE_S: Final = 60.0
# Bytes fetched in vain are faster than those decoded.
FETCHED_NBYTES_PER_S: Final = 2 << 30
# A read of its own: more than on a flash disk, less than on one that turns.
PIECE_S: Final = 2e-4


def by_cost(
    *,
    nbytes: int = 0,
    seconds: float | None = None,  # Of waiting; None takes what the bytes take
    times: float = math.inf,
    rare: bool = False,
    filtered: bool = True,  # Whether the bytes are decoded, or just fetched
) -> Severity:
    """Judge what something costs."""
    if seconds is None:
        seconds = nbytes / (DECODED_NBYTES_PER_S if filtered else FETCHED_NBYTES_PER_S)
    if rare:
        return "warning" if times >= RARE_TIMES and seconds >= RARE_S else "note"
    noticed = seconds >= WARNING_S or nbytes >= WARNING_NBYTES
    if noticed and times >= 1 + WARNING_SHARE:
        return "warning"
    return "warning" if nbytes >= NO_TOY_NBYTES and times >= MANY_TIMES else "note"
