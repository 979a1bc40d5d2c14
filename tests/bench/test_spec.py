"""Does a TOML file mean what it says, and does a bad one say why?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.measure import spec
from tests.support.commands import run
from tests.support.golden import assert_golden, refused

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


BAD = (
    "file = ;= 1;colour = 1;repeats = 1;repeat = 0;repeat = 2.5;repeat = true;repeat = '3';"
    "repeat = inf;budget = -1;budget = nan;budget = '0s';budget = '5 parsecs';sample = '1 M';"
    "sample = [1];file = 3;dataset = ['a'];design = 'all';design = 'list';axes = 3;trial = 3;"
    "[trial]\ncache = 1;[axes]\ncolour = 'red';[axes]\ncache = [];[axes]\ncache = [true];"
    "[axes]\ncache = [['1MiB']];[axes]\nw0 = 2;design = 'each'\n[[trial]]\ncache = '1MiB';"
    "[[trial]]\ncolour = 1"
)


def test_a_bad_plan_says_why(folder: Path) -> None:
    said = refused(lambda text: spec.read(written(folder, text)), BAD.split(";"))
    # In the words of Python's reader of TOML.
    said = re.sub(r"no TOML.*", "no TOML", said)
    assert_golden("bench-plan-refused", said.replace(str(folder), "FOLDER"))


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
