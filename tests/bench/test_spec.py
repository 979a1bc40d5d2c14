"""Does a TOML file mean what it says, and does a bad one say why?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.measure import spec
from tests.support.commands import run

GOOD = """
file = "data/a.h5"
dataset = "/g/x"
design = "each"
repeat = 1
budget = 20
sample = "1MiB"

[axes]
access = ["row=1x6", "all"]
reader = "libhdf5"
nslots = [521, 1009]
w0 = 0.5
"""
LIST = """
[axes]
access = "all"
reader = ["h5py"]

[[trial]]
cache = "1MiB"
[[trial]]
reader = "libhdf5"
nslots = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    with h5py.File(tmp_path / "data" / "a.h5", "w") as file:
        file.create_dataset("g/x", data=np.arange(48).reshape(8, 6), chunks=(4, 6))
        file.create_dataset("g/y", data=np.arange(48), chunks=(4,))
    return tmp_path


def written(folder: Path, text: str) -> str:
    path = folder / "plan.toml"
    path.write_text(text)
    return str(path)


def bench(*arguments: str) -> Any:
    done = run("bench", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_all_of_it_is_read(folder: Path) -> None:
    found = spec.read(written(folder, GOOD))
    assert found.file == str(folder / "data" / "a.h5")  # beside the plan, wherever we are
    assert (found.dataset, found.repeat, found.seconds) == ("/g/x", 1, 20.0)
    assert found.sample_nbytes == 1 << 20
    assert found.space.design == "each"
    assert found.space.axes == {
        "access": ("row=1x6", "all"),
        "reader": ("libhdf5",),
        "nslots": ("521", "1009"),
        "w0": ("0.5",),
    }


def test_the_budget_as_people_write_it(folder: Path) -> None:
    assert spec.read(written(folder, "budget = '1h30min'")).seconds == 5400.0


def test_an_absolute_file_stays_so(folder: Path) -> None:
    path = folder / "data" / "a.h5"
    assert spec.read(written(folder, f"file = {str(path)!r}")).file == str(path)


def test_paths_among_the_values_are_relative_to_the_plan(folder: Path) -> None:
    plan = folder / "plan.toml"
    plan.write_text(
        '[axes]\naccess = ["list:sel.txt", "mine=list:/x/sel.txt", "[0:5, ::2]", "row=1x6"]\n'
        'libhdf5 = ["default", "lib/libhdf5.so", "/usr/bin/python3"]\n'
    )
    axes = spec.read(str(plan)).space.axes
    assert axes["access"] == (
        f"list:{folder / 'sel.txt'}", "mine=list:/x/sel.txt", "[0:5, ::2]", "row=1x6",
    )  # fmt: skip
    assert axes["libhdf5"] == ("default", str(folder / "lib/libhdf5.so"), "/usr/bin/python3")


def test_an_empty_plan_asks_for_nothing(folder: Path) -> None:
    found = spec.read(written(folder, ""))
    assert found == spec.Spec(found.space)
    assert (found.space.axes, found.space.design) == ({}, "product")


def test_trials_make_a_list(folder: Path) -> None:
    space = spec.read(written(folder, LIST)).space
    assert space.design == "list"
    assert [(p["reader"], p["cache"], p["nslots"]) for p in space.points(())] == [
        ("h5py", "1MiB", "default"),
        ("libhdf5", "default", "7"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file = ", "no TOML"),
        ("= 1", "no TOML"),
        ("colour = 1", "unknown key 'colour'"),
        ("repeats = 1", "unknown key 'repeats'"),
        ("repeat = 0", "repeat is a number above 0"),
        ("repeat = 2.5", "repeat is a whole number"),
        ("repeat = true", "repeat is a number above 0"),
        ("repeat = '3'", "repeat is a number above 0"),
        ("budget = -1", "budget is a number above 0"),
        ("repeat = inf", "repeat is a number above 0"),
        ("budget = nan", "budget is a number above 0"),
        ("budget = '0s'", "budget is a number above 0"),
        ("budget = '5 parsecs'", "no unit is called 'parsecs'"),
        ("sample = '1 M'", "could mean two units"),
        ("sample = [1]", "values are text or numbers"),
        ("file = 3", "file is text"),
        ("dataset = ['a']", "dataset is text"),
        ("design = 'all'", "unknown design 'all'"),
        ("design = 'list'", "trials are listed"),
        ("axes = 3", "axes is a table"),
        ("trial = 3", "trial is a list of tables"),
        ("[trial]\ncache = 1", "trial is a list of tables"),
        ("[axes]\ncolour = 'red'", "nothing called 'colour'"),
        ("[axes]\ncache = []", "name at least one value"),
        ("[axes]\ncache = [true]", "values are text or numbers"),
        ("[axes]\ncache = [['1MiB']]", "values are text or numbers"),
        ("[axes]\nw0 = 2", "from 0 to 1"),
        ("design = 'each'\n[[trial]]\ncache = '1MiB'", "trials are listed"),
        ("[[trial]]\ncolour = 1", "nothing called 'colour'"),
    ],
)
def test_a_bad_plan_says_why(folder: Path, text: str, said: str) -> None:
    path = written(folder, text)
    with pytest.raises(UsageError, match=said) as caught:
        spec.read(path)
    assert str(caught.value).startswith(path)


def test_what_cannot_be_read_says_so(folder: Path) -> None:
    (folder / "latin.toml").write_bytes(b"file = '\xe9'")
    for name, said in (
        ("none.toml", "No such file"),
        ("data", "directory"),
        ("latin.toml", "no TOML"),
    ):
        with pytest.raises(UsageError, match=said):
            spec.read(str(folder / name))


def test_a_plan_is_run(folder: Path) -> None:
    found = bench("--plan", written(folder, GOOD))
    assert found["design"] == "each"
    assert found["varied"] == ["access", "nslots"]
    assert [(row["access"], row["cache_nslots"]) for row in found["records"]] == [
        ("row", 521), ("all", 521), ("row", 1009),
    ]  # fmt: skip
    assert {row["cache_w0"] for row in found["records"]} == {0.5}


def test_the_command_line_replaces_what_the_plan_says(folder: Path) -> None:
    given = ["--access", "all", "--nslots", "33", "--design", "product", "--repeat", "2"]
    plan = ["--plan", written(folder, GOOD)]
    found = bench(str(folder / "data" / "a.h5"), "g/y", *plan, *given)
    assert found["target"]["dataset"] == "g/y"
    assert [(row["block"], row["cache_nslots"]) for row in found["records"]] == [([48], 33)] * 2


def test_a_listed_plan_is_run(folder: Path) -> None:
    plan = ["--plan", written(folder, LIST)]
    found = bench(str(folder / "data" / "a.h5"), "g/x", *plan, "--repeat", "1")
    assert [(row["reader"], row["cache_nbytes"]) for row in found["records"]] == [
        ("h5py", 1 << 20),
        ("libhdf5", None),
    ]
