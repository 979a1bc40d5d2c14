"""What is linked into a wheel, and under which licences?  `make licences` writes it.

`LICENSE-THIRD-PARTY` has the texts; it is in every wheel, in the source archive and in the conda
recipe.  `packaging/c-code.cyclonedx.json` names the C code in crates, which cargo does not know.
cargo says which crates are linked, for each target of a wheel; the texts are those in the crates'
own sources.  With `--check` nothing is written: it fails if the files do not say what is linked.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheels import PLATFORMS

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "LICENSE-THIRD-PARTY"
SBOM = ROOT / "packaging" / "c-code.cyclonedx.json"
SHIPPED = ("chunkwise-py", "chunkwise-preload")
TARGETS = {one.triple for one in PLATFORMS.values()}
# We keep to the first of these that a crate offers.
CHOICE = ("MIT", "Zlib", "BSD-2-Clause", "BSD-3-Clause", "bzip2-1.0.6", "Apache-2.0")


@dataclass(frozen=True)
class Part:
    """Something that is linked."""

    name: str
    version: str
    # Of SPDX.
    licence: str
    # The text that we pass on.
    text: str
    # Of C code: where it is from.
    home: str = ""


@dataclass(frozen=True)
class Vendored:
    """C code in a crate."""

    name: str
    crate: str
    licence: str
    text: str
    # A file that states the version, and where in it.
    version: tuple[str, str]
    home: str


C_CODE = (
    Vendored(
        "libdeflate", "libdeflate-sys", "MIT", "libdeflate/COPYING",
        ("libdeflate/libdeflate.h", r'LIBDEFLATE_VERSION_STRING\s+"([^"]+)"'),
        "https://github.com/ebiggers/libdeflate",
    ),
    Vendored(
        "isa-l", "isal-sys", "BSD-3-Clause", "isa-l/LICENSE",
        ("isa-l/configure.ac", r"AC_INIT\(\[libisal\],\s*\[([\d.]+)\]"),
        "https://github.com/intel/isa-l",
    ),
    Vendored(
        "zstd", "zstd-sys", "BSD-3-Clause", "zstd/LICENSE",
        ("Cargo.toml", r'version = "[^+"]+\+zstd\.([^"]+)"'),
        "https://github.com/facebook/zstd",
    ),
    Vendored(
        "lz4", "lz4-sys", "BSD-2-Clause", "liblz4/lib/LICENSE",
        ("Cargo.toml", r'version = "[^+"]+\+lz4-([^"]+)"'),
        "https://github.com/lz4/lz4",
    ),
    Vendored(
        "zlib", "libz-sys", "Zlib", "src/zlib/LICENSE",
        ("src/zlib/zlib.h", r'ZLIB_VERSION "([^"]+)"'),
        "https://github.com/madler/zlib",
    ),
)  # fmt: skip
# Crates with C code of their own, under our licence; with `cc` as a need of their builds.
OURS = {"chunkwise-isal"}


def _cargo(*words: str) -> str:
    run = subprocess.run(
        ["cargo", *words, "--locked"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return run.stdout


@functools.cache
def _packages() -> dict[tuple[str, str], dict[str, Any]]:
    told = json.loads(_cargo("metadata", "--format-version=1"))
    return {(one["name"], one["version"]): one for one in told["packages"]}


def linked() -> list[dict[str, Any]]:
    """What cargo knows of the crates of others in a wheel: one for each, on any target."""
    found = set()
    for target in TARGETS:
        words = [word for name in SHIPPED for word in ("--package", name)]
        # Not macros: they run in the compiler.
        told = _cargo(
            "tree", *words, "--target", target, "--edges", "normal,no-proc-macro",
            "--prefix", "none", "--format", "{p}",
        )  # fmt: skip
        found |= {tuple(line.split()[:2]) for line in told.splitlines() if line}
    known = [_packages()[name, version.removeprefix("v")] for name, version in sorted(found)]
    return [one for one in known if one["source"]]


def with_c_code() -> set[str]:
    """Name the crates in a wheel that compile C."""
    ours = [one for one in _packages().values() if not one["source"]]
    names = {one["name"] for one in linked()} | {one["name"] for one in ours}
    return {
        one["name"]
        for one in _packages().values()
        if one["name"] in names
        and any(need["name"] == "cc" and need["kind"] == "build" for need in one["dependencies"])
    }


def _folder(package: dict[str, Any]) -> Path:
    return Path(package["manifest_path"]).parent


def _crate(package: dict[str, Any]) -> Part:
    stated = package["license"].replace("/", " OR ")
    offered = re.findall(r"[\w.-]+", stated)
    licence = next((one for one in CHOICE if one in offered), None)
    if licence is None or "AND" in offered:
        raise SystemExit(f"{package['name']}: {stated!r} is none of {CHOICE}: look at it")
    texts = sorted(path for path in _folder(package).iterdir() if path.is_file())
    texts = [one for one in texts if re.match("licen[sc]e|copying", one.name, re.IGNORECASE)]
    word = licence.partition("-")[0].lower()
    named = [one for one in texts if word in one.name.lower()]
    alone = [one for one in texts if one.stem.lower() in {"license", "licence", "copying"}]
    if not (named or alone):
        raise SystemExit(f"{package['name']}: no text of {licence} among {texts}")
    return Part(
        package["name"], package["version"], licence, (named or alone)[0].read_text("utf-8")
    )


def c_parts() -> list[Part]:
    """The C code in crates."""
    by_name = {name: one for (name, _), one in _packages().items()}
    parts = []
    for one in C_CODE:
        folder = _folder(by_name[one.crate])
        name, pattern = one.version
        version = re.search(pattern, (folder / name).read_text("utf-8"))
        if version is None:
            raise SystemExit(f"{one.name}: no version in {folder / name}")
        text = (folder / one.text).read_text("utf-8")
        parts.append(Part(one.name, version[1], one.licence, text, one.home))
    return parts


def toolchain() -> list[Part]:
    """What the compilers add."""
    channel = re.search(r'channel = "(.+)"', (ROOT / "rust-toolchain.toml").read_text())
    lines = (ROOT / "LICENSE-MIT").read_text("utf-8").splitlines(keepends=True)
    mit = "".join(line for line in lines if not line.startswith("Copyright"))
    apache = (ROOT / "LICENSE-APACHE").read_text("utf-8")
    return [
        Part("Rust's standard library", channel[1] if channel else "", "MIT",
             mit.replace("MIT License\n", "Copyright (c) The Rust Project Contributors\n")),
        # Linked in by zig.
        Part("LLVM's libunwind and compiler-rt", "", "Apache-2.0 WITH LLVM-exception",
             apache + "\n" + LLVM_EXCEPTION),
    ]  # fmt: skip


LLVM_EXCEPTION = """\
---- LLVM Exceptions to the Apache 2.0 License ----

