"""Does a report show what was measured, and what was published, as it is?"""

import math
from dataclasses import replace
from typing import Any

import pytest

from chunkwise_lab.report import studies
from chunkwise_lab.report.charts import draw
from chunkwise_lab.report.labels import phrase
from chunkwise_lab.report.markdown import escape, markdown
from chunkwise_lab.report.model import Block, Chart, Report, Section, Series, Table, Tick
from chunkwise_lab.report.parts import lead
from chunkwise_lab.report.plots import figure
from chunkwise_lab.report.studies import problems
from chunkwise_lab.report.values import Drawing
from chunkwise_lab.report.verdicts import VERDICTS
from chunkwise_lab.studies.results import Outcome
from chunkwise_lab.studies.study import Plot, Published
from tests.support.golden import assert_golden
from tests.support.reports import HOSTILE, made_up, record, repeats


@pytest.fixture(scope="module")
def section() -> Section:
    return studies.section(*made_up(), "r1")


def block(section: Section, name: str) -> Block:
    return next(one for one in section.blocks if one.id == f"r1-{name}")


def named(chart: Chart | None, name: str) -> Series:
    assert chart is not None
    return next(series for series in chart.series if series.name == name)


def drawn(records: list[dict[str, Any]], plot: Plot, *published: Published) -> tuple[Chart, Table]:
    found = draw("c", plot, Drawing(Outcome(records).rows(), published, "mean", {}))
    assert found is not None
    chart, table = found
    assert chart is not None
    return chart, table


def told(chart: Chart, table: Table) -> str:
    """Say all that a chart shows, but for where: its axes, its series, its notes, its table."""
    lines = [f"{chart.kind}: {chart.figure.title} by {chart.along.title}"]
    for one in chart.series:
        hovers = "; ".join(point.details[0] for point in one.points)
        lines.append(f"{one.name} (style {one.style}): {hovers}")
    ticks = [tick.text for tick in chart.along.ticks]
    rows = [table.columns, *table.rows]
    return "\n".join([*lines, f"{ticks}", *chart.notes, chart.alt, *map(" | ".join, rows)])


def printed(value: float, name: str = "total_s", where: str = "T", **more: Any) -> Published:
    return Published({"cache": "1MiB"}, name, value, where, **more)


def test_small_charts() -> None:
    """Units, as printed and today's; zeros; what is printed twice, or has no counterpart."""
    plain = Plot("t", "cache", "total_s")
    seconds = [record({"cache": "1MiB"}, {"total_s": 203.4})]
    zero = [record({"cache": c}, {"total_s": v}) for c, v in (("1MiB", 0.0), ("2MiB", 1.0))]
    pays = [
        {"status": "ok", "pays_below": value, "point": {"bandwidth": text}}
        for text, value in (("100", 2.0), ("400", 3e6))
    ]
    w0 = [
        *repeats({"cache": "1MiB", "w0": "0"}, 1), *repeats({"cache": "2MiB", "w0": "0"}, 2),
        *repeats({"cache": "1MiB", "w0": "1"}, 3), *repeats({"cache": "2MiB", "w0": "1"}, 4),
    ]  # fmt: skip
    # One of two formats failed today.
    kinds = [
        Published({"cache": "1MiB", "format": kind}, "total_s", value, "T")
        for kind, value in (("classic", 1), ("netcdf4", 2))
    ]
    netcdf4 = repeats({"cache": "1MiB", "format": "netcdf4"}, 1)
    # Values that end in a number are drawn along it.
    szip = ("szip:nn:8", "szip:nn:32", "szip:ec:8")
    filters = [r for n, f in enumerate((*szip, "none")) for r in repeats({"filter": f}, n + 1.0)]
    pixels = Plot("Pixels", "filter", "total_s", split="pixels", where={"filter": szip})
    nbytes = [record({"cache": "1MiB"}, {"file_nbytes": 62_419_000})]
    assert_golden(
        "report-charts",
        told(*drawn(seconds, plain, printed(140.88))),
        told(*drawn(seconds, plain)),
        told(
            *drawn(nbytes, replace(plain, figure="file_nbytes"), printed(62.42e6, "file_nbytes"))
        ),
        told(*drawn(zero, replace(plain, log=("y",)))),
        told(*drawn(seconds, plain, printed(3, where="Table 1"), printed(3, where="Table 2"))),
        told(*drawn(seconds, plain, printed(3, label="Linux", elsewhere=True))),
        told(*drawn(pays, Plot("Pays", "bandwidth", "pays_below"))),
        told(*drawn(w0, plain)),
        told(*drawn(netcdf4, replace(plain, by=("format",), kind="bar"), *kinds)),
        told(*drawn(filters, pixels, Published({"filter": szip[0]}, "total_s", 9, "T"))),
    )
    assert draw("c", plain, Drawing([], (), "mean", {})) is None


