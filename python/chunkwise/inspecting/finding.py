"""What is a finding: one thing about a file that costs time, space or data?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.advise.fix import Fix

Severity = Literal["note", "warning", "error"]
# From the least to the worst.
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes
    ----------
    code
        Stable, such as ``chunk-exceeds-cache``; explained in docs/findings.md.
    severity
        ``error``: data cannot be read; ``warning``: reading or storing costs a multiple of
        what it must; ``note``: worth knowing.
    path
        The object; None for the file as a whole.
    summary
        What is wrong and what it costs, in one or two sentences with numbers.
    evidence
        The numbers by name, with their units in the names.
    source
        The paper and section, or the HDF5 function, that it rests on.
    fixes
        What helps, the likeliest first; may be empty where nothing can be pasted.
    waste_nbytes
        Bytes stored, fetched or decoded in vain: for the order of findings.
    """

    code: str
    severity: Severity
    path: str | None
    summary: str
    evidence: dict[str, int | float | str]
    source: str
    fixes: tuple[Fix, ...] = ()
    waste_nbytes: int = 0
