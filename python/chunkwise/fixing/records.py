"""What was found, promised, done and measured?  Plain records, for `--json` and for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chunkwise.fixing.choose import Change
from chunkwise.inspection.records import plain
from chunkwise.measure.verdict import Spread, Word
from chunkwise.model.layout import FileLayout
from chunkwise.repacking.records import Summary

FORMAT = "chunkwise-fix"
VERSION = 1
Outcome: TypeAlias = Literal["fixed", "planned", "nothing to mend"]


@dataclass(frozen=True)
class FindingRecord:
    """A finding, without its remedies."""

    code: str  # As `chunkwise.inspection.finding.Finding` has them
    severity: str
    path: str | None
    summary: str
    is_offer: bool = False


@dataclass(frozen=True)
class Gain:
    """How long one pattern on one dataset takes, before and after.

    Attributes
    ----------
    path
        The dataset.
    pattern, block
        The pattern's name, and the shape of its block.
    cache_nbytes
        The chunk cache that the reader has, where findings are about readers with less than
        there is here; None for the library's own.
    of_one_read
        Whether seconds are those of one read of the pattern; otherwise of all of it.
    promised_before_s, promised_after_s
        Seconds by the model; None if it does not know.
    before, after
        Seconds as measured: median, lowest and highest of the repeats;
        None if they were not measured.
    verdict
        What the judge of repeats says (`chunkwise.measure.verdict`): after is ``faster`` or
        ``slower`` than before, ``same``, or it ``cannot tell``; None if they were not measured.
    repeats
        How often each was measured.
    estimated
        Whether not all reads were made, so that seconds are extrapolated.
    reason
        Why there are no figures; None if there are, or where nothing was to be measured.
    """

    path: str
    pattern: str
    block: tuple[int, ...]
    promised_before_s: float | None
    promised_after_s: float | None
    before: Spread | None = None
    after: Spread | None = None
    verdict: Word | None = None
    repeats: int = 0
    estimated: bool = False
    reason: str | None = None
    cache_nbytes: int | None = None
    of_one_read: bool = False

    @property
    def promised_times(self) -> float | None:
        """How many times as fast it is after, by the model (`promise.WITHIN` says how nearly)."""
        if not self.promised_before_s or not self.promised_after_s:
            return None
        return self.promised_before_s / self.promised_after_s

    @property
    def times(self) -> float | None:
        """How many times as fast it is after, by the medians."""
        if self.before is None or self.after is None or not self.after.median:
            return None
        return self.before.median / self.after.median

    @property
    def lowest_times(self) -> float | None:
        """The same, by the quickest before and the slowest after."""
        if self.before is None or self.after is None or not self.after.highest:
            return None
        return self.before.lowest / self.after.highest

    @property
    def highest_times(self) -> float | None:
        """The same, by the slowest before and the quickest after."""
        if self.before is None or self.after is None or not self.after.lowest:
            return None
        return self.before.highest / self.after.lowest

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, with ratios."""
        names = ("promised_times", "times", "lowest_times", "highest_times")
        return {**plain(self), **{name: plain(getattr(self, name)) for name in names}}


@dataclass(frozen=True)
class Metadata:
    """What opening and listing a file takes: libhdf5's own reads, and blocks of 1 MiB."""

    requests: int
    blocks: int


@dataclass(frozen=True)
class Fixed:
    """The result for one file.

    Attributes
    ----------
    source, target
        Paths as given; `target` None if there is none.
    outcome
        ``fixed``; ``planned`` (a dry run); ``nothing to mend``: the file was left alone.
    findings
        Findings before.
    changes
        The new layout of each dataset.
    why
        Findings about the file as a whole that were fixed.
    layout
        How the new file is to be stored; None if nothing changes.
    left
        Findings in the result; for a plan, findings that it will not fix.
    gains
        Patterns before and after.
    in_turns
        Whether the measurements before and after took turns; in place they cannot.
    source_nbytes, target_nbytes
        Sizes; of a plan, `target_nbytes` is the estimate for the data alone.
    expected_s
        Seconds that writing it takes, by the plan.
    metadata_before, metadata_after
        What opening and listing takes; None if it is not known.
    repacked
        What `chunkwise.repack` did; None if it did nothing.
    reader
        Who reads in the measurements.
    elapsed_s
        Seconds in all.
    taken_for
        What each stated pattern was taken for, a sentence for each; empty without any.
    """

    source: str
    target: str | None
    outcome: Outcome
    findings: tuple[FindingRecord, ...] = ()
    changes: tuple[Change, ...] = ()
    why: tuple[str, ...] = ()
    layout: FileLayout | None = None
    left: tuple[FindingRecord, ...] = ()
    gains: tuple[Gain, ...] = ()
    in_turns: bool = True
    source_nbytes: int = 0
    target_nbytes: int | None = None
    expected_s: float | None = None
    metadata_before: Metadata | None = None
    metadata_after: Metadata | None = None
    repacked: Summary | None = None
    reader: str = "h5py"
    elapsed_s: float = 0.0
    taken_for: tuple[str, ...] = ()

    @property
    def options(self) -> str | None:
        """The changes as options of ``chunkwise repack``; None if nothing changes."""
        return None if self.layout is None else self.layout.options()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        record = plain(self)
        del record["layout"]
        record["options"] = self.options
        record["gains"] = [gain.as_dict() for gain in self.gains]
        record["repacked"] = None if self.repacked is None else self.repacked.as_dict()
        return {"format": FORMAT, "version": VERSION, **record}
