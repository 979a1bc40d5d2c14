"""Does `chunkwise view` open what it is given, and write only what it is to write?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chunkwise.cli.main import cli
from chunkwise.errors import ChunkwiseError
from chunkwise.model.seconds import Machine


def run(*words: object) -> Any:
    result = CliRunner().invoke(cli, ["view", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_page_is_saved_with_the_reads_of_a_trace(
    path: Path, known_machine: Machine, tmp_path: Path
) -> None:
    assert known_machine.threads
    before = path.read_bytes()
    trace, page = tmp_path / "t.json", tmp_path / "page.html"
    read = {"file": str(path), "dataset": "/cube", "access": ["24x1x1@walk"]}
    trace.write_text(json.dumps({"datasets": [read]}))
    run(path, "--trace", trace, "--save", page)
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
    with pytest.raises(ChunkwiseError, match=r"name it PAGE\.html"):
        run(path, "--save", path)
    with pytest.raises(ChunkwiseError, match="cannot be written"):
        run(path, "--save", tmp_path / "nowhere" / "page.html")
    with pytest.raises(ChunkwiseError, match="no dataset"):
        run(path, "nothing")


def test_the_address_is_printed_and_answers(path: Path) -> None:
    words = [sys.executable, "-m", "chunkwise", "view", str(path), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"chunkwise view" in answer.read()
        process.send_signal(2)
        assert process.wait(60) == 130