As an exception, if, as a result of your compiling your source code, portions
of this Software are embedded into an Object form of such source code, you
may redistribute such embedded portions in such Object form without complying
with the conditions of Sections 4(a), 4(b) and 4(d) of the License.

In addition, if you combine or link compiled forms of this Software with
software that is licensed under the GPLv2 ("Combined Software") and if a
court of competent jurisdiction determines that the patent provision (Section
3), the indemnity provision (Section 9) or other Section of the License
conflicts with the conditions of the GPLv2, you may retroactively and
prospectively choose to deem waived or otherwise exclude such Section(s) of
the License, but only in their entirety and only with respect to the Combined
Software.
"""


def texts() -> str:
    """All parts, then each text once."""
    parts = [*c_parts(), *map(_crate, linked()), *toolchain()]
    lines = [
        "The binary packages of chunkwise contain the following software of others, each under",
        "the licence that is named. Not each platform has all of it. The texts are below.",
        "",
        *(f"{one.name} {one.version}".strip() + f": {one.licence}" for one in parts),
    ]
    same: dict[str, list[Part]] = defaultdict(list)
    for one in parts:
        same[" ".join(one.text.split())].append(one)
    for some in same.values():
        names = ", ".join(one.name for one in some)
        lines += ["", "-" * 80, f"{names} ({some[0].licence})", ""]
        lines += [line.rstrip() for line in some[0].text.strip().splitlines()]
    return "\n".join(lines) + "\n"


def sbom() -> str:
    """Name the C code, as CycloneDX does."""
    parts = [
        {
            "type": "library",
            "bom-ref": f"pkg:generic/{one.name}@{one.version}",
            "name": one.name,
            "version": one.version,
            "licenses": [{"license": {"id": one.licence}}],
            "purl": f"pkg:generic/{one.name}@{one.version}",
            "externalReferences": [{"type": "website", "url": one.home}],
        }
        for one in c_parts()
    ]
    whole = {"type": "library", "bom-ref": "chunkwise", "name": "chunkwise"}
    record = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
        "dependencies": [{"ref": "chunkwise", "dependsOn": [one["bom-ref"] for one in parts]}],
    }
    return json.dumps(record, indent=1) + "\n"


def main() -> int:
    """Write, or compare."""
    unknown = with_c_code() - {one.crate for one in C_CODE} - OURS
    if unknown:
        raise SystemExit(f"these crates compile C: name it in C_CODE: {', '.join(unknown)}")
    stale = False
    for path, text in ((TEXTS, texts()), (SBOM, sbom())):
        if "--check" in sys.argv:
            if not path.exists() or path.read_text("utf-8") != text:
                stale = True
                print(f"{path.name} is not what is linked: make licences", flush=True)
        else:
            path.write_text(text, "utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
