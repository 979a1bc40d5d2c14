"""The wheel installs and reads where there is neither Rust nor a compiler."""

import importlib
import os
import platform
import venv
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import _native
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
READ = """
import sys, h5py, numpy, chunkwise
with chunkwise.open(sys.argv[1]) as f:
    d = f["x"]
    assert d.explain()["path"] == "chunked", d.explain()
    assert numpy.array_equal(d[...], numpy.arange(10000).reshape(100, 100))
print(chunkwise.__file__)
"""


def newest() -> Path:
    """Return the wheel."""
    wheels = sorted((ROOT / "dist").glob(f"chunkwise-*manylinux*_{platform.machine()}.whl"))
    if not wheels:
        pytest.skip("no wheel in dist/ (`make wheel`)")
    return wheels[-1]


def test_holds_all_that_is_read_when_it_runs() -> None:
    sources = ROOT / "python"
    kinds = (".py", ".pyi", ".toml", ".css", ".js", ".c", ".typed")
    files = [path for path in sources.rglob("*") if path.suffix in kinds]
    if newest().stat().st_mtime < max(path.stat().st_mtime for path in files):
        pytest.skip("the wheel in dist/ is older than the package (`make wheel`)")
    wanted = {str(path.relative_to(sources)) for path in files}
    assert {"chunkwise_lab/studies/cris/study.toml", "chunkwise_lab/report/page.css"} <= wanted
    with zipfile.ZipFile(newest()) as wheel:
        assert wanted <= set(wheel.namelist())
        beside = [
            name for name in wheel.namelist() if name.endswith("purelib/chunkwise_patch.pth")
        ]
    assert len(beside) == 1


def test_is_fit_to_be_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "build"))
    release: Any = importlib.import_module("release")
    (name,) = filter(release.can_run, release.PLATFORMS)
    assert list(release.wheel(newest(), release.PLATFORMS[name])) == []


MIB = 1 << 20


def test_no_debugging_information_is_shipped() -> None:
    with zipfile.ZipFile(newest()) as wheel:
        modules = [one for one in wheel.infolist() if one.filename.endswith(".so")]
    assert sorted(one.filename for one in modules) == [
        "chunkwise/_native.abi3.so",
        "chunkwise/libchunkwise_preload.so",
    ]
    assert all(one.file_size < 12 * MIB for one in modules), modules
    assert newest().stat().st_size < 6 * MIB


def test_libdeflate_is_built_by_clang() -> None:
    """Which makes it 1.04 times as fast as gcc does (docs/filters.md)."""
    with zipfile.ZipFile(newest()) as wheel:
        module = wheel.read("chunkwise/_native.abi3.so")
    assert b"clang version" in module
    assert b"GCC: (" not in module


def test_none_is_installed() -> None:
    assert Path(str(_native.__file__)).stat().st_size < 12 * MIB


def test_installs_without_compilers_and_reads(tmp_path: Path) -> None:
    wheel = newest()
    assert "abi3" in wheel.name
    assert "manylinux" in wheel.name
    with h5py.File(tmp_path / "x.h5", "w") as f:
        data = np.arange(10000).reshape(100, 100)
        f.create_dataset("x", data=data, chunks=(30, 30), compression=4, shuffle=True)
    venv.create(tmp_path / "venv", with_pip=True)
    # A path with nothing on it: neither cargo nor cc can be found.
    (tmp_path / "empty").mkdir()
    kept = ("PIP_", "SSL_", "HTTP", "http", "LANG", "HOME", "TMPDIR")
    env = {k: v for k, v in os.environ.items() if k.startswith(kept)}
    env["PATH"] = str(tmp_path / "empty")

    def run(*args: str) -> str:
        done = ran([str(tmp_path / "venv/bin/python"), *args], env=env, cwd=tmp_path, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    constraints = str(ROOT / "constraints.txt")
    run("-m", "pip", "install", "-q", "-c", constraints, "--only-binary=:all:", str(wheel))
    assert run("-c", READ, str(tmp_path / "x.h5")).startswith(str(tmp_path / "venv"))
    version = run("-m", "pip", "show", "chunkwise")
    assert f"Version: {_native.__version__}" in version
    script = tmp_path / "venv/bin/chunkwise"
    assert "shuffle+deflate:4" in run(str(script), "inspect", str(tmp_path / "x.h5"))
    # The library that is put under programs works there as well.
    read = "import h5py, sys; print(h5py.File(sys.argv[1])['x'][5, 7])"
    words = ("run", "--report-to", "report", "--", str(tmp_path / "venv/bin/python"), "-c", read)
    assert run(str(script), *words, str(tmp_path / "x.h5")) == "507\n"
    assert "1 read by chunkwise" in (tmp_path / "report").read_text()
