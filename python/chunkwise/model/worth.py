"""From which gain (a ratio of seconds) on is a change worth it?  Each threshold is here once."""

from __future__ import annotations

from typing import Final

# A smaller difference between programs, settings or layouts is no reason for a change.
MEASURED: Final = 1.2
# Measured by advise, for patterns that somebody stated: who asks wants to know of less too.
STATED: Final = 1.1
# The same for bytes in the file, which are better known than seconds.
SMALLER: Final = 1.05
# `measure.verdict` ignores smaller differences: from hour to hour, times differ by 10 percent.
DIFFERENT: Final = 1.25
# By the model alone, which errs: less is not worth a copy of the file.
MODELLED: Final = 1.25
# By the model, what reads decode: by less, not the chunks make the difference, but the filter.
DECODED: Final = 1.2
# Reads that decode each chunk so many times decode it about once: no cache helps.
ONCE: Final = 1.1
# By the model, of chunk caches: the smallest that is so nearly as good as the best one is taken.
AS_GOOD: Final = 1.05
# By the model, for a program that has to be changed to set a cache, or to call chunkwise.
PROGRAM: Final = 1.3
# What a reader notices without a clock.  Less is no fault of a file.
NOTICED: Final = 2.0
# A remedy that was measured to gain this much comes before one that was only computed.
MUCH: Final = 5.0
# For unstated ways of reading that fit: a longer time stops a change.
HARMLESS: Final = 1 / 0.95
# Of the memory that trials take: less is what libraries and the interpreter differ by.
MEMORY: Final = 1.25
# The largest cache to advise for a dataset: more is a program's own decision.
LARGEST_CACHE_NBYTES: Final = 512 << 20
