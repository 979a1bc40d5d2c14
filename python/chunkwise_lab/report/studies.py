"""What does a report say about a study: its question, its plots, its claims and verdicts?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from chunkwise.grammar import format_shape
from chunkwise.names import printable
from chunkwise.words import counted, format_seconds, joined
from chunkwise_lab.report.charts import draw
from chunkwise_lab.report.labels import Libraries, phrase, where_phrase
from chunkwise_lab.report.model import Block, Chart, Finding, Section, Table
from chunkwise_lab.report.values import Drawing, published
from chunkwise_lab.studies.claims import judge
from chunkwise_lab.studies.comparing import Sample
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.iotest.modelled import modelled, said
from chunkwise_lab.studies.own_data import study_of
from chunkwise_lab.studies.published import measured
from chunkwise_lab.studies.results import Outcome, Row, StudyResults
from chunkwise_lab.studies.study import Experiment, Published, Statistic, Study
from chunkwise_lab.studies.wording import beside, differing, in_print, oversubscribed

_VERSIONS: Final = (
    ("hdf5", "HDF5"),
    ("h5py", "h5py"),
    ("netcdf", "netCDF-C"),
    ("zlib", "zlib"),
    ("numpy", "NumPy"),
    ("python", "Python"),
    ("chunkwise", "chunkwise"),
)
# Headings of texts and facts.
QUESTION: Final = "The question"
OVERSUBSCRIBED: Final = "Oversubscribed"
FALLBACK: Final = "Done by libhdf5 in chunkwise's place"
OWN: Final = ("Dataset", "In the place of the study's values")
# More sentences of one kind are counted.
_MOST: Final = 6


def _machine(results: StudyResults) -> list[tuple[str, str]]:
    """Name machine and versions as trials say them; what none says, as the run has it."""
    records = [record for one in results.outcomes.values() for record in one.records]

    def recorded(name: str) -> list[str]:
        of_run = results.environment.get(name)
        found = [record[name] for record in records if record.get(name) is not None]
        return list(dict.fromkeys(map(str, found or ([] if of_run is None else [of_run]))))

    cpus = [f"{text} processor{'' if text == '1' else 's'}" for text in recorded("cpu_count")]
    parts = [*recorded("cpu"), *cpus, *recorded("machine"), *recorded("system")]
    versions = [f"{title} {joined(recorded(name))}" for name, title in _VERSIONS if recorded(name)]
    found = (("Machine", ", ".join(parts)), ("Versions", ", ".join(versions)))
    return [(title, text) for title, text in found if text]


def problems(rows: Sequence[Row], libraries: Libraries) -> list[str]:
    """Say which rows have no figures, or not from all repeats, and why."""
    grouped: dict[str, list[str]] = {}
    for row, what in _named(rows, libraries):
        failed = [record for record in row.records if record["status"] != "ok"]
        if not failed or row.refused:
            continue
        if row.problem is None:
            what += f" ({len(failed)} of {counted(len(row.records), 'repeat')})"
        why = str(failed[0].get("error") or failed[0]["status"])
        # How many seconds it was given differs from trial to trial.
        why = "out of time" if failed[0]["status"] == "timeout" else why
        grouped.setdefault(why, []).append(what)
    return shortened(
        f"Failed, {why}: {'; '.join(shortened(several))}." for why, several in grouped.items()
    )


def fallbacks(rows: Sequence[Row], libraries: Libraries) -> list[str]:
    """Say which rows of chunkwise are libhdf5's, and why."""
    grouped: dict[str, list[str]] = {}
    for row, what in _named(rows, libraries):
        if row.fallback is not None:
            grouped.setdefault(row.fallback, []).append(what)
    return shortened(f"{_first(what)}: {why}." for why, what in grouped.items())


def _named(rows: Sequence[Row], libraries: Libraries) -> Iterator[tuple[Row, str]]:
    """Give each row with what distinguishes it from the others."""
    names = differing([row.point for row in rows])
    for row in rows:
        yield row, phrase(row.point, names, libraries) or "all of it"


def _first(several: Sequence[str]) -> str:
    """Name the first of several rows, and count the others."""
    more = len(several) - 1
    return f"{several[0]} (and {counted(more, 'row')} more)" if more else several[0]


def shortened(sentences: Iterable[str]) -> list[str]:
    """Give the first sentences, each once, and count the others."""
    several = list(dict.fromkeys(sentences))
    more = len(several) - _MOST
    return several if more <= 1 else [*several[:_MOST], f"... and {more} more of this kind"]


