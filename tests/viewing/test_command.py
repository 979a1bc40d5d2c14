"""Does `chunkwise view` open what it is given, and write only what it is to write?"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import urllib.request
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chunkwise.cli.main import cli
from chunkwise.errors import ChunkwiseError
from chunkwise.grammar import parse_size
from chunkwise.model.seconds import Machine
from chunkwise.viewing.costs import Tried
from chunkwise.viewing.server import Server
from chunkwise.viewing.session import Session
from chunkwise.viewing.traced import Traced
from tests.support.golden import assert_golden, refused


def run(*words: object) -> Any:
    result = CliRunner().invoke(cli, ["view", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_a_page_is_saved_with_the_reads_of_a_trace(
    path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    before = path.read_bytes()
    trace, page = tmp_path / "t.json", tmp_path / "page.html"
    read = traced(path, access=["24x1x1@walk"])
    trace.write_text(json.dumps({"version": 1, "processes": [], "datasets": [read]}))
    run(path, "--trace", trace, "-o", page)
    text = page.read_text("utf-8")
    found = re.search(r'id="saved">(.*?)</script>', text)
    assert found is not None
    saved = json.loads(found[1])
    (view,) = saved["views"].values()
    assert view["reads"] == ["24x1x1@walk"]
    (costs,) = (one for key, one in saved["answers"].items() if key.startswith('["costs"'))
    assert costs["reads"][0]["now"]["reads"] == 3000
    assert costs["reads"][0]["now"]["libhdf5_s"] > 0
    assert path.read_bytes() == before
    with pytest.raises(ChunkwiseError, match="exists"):
        run(path, "-o", page)
    assert page.read_text("utf-8") == text
    run(path, "scalar", "-o", page, "--force")
    assert page.read_text("utf-8") != text
    with pytest.raises(ChunkwiseError, match=r"name it PAGE\.html"):
        run(path, "-o", path)
    with pytest.raises(ChunkwiseError, match="cannot be written"):
        run(path, "-o", tmp_path / "nowhere" / "page.html")
    with pytest.raises(ChunkwiseError, match="no dataset"):
        run(path, "nothing")


def saved_of(page: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what a saved page holds: its facts, and the answers by their questions."""
    text = page.read_text("utf-8")
    found = [re.search(rf'id="{name}">(.*?)</script>', text) for name in ("facts", "saved")]
    facts, saved = (json.loads(one[1]) for one in found if one is not None)
    return facts, saved


@pytest.mark.parametrize(
    "options",
    [
        "--for libhdf5-1.10 --chunk 24x10x10 --filter none --cache 64MiB",
        "--cache 12kB",
        "--filter shuffle+deflate:9",
    ],
)
def test_a_state_is_a_command_that_gives_it_again(path: Path, options: str) -> None:
    words = options.split()
    tried = Tried(
        **{
            {"--for": "reader", "--filter": "filters"}.get(name, name[2:]): value
            for name, value in zip(words[::2], words[1::2], strict=True)
        }
    )
    tried = replace(tried, cache=str(parse_size(tried.cache)) if tried.cache else "")
    first = Session.of(str(path), "/cube", ("line:0", "[0:3, 5]"), tried)
    number = first.first()["chosen"]
    asked = {"dataset": [str(number)], "read": list(first.access)}
    tries = {name: [value] for name, value in asdict(tried).items()}
    said = first.costs(asked | tries)["page"]
    reads = "".join(f" --access {one}" for one in said["reads"])
    line = said["begin"] + reads + said["options"] + " --draw 2,0 --at 5,45,0 --colour ratio"
    line += " --zoom 10:40,0:12"
    assert options in line
    again = opened_by(line)
    assert (again.path, again.dataset) == (str(path), "/cube")
    assert (again.access, again.tried) == (first.access, tried)
    assert again.first()["drawn"] == {
        "vertical": 2, "horizontal": 0, "at": [5, 45, 0], "colour": "ratio",
        "zoom": [(10, 40), (0, 12)],
    }  # fmt: skip


def opened_by(line: str) -> Session:
    """What a line opens that is pasted into a shell."""
    opened: list[Session] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chunkwise.viewing.server.Server.until_left", lambda _: None)
        made = Server.__init__

        def kept(server: Server, session: Session) -> None:
            opened.append(session)
            made(server, session)

        patch.setattr(Server, "__init__", kept)
        program, command, *rest = shlex.split(line)
        assert (program, command) == ("chunkwise", "view")
        run(*rest, "--no-browser")
    (again,) = opened
    return again


