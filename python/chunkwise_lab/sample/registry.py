"""Which samples are there?"""

from __future__ import annotations

from typing import Final

from chunkwise.errors import UsageError
from chunkwise.words import offered
from chunkwise_lab.sample.counting import COUNTING
from chunkwise_lab.sample.counts import COUNTS
from chunkwise_lab.sample.cris import CRIS
from chunkwise_lab.sample.cube import CUBE
from chunkwise_lab.sample.occam import OCCAM, OCCAM_ARCHIVE, OCCAM_SMOOTH
from chunkwise_lab.sample.radar import RADAR
from chunkwise_lab.sample.spec import Sample

SAMPLES: Final[dict[str, Sample]] = {
    sample.name: sample
    for sample in (CRIS, OCCAM, OCCAM_ARCHIVE, OCCAM_SMOOTH, RADAR, CUBE, COUNTING, COUNTS)
}


def find(name: str) -> Sample:
    """Return the sample of that name."""
    if name not in SAMPLES:
        raise UsageError(f"no sample is called {name!r}{offered(name, SAMPLES)}")
    return SAMPLES[name]