def section(results: StudyResults, study: Study, id_: str) -> Section:
    """Make the section of one run of a study."""
    study = study_of(study, results)
    known = {experiment.id: experiment for experiment in study.experiments}
    blocks = [
        _block(known[name], outcome, results, study, f"{id_}-{name}")
        for name, outcome in results.outcomes.items()
        if name in known
    ]
    return Section(
        id_,
        study.name,
        study.paper,
        " ".join(study.about.split()),
        _facts(results, study),
        tuple(_gaps(results, study)),
        tuple(blocks),
        scale=results.scale,
    )


def _facts(results: StudyResults, study: Study) -> tuple[tuple[str, str], ...]:
    full = study.repeat["paper"]
    reduced = any(_reduced(e, results, study) for e in study.experiments)
    sizes = "of less data than the paper's" if reduced else "of as much data as the paper's"
    often = counted(results.repeat, "repeat")
    often += f" (the full study has {full})" if results.repeat != full else ""
    missing = _missing(results, study)
    when = f"{results.begun[:16].replace('T', ' ')} UTC"
    took = f"{format_seconds(results.elapsed_s)}{_fewer(results)}"
    return (
        ("Paper", study.paper),
        *_own(results),
        ("Then", " ".join(study.setting.split())),
        *_machine(results),
        ("Scale", f"{results.scale}, {sizes}"),
        ("Measured", f"{when}, {often}, in {took}"),
        *((("Not measured", "; ".join(missing)),) if missing else ()),
    )


def _own(results: StudyResults) -> list[tuple[str, str]]:
    """Name the user's dataset that was measured, and with which values."""
    if results.target is None:
        return []
    of = results.target
    parts = [str(of.get("dataset")), format_shape(of["shape"]), str(of.get("dtype"))]
    if of.get("chunks"):
        parts.append(f"chunks {format_shape(of['chunks'])}")
    file = printable(str(of.get("file")))
    values = [
        f"{axis} {theirs} for {ours}"
        for axis, texts in results.values.items()
        for ours, theirs in texts.items()
        if ours != theirs
    ]
    texts = f"{file}: {', '.join([*parts, str(of.get('filters'))])}", "; ".join(values)
    return [(title, text) for title, text in zip(OWN, texts, strict=True) if text]


def _gaps(results: StudyResults, study: Study) -> list[str]:
    found = []
    if not results.complete:
        found.append("This run was stopped before its end: what it had measured is shown.")
    if results.busy:
        found.append(results.busy)
    missing, every = len(_missing(results, study)), len(study.experiments)
    if missing:
        verb = "was" if missing == 1 else "were"
        found.append(
            f"{missing} of {counted(every, 'experiment')} {verb} not measured in this run."
        )
    known = {experiment.id for experiment in study.experiments}
    unknown = [name for name in results.outcomes if name not in known]
    if unknown:
        found.append(
            f"Not known to this version of chunkwise, and left out: {', '.join(unknown)}."
        )
    return found


def _fewer(results: StudyResults) -> str:
    """Say how many combinations had time for fewer repeats than were requested."""
    often = [len(row.records) for one in results.outcomes.values() for row in one.rows()]
    short = sum(n < results.repeat for n in often)
    total = counted(len(often), "combination")
    return f"; of {total}, {short:,} had fewer repeats" if short else ""


def _missing(results: StudyResults, study: Study) -> list[str]:
    return [e.title for e in study.experiments if e.id not in results.outcomes]


def _reduced(experiment: Experiment, results: StudyResults, study: Study) -> bool:
    """Whether it was measured on other data than the paper's: at this scale, on less of it."""
    names = {name for run in experiment.runs for name in run.data}
    options = [study.data[name].options for name in names if name in study.data]
    return any(of[results.scale] != of["paper"] for of in options)


