"""Are README.md and the first pages of the site filled from a run, and do their examples work?"""

import importlib
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.sample import write

ROOT = Path(__file__).resolve().parents[2]
readme: Any = importlib.import_module("readme")
NAMES = [str(page.relative_to(ROOT)) for page in readme.PAGES]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_filled_and_its_commands_parse(name: str) -> None:
    assert readme.check((ROOT / name).read_text(encoding="utf-8")) == []


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which `make demo` was run, as far as the pages need it."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "demo-files").mkdir()
    write("cube", folder / "demo-files/cube.h5", shape=(120, 101, 201))
    return folder


def python_of(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in blocks]


@pytest.mark.parametrize("name", NAMES)
def test_the_python_of_the_page_runs(
    name: str, cube: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = python_of(name)
    if any("xarray" in code for code in blocks):
        pytest.importorskip("xarray", reason="xarray is not installed")
    monkeypatch.chdir(cube)
    names: dict[str, Any] = {}
    for code in blocks:
        exec(code, names)
    if name == "README.md":
        assert names["series"].shape == (120,)
    if name == "docs/start/faster.md":
        assert names["series"].shape == (120,)
        assert names["plan"]["path"] == "chunked"
        assert names["everything"].shape == (120, 101, 201)


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


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
