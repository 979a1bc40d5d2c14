"""What is measured today beside each value that the paper printed?"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.measure.axes import AXES
from chunkwise.words import counted, wrapped
from chunkwise_lab.studies.comparing import Sample, samples
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.results import Outcome, Row, StudyResults
from chunkwise_lab.studies.study import Published, Statistic, Study, Where, matches
from chunkwise_lab.studies.wording import beside, in_print

_WIDTH: Final = 80
_LABEL_WIDTH: Final = 40
_LEAST_LABEL_WIDTH: Final = 16
_SUMMED: Final[dict[Statistic, str]] = {
    "mean": "mean",
    "median": "median",
    "trimmed-mean": "mean, without best and worst,",
}


def measured(rows: Sequence[Row], published: Published, statistic: Statistic) -> dict[str, Sample]:
    """Return what each reader takes for what was published."""
    found = {}
    for reader in dict.fromkeys(row.point.get("reader", "") for row in rows):
        wanted = _normalized(reader, published.where)
        fitting = samples(
            [row for row in rows if matches(row.point, wanted)],
            published.figure,
            statistic,
            published.over,
            published.total,
        )
        if len(fitting) == 1:
            found[reader] = fitting[0]
    return found


def _normalized(reader: str, where: Where) -> Where:
    operation = where.get("operation", "read")
    wanted: dict[str, str | tuple[str, ...]] = {**where}
    if "reader" in where or reader:
        wanted["reader"] = reader
    if operation not in ("read", "write"):
        return wanted
    given = {name: text for name, text in where.items() if isinstance(text, str)}
    defaults = {name: axis.default for name, axis in AXES.items()}
    point = {**defaults, **given, "reader": reader}
    for name in given:
        if name in AXES and name != "reader" and not AXES[name].concerns(point):
            wanted[name] = AXES[name].default
    return wanted


def draw(study: Study, results: StudyResults, source: str) -> Iterator[str]:
    """Write the paper's table of one source, and what must be known to read it."""
    known: dict[str, None] = {}
    for experiment in study.experiments:
        outcome = results.outcomes.get(experiment.id)
        if outcome is None:
            continue
        known |= dict.fromkeys(one.source for one in experiment.published)
        found = [one for one in experiment.published if one.source == source]
        if found:
            yield from _tables(found, outcome.rows(), study.statistic)
            yield from wrapped(experiment.note, hanging="  ")
            yield from wrapped(machine(outcome), hanging="  ")
            return
    raise UsageError(
        f"no values of '{source}' were measured: choose from {', '.join(known) or 'none'}"
    )


def machine(outcome: Outcome) -> str:
    """Name the processor and the libraries of the first trial that says so; empty for none."""
    for record in outcome.records:
        if "cpu" in record:
            versions = (
                f"{title} {record[name]}"
                for name, title in (("hdf5", "HDF5"), ("zlib", "zlib"), ("chunkwise", "chunkwise"))
                if record.get(name)
            )
            cpus = counted(int(record["cpu_count"]), "CPU")
            return f"{record['cpu']}, {cpus}; {', '.join(versions)}."
    return ""


def _tables(
    printed: Sequence[Published], rows: Sequence[Row], statistic: Statistic
) -> Iterator[str]:
    """Write a table for each figure, in lines of up to 80 characters."""
    # Beside each published value today's, by reader.
    found = [(one, measured(rows, one, statistic)) for one in printed]
    readers = list(dict.fromkeys(reader for _, today in found for reader in today))
    # Seconds and bytes of one source are no column.
    for figure in (FIGURES[name] for name in dict.fromkeys(one.figure for one in printed)):
        group = [pair for pair in found if pair[0].figure == figure.name]
        kind = "faster by" if figure.unit in ("s", "MB/s") else "better by"
        more = [kind] if len(readers) == 2 else []
        yield from _lines(figure.title, "published ", [*readers, *more])
        yield printed[0].source
        for one, today in group:
            yield from _row(one, [today.get(reader) for reader in readers])
        for note in dict.fromkeys(one.note for one, _ in group if one.note):
            yield from wrapped(f"* {note}", hanging="  ")
    yield ""
    estimated = any(value.estimated for _, today in found for value in today.values())
    yield from wrapped(
        f"Today's values are the {_SUMMED[statistic]} of all repeats"
        + ("; ~ estimated: not every operation was done." if estimated else "."),
        hanging="  ",
    )


def _row(one: Published, values: Sequence[Sample | None]) -> Iterator[str]:
    unit = FIGURES[one.figure].unit
    sized = unit == "bytes"

    def written(value: float) -> str:
        return beside(value, unit) if sized else number(value)

    cells = [
        "-" if value is None else f"{'~' if value.estimated else ''}{written(value.middle)}"
        for value in values
    ]
    if len(values) == 2:
        cells.append("-" if None in values else _often(one.figure, *values))  # type: ignore[arg-type]
    mark = "*" if one.note else " "
    label = one.label or ", ".join(
        text if isinstance(text, str) else " or ".join(text) for text in one.where.values()
    )
    # What the column is of says its unit, but for bytes, which papers print as MB.
    printed = in_print(one.value, unit if sized else "")
    yield from _lines(f"  {label}", f"{printed}{mark}", cells)


def _often(figure: str, first: Sample, second: Sample) -> str:
    """Write how many times as good the second is."""
    pair = first.middle, second.middle
    better, worse = pair if FIGURES[figure].better == "higher" else pair[::-1]
    mark = "~" if first.estimated or second.estimated else ""
    return mark + times(worse / better) if better else "-"


def number(value: float) -> str:
    """Write a value with two digits at least: ``345``, ``0.37``, ``0.0054``."""
    if value >= 9.95 or value <= 0:
        return f"{value:,.0f}"
    return f"{value:.{max(1, 1 - math.floor(math.log10(value)))}f}"


def times(value: float) -> str:
    """Write a ratio with two digits: ``1,600``, ``1.7``, ``0.94``."""
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{round(value, digits):,.{max(0, digits)}f}"


def _lines(label: str, published: str, cells: Sequence[str]) -> Iterator[str]:
    """Write a label, folded where the columns leave it less room than it needs, and them."""
    columns = "".join(f"{cell:>{max(10, len(cell) + 1)}}" for cell in cells)
    columns = f"{published:>10}{columns}"
    room = max(_LEAST_LABEL_WIDTH, min(_LABEL_WIDTH, _WIDTH - len(columns)))
    indent = " " * (len(label) - len(label.lstrip()))
    *above, last = textwrap.wrap(label, room, subsequent_indent=f"{indent}  ") or [""]
    yield from above
    yield f"{last:<{room}}{columns}".rstrip()