def _block(
    experiment: Experiment, outcome: Outcome, results: StudyResults, study: Study, id_: str
) -> Block:
    rows, cpu_count = outcome.rows(), results.environment.get("cpu_count")
    drawing = Drawing(
        rows,
        experiment.published,
        study.statistic,
        results.libraries,
        reduced=_reduced(experiment, results, study),
        modelled=modelled(rows),
    )
    drawn = [draw(f"{id_}-{n}", plot, drawing) for n, plot in enumerate(experiment.plots, 1)]
    pictures: list[tuple[Chart | None, Table]] = [one for one in drawn if one is not None]
    pictures += [(None, of) for of in as_printed(experiment, drawing)]
    alone = _alone(experiment, rows, study.statistic, results)
    if alone is not None:
        pictures.append((None, alone))
    texts = (
        (QUESTION, experiment.question),
        ("What the paper found", experiment.found),
        ("Shown as a figure only", experiment.only_drawn),
        ("What differs here", experiment.note),
        (OVERSUBSCRIBED, oversubscribed(rows, cpu_count)),
        ("The model beside it", said(rows, cpu_count)),
        (FALLBACK, " ".join(fallbacks(rows, results.libraries))),
    )
    stopped = () if outcome.complete else ("This experiment was stopped before its end.",)
    missing = (
        *stopped,
        *problems(rows, results.libraries),
        *(f"Not measured: {text}" for text in shortened(outcome.skipped)),
    )
    return Block(
        id_,
        experiment.title,
        experiment.source,
        tuple((title, " ".join(text.split())) for title, text in texts if text.strip()),
        tuple(_findings(experiment, outcome, study, id_, results.libraries)),
        tuple(shortened(outcome.mismatches)),
        missing,
        tuple(pictures),
    )


def _findings(
    experiment: Experiment, outcome: Outcome, study: Study, where: str, libraries: Libraries
) -> Sequence[Finding]:
    found = []
    rows = outcome.rows()
    for claim in experiment.claims:
        verdict = judge(claim, rows, study.statistic)
        word, sentence = verdict.word, verdict.sentence
        for path, library in libraries.items():
            # Nobody knows it by its path.
            sentence = sentence.replace(path, library) if "/" in path else sentence
        says, context = claim.says.rstrip("."), (claim.published, claim.advice, where, claim.limit)
        found.append(Finding(word, says, sentence, *context))
    return found


def _alone(
    experiment: Experiment, rows: Sequence[Row], statistic: Statistic, results: StudyResults
) -> Table | None:
    """Put into a table what the paper printed and no plot of today has a place for."""
    left = [
        one
        for one in experiment.published
        if not one.row and not any(published(plot, [one], rows) for plot in experiment.plots)
    ]
    if not left:
        return None
    lines = tuple(_printed(one, rows, statistic, results.libraries) for one in left)
    columns = ("of", "figure", "published", "today", "source")
    caption = "Published, with no place in a plot"
    return Table(caption, columns, (False, False, True, False, False), lines)


def as_printed(experiment: Experiment, drawing: Drawing) -> Iterator[Table]:
    """Lay the paper's tables out as it does: each of its values, and today's."""
    placed = [one for one in experiment.published if one.row]
    for source in dict.fromkeys(one.source for one in placed):
        cells = {(one.row, one.column): one for one in placed if one.source == source}
        columns = list(dict.fromkeys(column for _, column in cells))
        lines = tuple(
            (row, *(_cell(cells.get((row, name)), drawing) for name in columns))
            for row in dict.fromkeys(row for row, _ in cells)
        )
        of = ", of less data" if drawing.reduced else ""
        notes = dict.fromkeys(one.note for one in cells.values() if one.note)
        texts = (f"{source} as printed: the paper's \u2192 today's{of}", *notes)
        caption = ". * ".join(text.rstrip(".") for text in texts)
        numbers = (False, *(True for _ in columns))
        yield Table(" ".join(caption.split()), ("", *columns), numbers, lines)


def _cell(one: Published | None, drawing: Drawing) -> str:
    if one is None:
        return ""
    unit, found = FIGURES[one.figure].unit, {}
    if not one.elsewhere:
        found = measured(drawing.rows, one, drawing.statistic)
    today = found.get(str(one.where.get("reader", ""))) or next(iter(found.values()), None)
    text = in_print(one.value, unit)
    if today is not None:
        # The unit is said once.
        text = f"{text.partition(' ')[0]} \u2192 {_now(today, unit)}"
    return text + (" *" if one.note else "")


def _now(today: Sample, unit: str) -> str:
    """Write today's value beside a published one; an estimate marked."""
    return f"{'~' if today.estimated else ''}{beside(today.middle, unit)}"


def _printed(
    one: Published, rows: Sequence[Row], statistic: Statistic, libraries: Libraries
) -> tuple[str, ...]:
    figure = FIGURES[one.figure]
    today = {} if one.elsewhere else measured(rows, one, statistic)
    said = [f"{_now(sample, figure.unit)} {reader}".rstrip() for reader, sample in today.items()]
    source = f"{one.source}; {one.note}" if one.note else one.source
    what = one.label or where_phrase(one.where, libraries)
    return what, figure.title, in_print(one.value, figure.unit), ", ".join(said), source
