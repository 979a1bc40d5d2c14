"""Which findings are there: things about a file that cost time, space or data?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from chunkwise.errors import UsageError
from chunkwise.model.layout import FileLayout
from chunkwise.names import printable
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import Chunks, Copy, Remedy
from chunkwise.remedy.spelling import spelled
from chunkwise.verdicts import FileVerdict
from chunkwise.words import offered

Severity = Literal["note", "warning", "error"]
# From the least to the worst.
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
# In a word; docs/findings.md explains each.
CODES: Final[dict[str, str]] = {
    "filter-unavailable": "no decoder for the data, here or for some readers",
    "sources-missing": "virtual or external data is not there",
    "data-elsewhere": "the data lies in other files",
    "unreadable-object": "HDF5 cannot open an object",
    "unreadable-chunks": "HDF5 cannot find the chunks",
    "unreadable-attribute": "HDF5 cannot list the attributes",
    "dangling-link": "a link leads nowhere",
    "not-closed": "the writer did not close the file",
    "early-end": "the file states its end too early",
    "refused-here": "HDF5 of this process refuses a sound file",
    "cannot-open": "among several files: HDF5 cannot open this one",
    "chunk-exceeds-cache": "each read decodes a whole chunk again",
    "reads-exceed-cache": "chunks are gone when they are needed again",
    "slot-collision": "chunks drop each other from the cache",
    "single-chunk": "any read decodes everything",
    "unlimited-chunk-1": "each appended step is a chunk",
    "floor-chunk": "a little larger chunk would save a row of them",
    "edge-waste": "chunks reach far beyond the data",
    "access-mismatch": "chunks do not suit the patterns of --access",
    "small-chunks": "chunks cost more to find than to read",
    "weak-compression": "compression saves under 10%",
    "shuffle-missing": "shuffle would pay",
    "shuffle-useless": "shuffle does not pay",
    "uncompressed": "compression would halve it",
    "filters-left-out": "chunks without their filters, which changing them in place may spoil",
    "strided-contiguous": "columns are gathered from all over",
    "scattered-chunks": "neighbours lie apart",
    "scattered-metadata": "metadata lies between the data",
    "cloud-unready": "many requests from object storage",
    "lost-space": "space that nothing uses",
    "old-groups": "groups take more than in the newer format",
}


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
    remedies
        What helps, the likeliest first; empty if nobody knows.
    waste_nbytes
        Bytes stored, fetched or decoded in vain: for the order of findings.
    """

    code: str
    severity: Severity
    path: str | None
    summary: str
    evidence: dict[str, int | float | str]
    source: str
    remedies: tuple[Remedy, ...] = ()
    waste_nbytes: int = 0
    # What it says of the file's bytes.
    verdict: FileVerdict = FileVerdict.SOUND
    # Whether it serves reads that nobody stated, or costs others: `chunkwise fix` leaves it.
    is_offer: bool = False

    # The reads that it is about, by their block; None if it is about others.
    block: Chunks | None = None
    # What JSON has of it.
    KEYS: ClassVar = (
        "code", "severity", "path", "summary", "evidence", "source", "fixes", "waste_nbytes",
        "verdict", "is_offer",
    )  # fmt: skip

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The lines that say the remedies; empty if nothing can be pasted."""
        return spelled(self.remedies)

    @property
    def layout(self) -> FileLayout | None:
        """How a copy of the file is to be stored, without what is found; None if none mends it."""
        copies = () if self.is_offer else self.remedies
        made = (one.ours for one in copies if isinstance(one, Copy))
        return next((one for one in made if one is not None), None)


def grouped(findings: Iterable[Finding]) -> dict[tuple[Severity, str], list[Finding]]:
    """Put findings of one severity and code together, in the order in which they come."""
    groups: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return groups


def without(findings: Iterable[Finding], ignored: frozenset[str]) -> tuple[Finding, ...]:
    """Leave the findings of some codes out."""
    return tuple(finding for finding in findings if finding.code not in ignored)


def check_codes(codes: Iterable[str]) -> frozenset[str]:
    """Return some codes, or raise UsageError for the first that is none."""
    found = frozenset(codes)
    for code in sorted(found - CODES.keys()):
        raise UsageError(f"no finding has the code '{printable(code)}'{offered(code, CODES)}")
    return found
