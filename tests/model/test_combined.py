"""Does one command mend all findings of a file that another layout mends?"""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner

from chunkwise.cli.main import cli
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.model.layout import AS_IT_IS, DatasetLayout, FileLayout, as_pattern, together
from chunkwise.remedy.records import Present, in_chunks
from chunkwise.repacking.rules import matches
from tests.inspect.test_findings_file import make_days
from tests.inspect.test_findings_filters import NOISE, WALK
from tests.model.test_every_fix import nothing_lost
from tests.support.inspect_fakes import dataset, file_facts, finding, shown
from tests.support.once import once
from tests.support.tools import paste

MIB = 1 << 20
GZIP: dict[str, Any] = {"compression": "gzip", "compression_opts": 1}


@once
def of_many_kinds(path: Path) -> None:
    """Wrong chunks, wrong filters, both at once, and names that mean something to shells."""
    numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "kept"
        file.create_dataset("tiny", data=numbers, chunks=(8, 8))
        file.create_dataset("g/it's [a] *", data=numbers, chunks=(8, 8), **GZIP)
        # Two faults at once: chunks of 40 bytes, and no shuffle.
        file.create_dataset("both", data=WALK, chunks=(1, 50), **GZIP)
        file.create_dataset("no shuffle", data=WALK, chunks=(50, 1000), **GZIP)
        file.create_dataset("in vain", data=NOISE, chunks=(50, 1000), **GZIP)
        file.create_dataset("edge", data=np.ones((1200, 1200), "<i4"), chunks=(800, 800))
        file.create_dataset("fine", data=np.arange(100))


def scattered(path: Path) -> None:
    """A file of many days, with metadata among the data, and a dataset of tiny chunks."""
    make_days(path, 105)
    with h5py.File(path, "r+") as file:
        numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
        file.create_dataset("tiny", data=numbers, chunks=(8, 8))


def paged(path: Path) -> None:
    make_days(path, 90, 256 << 10)
    with h5py.File(path, "r+") as file:
        numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
        file.create_dataset("tiny", data=numbers, chunks=(8, 8))


