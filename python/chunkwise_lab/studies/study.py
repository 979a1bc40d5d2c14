"""What is a study: which experiments, which published values, which claims?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chunkwise.measure.axes import AXES
from chunkwise.measure.space import Space

Scale = Literal["quick", "paper"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
# How repeats are summed up: as the paper does it.
Statistic = Literal["mean", "trimmed-mean", "median", "best"]
# Values that rows must have, one or several; ``@others``: every library but h5py's own.
Where = Mapping[str, str | tuple[str, ...]]
OTHERS: Final = "@others"
LIBRARIES: Final = ("libhdf5", "zlib")


@dataclass(frozen=True)
class Data:
    """A dataset that experiments measure; `chunkwise_lab.sample` generates it."""

    name: str  # In the study's files
    sample: str  # A name of `chunkwise_lab.sample.SAMPLES`
    # Keywords of `chunkwise_lab.sample.write` besides name and path.
    options: Mapping[Scale, Mapping[str, Any]]
    dataset: str | None = None  # Its path in the file; None for the sample's first
    # What rows measured on it have besides their values on axes.
    labels: Mapping[str, str] = field(default_factory=dict)
    # A pattern of which only elements that are not 0 are kept, in its order; empty for all.
    nonzero: str = ""


@dataclass(frozen=True)
class Run:
    """One space of parameters, measured on some datasets."""

    data: tuple[str, ...]  # Names of `Study.data`; a probe may need none
    # What is varied.  A value ``@all`` of the axis ``libhdf5`` stands for every library found,
    # ``@others`` for all but h5py's own, ``@older`` for one of each older version, ``@netcdf4``
    # for the one that netCDF4 calls.
    spaces: Mapping[Scale, Space]
    # The budget of `chunkwise.measure.run`; None for as long as it takes.
    seconds: Mapping[Scale, float | None]
    # What its rows have besides; ``@build`` is the library's build, such as ``serial``.
    labels: Mapping[str, str] = field(default_factory=dict)
    # A name of `chunkwise_lab.studies.probes.PROBES`, in place of bench; None for bench.
    probe: str | None = None
    # What a probe gets.
    settings: Mapping[Scale, Mapping[str, Any]] = field(default_factory=dict)
    # How often, where it differs from the study: counts need no second time.
    repeat: int | None = None
    own: bool = True  # Whether it is also made of a dataset of the user's
    scales: tuple[Scale, ...] = SCALES  # At which it is measured
    # Paths in each file of `data`, with the label ``dataset``; empty for that of the data.
    datasets: Mapping[Scale, tuple[str, ...]] = field(default_factory=dict)
    # Whether each element that is read is compared with what it is known to be.
    check: bool = False

    def labels_at(self, scale: Scale) -> tuple[dict[str, str], ...]:
        """Return the labels of its rows, once for each of `datasets`."""
        named = [{"dataset": path} for path in self.datasets.get(scale, ())]
        return tuple({**self.labels, **one} for one in named or [{}])


@dataclass(frozen=True)
class Published:
    """One value that the paper printed."""

    where: Where  # The rows that measure the same today; some, unless `elsewhere`
    figure: str  # A name of `chunkwise_lab.studies.figures.FIGURES`
    value: float  # In the figure's unit
    source: str  # Table or figure, and section
    note: str = ""  # What must be known to read it; empty for nothing
    # What it is of, in a few words, beside others of the same source; empty for `where`.
    label: str = ""
    # Its place in a table of the paper, which `source` names; empty if it is in no table.
    row: str = ""
    column: str = ""
    # Whether it stands alone: of the paper's other machine, or of what is gone.
    elsewhere: bool = False
    # An axis or label whose rows are summed up to one, by `total`, as the paper did.
    over: str | None = None
    total: Literal["mean", "sum"] = "mean"  # ``mean`` or ``sum``, of `over`


@dataclass(frozen=True)
class Plot:
    """How an experiment is drawn, and put into a table."""

    title: str
    x: str  # The axis or label along which it is drawn, or another figure
    figure: str  # What is drawn: a name of `FIGURES`
    by: tuple[str, ...] = ()  # Axes or labels that distinguish series
    where: Where = field(default_factory=dict)  # Rows that are drawn; empty for all
    log: tuple[str, ...] = ()  # Which of ``x`` and ``y`` are logarithmic
    # ``line`` for an x of numbers or sizes, ``bar`` for one of words.
    kind: Literal["line", "bar"] = "line"
    over: str | None = None  # An axis or label whose rows are summed up to one, by `total`
    total: Literal["mean", "sum"] = "mean"  # ``mean`` or ``sum``, of `over`
    # Rows, one a series, by whose figure all others of the series are divided.
    relative: Where | None = None
    # Name of the number at the end of `x`, as in ``szip:nn:8``: the axis; the rest is a series.
    split: str = ""
    # Places along `x` at which a line is drawn, such as the size of a chunk, each with its text.
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and the test whether it still holds."""

    id: str
    says: str  # What the paper says, in a short sentence
    rule: str  # A name of `chunkwise_lab.studies.claims.RULES`
    figure: str  # A name of `FIGURES`
    # What the rule needs: ``slow`` and ``fast`` (each a Where), ``axis``, ``least``, ``most``, ...
    settings: Mapping[str, Any]
    published: str = ""  # The paper's figures, in a few words; empty if it has none
    # Advice for a user, if it holds; empty for none.  It stands on the first screen.
    advice: str = ""
    # Where the limit comes from: table or section and figures; or that it is ours, and why.
    limit: str = ""


@dataclass(frozen=True)
class Experiment:
    """One question of the paper, what is measured for it, and what it answered."""

    id: str
    title: str
    source: str  # Tables, figures and sections
    question: str
    found: str  # What the paper found, in our words
    runs: tuple[Run, ...]
    # If values are in a figure only: which, and what the text says of them; else empty.
    only_drawn: str = ""
    plots: tuple[Plot, ...] = ()
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""  # Where this differs from what the paper did, and why; empty for nothing


@dataclass(frozen=True)
class Own:
    """How a study is put to a dataset of the user's."""

    # The name in `Study.data` in whose place it is measured; runs on other data are left out.
    data: str
    # By axis: text in place of the study's values, or one of `own_data.PLACEHOLDERS`.
    values: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Study:
    """One paper's measurements."""

    name: str
    paper: str  # Title, authors and year
    about: str  # For a reader who has never seen the paper: what it measured, and why
    setting: str  # The paper's machine and libraries
    statistic: Statistic
    repeat: Mapping[Scale, int]  # How often everything is measured; `paper` is the paper's own
    minutes: Mapping[Scale, float]  # About how long it takes on two processors
    disk_nbytes: Mapping[Scale, int]  # About how much room it needs
    data: Mapping[str, Data]
    experiments: tuple[Experiment, ...]
    own: Own | None = None  # None if it makes sense on its own data only


def matches(row: Mapping[str, str], where: Where) -> bool:
    """Whether a row has these values; a row without one of the names does not match."""
    return all(
        name in row and _is(name, row[name], value if isinstance(value, tuple) else (value,))
        for name, value in where.items()
    )


def _is(name: str, text: str, wanted: tuple[str, ...]) -> bool:
    if text in wanted:
        return True
    return name in LIBRARIES and OTHERS in wanted and text != AXES[name].default
