"""Is what a study's files get wrong refused, with the place and what is known?"""

import re
from pathlib import Path

import pytest

from chunkwise_lab.studies.load import load
from tests.support.golden import assert_golden, refused
from tests.support.studies import ROWS, STUDY, write_study


def test_a_study_is_read_from_a_folder(tmp_path: Path) -> None:
    study = load(str(write_study(tmp_path)))
    assert study.name == "tiny"
    assert [one.id for one in study.experiments] == ["rows", "chunks"]
    assert study.experiments[0].claims[0].settings["slow"] == {"cache": "1KiB"}


NO_STUDY = ("occm", ".", "no/such")
# What is replaced in the study's head, by what.
WRONG_HEAD = [
    ('statistic = "median"', 'statistic = "mode"'),
    ("{quick = 1, paper = 3}", "{quick = 1}"),
    ('sample = "cris"', 'sample = "criss"'),
    ('setting = "A made-up machine."', ""),
    ("[data.small]", '[data."../small"]'),
    ('files = ["rows.toml"]', ""),
    ('files = ["rows.toml"]', 'files = ["row.toml"]'),
]
# What is replaced in the rows' file, by what.
WRONG = [
    ('figure = "total_s"', 'figure = "total"'),
    ('slow = {cache = "1KiB"}', 'slow = {cash = "1KiB"}'),
    ('slow = {cache = "1KiB"}', 'slow = {cache = "2KiB"}'),
    ('slow = {cache = "1KiB"}', "slow = {cache = 1024}"),
    ('slow = {cache = "1KiB"}', 'slow = {cache = "1KiB", access = "all"}'),
    ('slow = {cache = "1KiB"}', 'slow = {size = "large"}'),
    ('rule = "ratio"', 'rule = "ration"'),
    ('published = "3 s against 1 s"', "leest = 3"),
    ('fast = {cache = "1MiB"}', ""),
    ('published = "3 s against 1 s"', "least = 0.5"),
    ('where = {cache = "1KiB"}', 'where = {cache = "9KiB"}'),
    ('x = "cache"', 'x = "cach"'),
    ('x = "cache"', 'x = "cache"\nlogs = "y"'),
    ('question = "Does the cache matter?"', ""),
    ('data = ["small"]', 'data = ["smal"]'),
    ('reader = ["libhdf5"]', 'reader = ["hdf5"]'),
    ('cache = ["1KiB", "1MiB"]}', 'cash = ["1KiB"]}'),
    ('id = "chunks"', 'id = "rows"'),
    ('id = "chunks"', "id = chunks"),
]


def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long messages are shortened: the folder's name is always as long.
    monkeypatch.chdir(tmp_path)
    folder = Path("FOLDER")
    folder.mkdir()

    def read(change: tuple[str, str]) -> None:
        assert change[0] in ROWS
        write_study(folder, ROWS.replace(*change, 1))
        load("./FOLDER")

    def read_head(change: tuple[str, str]) -> None:
        assert change[0] in STUDY
        write_study(folder, study=STUDY.replace(*change, 1))
        load("./FOLDER")

    said = re.sub(r"(?<=not TOML).*", "", refused(read, WRONG))
    assert said.count("FOLDER/") == len(WRONG)
    assert_golden("study-refused", said, refused(read_head, WRONG_HEAD), refused(load, NO_STUDY))


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
