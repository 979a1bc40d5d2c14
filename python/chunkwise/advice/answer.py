"""What does advice consist of, in Python and in ``--json``?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from chunkwise.advice.verifying import Timing
from chunkwise.model.layout import Layout
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import Remedy
from chunkwise.remedy.spelling import spelled

JSON_VERSION: Final = 1


@dataclass(frozen=True)
class PatternAdvice:
    """One pattern, before and after.

    Attributes
    ----------
    name
        Its name.
    text
        Its text, as written.
    block
        Shape of one read, in elements.
    weight
        How often it runs, relative to the others.
    writes
        Whether it writes.
    present, best
        Seconds for the stated reader, as measured; None if they were not.
    present_model_s, best_model_s
        The same by the model.
    ours
        What chunkwise takes with the file as it is, as measured; None if it was not, or where
        chunkwise is the stated reader.
    of_one_read
        Whether seconds are those of one read of the pattern; otherwise of all of it.
    """

    name: str
    text: str
    block: tuple[int, ...]
    weight: float
    writes: bool
    present: Timing | None
    best: Timing | None
    present_model_s: float | None
    best_model_s: float
    ours: Timing | None = None
    of_one_read: bool = False

    @property
    def present_s(self) -> float | None:
        """Seconds with the present layout: measured, or the model's."""
        return self.present.median if self.present else self.present_model_s

    @property
    def best_s(self) -> float:
        """Seconds with the best layout: measured, or the model's."""
        return self.best.median if self.best else self.best_model_s

    @property
    def gain(self) -> float | None:
        """How many times as fast the best layout is; None before there is a file."""
        return None if self.present_s is None else self.present_s / max(1e-12, self.best_s)


@dataclass(frozen=True)
class FrontPoint:
    """A layout that no other beats in reading, writing and size at once.

    The advised layout is always one of them: it was measured several times, and a single lucky
    measurement of another one is no proof.

    Attributes
    ----------
    layout
        The layout.
    read_s, write_s
        Seconds of all that is read and written.
    nbytes
        Bytes in the file.
    measured
        Whether reading was measured; otherwise all of it is the model's.
    repeats
        How often reading was measured.
    """

    layout: Layout
    read_s: float
    write_s: float
    nbytes: int
    measured: bool
    repeats: int = 0


@dataclass(frozen=True)
class CacheAdvice:
    """Which chunk cache helps, if the file cannot be changed.

    Attributes
    ----------
    reason
        One sentence: what it changes, or why none helps.
    nbytes, nslots, w0
        The cache to open the dataset with; None if none helps.
    before_s, after_s
        Seconds of all that is read, by the model.
    """

    reason: str
    nbytes: int | None = None
    nslots: int | None = None
    w0: float | None = None
    before_s: float | None = None
    after_s: float | None = None


@dataclass(frozen=True)
class Advice:
    """How a dataset should be stored, and what that gains.

    Attributes
    ----------
    file, dataset
        The file and dataset of the advice; empty before there is a file.
    shape, itemsize
        In elements, and bytes of one.
    reader
        The stated reader, in words.
    objective
        What the choice minimizes.
    present
        How it is stored; None before there is a file.
    best
        How it should be stored; the present layout if it should stay.
    patterns
        What is read and written, before and after.
    stated
        Whether the patterns were stated; otherwise they are the usual ones.
    front
        The choices between reading, writing and size.
    present_nbytes, best_nbytes
        Bytes in the file, of the best by the sample; None before there is a file.
    leave
        Whether the dataset should stay as it is.
    verified
        Whether the answer was measured; otherwise it is the model's.
    reason
        Why, in a short paragraph.
    remedies
        What gives the best layout.
    cache
        What to do if the file cannot be changed; None before there is a file.
    open_remedies
        What opens the file as it is, better.
    part
        The part of the data that was measured, in words.
    notes
        What else a user should know, a sentence each.
    looked_at
        How many layouts the model compared.
    measured
        How many of them were measured.
    elapsed_s
        Seconds for the advice.
    """

    file: str
    dataset: str
    shape: tuple[int, ...]
    itemsize: int
    reader: str
    objective: str
    present: Layout | None
    best: Layout
    patterns: tuple[PatternAdvice, ...]
    stated: bool
    front: tuple[FrontPoint, ...]
    present_nbytes: int | None
    best_nbytes: int
    leave: bool
    verified: bool
    reason: str
    remedies: tuple[Remedy, ...] = ()
    cache: CacheAdvice | None = None
    open_remedies: tuple[Remedy, ...] = ()
    part: str = ""
    notes: tuple[str, ...] = ()
    looked_at: int = 0
    measured: int = 0
    elapsed_s: float = 0.0

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """Lines to paste that give the best layout."""
        return spelled(self.remedies)

    @property
    def open_fixes(self) -> tuple[Fix, ...]:
        """Lines to paste that open the file as it is, better."""
        return spelled(self.open_remedies)

    @property
    def present_read_s(self) -> float | None:
        """Seconds of all that is read, with the present layout."""
        if self.present is None:
            return None
        return sum(p.weight * (p.present_s or 0.0) for p in self.patterns if not p.writes)

    @property
    def best_read_s(self) -> float:
        """Seconds of all that is read, with the best layout."""
        return sum(p.weight * p.best_s for p in self.patterns if not p.writes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it (docs/advise.md)."""
        record = asdict(self)
        del record["remedies"], record["open_remedies"]
        record["fixes"] = list(map(asdict, self.fixes))
        record["open_fixes"] = list(map(asdict, self.open_fixes))
        record["rules"] = list(self.best.rules(self.dataset)) if self.dataset else []
        for pattern, one in zip(record["patterns"], self.patterns, strict=True):
            pattern["gain"] = one.gain
        return {"format": "chunkwise-advise", "version": JSON_VERSION, **record}
