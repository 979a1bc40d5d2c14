"""Does docs/api.md have every public name and member, as the docstrings have them today?"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import chunkwise

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api", ROOT / "scripts" / "api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(script: ModuleType) -> None:
    assert script.PAGE.read_text("utf-8") == script.page(), "run python scripts/api.py"


def test_every_name_and_member_is_on_it(script: ModuleType) -> None:
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
