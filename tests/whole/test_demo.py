"""Does the demo run the study, and leave nothing behind when it is interrupted?"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
demo: Any = importlib.import_module("demo")


def test_the_demo_runs_the_study_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-files/study/trials").mkdir(parents=True)
    ran: list[tuple[str, ...]] = []

    def run(*arguments: str) -> None:
        # What an earlier demo has measured is gone by then.
        assert arguments[0] != "study" or not (tmp_path / "demo-files/study").exists()
        ran.append(arguments)

    monkeypatch.setattr(demo, "run", run)
    assert demo.main() == 0
    assert [arguments[0] for arguments in ran] == ["sample", "inspect", "bench", "sample", "study"]
    assert ran[-1] == ("study", "cris", "-o", "demo-files/study")
