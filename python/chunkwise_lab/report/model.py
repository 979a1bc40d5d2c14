"""What does a report say, before anyone has decided how it looks?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

from chunkwise.names import printable, printable_lines
from chunkwise_lab.studies.rules import Word


@dataclass(frozen=True)
class Point:
    """One value, at its place."""

    at: float  # Its place along the chart's `along`
    value: float  # In the unit of the chart's `figure`
    # The ends of its error bar; both equal to `value` if there is none.
    low: float
    high: float
    details: tuple[str, ...]  # All that is known of it, a line each
    estimated: bool = False  # Whether it was extrapolated


@dataclass(frozen=True)
class Series:
    """Values that belong together."""

    name: str
    # Colour, mark and dash; a published series has the colour of the measured one beside it.
    style: int | None
    published: bool  # Whether a paper's, not measured here
    runs: tuple[tuple[Point, ...], ...]  # Points of one run are joined by a line

    @property
    def points(self) -> tuple[Point, ...]:
        """All of its points."""
        return tuple(point for run in self.runs for point in run)


@dataclass(frozen=True)
class Tick:
    """A text at a place of an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Axis:
    """One axis."""

    title: str
    # Whether the writer draws it logarithmically; ticks are in logarithms already.
    log: bool = False
    ticks: tuple[Tick, ...] = ()  # Empty if the writer chooses
    # Words, and 0 on a logarithmic axis, stand apart from numbers.
    breaks: tuple[float, ...] = ()
    marks: tuple[Tick, ...] = ()  # Lines across the plot, each with its text


@dataclass(frozen=True)
class Table:
    """Texts in rows."""

    caption: str
    columns: tuple[str, ...]
    numbers: tuple[bool, ...]  # Which columns hold figures
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    """One plot."""

    id: str  # Unique in the report; letters, digits and hyphens
    title: str
    # ``lines`` along an axis of numbers; ``dots``, a row for each word, values to the right.
    kind: Literal["lines", "dots"]
    # What is varied, and what was measured.
    along: Axis
    figure: Axis
    series: tuple[Series, ...]
    alt: str  # For who cannot see it
    notes: tuple[str, ...] = ()  # What must be known to read it


@dataclass(frozen=True)
class Finding:
    """What became of a claim."""

    word: Word
    says: str  # The claim
    sentence: str  # The verdict, with today's numbers
    published: str  # The paper's figures; may be empty
    advice: str  # What follows for a user; may be empty
    where: str  # The id of the experiment
    limit: str = ""  # Where the limit of the verdict comes from; may be empty

    @property
    def open(self) -> bool:
        """Whether this run could not tell."""
        return self.word in ("cannot tell", "not measured")

    @property
    def limited(self) -> str:
        """Where the limit comes from, as a sentence."""
        return f"The limit: {self.limit}" if self.limit else ""

    @property
    def paper(self) -> str:
        """The paper's figures, where the sentence does not have them already."""
        if not self.published or self.published in self.sentence:
            return ""
        return f"The paper: {self.published}"


@dataclass(frozen=True)
class Block:
    """One experiment."""

    id: str
    title: str
    source: str = ""  # Where a paper has it; may be empty
    # Heading and text: the question, what was found, what is only drawn.
    texts: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    wrong: tuple[str, ...] = ()  # Values that differ
    missing: tuple[str, ...] = ()  # What failed, or was not measured
    # Each chart with its table; a table may stand alone.
    pictures: tuple[tuple[Chart | None, Table], ...] = ()

    @property
    def alerts(self) -> tuple[str, ...]:
        """What is wrong or missing, as sentences."""
        return (*(f"Wrong: {text}" for text in self.wrong), *self.missing)


@dataclass(frozen=True)
class Section:
    """One run of a study."""

    id: str
    title: str
    source: str  # The paper
    about: str  # For a reader who knows nothing of it
    facts: tuple[tuple[str, str], ...]  # Machine, versions, date, scale, repeats
    missing: tuple[str, ...]  # What was not measured
    blocks: tuple[Block, ...]
    scale: str

    @property
    def advice(self) -> list[Finding]:
        """The claims from which something follows for a user."""
        return [found for block in self.blocks for found in block.findings if found.advice]


@dataclass(frozen=True)
class Entry:
    """One item of a paper, as its index has it."""

    item: str  # Such as ``Table 2``
    says: str
    means: str  # What repeats it, or why nothing does
    verdict: str  # Of several claims a count of each word; may be empty
    where: str  # The id of the experiment; empty if none was measured


@dataclass(frozen=True)
class Index:
    """All items of one paper."""

    title: str
    states: str  # How many are done, in part and not here
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Report:
    """All of it."""

    title: str
    sections: tuple[Section, ...]
    indexes: tuple[Index, ...] = ()  # Of the papers whose studies are in it

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))
        object.__setattr__(self, "sections", _printable(self.sections))

    @property
    def charts(self) -> Iterator[Chart]:
        """Return all charts, in order."""
        for section in self.sections:
            for block in section.blocks:
                yield from (chart for chart, _ in block.pictures if chart is not None)

    @property
    def advice(self) -> list[Finding]:
        """Each piece of advice once, also if a study was run several times."""
        found: dict[tuple[str, str], Finding] = {}
        for section in sorted(self.sections, key=lambda section: section.scale == "quick"):
            for one in section.advice:
                key = section.source, one.advice
                if key not in found or (found[key].open and not one.open):
                    found[key] = one
        return list(found.values())

    def count(self, word: Word) -> int:
        """How many pieces of advice have this verdict, each counted once."""
        return sum(found.word == word for found in self.advice)


def _printable(value: Any) -> Any:
    """Escape all texts of a record, and of those in it; what holds none is left as it is."""
    if isinstance(value, str):
        return printable_lines(value)
    if isinstance(value, tuple):
        made = tuple(map(_printable, value))
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = {name: new for name, old in found.items() if (new := _printable(old)) is not old}
        title = found.get("title")
        if isinstance(title, str) and "\n" in title:
            # One line, for any name of a file or a dataset.
            changed["title"] = printable(title)
        return replace(value, **changed) if changed else value
    return value
