"""Does a report show what was measured, and what was published, as it is?"""

import math
from dataclasses import replace
from typing import Any

import pytest

from chunkwise_lab.report import studies
from chunkwise_lab.report.charts import draw
from chunkwise_lab.report.labels import phrase
from chunkwise_lab.report.model import Block, Chart, Report, Section, Series, Table, Tick
from chunkwise_lab.report.parts import lead
from chunkwise_lab.report.plots import figure
from chunkwise_lab.report.studies import problems
from chunkwise_lab.report.values import Drawing
from chunkwise_lab.report.verdicts import VERDICTS
from chunkwise_lab.studies.results import Outcome
from chunkwise_lab.studies.study import Plot, Published
from tests.support.reports import cache_size, made_up, record, repeats


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


def test_series_are_named_by_what_differs(section: Section) -> None:
    chart, _ = block(section, "cache-size").pictures[0]
    assert chart is not None
    assert [series.name for series in chart.series] == ["libhdf5", "h5py", "paper: libhdf5"]
    assert [series.published for series in chart.series] == [False, False, True]
    assert named(chart, "paper: libhdf5").style == named(chart, "libhdf5").style


def test_published_values_stand_where_todays_do(section: Section) -> None:
    chart, table = block(section, "cache-size").pictures[0]
    paper = {point.value: point.at for point in named(chart, "paper: libhdf5").points}
    today = {round(point.value, 6): point.at for point in named(chart, "libhdf5").points}
    assert paper[0.37] == today[0.000312]
    row = next(row for row in table.rows if row[:2] == ("3MiB", "libhdf5"))
    assert row == ("3MiB", "libhdf5", "0.000312 s", "± 2.2%", "0.37 s", "1/1,186", "Table 5")


def test_rates_and_bandwidths_say_their_unit() -> None:
    records = [
        {"status": "ok", "pays_below": value, "point": {"bandwidth": text}}
        for text, value in (("100", 2.0), ("400", 3e6))
    ]
    chart, _ = drawn(records, Plot("Pays", "bandwidth", "pays_below"))
    assert (chart.along.title, chart.figure.title) == (
        "Bandwidth (MB/s)", "Bandwidth below which it pays (MB/s)",
    )  # fmt: skip


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


def test_what_went_wrong_is_told(section: Section) -> None:
    assert block(section, "cache-size").alerts == (
        "Wrong: two trials met different bytes",
        "Failed, out of time: cache 1MiB, h5py.",
        "Not measured: no libhdf5 was found besides h5py's",
    )


def test_repeats_that_failed_are_counted() -> None:
    point = {"cache": "1MiB"}
    records = [*repeats(point, 1, 2), {"status": "failed", "error": "no room", "point": point}]
    (told,) = problems(Outcome(records).rows(), {})
    assert told == "Failed, no room: all of it (1 of 3 repeats)."


def test_verdicts_are_computed(section: Section) -> None:
    words = {found.advice: found.word for found in section.advice}
    assert words["Make the chunk cache hold at least one chunk."] == "holds"
    assert words["Do not mind who reads."] == "no longer holds"


def test_an_experiment_not_measured_and_a_run_not_ended_are_told() -> None:
    results, study = made_up()
    del results.outcomes["words"]
    results.complete = False
    alerts = " ".join(studies.section(results, study, "r1").missing)
    assert "stopped before its end" in alerts
    assert "1 of 3 experiments was not measured" in alerts


def test_a_long_table_is_folded(section: Section) -> None:
    _, table = block(section, "chunk-size").pictures[0]
    assert len(table.rows) == 25
    assert len(table.columns) == 7
    assert table.rows[0][1] == "15.3 s ± 2.0%"


def test_a_published_value_that_nothing_matches_has_a_row(section: Section) -> None:
    chart, table = block(section, "words").pictures[0]
    assert chart is not None
    assert chart.kind == "dots"
    row = next(row for row in table.rows if row[0] == "as then")
    assert "not measured" in row
    assert "5 MB" in row
    assert chart.figure.title == "Bytes of the file (MB)"


def test_an_axis_that_differs_at_one_place_tells_series_apart() -> None:
    records = [
        *repeats({"cache": "1MiB", "w0": "0"}, 1), *repeats({"cache": "2MiB", "w0": "0"}, 2),
        *repeats({"cache": "1MiB", "w0": "1"}, 3), *repeats({"cache": "2MiB", "w0": "1"}, 4),
    ]  # fmt: skip
    chart, _ = drawn(records, Plot("t", "cache", "total_s"))
    assert [series.name for series in chart.series] == ["w0 0", "w0 1"]


def test_published_values_tell_series_apart_that_failed_today() -> None:
    printed = [
        Published({"cache": "1MiB", "format": kind}, "total_s", value, "T")
        for kind, value in (("classic", 1), ("netcdf4", 2))
    ]
    records = repeats({"cache": "1MiB", "format": "netcdf4"}, 1)
    chart, _ = drawn(records, Plot("t", "cache", "total_s", ("format",), kind="bar"), *printed)
    names = [series.name for series in chart.series]
    assert names == ["format netcdf4", "paper: format classic", "paper: format netcdf4"]
    assert [series.style for series in chart.series] == [0, None, 0]
    assert [tick.text for tick in chart.along.ticks] == ["cache 1MiB"]


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


