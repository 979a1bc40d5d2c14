"""How is the package built? By maturin; before it the library that is put under programs.

maturin makes one library of one crate.  The other is no extension module: it goes into the package
as a file.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import maturin
import watched
from maturin import build_sdist, get_requires_for_build_sdist  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "chunkwise"
CRATE = "chunkwise-preload"
# What of systems and processors there is code for, and wheels of h5py.
SYSTEMS = ("linux", "darwin", "win32")
PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")


def not_supported() -> str | None:
    """Say in a line why chunkwise cannot be built here; None if it can."""
    kind = sys.implementation.name
    if kind != "cpython":
        return f"chunkwise needs CPython: {kind} is not supported"
    if sys.platform not in SYSTEMS:
        return f"chunkwise runs on Linux, macOS and Windows: {sys.platform} is not supported"
    processor = platform.machine().lower()
    if processor not in PROCESSORS or sys.maxsize < 2**32:
        bits = 32 if sys.maxsize < 2**32 else 64
        return (
            f"chunkwise runs on x86-64 and 64-bit Arm: {processor}, with a Python of {bits} bits, "
            "is not supported"
        )
    if shutil.which("cargo") is None:
        return "chunkwise is built by Rust, which is missing: install it from rustup.rs"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        print("chunkwise: this Python will use its lock (GIL) once chunkwise is imported",
              file=sys.stderr)  # fmt: skip
    return None


def _require_supported() -> None:
    reason = not_supported()
    if reason is not None:
        raise SystemExit(reason)


def get_requires_for_build_wheel(*arguments: Any, **settings: Any) -> list[str]:
    """As maturin; called first, before anything is compiled."""
    _require_supported()
    return list(maturin.get_requires_for_build_wheel(*arguments, **settings))


def get_requires_for_build_editable(*arguments: Any, **settings: Any) -> list[str]:
    """As maturin."""
    _require_supported()
    return list(maturin.get_requires_for_build_editable(*arguments, **settings))


# What Rust calls of libgcc_s to unwind the stack, by the version that has had it first.
UNWINDING = {
    "GCC_3.0": (
        "DeleteException GetDataRelBase GetIP GetLanguageSpecificData GetRegionStart "
        "GetTextRelBase RaiseException Resume SetGR SetIP"
    ),
    "GCC_3.3": "Backtrace FindEnclosingFunction GetCFA",
    "GCC_4.2.0": "GetIPInfo",
}


def libgcc(folder: Path, target: str) -> Path:
    """Make a libgcc_s to link with, which has names and no code.

    cargo-zigbuild links LLVM's libunwind into what it builds.  The exceptions of a program in C++
    that pass through the library for programs are unwound by the program's libgcc_s, and to that
    LLVM's functions are of no use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, versions = folder / "libgcc_s.c", folder / "libgcc_s.map"
    with source.open("w") as code, versions.open("w") as script:
        for version, some in UNWINDING.items():
            names = [f"_Unwind_{one}" for one in some.split()]
            code.writelines(f"void {name}(void) {{}}\n" for name in names)
            script.write(f"{version} {{ {'; '.join(names)}; }};\n")
    made = folder / "libgcc_s.so.1"
    linker = f"-Wl,-soname,{made.name},--version-script={versions}"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    subprocess.run([*compiler, "-shared", "-nostdlib", linker, "-o", made, source], check=True)
    return made


def put_library(
    command: tuple[str, ...] = ("cargo", "build"), after: tuple[str, ...] = ()
) -> None:
    """Build the library for programs and put it into the package."""
    words = [*command, "--release", "--locked", "--package", CRATE]
    told = subprocess.run(
        [*words, "--message-format", "json-render-diagnostics", "--quiet", *after],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, env=os.environ,
    ).stdout  # fmt: skip
    made = [
        Path(file)
        for line in told.splitlines()
        for file in json.loads(line).get("filenames", [])
        if Path(file).suffix == ".so" and CRATE.replace("-", "_") in Path(file).name
    ]
    target = PACKAGE / made[-1].name
    # A program may be running with the one that is there.
    fresh = target.with_suffix(".new")
    shutil.copy2(made[-1], fresh)
    fresh.replace(target)


def compiler() -> str | None:
    """Return the C compiler that the build names: clang, if it works and nobody has named another.

    libdeflate inflates 1.04 times as fast if clang compiles it instead of gcc.
    """
    named = any(
        name in ("CC", "HOST_CC", "TARGET_CC") or name.startswith("CC_") for name in os.environ
    )
    found = None if named or sys.platform != "linux" else shutil.which("clang")
    if found is None:
        return None
    # It may lack the headers and libraries that gcc brings.
    code = "#include <stdlib.h>\n#include <string.h>\nvoid *f(void) { return calloc(1, 1); }\n"
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder, "made.so"))
        command = [found, "-O2", "-fPIC", "-shared", "-x", "c", "-", "-o", made]
        try:
            tried = subprocess.run(command, input=code.encode(), capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return found if tried.returncode == 0 else None


@contextmanager
def _building() -> Iterator[None]:
    _require_supported()
    chosen = compiler()
    if chosen is not None:
        os.environ["CC"] = chosen
    with watched.shown():
        # Programs are changed by `LD_PRELOAD`.
        if sys.platform == "linux":
            put_library()
        yield


def build_wheel(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    with _building():
        return str(maturin.build_wheel(*arguments, **settings))


def build_editable(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    with _building():
        return str(maturin.build_editable(*arguments, **settings))


def prepare_metadata_for_build_wheel(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    return str(maturin.prepare_metadata_for_build_wheel(*arguments, **settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def main() -> None:
    """Put the library for a target into a wheel's sources: for an old glibc, or for musl."""
    target = sys.argv[1]
    if target.endswith("musl"):
        # musl's own linker loads it.
        os.environ["RUSTFLAGS"] = "-C target-feature=-crt-static"
        put_library(("cargo-zigbuild", "rustc", "--target", target))
        return
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "libgcc" / target
    linked = libgcc(folder, target.replace("-unknown", ""))
    put_library(
        ("cargo-zigbuild", "rustc", "--target", f"{target}.2.17"),
        ("--", "-C", f"link-arg={linked}"),
    )


if __name__ == "__main__":
    main()
