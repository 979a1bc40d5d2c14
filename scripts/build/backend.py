"""How is the package built? By maturin; before it the library that is put under programs.

maturin makes one library of one crate.  The other is no extension module: it goes into the package
as a file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "chunkwise"
CRATE = "chunkwise-preload"


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


def build_wheel(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    put_library()
    return str(maturin.build_wheel(*arguments, **settings))


def build_editable(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    put_library()
    return str(maturin.build_editable(*arguments, **settings))


def prepare_metadata_for_build_wheel(*arguments: Any, **settings: Any) -> str:
    """As maturin."""
    return str(maturin.prepare_metadata_for_build_wheel(*arguments, **settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

if __name__ == "__main__":
    # `make wheel`: for an old glibc, as maturin builds the extension module there; for this
    # machine, or for the target that is named.
    host = (
        subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True)
        .stdout.partition("host: ")[2]
        .split()[0]
    )
    target = sys.argv[1] if len(sys.argv) > 1 else host
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "libgcc" / target
    linked = libgcc(folder, target.replace("-unknown", ""))
    put_library(
        ("cargo-zigbuild", "rustc", "--target", f"{target}.2.17"),
        ("--", "-C", f"link-arg={linked}"),
    )