def test_a_value_of_zero_is_told_where_it_cannot_stand() -> None:
    records = [record({"cache": c}, {"total_s": v}) for c, v in (("1MiB", 0.0), ("2MiB", 1.0))]
    chart, table = drawn(records, Plot("t", "cache", "total_s", log=("y",)))
    assert "1 value of 0 cannot stand on a logarithmic axis." in chart.notes
    assert len(table.rows) == 2


def test_what_is_printed_twice_is_shown_once() -> None:
    printed = [Published({"cache": "1MiB"}, "total_s", 3, f"Table {n}") for n in (1, 2)]
    chart, table = drawn(repeats({"cache": "1MiB"}, 1), Plot("t", "cache", "total_s"), *printed)
    assert len(chart.series[1].points) == 1
    assert table.rows[0][-1] == "Tables 1 and 2"


def test_what_nothing_today_measures_stands_alone() -> None:
    printed = Published({"cache": "1MiB"}, "total_s", 3, "T", label="Linux", elsewhere=True)
    chart, table = drawn(repeats({"cache": "1MiB"}, 1), Plot("t", "cache", "total_s"), printed)
    assert [series.name for series in chart.series] == ["today", "paper: Linux"]
    assert chart.series[1].style is None
    assert len(table.rows) == 2
    assert table.rows[1][1] == "no counterpart"


def test_what_has_no_place_in_a_plot_is_told_in_a_table() -> None:
    results, study = made_up()
    experiment, *others = study.experiments
    printed = Published({"reader": "libhdf5"}, "total_s", 5.29, "Section 5", elsewhere=True)
    changed = replace(experiment, published=(*experiment.published, printed))
    section = studies.section(results, replace(study, experiments=(changed, *others)), "r1")
    chart, table = section.blocks[0].pictures[-1]
    assert chart is None
    assert table.rows == (("libhdf5", "seconds for all of it", "5.29 s", "", "Section 5"),)


def test_published_values_are_as_printed_and_todays_in_their_unit() -> None:
    plot = Plot("t", "cache", "total_s")
    printed = Published({"cache": "1MiB"}, "total_s", 140.88, "T")
    chart, table = drawn([record({"cache": "1MiB"}, {"total_s": 203.4})], plot, printed)
    assert table.rows[0][1:3] == ("203 s", "140.88 s")
    assert chart.alt.endswith("today: 203 s at 1MiB. the paper: 140.88 s at 1MiB.")
    hovers = [series.points[0].details[0] for series in chart.series]
    assert hovers == ["203 s", "140.88 s in the paper"]
    # Where no paper printed any, in the unit that suits.
    alone, _ = drawn([record({"cache": "1MiB"}, {"total_s": 203.4})], plot)
    assert alone.series[0].points[0].details[0] == "3.39 min"
    records = [record({"cache": "1MiB"}, {"file_nbytes": 62_419_000})]
    printed = Published({"cache": "1MiB"}, "file_nbytes", 62_420_000, "T")
    chart, table = drawn(records, Plot("t", "cache", "file_nbytes"), printed)
    assert table.rows[0][1:3] == ("62.42 MB", "62.42 MB")
    assert chart.series[0].points[0].value == pytest.approx(62.419)
    assert chart.figure.title == "Bytes of the file (MB)"


def test_an_estimate_beside_a_published_value_is_marked() -> None:
    results, study = made_up()
    experiment = study.experiments[0]
    point = {"reader": "libhdf5"}
    run = {**record(point, {"selected_nbytes": 48e6}), "operations": 1, "total_operations": 100}
    rows = Outcome([{**run, "extrapolated": True}])
    printed = Published(point, "selected_mb", 1070, "Section 5")
    changed = replace(experiment, published=(printed,), plots=(), claims=())
    results = replace(results, outcomes={experiment.id: rows})
    section = studies.section(results, replace(study, experiments=(changed,)), "r1")
    (chart, table), *_ = section.blocks[0].pictures
    assert chart is None
    assert table.rows[0][2:4] == ("1,070 MB", "~4,800 MB libhdf5")


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


def test_nothing_measured_and_nothing_published_is_nothing() -> None:
    experiment, _ = cache_size()
    assert draw("c", experiment.plots[0], Drawing([], (), "mean", {})) is None


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


def test_values_that_end_in_a_number_are_drawn_along_it() -> None:
    filters = ("szip:nn:8", "szip:nn:32", "szip:ec:8", "none")
    records = [r for n, name in enumerate(filters) for r in repeats({"filter": name}, n + 1.0)]
    where = {"filter": ("szip:nn:8", "szip:nn:32", "szip:ec:8")}
    plot = Plot("Pixels", "filter", "total_s", split="pixels", where=where)
    chart, table = drawn(records, plot, Published({"filter": "szip:nn:8"}, "total_s", 9, "T"))
    assert [(s.name, len(s.points)) for s in chart.series] == [
        ("szip:nn", 2), ("szip:ec", 1), ("paper: szip:nn", 1),
    ]  # fmt: skip
    assert (chart.along.title, chart.kind) == ("Pixels", "lines")
    assert [tick.text for tick in chart.along.ticks] == ["8", "32"]
    assert table.rows[0][:2] == ("8", "szip:nn")


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
