"""Is what a study's files get wrong refused, with the place and what is known?"""

from __future__ import annotations

from pathlib import Path

import pytest

from chunkwise.errors import UsageError
from chunkwise_lab.studies.load import load
from tests.support.studies import ROWS, STUDY, write_study


def test_a_study_is_read_from_a_folder(tmp_path: Path) -> None:
    study = load(str(write_study(tmp_path)))
    assert study.name == "tiny"
    assert [one.id for one in study.experiments] == ["rows", "chunks"]
    assert study.experiments[0].claims[0].settings["slow"] == {"cache": "1KiB"}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("occm", "no study is called 'occm' (did you mean 'occam'?): choose from occam, netcdf4"),
        (".", "a folder without a study.toml is no study"),
        ("no/such", "or name a folder with a study.toml"),
    ],
)
def test_no_such_study(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=None) as refused:
        load(name)
    assert says in str(refused.value)


# What is replaced in the rows' file by what, and what is said then.
WRONG = {
    "figure": (
        'figure = "total_s"',
        'figure = "total"',
        "no figure is called 'total' (did you mean",
    ),
    "axis of a where": (
        'slow = {cache = "1KiB"}',
        'slow = {cash = "1KiB"}',
        "claim 'cache', slow: no run has an axis or label 'cash' (did you mean 'cache'?)",
    ),
    "value of a where": (
        'slow = {cache = "1KiB"}',
        'slow = {cache = "2KiB"}',
        "claim 'cache', slow: no run has cache = \"2KiB\"",
    ),
    "number in a where": (
        'slow = {cache = "1KiB"}',
        "slow = {cache = 1024}",
        "claim 'cache', slow: cache is 1024: write it as text, in quotes",
    ),
    "two values that no row has both": (
        'slow = {cache = "1KiB"}',
        'slow = {cache = "1KiB", access = "all"}',
        'no run has access = "all"',
    ),
    "label": ('slow = {cache = "1KiB"}', 'slow = {size = "large"}', 'no run has size = "large"'),
    "rule": ('rule = "ratio"', 'rule = "ration"', "no rule is called 'ration'"),
    "setting": (
        'published = "3 s against 1 s"',
        "leest = 3",
        "the rule ratio has no setting 'leest' (did you mean 'least'?)",
    ),
    "missing setting": ('fast = {cache = "1MiB"}', "", "the rule ratio needs fast"),
    "number": (
        'published = "3 s against 1 s"',
        "least = 0.5",
        "least is a ratio: give a number above 1",
    ),
    "published": (
        'where = {cache = "1KiB"}',
        'where = {cache = "9KiB"}',
        "of what is not measured here at all, say elsewhere = true",
    ),
    "x of a plot": ('x = "cache"', 'x = "cach"', "plot 'Reading': no run has an axis or label"),
    "field of a plot": ('x = "cache"', 'x = "cache"\nlogs = "y"', "a plot has no 'logs'"),
    "missing field": ('question = "Does the cache matter?"', "", "'question' is missing"),
    "data": ('data = ["small"]', 'data = ["smal"]', "there is no data 'smal': there are small"),
    "reader": ('reader = ["libhdf5"]', 'reader = ["hdf5"]', "unknown reader 'hdf5'"),
    "axis": (
        'cache = ["1KiB", "1MiB"]}',
        'cash = ["1KiB"]}',
        "nothing called 'cash' can be varied",
    ),
    "two of one id": ('id = "chunks"', 'id = "rows"', "two experiments are called 'rows'"),
    "TOML": ('id = "chunks"', "id = chunks", "rows.toml: not TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_place(case: str, tmp_path: Path) -> None:
    right, wrong, says = WRONG[case]
    assert right in ROWS
    write_study(tmp_path, ROWS.replace(right, wrong, 1))
    with pytest.raises(UsageError) as refused:
        load(str(tmp_path))
    text = str(refused.value)
    assert says in text
    assert str(tmp_path) in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('statistic = "median"', 'statistic = "mode"', "no statistic is called 'mode'"),
        ("{quick = 1, paper = 3}", "{quick = 1}", "repeat says nothing of the scale paper"),
        ('sample = "cris"', 'sample = "criss"', "no sample is called 'criss' (did you mean"),
        ('setting = "A made-up machine."', "", "a study: 'setting' is missing"),
        ("[data.small]", '[data."../small"]', "'../small': an id, and a name of data, is letters"),
        ('files = ["rows.toml"]', "", "'files' is missing, or no list"),
        ('files = ["rows.toml"]', 'files = ["row.toml"]', "row.toml: cannot be read"),
    ],
)
def test_the_head_is_checked_as_well(right: str, wrong: str, says: str, tmp_path: Path) -> None:
    write_study(tmp_path, study=STUDY.replace(right, wrong, 1))
    with pytest.raises(UsageError) as refused:
        load(str(tmp_path))
    assert says in str(refused.value)


def test_a_published_value_may_stand_alone_if_it_says_so(tmp_path: Path) -> None:
    rows = ROWS.replace(
        'where = {cache = "1KiB"}', 'where = {machine = "Phase 2"}\nelsewhere = true', 1
    )
    study = load(str(write_study(tmp_path, rows)))
    assert study.experiments[0].published[0].elsewhere


def test_values_count_that_one_scale_alone_has(tmp_path: Path) -> None:
    rows = ROWS.replace(
        'cache = ["1KiB", "1MiB"]}', 'cache = ["1MiB"]}\npaper = {cache = ["1KiB", "1MiB"]}', 1
    )
    assert load(str(write_study(tmp_path, rows))).experiments[0].claims


def test_libraries_that_are_not_known_yet_can_be_spoken_of(tmp_path: Path) -> None:
    rows = ROWS.replace(
        'cache = ["1KiB", "1MiB"]}', 'cache = ["1KiB", "1MiB"], libhdf5 = ["@all"]}', 1
    ).replace('slow = {cache = "1KiB"}', 'slow = {cache = "1KiB", libhdf5 = "@others"}', 1)
    assert load(str(write_study(tmp_path, rows))).experiments[0].claims
