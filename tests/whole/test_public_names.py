"""Does a package list what it offers before it has imported it, and docs/api.md all of that?"""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import chunkwise
from tests.support.processes import python

ROOT = Path(__file__).resolve().parents[2]
script: Any = importlib.import_module("api")
MODULES = {"dask", "errors", "parallel", "xarray"}
LIST = """
import importlib, json, sys
package = importlib.import_module(sys.argv[1])
print(json.dumps([dir(package), package.__all__, "h5py" in sys.modules]))
"""


@pytest.mark.parametrize(
    "name",
    [
        "chunkwise", "chunkwise.dask", "chunkwise.inspection", "chunkwise.parallel",
        "chunkwise.repacking", "chunkwise.xarray",
    ],
)  # fmt: skip
def test_the_interface_is_listed_and_nothing_else(name: str) -> None:
    listed, stated, imported = json.loads(python(LIST, name))
    shown = {one for one in listed if not one.startswith("__")}
    offered = {one for one in stated if not one.startswith("__")}
    assert shown == offered | (MODULES if name == "chunkwise" else set())
    assert set(stated) <= set(listed)
    assert listed == sorted(set(listed))
    assert not imported, "h5py is imported when it is needed"
    package = importlib.import_module(name)
    assert all(getattr(package, one) is not None for one in stated)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_of_the_interface_need_no_import_of_their_own(name: str) -> None:
    program = f"import chunkwise; print(chunkwise.{name}.__name__)"
    assert python(program) == f"chunkwise.{name}"


def test_what_the_pages_call_is_public() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    words = "\n".join(page.read_text("utf-8") for page in pages)
    called = set(re.findall(r"\bchunkwise\.([a-z_0-9]+)\(", words))
    assert {"open", "repack", "union", "wrap"} <= called
    assert called <= set(dir(chunkwise))
    assert called <= set(chunkwise.__all__)


def test_the_page_is_current() -> None:
    assert script.PAGE.read_text("utf-8") == script.page(), "run python scripts/api.py"


def test_every_name_and_member_is_on_it() -> None:
    page = script.page()
    for name in chunkwise.__all__:
        value = getattr(chunkwise, name)
        assert f"`{name}`" in page or f"chunkwise.{name}" in page, name
        if isinstance(value, type) and not issubclass(value, Exception):
            public = {one for one in vars(value) if not one.startswith("_")}
            assert public <= script.members(value).keys()
            for member, line in script.members(value).items():
                assert line, f"{name}.{member} has no docstring"
                assert f"| `{member}" in page, f"{name}.{member}"
