"""A machine is measured once, and whatever is wrong with what was kept is measured again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import chunkwise
from chunkwise.advice import calibration
from chunkwise.model.seconds import Machine
from tests.advising.conftest import MACHINE


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "measured", lambda: MACHINE)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    return calibration.cache_path()


def said(path: Path) -> list[str]:
    """Ask for the machine, and tell what was said."""
    lines: list[str] = []
    assert calibration.machine(say=lines.append) == MACHINE
    assert path.exists()
    return lines


def test_a_machine_is_measured_once(own_cache: Path) -> None:
    assert said(own_cache) == ["measuring this machine, once"]
    assert said(own_cache) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version": 0}',
        b"\xff\xfe",
        json.dumps({"version": calibration.VERSION, **calibration.key()}).encode(),
        json.dumps(
            {
                "version": calibration.VERSION,
                **calibration.key(),
                "busy": False,
                "machine": {**MACHINE.as_dict(), "reads": {"libhdf5": {"call_s": -1}}},
            }
        ).encode(),
    ],
)
def test_a_broken_file_is_measured_again(own_cache: Path, content: bytes) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_bytes(content)
    assert said(own_cache) == ["measuring this machine, once"]
    assert said(own_cache) == []


def test_another_library_is_another_machine(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(own_cache)
    known = calibration.key()
    monkeypatch.setattr(calibration, "key", lambda: {**known, "hdf5": "9.9.9"})
    assert said(own_cache) == ["measuring this machine, once"]


def test_what_was_measured_beside_others_is_measured_again_without_them(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = [99.0 * (os.cpu_count() or 1)]
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    said(own_cache)
    # For as long as they are there, it would be no better.
    assert said(own_cache) == []
    load[0] = 0.0
    assert said(own_cache) == ["measuring this machine, once"]
    load[0] = 99.0 * (os.cpu_count() or 1)
    assert said(own_cache) == []


def test_it_is_measured_again_when_asked(own_cache: Path) -> None:
    said(own_cache)
    lines: list[str] = []
    calibration.machine(again=True, say=lines.append)
    assert len(lines) == 1


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(calibration, "measured", lambda: MACHINE)
    assert calibration.machine() == MACHINE


def test_a_relative_cache_folder_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert calibration.cache_path().is_relative_to(Path.home())


@pytest.mark.slow
def test_what_is_measured_is_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = chunkwise.settings().threads
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = calibration.measured()
    assert Machine.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    assert set(found.reads) == set(found.writes) == {"libhdf5", "chunkwise"}
    for rates in found.reads.values():
        # A call takes something, and memory is not read at a terabyte a second.
        assert rates.call_s + rates.touch_s > 1e-8
        assert rates.copy_s + rates.fetch_s + rates.fresh_s > 1e-12
    assert 1 <= found.scaling <= found.threads == threads
    # The process is left as it was, and so is the folder.
    assert chunkwise.settings().threads == threads
    assert not list(tmp_path.iterdir())