def test_the_page() -> None:
    """All of a report as text, and once more of a run that was stopped, with more published."""
    results, study = made_up()
    whole = markdown(Report("All", (studies.section(results, study, "r1"),)))
    experiment, *_ = study.experiments
    # What has no place in a plot, and what was estimated today, stand in a table.
    elsewhere = Published({"reader": "libhdf5"}, "total_s", 5.29, "Section 5", elsewhere=True)
    one = replace(experiment, published=(*experiment.published, elsewhere))
    beside = Published({"reader": "libhdf5"}, "selected_mb", 1070, "Section 5")
    other = replace(experiment, id="other", published=(beside,), plots=(), claims=())
    run = record({"reader": "libhdf5"}, {"selected_nbytes": 48e6}, operations=1, extrapolated=True)
    results.outcomes = {
        one.id: results.outcomes[one.id], "other": Outcome([{**run, "total_operations": 100}])
    }  # fmt: skip
    results.complete = False
    stopped = replace(study, experiments=(one, other, study.experiments[2]))
    failed = {"status": "failed", "error": "no room", "point": {"cache": "1MiB"}}
    assert_golden(
        "report",
        whole,
        markdown(Report("Part", (studies.section(results, stopped, "r1"),))),
        *problems(Outcome([*repeats({"cache": "1MiB"}, 1, 2), failed]).rows(), {}),
    )
    # No name is markup, and no cell ends a row.
    assert escape(HOSTILE) in whole
    assert "</script>" not in whole
    assert all(line.count(" | ") for line in whole.splitlines() if line.startswith("| "))


def test_published_values_stand_where_todays_do(section: Section) -> None:
    chart, table = block(section, "cache-size").pictures[0]
    paper = {point.value: point.at for point in named(chart, "paper: libhdf5").points}
    today = {round(point.value, 6): point.at for point in named(chart, "libhdf5").points}
    assert paper[0.37] == today[0.000312]
    row = next(row for row in table.rows if row[:2] == ("3MiB", "libhdf5"))
    assert row == ("3MiB", "libhdf5", "0.000312 s", "± 2.2%", "0.37 s", "1/1,186", "Table 5")


def test_all_details_are_told(section: Section) -> None:
    chart, _ = block(section, "cache-size").pictures[0]
    point = next(p for p in named(chart, "libhdf5").points if p.estimated)
    text = "\n".join(point.details)
    for part in ("± 2.2%", "mean of 3 repeats", "standard error", "estimated", "HDF5 2.0.0"):
        assert part in text
    assert point.low < point.value < point.high
    assert "Table 5" in named(chart, "paper: libhdf5").points[0].details


def test_no_line_leads_across_a_break_or_a_missing_value(section: Section) -> None:
    chart, _ = block(section, "cache-size").pictures[0]
    assert [len(run) for run in named(chart, "libhdf5").runs] == [1, 1, 4]
    assert [len(run) for run in named(chart, "h5py").runs] == [1, 1, 1, 2]


def test_relative_values_and_their_errors() -> None:
    records = [*repeats({"cache": "1MiB"}, 2), *repeats({"cache": "2MiB"}, 1)]
    plot = Plot("t", "cache", "total_s", relative={"cache": "1MiB"})
    printed = [Published({"cache": c}, "total_s", v, "T") for c, v in (("1MiB", 8), ("2MiB", 2))]
    chart, table = drawn(records, plot, *printed)
    assert [point.value for point in chart.series[0].points] == [1, pytest.approx(0.5)]
    base, other = chart.series[0].points
    assert base.low == base.high == 1
    # Two errors of the same share add up in squares.
    assert (other.high - other.value) / other.value == pytest.approx(0.02221 * 2**0.5, rel=0.01)
    assert [point.value for point in chart.series[1].points] == [1, 0.25]
    assert table.rows[1][1:5] == ("0.50x", "± 3.1%", "0.25x", "2.00x")


def test_rows_are_summed_up_over_a_label() -> None:
    records = [
        record({"cache": cache, "part": part}, {"total_s": seconds})
        for cache, part, seconds in (
            ("1MiB", "a", 1), ("1MiB", "b", 3), ("2MiB", "a", 2), ("2MiB", "b", 4),
            ("4MiB", "a", 9),
        )
    ]  # fmt: skip
    plot = Plot("t", "cache", "total_s", over="part", total="sum")
    chart, _ = drawn(records, plot)
    # Of 4 MiB a part is missing: its sum would be too small.
    assert [point.value for point in chart.series[0].points] == [4, 6]
    chart, _ = drawn(records, replace(plot, total="mean"))
    assert [point.value for point in chart.series[0].points] == [2, 3]


