"""What does the build say before it compiles, and while?"""

import importlib
import os
import platform
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("maturin", reason="maturin is not installed")
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "build"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("backend")


@pytest.mark.parametrize(
    ("where", "name", "value", "said"),
    [
        (sys, "implementation", SimpleNamespace(name="pypy"), "pypy is not supported"),
        (sys, "platform", "freebsd14", "freebsd14 is not supported"),
        (platform, "machine", lambda: "riscv64", "riscv64"),
        (sys, "maxsize", 2**31 - 1, "32 bits"),
        (shutil, "which", lambda _: None, "rustup.rs"),
    ],
    ids=["pypy", "system", "processor", "32 bits", "no Rust"],
)
def test_what_is_not_supported_is_refused_in_a_line(
    backend: Any, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, value: Any, said: str
) -> None:
    assert backend.not_supported() is None
    # What compiles is not reached.
    monkeypatch.setattr(backend, "put_library", None)
    monkeypatch.setattr(where, name, value)
    for hook in ("get_requires_for_build_wheel", "build_wheel", "build_editable"):
        with pytest.raises(SystemExit) as refused:
            getattr(backend, hook)("out")
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_build_says_at_the_start_how_long_it_takes(
    backend: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = os.open

    def without_terminal(path: Any, *words: Any, **options: Any) -> int:
        if path == "/dev/tty":
            raise OSError(6, "No such device or address")
        return real(path, *words, **options)

    monkeypatch.setattr(os, "open", without_terminal)
    with backend.watched.shown():
        assert "minutes" in capsys.readouterr().err


def test_a_terminal_shows_how_far_it_is(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, end = os.openpty()
    name = os.ttyname(end)
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *words: real(
        name if path == "/dev/tty" else path, *words))  # fmt: skip
    said = b""
    with backend.watched.shown():
        while b"crates compiled" not in said:
            said += os.read(terminal, 1000)
    assert b"minutes" in said
    os.close(end)
    os.close(terminal)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one compiler")
@pytest.mark.parametrize(
    ("code", "variables", "is_taken"),
    [
        ("cat > /dev/null", {}, True),
        ("exit 1", {}, False),
        ("cat > /dev/null", {"CC": "gcc"}, False),
        ("cat > /dev/null", {"CC_x86_64_unknown_linux_gnu": "gcc"}, False),
        (None, {}, False),
    ],
    ids=["works", "lacks headers", "another is named", "for a target", "none"],
)
def test_clang_is_taken_where_it_works_and_no_other_is_named(
    backend: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: str | None,
    variables: dict[str, str],
    is_taken: bool,
) -> None:
    for name in [name for name in os.environ if name.endswith("CC") or name.startswith("CC_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    clang = tmp_path / "clang"
    if code is not None:
        clang.write_text(f"#!/bin/sh\n{code}\n")
        clang.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(clang) if code is not None else None)
    assert backend.compiler() == (str(clang) if is_taken else None)