def virtual(path: Path) -> None:
    with h5py.File(path.with_name("part.h5"), "w") as file:
        file["x"] = np.arange(1000)
    layout = h5py.VirtualLayout((1000,), "<i8")
    layout[:] = h5py.VirtualSource("part.h5", "x", (1000,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout)
        numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
        file.create_dataset("tiny", data=numbers, chunks=(8, 8))


MAKERS: dict[str, Callable[[Path], object]] = {
    "many kinds": of_many_kinds,
    "scattered": scattered,
    "paged": paged,
    "virtual": virtual,
}


def left(facts: FileFacts) -> list[tuple[str, str | None]]:
    """What of a file another layout would mend."""
    return [(one.code, one.path) for one in facts.findings if one.layout is not None]


@pytest.mark.parametrize("kind", MAKERS)
def test_one_command_mends_all_findings(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    MAKERS[kind](tmp_path / "a b.h5")
    before = inspect("a b.h5")
    assert len(left(before)) > 1
    command, *_ = before.commands
    paste(command.text, tmp_path)
    copy = Path(shlex.split(command.text)[-1])
    nothing_lost(tmp_path / "a b.h5", copy)
    assert left(inspect(copy)) == []
    assert inspect(copy).commands == ()


def test_findings_about_one_dataset_are_in_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_many_kinds(tmp_path / "a.h5")
    facts = inspect("a.h5", access=["row"])
    of_both = {one.code: one for one in facts.findings if one.path == "/both"}
    assert {"small-chunks", "shuffle-missing"} <= set(of_both)
    assert facts.layout is not None
    (asked,) = [one for one in facts.layout.datasets if one.path == "/both"]
    assert asked.chunk is not None
    # Shuffle is only offered: it saves space, and may make reading slower.
    assert asked.filters is None


@pytest.mark.parametrize("tool", ["h5repack", "nccopy"])
def test_what_other_tools_make_of_it(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are offered what they can do alone: all of it."""
    monkeypatch.chdir(tmp_path)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("y", 512)
        file.createDimension("x", 512)
        for name in ("u", "v"):
            made = file.createVariable(name, "i4", ("y", "x"), chunksizes=(8, 8))
            made[:] = np.arange(512 * 512).reshape(512, 512)
    facts = inspect("a.nc")
    (command,) = [fix for fix in facts.commands if fix.tool == tool]
    paste(command.text, tmp_path)
    copy = Path(shlex.split(command.text)[-1])
    with netCDF4.Dataset(copy) as file:
        for name in ("u", "v"):
            assert file[name].dimensions == ("y", "x")
            assert np.array_equal(file[name][:], np.arange(512 * 512).reshape(512, 512))
    assert left(inspect(copy)) == []


def test_other_tools_are_left_out_where_they_would_lose_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.create_dataset("tiny", data=numbers, chunks=(8, 8))
        file.create_dataset("lzf", data=numbers, chunks=(512, 512), compression="lzf")
    assert [fix.tool for fix in inspect("a.nc").commands] == ["chunkwise"]
    virtual(tmp_path / "b.nc")
    assert [fix.tool for fix in inspect("b.nc").commands] == ["chunkwise"]


def test_inspect_ends_with_it_and_json_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_many_kinds(tmp_path / "a.h5")
    printed = CliRunner().invoke(cli, ["inspect", "a.h5"]).output
    given = json.loads(CliRunner().invoke(cli, ["inspect", "a.h5", "--json"]).output)
    last = printed.rstrip().splitlines()[-1].strip()
    assert last.startswith("chunkwise repack ")
    assert shlex.split(last) == shlex.split(given["commands"][0]["text"])
    # What is only offered has its own.
    assert printed.count("chunkwise repack") == 2
    assert "Fix: the command at the end" in printed
    # One dataset has its own.
    printed = CliRunner().invoke(cli, ["inspect", "a.h5", "both"]).output
    last = printed.rstrip().splitlines()[-1].strip()
    assert "/both:shuffle+deflate:1" in printed
    assert "tiny" not in last


def test_what_is_ignored_is_not_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of_many_kinds(tmp_path / "a.h5")
    arguments = ["inspect", "a.h5", "--json", "--ignore", "edge-waste"]
    given = json.loads(CliRunner().invoke(cli, arguments).output)
    assert "/edge" not in given["commands"][0]["text"]


def test_it_says_what_no_layout_mends() -> None:
    mended = finding("/a", remedies=in_chunks("model.nc", "/a", (4, 4), Present()))
    facts = file_facts(dataset("/a"), findings=(mended, finding(None, "dangling-link")))
    text = shown(facts)
    assert "One command mends 1 of 2 findings; no layout mends dangling-link:\n" in text
    assert text.endswith("    chunkwise repack --chunk /a:4x4 model.nc model_repacked.nc\n")
    assert "One command mends it:" in shown(replace(facts, findings=(mended,)))
    assert "One command" not in shown(replace(facts, findings=(finding(None),)))


def test_layouts_together() -> None:
    one = FileLayout((DatasetLayout("/a", (4, 4)), DatasetLayout("/b", None, "none")))
    other = FileLayout((DatasetLayout("/a", (8, 8), "deflate:1"),), metadata_block_nbytes=MIB)
    paged = FileLayout(page_nbytes=4 * MIB, merge=True)
    assert together([]) is None
    assert together([AS_IT_IS, AS_IT_IS]) == AS_IT_IS
    both = together([one, other])
    assert both is not None
    assert both.datasets == (DatasetLayout("/a", (4, 4), "deflate:1"), one.datasets[1])
    assert both.metadata_block_nbytes == MIB
    every = together([one, other, paged])
    assert every is not None
    assert (every.page_nbytes, every.metadata_block_nbytes, every.merge) == (4 * MIB, None, True)


@pytest.mark.parametrize(
    "path", ["/a", "/g/a*b", "/[a]", "/a]b", "/why?", "/a:b", "/a\nb", "/[!a]"]
)
def test_a_path_as_a_pattern_means_itself(path: str) -> None:
    assert matches(as_pattern(path), path)
    assert not matches(as_pattern(path), path.replace("*", "x").replace("?", "y") + "z")
    for other in ("/gxaxb", "/a", "/whyx", "/b"):
        assert matches(as_pattern(path), other) == (other == path)
