"""Is README.md filled from a run, and do its commands and its Python work?"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from chunkwise.sample import write

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
readme: Any = importlib.import_module("readme")


def test_readme_is_filled_and_its_commands_parse() -> None:
    assert readme.check((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_readme_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo-files").mkdir()
    write("cube", tmp_path / "demo-files/cube.h5", shape=(120, 101, 201))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    names: dict[str, Any] = {}
    for _, code in blocks:
        exec(textwrap.dedent(code), names)
    assert names["series"].shape == (120,)
    assert names["plan"]["path"] == "chunked"
    assert names["everything"].shape == (120, 101, 201)


MARKED = (
    "a <!--=row_speedup-->1<!--/--> b\n<!-- run: chunkwise inspect x.h5 -->\nold\n<!-- end -->\n"
)


def test_fill() -> None:
    filled = readme.fill(MARKED, lambda command: f"ran {command} \n", {"row_speedup": "1,600"})
    assert filled == (
        "a <!--=row_speedup-->1,600<!--/--> b\n<!-- run: chunkwise inspect x.h5 -->\n"
        "```console\n$ chunkwise inspect x.h5\nran chunkwise inspect x.h5\n```\n<!-- end -->\n"
    )
    # What cannot be run stays; filling again changes nothing.
    assert readme.fill(MARKED, lambda _: None, {"row_speedup": "1"}) == MARKED
    assert readme.fill(filled, lambda c: f"ran {c}", {"row_speedup": "1,600"}) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- run: chunkwise mend x.h5 -->\nx\n<!-- end -->", "no command 'mend'"),
        ("<!-- run: chunkwise bench x.h5 --chache 1 -->\nx\n<!-- end -->", "--chache"),
        ("<!-- run: python examples/none.py -->\nx\n<!-- end -->", "there is no"),
        ("<!-- run: rm x.h5 -->\nx\n<!-- end -->", "neither chunkwise"),
        ("<!-- run: chunkwise inspect x.h5 -->\n<!-- end -->", "not filled"),
        ("<!-- run: chunkwise inspect x.h5 -->\nx\n", "no end"),
        ("<!--=speedup-->1<!--/-->", "no figure"),
        ("<!--=machine--><!--/-->", "not filled"),
        ("```\nchunkwise bench x.h5 \\\n  --no-such-option\n```\n", "--no-such-option"),
    ],
)
def test_check_finds(text: str, said: str) -> None:
    assert [line for line in readme.check(text) if said in line]
    assert readme.check(MARKED) == []