def test_rows_of_netcdf4_name_its_own_library() -> None:
    libraries = {
        "default": "HDF5 2.0.0 (h5py's)",
        "/netcdf4.libs/libhdf5.so": "HDF5 2.2.0 (netCDF4's wheel)",
    }
    own = list(libraries)[1]
    records = [
        record({"access": "rows", "reader": reader, "libhdf5": path}, {"total_s": seconds})
        for seconds, (reader, path) in enumerate(
            (("netcdf4", "default"), ("libhdf5", "default"), ("libhdf5", own)), 1
        )
    ]
    plot = Plot("t", "access", "total_s", ("reader",))
    found = draw("c", plot, Drawing(Outcome(records).rows(), (), "mean", libraries))
    assert found is not None
    chart, table = found
    assert chart is not None
    told = [row[table.columns.index("library")] for row in table.rows]
    assert told == [libraries[own], libraries["default"], libraries[own]]
    hovers = [series.points[0].details[1] for series in chart.series]
    assert [text.rpartition(", ")[2] for text in hovers] == told
    assert [series.name for series in chart.series] == [
        f"{reader}, {text}"
        for reader, text in zip(("netcdf4", "libhdf5", "libhdf5"), told, strict=True)
    ]
    # Where netCDF4 and h5py share one, there is no other.
    del libraries[own]
    assert phrase(records[0]["point"], ["libhdf5"], libraries) == "HDF5 2.0.0 (h5py's)"


def test_the_same_advice_of_two_scales_is_one_piece(section: Section) -> None:
    open_ones = tuple(
        replace(one, findings=tuple(replace(f, word="cannot tell") for f in one.findings))
        for one in section.blocks
    )
    quick, paper = replace(section, scale="quick"), replace(section, id="r2", scale="paper")
    told = [(one.advice, one.word) for one in section.advice]
    assert len(told) > 1
    for sections in ((quick, paper), (paper, quick)):
        both = Report("Both", sections)
        assert [(one.advice, one.word) for one in both.advice] == told
        assert sum(both.count(word) for word in VERDICTS) == len(told)
        assert "counted once" in lead(both)
    # What the paper's scale cannot tell, the other may.
    unsure = Report("Both", (replace(paper, blocks=open_ones), quick))
    assert [(one.advice, one.word) for one in unsure.advice] == told
    assert "counted once" not in lead(Report("One", (paper,)))


def test_a_figure_can_be_drawn_along_another() -> None:
    sizes = {"8x8": 3 << 20, "790x790": 2 << 20, "791x791": 1 << 20}
    records = [
        record({"chunk": chunk}, {"total_s": seconds, "file_nbytes": nbytes})
        for seconds, (chunk, nbytes) in enumerate(sizes.items(), 1)
    ]
    chart, table = drawn(records, Plot("Time by size", "file_nbytes", "total_s"))
    assert [(p.at, p.value) for p in chart.series[0].points] == [
        (1 << 20, 3), (2 << 20, 2), (3 << 20, 1),
    ]  # fmt: skip
    assert chart.along.title == "Bytes of the file"
    assert [row[0] for row in table.rows] == ["1.0 MiB", "2.0 MiB", "3.0 MiB"]
    # Rows of one size are no series of their own, and still told apart.
    records.append(record({"chunk": "792x792"}, {"total_s": 4, "file_nbytes": 1 << 20}))
    chart, table = drawn(records, Plot("Time by size", "file_nbytes", "total_s"))
    (series,) = chart.series
    assert [len(run) for run in series.runs] == [1] * 4
    assert [p.details[1] for p in series.points[:2]] == [
        "bytes of the file 1.0 MiB, chunks 791x791",
        "bytes of the file 1.0 MiB, chunks 792x792",
    ]  # fmt: skip
    assert table.columns[:2] == ("bytes of the file", "chunk")


@pytest.mark.parametrize(("log", "place"), [(("x",), math.log10(2048)), ((), 2048)])
def test_a_size_is_marked_along_an_axis_of_sizes(log: tuple[str, ...], place: float) -> None:
    records = [r for n in (1, 4) for r in repeats({"cache": f"{n}KiB"}, n)]
    plot = Plot("Caches", "cache", "total_s", log=log, marks={"2KiB": "a chunk"})
    chart, _ = drawn(records, plot)
    assert chart.along.marks == (Tick(place, "a chunk"),)
    made = figure(chart)["layout"]
    assert [one["text"] for one in made["annotations"]] == ["a chunk"]
    assert any(one.get("name") == "mark" and one["x0"] == place for one in made["shapes"])
    # Where words stand nothing lies between.
    chart, _ = drawn(records, replace(plot, kind="bar"))
    assert chart.along.marks == ()