def test_what_cannot_be_drawn_or_tried_is_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    of_a_dataset = [
        "--draw 2,2", "--draw 0,1,2", "--draw nowhere", "--draw 3", "--at 1,2", "--at 1,2,-3",
        "--at 24,0,0", f"--at {'1' * 30},0,0", "--zoom 5:2,0:9", "--zoom 0:9,0:9,0:9", "--zoom x",
        "--chunk 1x1", "--filter nonsense", "--for chunkwise",
    ]  # fmt: skip
    assert_golden(
        "view-refused",
        refused(
            lambda words: run(path.name, "cube", *words.split(), "--no-browser"), of_a_dataset
        ),
        refused(
            lambda words: run(path.name, *words.split(), "--no-browser"),
            ["--chunk 1x1x1", "--colour place"],
        ),
    )
    with pytest.raises(ChunkwiseError, match="none of the values"):
        run(path, "cube", "--colour", "values", "-o", tmp_path / "page.html")


def traced(path: Path, **more: Any) -> dict[str, Any]:
    """Describe a program's reads of the cube: rows, one after another."""
    first = ((0, 1, 1, 1), (0, 1, 1, 60), (0, 1, 1, 50))
    run = {
        "first": first, "last": (23, 0, 0), "times": 24, "by": (1, 0, 0), "in_order": True,
        "began": 0.0, "ended": 1.0, "seconds": 1.0, "process": 1,
    }  # fmt: skip
    one = {
        "operation": "read", "file": str(path), "dataset": "/cube", "shape": (24, 60, 50),
        "item_nbytes": 4, "calls": 24, "nbytes": 288000, "seconds": 1.0, "by_chunkwise": 0,
        "reason": "", "runs": [run, run], "unlisted": 0, "chunk": (1, 30, 50),
        "cache_nslots": 521, "cache_nbytes": 12000, "filters": [], "access": ["1x60x50@walk"],
    }  # fmt: skip
    return one | more


@pytest.mark.slow
def test_a_trace_names_its_file_and_is_played(
    path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    other = {"file": "/nowhere/other.h5", "seconds": 9.0}
    record = {
        "format": "chunkwise-trace", "version": 1, "processes": [],
        "datasets": [traced(path, **other), traced(path)],
    }  # fmt: skip
    trace = tmp_path / "reads.json"
    trace.write_text(json.dumps(record))
    found = Traced.of(str(trace))
    # Of files that are here, the one that took the most time.
    assert found.file == str(path)
    assert found.lines[0]["line"].startswith("chunkwise view /nowhere/other.h5 --trace ")
    session = Session.of(found.file, "/cube", ("1x60x50@walk",), trace=found)
    number = session.first()["chosen"]
    assert session.first()["traced"] == {number: ["1x60x50@walk"]}
    words = {"dataset": [str(number)], "read": [""]}
    played = session.film(words)
    # The program's cache held two chunks, of which each of 24 reads needs two; all of it twice.
    assert played["room"] == 2
    assert played["operations"] == 48
    assert [start for start, _ in played["reads"]] == [[i % 24, 0, 0] for i in range(48)]
    assert sum(frame[3] for frame in played["frames"]) == 96
    # With a cache that holds all, each chunk is loaded once.
    larger = session.film(words | {"cache": ["1000000"]})
    assert sum(frame[3] for frame in larger["frames"]) == 48
    page = tmp_path / "page.html"
    run(trace, "-o", page)
    facts, saved = saved_of(page)
    assert facts["chosen"] == number
    assert saved["views"][str(number)]["reads"] == ["1x60x50@walk"]
    trace.write_text(json.dumps(record | {"datasets": [traced(path, **other)]}))
    with pytest.raises(ChunkwiseError, match="not here"):
        run(trace, "--no-browser")
    trace.write_text("[]")
    with pytest.raises(ChunkwiseError, match="no trace"):
        run(trace, "--no-browser")


@pytest.mark.slow
def test_inspect_writes_the_page_with_its_findings(
    path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    page = tmp_path / "page.html"
    for words in ([], ["cube", "--access", "line:0"], ["--ignore", "reads-exceed-cache"]):
        result = CliRunner().invoke(
            cli,
            [
                "inspect", str(path), *words, "--json", "--no-sample", "-o", str(page),
                "--force",
            ],
        )  # fmt: skip
        assert result.exception is None
        said = json.loads(result.output)
        facts, _ = saved_of(page)
        codes = [one["code"] for one in facts["findings"]]
        if words[:1] == ["cube"]:
            own = [one["code"] for one in facts["findings"] if one["object"] == facts["chosen"]]
            assert own == [one["code"] for one in said["findings"]]
        else:
            assert codes == [one["code"] for one in said["findings"]]
    with pytest.raises(ChunkwiseError, match="name it alone"):
        cli.main(["inspect", str(path), str(path), "-o", str(page)], standalone_mode=False)


def test_the_address_is_printed_and_answers(path: Path) -> None:
    words = [sys.executable, "-m", "chunkwise", "view", str(path), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"chunkwise view" in answer.read()
        assert_golden("view", re.sub(r":\d+/[^/]+/", ":PORT/TOKEN/", address))
        process.send_signal(2)
        assert process.wait(60) == 130
