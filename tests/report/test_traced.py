"""What does a report make of a trace?"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chunkwise.errors import UsageError
from chunkwise.running.trace import Decoded, Trace
from chunkwise_lab.commands.report import command
from chunkwise_lab.report.build import report
from chunkwise_lab.report.markdown import markdown
from chunkwise_lab.report.page import page
from tests.support.reports import HOSTILE
from tests.support.traces import dataset, walk

FOUND = {
    "operation": "read",
    "file": "x.h5",
    "dataset": "/x",
    "code": "small-cache",
    "summary": "The cache is too small.",
    "line": "chunkwise repack x",
}


def saved(folder: Path, trace: Trace, found: Any = FOUND) -> Path:
    path = folder / "t.json"
    path.write_text(json.dumps(trace.record() | {"found": found}))
    return path


def rows_twice() -> Trace:
    """Rows of a dataset in chunks of two rows, in order, then again, then points."""
    runs = [
        walk((0, 0), (1, 6), 8, by=(1, 0), ordered=True, began=0.0, ended=2.0),
        walk((0, 0), (1, 6), 4, by=(1, 0), ordered=True, began=3.0, ended=4.0),
    ]
    one = dataset(
        (8, 6), (2, 3), runs, unlisted=2, chunks=8, touched=24, loaded=16,
        filters=(Decoded("deflate", 16, 0.5),),
    )  # fmt: skip
    plain = dataset((5, 2), (), [walk((1, 0), (1, 2), process=7)], dataset="/plain")
    return Trace([one, plain], {1: "/usr/bin/model"})


def test_reads_over_time_and_over_chunks(tmp_path: Path) -> None:
    made = report([saved(tmp_path, rows_twice())])
    assert made.title == "What the program read"
    (section,) = made.sections
    assert (section.title, section.about) == ("model: t.json", "The cache is too small.")
    assert section.remedy == "chunkwise repack x"
    first, second = section.blocks
    assert first.title == "x.h5: /x"
    texts = dict(first.texts)
    assert texts["Read"].startswith("8 of 1x6 in order, then 4 of 1x6 in order, then 2 of points")
    assert "HDF5 decoded 16 chunks of the dataset, which has 8" in texts["Decoded"]
    (time, walks), (chunks, often) = first.pictures
    assert time is not None
    assert chunks is not None
    (series,) = time.series
    # A line for each walk; a mark is where a read began and how far it reached.
    begun, again = series.runs
    assert [(p.at, p.value, p.high) for p in begun][:3] == [
        (0.0, 0, 1), (pytest.approx(2 / 7), 0, 1), (pytest.approx(4 / 7), 2, 3),
    ]  # fmt: skip
    assert (begun[-1].at, begun[-1].value) == (2.0, 6)
    assert again[-1].at == 4.0
    assert any("2 reads of other selections" in note for note in time.notes)
    assert [row[:2] for row in walks.rows] == [
        ("8 of 1x6 in order", "8"),
        ("4 of 1x6 in order", "4"),
    ]
    # Each chunk was read by its two rows; the first half twice as often.
    (counted,) = chunks.series
    assert [p.value for p in counted.points] == [4, 4, 4, 4, 2, 2, 2, 2]
    assert often.rows == (("2 to 10 times", "8", "100%"),)
    assert second.title == "x.h5: /plain"
    (_, (rows, seldom)) = second.pictures
    assert rows is not None
    assert rows.title == "Reads over its rows"
    assert seldom.rows == (("never", "4", "80%"), ("once", "1", "20%"))


def test_each_writer_writes_it(tmp_path: Path) -> None:
    hostile = dataset((3,), (1,), [walk((0,), (1,), 3, by=(1,), process=2)], dataset=HOSTILE)
    trace = rows_twice()
    trace.datasets.append(hostile)
    made = report([saved(tmp_path, trace, None)])
    assert "chunkwise advise" in made.sections[0].remedy
    html = page(made)
    assert HOSTILE not in html
    assert "Reads over time" in html
    assert "How often its chunks were read" in markdown(made)


def test_much_is_cut_and_said(tmp_path: Path) -> None:
    runs = [walk((n % 90,), (1,), began=n, ended=n + 0.5, process=n % 9) for n in range(3000)]
    many = [dataset((90,), (1,), runs[: 9 if n else None], dataset=f"/d{n}") for n in range(14)]
    made = report([saved(tmp_path, Trace(many, dict.fromkeys(range(9), "ranks")))])
    (section,) = made.sections
    assert len(section.blocks) == 12
    assert ("Not shown", "2 datasets that took less time") in section.facts
    (time, walks), _ = section.blocks[0].pictures
    assert time is not None
    assert sum(len(series.points) for series in time.series) <= 1500
    assert {"Of 3,000 walks the 1,500 that took longest are drawn.",
            "Of 9 processes the first 6 are drawn."} <= set(time.notes)  # fmt: skip
    assert len(walks.rows) == 50


def test_nothing_read(tmp_path: Path) -> None:
    made = report([saved(tmp_path, Trace([], {1: "ls"}), None)])
    assert (
        made.sections[0].about == "The program read and wrote no HDF5 dataset that could be seen."
    )
    assert not list(made.charts)
    assert page(made)


def test_a_broken_trace_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, rows_twice())
    record = json.loads(path.read_text())
    for key in ("datasets", "processes", "found"):
        path.write_text(json.dumps({k: v for k, v in record.items() if k != key}))
        with pytest.raises(UsageError, match="no whole file of chunkwise trace"):
            report([path])
    record["datasets"][0]["runs"][0]["last"] = 3
    path.write_text(json.dumps(record))
    done = CliRunner().invoke(command, [str(path), "-o", str(tmp_path / "r.html")])
    assert (done.exit_code, "no whole file" in str(done.exception)) != (0, False)
    assert not (tmp_path / "r.html").exists()
